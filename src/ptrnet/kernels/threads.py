"""Running compiled kernels on slices of a batch, one slice a thread.

The kernels release the interpreter lock. numba's own `parallel=True` would load a second OpenMP
runtime next to torch's, whose first call can reset torch's thread count.

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

_process = os.getpid()  # the one that was imported in, or the fork that has seen to its threads


def run_slices(run: Callable[[int, int, int], None], cuts: Sequence[int]) -> None:
    """Calls `run(k, cuts[k], cuts[k + 1])` for all slices k at once; returns when all are done.

    Inside, PyTorch's own operations use one thread. An error in a slice is raised here.
    """
    slices = len(cuts) - 1
    if slices == 1:
        run(0, cuts[0], cuts[1])
        return
    inference = torch.is_inference_mode_enabled()  # set for each thread: handed on

    def run_slice(k: int) -> None:
        with torch.inference_mode(inference):
            run(k, cuts[k], cuts[k + 1])

    pool = _pool(torch.get_num_threads())
    futures = [pool.submit(run_slice, k) for k in range(slices)]
    for future in futures:
        future.result()


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch's operations in the calling thread use one thread inside; then as many as before.

    Small operations gain nothing from a second thread; and beside a busy process each waits until
    that thread has got a core. The setting is the calling thread's own, but for a thread whose
    first operation falls inside: it starts with one, too.
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
    """In a process that was forked, PyTorch computes on one thread from here on.

    A fork has none of the threads that its parent had, and those of OpenMP, which PyTorch waits
    for, are not started again.
    """
    global _process
    if os.getpid() != _process:
        _process = os.getpid()
        torch.set_num_threads(1)


def even_cuts(rows: int, max_slices: int) -> list[int]:
    """Cuts `rows` into slices of one size: one for each thread, but at most `max_slices`."""
    slices = max(1, min(torch.get_num_threads(), max_slices))
    return [rows * k // slices for k in range(slices + 1)]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Workers in which torch runs on one thread; the caller's setting stays as it is."""
    threads_of_caller = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, "ptrnet", initializer=_use_one_thread)
    # Start every worker now. torch stores the setting for each thread, but a new thread, also one
    # that is none of these, starts with the setting made last, which is therefore put back.
    barrier = Barrier(threads)
    list(pool.map(lambda _: barrier.wait(), range(threads)))
    torch.set_num_threads(threads_of_caller)
    return pool


# A fork has the pool, but none of its threads: what they are given never ends.
os.register_at_fork(after_in_child=_pool.cache_clear)


def _use_one_thread() -> None:
    # Read before it is set: the first read of a thread resets that thread's setting.
    torch.get_num_threads()
    torch.set_num_threads(1)
