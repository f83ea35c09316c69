"""Run compiled kernels on slices of a batch, one slice a thread.

The kernels release the interpreter lock. We do not use numba's `parallel=True`, because it would
load a second OpenMP runtime next to torch's, whose first call can reset torch's thread count.

The cuts of a batch are the rows at which it is cut, both ends included: slice k is the rows
`cuts[k]` to `cuts[k + 1]`.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Barrier

import torch

_process = os.getpid()  # the process that imported this module, or the last fork that we saw


def run_slices(run: Callable[[int, int, int], None], cuts: Sequence[int]) -> None:
    """Call `run(k, cuts[k], cuts[k + 1])` for all slices k in parallel, and wait for them.

    If there are several slices, PyTorch's own operations use one thread in each of them. An error
    in a slice is raised here.

    Examples:
        >>> run_slices(lambda k, first, last: print(k, first, last), [0, 10])
        0 0 10
    """
    slices = len(cuts) - 1
    if slices == 1:
        run(0, cuts[0], cuts[1])
        return
    inference = torch.is_inference_mode_enabled()  # a setting of the thread, so pass it on

    def run_slice(k: int) -> None:
        with torch.inference_mode(inference):
            run(k, cuts[k], cuts[k + 1])

    pool = _pool(torch.get_num_threads())
    futures = [pool.submit(run_slice, k) for k in range(slices)]
    for future in futures:
        future.result()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch's operations in the calling thread use one thread inside the block.

    Small operations gain nothing from a second thread. If another process is busy, each operation
    also waits until the second thread gets a core. The setting belongs to the calling thread. But
    a thread that runs its first operation during the block starts with this setting, too.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def use_one_thread_in_fork() -> None:
    """Let PyTorch use one thread from here on, if this process was forked.

    A fork has none of its parent's threads. OpenMP does not start its threads again, and PyTorch
    would wait for them forever.
    """
    global _process
    if os.getpid() != _process:
        _process = os.getpid()
        torch.set_num_threads(1)


def even_cuts(rows: int, max_slices: int) -> list[int]:
    """Cut `rows` into slices of about equal size: one for each thread, at most `max_slices`."""
    slices = max(1, min(torch.get_num_threads(), max_slices))
    return [rows * k // slices for k in range(slices + 1)]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return workers in which torch runs on one thread. The caller's setting does not change."""
    threads_of_caller = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, "ptrnet", initializer=_use_one_thread)
    # Start every worker now. torch stores the setting for each thread, but any new thread, also
    # outside this pool, starts with the setting that was made last. So restore it afterwards.
    barrier = Barrier(threads)
    list(pool.map(lambda _: barrier.wait(), range(threads)))
    torch.set_num_threads(threads_of_caller)
    return pool


# A fork inherits the pool without its threads, so work that it is given would never end.
os.register_at_fork(after_in_child=_pool.cache_clear)


def _use_one_thread() -> None:
    # Must read before it sets, because a thread's first read resets its setting.
    torch.get_num_threads()
    torch.set_num_threads(1)
