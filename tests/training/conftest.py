"""Run trainings in their own process, and stop them at the batch that a test chooses."""

import signal
import time

import pytest
import torch

from tests.support.fork_server import PROGRAM

# The batch STALL_AT only comes after an interrupt. An interrupted training waits for the thread
# that makes batches, so the batch has to come then.
STALLING = """
import os, time
from pathlib import Path
from ptrnet import runtime
runtime.tune()
import torch
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
from ptrnet.data.streams import BatchStream

interrupted = Path(os.environ["INTERRUPTED"])

def stalling(make_batch):
    def batch(stream, k, *args, **kwargs):
        while k == int(os.environ["STALL_AT"]) and not interrupted.exists():
            time.sleep(0.02)
        return make_batch(stream, k, *args, **kwargs)
    return batch

BatchStream.batch = stalling(BatchStream.batch)
"""
# Lightning starts its further processes by the command of the first one, so that must be a script.
SCRIPT = STALLING + "if __name__ == '__main__':\n    from ptrnet import cli\n    cli.main()\n"
EXECUTE = "import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
SECONDS = 600  # seconds that a test may wait


class StalledTraining:
    """A training in other processes that has saved a checkpoint and now waits."""

    def __init__(self, process, interrupted):
        self.process, self.interrupted = process, interrupted

    def wait_for(self, path):
        deadline = time.monotonic() + SECONDS
        while not path.exists():
            code, said = self.process.poll(), self.process.stderr
            assert code is None, f"exit {code} before {path.name} was there: {said}"
            assert time.monotonic() < deadline, f"no {path.name} in {SECONDS} seconds: {said}"
            time.sleep(0.01)

    def interrupt(self):
        """Interrupt it like Ctrl-C; return exit code, standard output and standard error."""
        self.process.send_signal(signal.SIGINT)
        self.interrupted.touch()
        return self.process.wait(SECONDS), self.process.stdout, self.process.stderr


@pytest.fixture
def stalled_training(tmp_path, fork_server):
    """Return a function that starts a `StalledTraining`, which stops at a given batch.

    A test may give other code than the program to run after `STALLING`, or none for a script.
    """
    started = []

    def start(folder, *options, stall_at, code=PROGRAM, **environment):
        script, interrupted = tmp_path / "stalling.py", tmp_path / "interrupted"
        words = ["train", *options, "--output", folder]
        if code is None:
            script.write_text(SCRIPT)
            words.insert(0, script)
        process = fork_server.start(
            STALLING + code if code else EXECUTE,
            *words,
            cwd=tmp_path,
            OMP_NUM_THREADS=str(torch.get_num_threads()),  # the bits depend on it
            STALL_AT=str(stall_at),
            INTERRUPTED=str(interrupted),
            **environment,
        )
        started.append(process)
        training = StalledTraining(process, interrupted)
        training.wait_for(folder / "checkpoint.ckpt")
        return training

    yield start
    for process in started:
        process.kill()
