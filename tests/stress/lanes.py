"""Run trials at the same time, each in its own process."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ptrnet.progress import track
from tests.stress.state import ROOT, Progress
from tests.stress.trial import Trial


def folder_of(name: str, folder: Path) -> Path:
    """Return the folder with a trial's state, log and findings."""
    return folder / name.replace("/", "-")


def run_lanes(
    trials: Sequence[Trial], seed: int, share: float, folder: Path, jobs: int
) -> list[str]:
    """Run trials in this order, `jobs` at a time. Skip cases that a former run has done.

    Gives the names of those whose process failed: their logs say why.
    """
    waiting, running = list(trials), dict[str, subprocess.Popen[bytes]]()
    failed: list[str] = []

    def percents() -> Iterator[None]:
        told = 0
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0).name
                running[name] = _start(name, seed, share, folder)
            time.sleep(0.2)
            for name in [name for name, process in running.items() if process.poll() is not None]:
                if running.pop(name).returncode:
                    failed.append(name)
            done = sum(_percent(trial, seed, share, folder) for trial in trials)
            yield from [None] * (done - told)
            told = done

    try:
        description = f"percent of {len(trials)} trials"
        for _ in track(percents(), description, 100 * len(trials)):
            pass
    finally:
        for process in running.values():
            process.send_signal(signal.SIGINT)  # so that it can save its state
        for process in running.values():
            process.wait()
    return failed


def _start(name: str, seed: int, share: float, folder: Path) -> "subprocess.Popen[bytes]":
    own = folder_of(name, folder)
    own.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.stress", "--trial", name]
    command += ["--seed", str(seed), "--share", str(share), "--folder", str(folder)]
    with (own / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)


def _percent(trial: Trial, seed: int, share: float, folder: Path) -> int:
    progress = Progress.read(folder_of(trial.name, folder), seed)
    return min(100, 100 * progress.cases // trial.cases(share))
