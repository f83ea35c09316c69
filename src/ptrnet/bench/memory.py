"""How much memory work takes: the peak of a process that does nothing else."""

import multiprocessing
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from ptrnet import runtime
from ptrnet.progress import track

Work = Callable[[], Callable[[], object]]  # makes, from nothing, what is then run
RUNS = 2


def peaks(works: Mapping[str, Work], what: str) -> dict[str, float]:
    """The most MB that a fresh process ever held which ran each work RUNS times.

    That is all of the process, the interpreter and the libraries included, but not the processes
    that it starts; of work on a GPU it is the memory of its tensors. `works` are functions of
    modules, or partials of such.
    """
    with ProcessPoolExecutor(
        max_workers=2,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        max_tasks_per_child=1,
    ) as processes:
        found = track(processes.map(_peak, works.values()), f"memory of {what}", len(works))
        return dict(zip(works, found, strict=True))


def _begin() -> None:
    """Settings of the program; an interrupt is left to the process that asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runtime.tune()


def _peak(work: Work) -> float:
    run = work()
    for _ in range(RUNS):
        run()
    loky = sys.modules.get("joblib.externals.loky")
    if loky is not None:  # idle processes of the work, which would keep this one waiting for them
        loky.get_reusable_executor().shutdown()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return float(torch.cuda.max_memory_allocated()) / 2**20
    return process_peak()


def process_peak() -> float:
    """The most MB that this process ever held."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux `ru_maxrss` begins with the peak of the process that started us
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
