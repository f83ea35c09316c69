"""Numbered items, made by a thread before the training asks for them."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TypeVar

Item = TypeVar("Item")


def prefetch(make: Callable[[int], Item], first: int, num_prefetch: int) -> Iterator[Item]:
    """`make(first)`, `make(first + 1)`, ... without end. What `make` raises is raised here.

    Args:
        make: makes the item of a number; called in a thread of its own.
        first: the number of the first item.
        num_prefetch: how many items are made ahead.
    """
    # Not a daemon thread: one that is inside torch when the interpreter ends aborts the process.
    thread = ThreadPoolExecutor(1, "examples")
    try:
        ready = deque(thread.submit(make, first + k) for k in range(num_prefetch))
        for k in count(first + num_prefetch):
            item = ready.popleft().result()
            ready.append(thread.submit(make, k))
            yield item
    finally:
        thread.shutdown(cancel_futures=True)
