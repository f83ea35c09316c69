"""Run compiled kernels on slices of a batch, one slice per thread.

The kernels release the interpreter lock. We do not use numba's `parallel=True`, because it would
load a second OpenMP runtime next to torch's. The first call of this second runtime can reset
torch's thread count.

`cuts` lists the rows at which a batch is cut, from 0 to the size of the batch. Slice k consists of
the rows `cuts[k]` to `cuts[k + 1] - 1`.
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
    """Call `run(k, cuts[k], cuts[k + 1])` for all slices k in parallel, and wait for all calls.

    If there are several slices, PyTorch's own operations in a slice use one thread. If `run` raises
    an error, this function raises the error again.

    Examples:
        >>> run_slices(lambda k, first, last: print(k, first, last), [0, 10])
        0 0 10
    """
    slices = len(cuts) - 1
    if slices == 1:
        run(0, cuts[0], cuts[1])
        return
    # Threads do not inherit these modes, so pass them on.
    inference, gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def run_slice(k: int) -> None:
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
            run(k, cuts[k], cuts[k + 1])

    pool = _pool(torch.get_num_threads())
    futures = [pool.submit(run_slice, k) for k in range(slices)]
    for future in futures:
        future.result()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch's operations in the calling thread use one thread inside the block.

    Small operations gain nothing from a second thread. If another process is busy, each operation
    also waits until the second thread gets a core. Other threads keep their setting, except
    threads that run their first operation during the block. These threads start with one thread.
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
    """If this process was forked, let PyTorch use one thread from here on.

    A fork has none of its parent's threads. OpenMP does not start new threads, and PyTorch would
    wait for the parent's threads forever.
    """
    global _process
    if os.getpid() != _process:
        _process = os.getpid()
        torch.set_num_threads(1)


def even_cuts(rows: int, max_slices: int) -> list[int]:
    """Return the cuts of `rows` rows into about equal slices.

    There is one slice per thread, but not more than `max_slices` slices.
    """
    slices = max(1, min(torch.get_num_threads(), max_slices))
    return [rows * k // slices for k in range(slices + 1)]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool of worker threads. In a worker, torch's own operations use one thread."""
    threads_of_caller = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, "ptrnet", initializer=_use_one_thread)
    # Start every worker now, and restore the caller's setting afterwards. torch has a setting for
    # each thread. But a new thread starts with the latest setting of any thread in the process.
    barrier = Barrier(threads)
    list(pool.map(lambda _: barrier.wait(), range(threads)))
    torch.set_num_threads(threads_of_caller)
    return pool


# A fork inherits the pool without its threads, so work given to the pool would wait forever.
os.register_at_fork(after_in_child=_pool.cache_clear)


def _use_one_thread() -> None:
    # Must read the setting before changing it, because a thread's first read resets the setting.
    torch.get_num_threads()
    torch.set_num_threads(1)
