"""Running compiled kernels on slices of a batch, one slice a thread.

The kernels release the interpreter lock. numba's own `parallel=True` would load a second OpenMP
runtime beside torch's, whose first call can reset torch's thread count.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier

import torch


def over_slices(run: Callable[[int, int, int], None], cuts: Sequence[int]) -> None:
    """Calls `run(k, cuts[k], cuts[k + 1])` for each slice k, at once; returns when all are done.

    Inside, PyTorch's own operations use one thread.
    """
    slices = len(cuts) - 1
    if slices == 1:
        run(0, cuts[0], cuts[1])
        return
    inference = torch.is_inference_mode_enabled()  # a mode of each thread: taken along

    def slice_(k: int) -> None:
        with torch.inference_mode(inference):
            run(k, cuts[k], cuts[k + 1])

    pool = _pool(torch.get_num_threads())
    futures = [pool.submit(slice_, k) for k in range(slices)]
    for future in futures:
        future.result()


def even(rows: int, most: int) -> list[int]:
    """Cuts into slices of one size: one for each core, but no more than `most`."""
    slices = max(1, min(torch.get_num_threads(), most))
    return [rows * k // slices for k in range(slices + 1)]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Workers in which torch runs on one thread; the caller's setting stays as it is."""
    ours = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, "ptrnet", initializer=_one_thread)
    # Start every worker now: the setting is kept for each thread, but new threads, which are not
    # ours to choose, take the one set last.
    barrier = Barrier(threads)
    list(pool.map(lambda _: barrier.wait(), range(threads)))
    torch.set_num_threads(ours)
    return pool


def _one_thread() -> None:
    # Asked first: a thread's first question to torch about threads resets its own setting.
    torch.get_num_threads()
    torch.set_num_threads(1)
