"""Numbered batches, made by a thread before the training asks for them."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def prefetch(batch: Callable[[int], Item], first: int, num_ready: int) -> Iterator[Item]:
    """`batch(first)`, `batch(first + 1)`, ... without end. What `batch` raises is raised here.

    Args:
        batch: makes the batch of a number; called in a thread of its own.
        first: the number of the first batch.
        num_ready: how many batches are made ahead.
    """
    ready: queue.Queue[Item | BaseException] = queue.Queue(num_ready)
    stopped = threading.Event()

    def produce() -> None:
        k = first
        while not stopped.is_set():
            try:
                item: Item | BaseException = batch(k)
            except BaseException as error:
                item = error
            while not stopped.is_set():
                try:
                    ready.put(item, timeout=0.1)
                    break
                except queue.Full:
                    continue
            k += 1

    threading.Thread(target=produce, daemon=True, name="examples").start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
