"""How much memory work takes: the peak of a process that does nothing else."""

import multiprocessing
import resource
import signal
import sys
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from ptrnet import runtime
from ptrnet.progress import track

Setup = Callable[[], Callable[[], object]]  # prepares the work, and returns what runs it
Key = TypeVar("Key", bound=Hashable)
RUNS = 2


def peaks(setups: Mapping[Key, Setup], title: str) -> dict[Key, float]:
    """The peak of memory in MB of a fresh process for each setup, which runs its work RUNS times.

    That is all of the process, the interpreter and the libraries included, but not the processes
    that it starts; of work on a GPU it is the memory of its tensors. Setups are functions of
    modules, or partials of such.
    """
    with ProcessPoolExecutor(
        max_workers=2,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_set_up_process,
        max_tasks_per_child=1,
    ) as processes:
        results = processes.map(_peak, setups.values())
        peak_mb = track(results, f"memory of {title}", len(setups))
        return dict(zip(setups, peak_mb, strict=True))


def _set_up_process() -> None:
    """The program's settings; an interrupt is handled by the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runtime.tune()


def _peak(setup: Setup) -> float:
    run = setup()
    for _ in range(RUNS):
        run()
    loky = sys.modules.get("joblib.externals.loky")
    if loky is not None:  # idle worker processes would keep this one waiting for them
        loky.get_reusable_executor().shutdown()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return float(torch.cuda.max_memory_allocated()) / 2**20
    return process_peak()


def process_peak() -> float:
    """The peak of this process's memory in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux `ru_maxrss` begins with the peak of the parent process
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
