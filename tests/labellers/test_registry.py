import os
import pickle
import pkgutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ptrnet
from ptrnet import labellers, tasks
from ptrnet.errors import InputError, MissingExtraError


def test_every_task_names_labellers_that_exist():
    for name in tasks.names():
        assert set(tasks.get(name).facts.labellers) <= set(labellers.names())


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean 'monotone-chain'"):
        labellers.get("monoton-chain")


def test_a_missing_package_is_named_before_any_work(monkeypatch):
    monkeypatch.setattr("ptrnet.errors.find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r'labeller pyvrp needs the extra "labels"'
    ) as raised:
        labellers.check_labeller(tasks.get("cvrp"), "pyvrp")
    again = pickle.loads(pickle.dumps(raised.value))  # as pickling from another process gives it
    assert str(again) == str(raised.value)
    labellers.check_labeller(tasks.get("tsp"), "exact")


def test_the_folder_is_not_listed_for_every_batch(monkeypatch):
    """Listing it takes longer than labelling a batch."""
    task, points = tasks.get("hull"), np.random.default_rng(0).random((3, 5, 2))
    first = labellers.label(task, points)

    def refuse(*_):
        raise AssertionError("listed the folder")

    monkeypatch.setattr(pkgutil, "iter_modules", refuse)
    again = labellers.label(task, points)
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))


def test_label_refuses_instances_as_its_first_argument():
    with pytest.raises(InputError, match=r"^label: expected a task or its name first, got array"):
        ptrnet.label(np.zeros((1, 3, 2)), "hull")


@pytest.mark.parametrize(
    ("name", "labeller"), [("job-shop", "cp-sat"), ("orienteering", "circuit")]
)
def test_ctrl_c_interrupts_after_an_answer_of_or_tools(name, labeller):
    """OR-Tools: its handler of SIGINT leaves a handler with which Ctrl-C ends the process."""
    task = tasks.get(name)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        labellers.label(task, task.sample(np.random.default_rng(0), 1, 4), labeller)
        if sys.platform == "linux":
            caught = Path("/proc/self/status").read_text().split("SigCgt:")[1].split()[0]
            assert int(caught, 16) >> (signal.SIGINT - 1) & 1
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
    finally:
        signal.signal(signal.SIGINT, before)
