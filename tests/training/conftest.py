"""Run trainings in their own process, and stop them at the batch that a test chooses."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

# The program, in which the batch STALL_AT only comes after an interrupt. A script, as Lightning
# starts its further processes by the same command. An interrupted training waits for the thread
# that makes batches, so the batch has to come then.
STALLING = """
import os, time
from pathlib import Path
from ptrnet import cli, runtime
runtime.tune()
from ptrnet.data.streams import ExampleStream
from ptrnet.data.streams import DatasetStream

interrupted = Path(__file__).with_name("interrupted")

def stalling(make_batch):
    def batch(stream, k, *args, **kwargs):
        while k == int(os.environ["STALL_AT"]) and not interrupted.exists():
            time.sleep(0.02)
        return make_batch(stream, k, *args, **kwargs)
    return batch

for stream in (ExampleStream, DatasetStream):
    stream.batch = stalling(stream.batch)
if __name__ == "__main__":
    cli.main()
"""
SECONDS = 240  # seconds that a test may wait


class StalledTraining:
    """A training in other processes that has saved a checkpoint and now waits."""

    def __init__(self, script, log, folder, options, stall_at):
        script.write_text(STALLING)
        self.interrupted = script.with_name("interrupted")
        self.log = log
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, script, "train", *options, "--output", folder],
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": str(torch.get_num_threads()),  # the bits depend on it
                    "STALL_AT": str(stall_at),
                },
                start_new_session=True,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )

    def wait_for(self, path):
        deadline = time.monotonic() + SECONDS
        while not path.exists():
            code = self.process.poll()
            if code is not None:
                pytest.fail(f"exit {code} before {path.name} was there: {self.log.read_text()}")
            if time.monotonic() > deadline:
                pytest.fail(f"no {path.name} in {SECONDS} seconds: {self.log.read_text()}")
            time.sleep(0.01)

    def interrupt(self):
        """Interrupt it like Ctrl-C; return exit code, standard output and standard error."""
        self.process.send_signal(signal.SIGINT)
        self.interrupted.touch()
        out, _ = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, self.log.read_text()

    def kill(self):
        """Kill all processes of the training."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=SECONDS)


@pytest.fixture
def stalled_training(tmp_path):
    """Return a function that starts a `StalledTraining`, which stops at a given batch."""
    started = []

    def start(folder, *options, stall_at):
        script, log = tmp_path / "stalling.py", tmp_path / "stderr.txt"
        started.append(StalledTraining(script, log, folder, options, stall_at))
        started[-1].wait_for(folder / "checkpoint.ckpt")
        return started[-1]

    yield start
    for training in started:
        training.kill()
