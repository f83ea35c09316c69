"""The ordered map gives the results of a plain map, whichever process computes them."""

import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from ptrnet.errors import InputError, KilledError, MissingExtraError
from ptrnet.parallel import BACKENDS, LOCAL, check_processes, ordered_map

ITEMS = list(range(50))
EXPECTED = [math.factorial(k) for k in ITEMS]


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_keep_the_order(jobs):
    assert list(ordered_map(math.factorial, ITEMS, jobs)) == EXPECTED


def test_endless_items_are_read_only_as_far_as_needed():

    def endless():
        k = 0
        while True:
            yield k % 20
            k += 1

    results = ordered_map(math.factorial, endless(), 1)
    assert [next(results) for _ in range(3)] == [1, 1, 2]


def is_killed(k):
    if k == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return k


def test_a_killed_process_is_reported_in_one_line():
    """The system kills processes if memory is short."""
    with pytest.raises(KilledError, match=r"a process was killed.* \(jobs\) need less"):
        list(ordered_map(is_killed, range(9), 2))
    assert list(ordered_map(math.factorial, ITEMS, 2)) == EXPECTED


def stops(k):
    if k == 5:
        raise InputError("five")
    return k


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_of_the_function_and_of_the_items_reach_the_caller(jobs):
    """A thread of joblib's would swallow errors of the items."""

    def items():
        yield from range(3)
        raise InputError("no more")

    with pytest.raises(InputError, match="no more"):
        list(ordered_map(math.factorial, items(), jobs))
    with pytest.raises(InputError, match="five"):
        list(ordered_map(stops, range(100), jobs))


def test_items_are_drawn_while_others_are_computed():
    """If a whole round were drawn at its beginning, the processes would wait for it."""
    drawn = []

    def items():
        for k in range(200):
            drawn.append(k)
            yield k

    results = ordered_map(math.factorial, items(), 2)
    counts = []
    for _ in range(64):
        next(results)
        counts.append(len(drawn))
    assert counts[0] == 64 and counts[-1] == 64 + 63
    results.close()


# joblib's thread may report that its items ended early.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_caller_can_stop_early():
    left_early = ordered_map(math.factorial, range(500), 2)
    assert next(left_early) == 1
    left_early.close()


@pytest.fixture
def environment():
    """Restore the environment variables, which a Dask cluster changes, after the test."""
    before = dict(os.environ)
    yield before
    os.environ.clear()
    os.environ.update(before)


WORKING = """
import os, sys, time
from ptrnet.parallel import ordered_map

def work(folder):
    open(f"{folder}/{os.getpid()}", "w").close()
    time.sleep(600)

if __name__ == "__main__":
    list(ordered_map(work, [sys.argv[1]] * 2, 2))
"""


def wait_until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(process):
    """Whether a process runs. An ended one may stay in the table, as a zombie (Z)."""
    command = ["ps", "-o", "stat=", "-p", str(process)]
    state = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    return state != "" and not state.startswith("Z")


@pytest.mark.parametrize("deadly", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent(tmp_path, deadly):
    (tmp_path / "workers").mkdir()
    (tmp_path / "working.py").write_text(WORKING)
    with subprocess.Popen(
        [sys.executable, tmp_path / "working.py", tmp_path / "workers"]
    ) as parent:
        try:
            wait_until(lambda: len(list((tmp_path / "workers").iterdir())) == 2)
            workers = [int(path.name) for path in (tmp_path / "workers").iterdir()]
            assert all(map(is_running, workers))
            parent.send_signal(deadly)
            parent.wait(60)
        finally:
            parent.kill()
    wait_until(lambda: not any(map(is_running, workers)))


# Python runs this file as it starts, before a worker of joblib reads what to do.
SLOW_START = """
import os, pathlib, sys, time

if any("LokyProcess" in word for word in sys.orig_argv):
    parent = os.getppid()
    pathlib.Path(os.environ["WORKERS"], str(os.getpid())).touch()
    while os.getppid() == parent:
        time.sleep(0.05)
"""


def test_a_worker_that_starts_while_its_parent_is_killed_ends(tmp_path):
    (tmp_path / "workers").mkdir()
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "WORKERS": str(tmp_path / "workers")}
    code = "from ptrnet.parallel import ordered_map; list(ordered_map(abs, range(9), 2))"
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as parent:
        try:
            wait_until(lambda: len(list((tmp_path / "workers").iterdir())) == 2)
        finally:
            parent.kill()
    workers = [int(path.name) for path in (tmp_path / "workers").iterdir()]
    try:
        wait_until(lambda: not any(map(is_running, workers)))
    finally:
        for worker in filter(is_running, workers):
            os.kill(worker, signal.SIGKILL)


def test_workers_are_reused():
    first, second = (set(ordered_map(process_id, range(20), 2)) for _ in range(2))
    assert first & second and os.getpid() not in first | second


def process_id(_):
    return os.getpid()


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_started_here_leaves_the_environment(environment):
    pytest.importorskip("distributed")
    assert list(ordered_map(math.factorial, ITEMS, 2, "dask")) == EXPECTED
    threads = "OMP_NUM_THREADS"
    assert os.environ.get(threads) == environment.get(threads)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_local_results(monkeypatch, environment):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=False, protocol="tcp"
    ) as cluster:
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.scheduler_address)
        dask = pytest.importorskip("dask")
        with dask.config.set({"scheduler-address": cluster.scheduler_address}):
            assert list(ordered_map(math.factorial, ITEMS, -1, "dask")) == EXPECTED


def test_unknown_and_missing_backends_are_refused(monkeypatch):
    with pytest.raises(InputError, match="did you mean 'dask'"):
        check_processes(1, "dusk")
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"ptrnet\[ray\]"):
        check_processes(1, "ray")
    assert set(BACKENDS) == {"local", "dask", "ray"}


@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_gives_the_local_results():
    pytest.importorskip("ray")
    assert list(ordered_map(math.factorial, ITEMS, 2, "ray")) == EXPECTED


def test_one_item_starts_no_other_process(monkeypatch):
    monkeypatch.setattr("joblib.Parallel", None)
    assert list(ordered_map(math.factorial, [4], 2)) == [24]
    assert list(ordered_map(math.factorial, [], -1)) == []


@pytest.mark.parametrize("jobs", [0, -2, 1.5, "2", True])
def test_invalid_numbers_of_processes_are_refused(jobs):
    with pytest.raises(InputError, match=r"^jobs: expected 1 or more, or -1 for one per core, got"):
        check_processes(jobs, LOCAL)


def test_numbers_of_processes_may_be_numpys():
    check_processes(np.int64(2), LOCAL)
    assert list(ordered_map(math.factorial, ITEMS, np.int64(2))) == EXPECTED


GROWS = """
import sys, time, warnings
warnings.simplefilter("error")
from ptrnet.parallel import ordered_map

def grow(k):
    if k < 4:
        setattr(sys, f"held{k}", b"0" * 350_000_000)
        time.sleep(1.1)
    return k

print([*ordered_map(grow, range(9), 2)])
"""


def test_a_worker_that_grows_is_replaced_silently():
    """joblib's warning about it must not stop the results, even if warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-c", GROWS], capture_output=True, text=True, timeout=100
    )
    assert (done.stdout, done.stderr) == ("[0, 1, 2, 3, 4, 5, 6, 7, 8]\n", "")
