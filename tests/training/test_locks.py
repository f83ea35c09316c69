"""Folders, variables and files of a training that other processes or threads share."""

import os
import signal

import numpy as np
import pytest
from lightning_fabric import Fabric

import ptrnet
from ptrnet.training import loop, run, run_folder
from ptrnet.training.run_folder import locked

TINY = {"steps": 1, "hidden_size": 8, "batch_size": 4, "valid_batches": 0}


def test_a_forked_process_keeps_no_folder_locked(tmp_path):
    """Once, a pool of processes that a cost had started kept the lock, so resuming was refused."""
    with locked(tmp_path):
        child = os.fork()
        if not child:
            signal.pause()
    try:
        with locked(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_two_threads_can_train_at_the_same_time():
    one, other = (loop._launched(Fabric(accelerator="cpu", devices=1)) for _ in range(2))
    for entered in (one, other):
        entered.__enter__()
    for left in (one, other):
        left.__exit__(None, None, None)
    assert loop._LAUNCHER not in os.environ


def test_fit_can_be_called_again_after_an_early_interrupt(tmp_path, monkeypatch):
    examples = [(x, np.argsort(x)) for x in np.random.default_rng(0).random((20, 4))]

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "open_stream", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ptrnet.fit(examples, output=tmp_path / "m", **TINY)
    ptrnet.fit(examples, output=tmp_path / "m", **TINY)
    assert (tmp_path / "m" / run_folder.RECIPE).exists()
