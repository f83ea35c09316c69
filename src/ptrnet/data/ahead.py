"""Numbered batches, produced ahead of the training that consumes them."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

Made = TypeVar("Made")


def ahead(batch: Callable[[int], Made], first: int, ready: int) -> Iterator[Made]:
    """`batch(first)`, `batch(first + 1)`, ... without end.

    Args:
        batch: makes the batch of a number; called in a thread of its own.
        first: the number of the first batch.
        ready: batches that are kept ready.
    """
    made: queue.Queue[Made | BaseException] = queue.Queue(ready)
    stopped = threading.Event()

    def produce() -> None:
        k = first
        while not stopped.is_set():
            try:
                item: Made | BaseException = batch(k)
            except BaseException as error:
                item = error
            while not stopped.is_set():
                try:
                    made.put(item, timeout=0.1)
                    break
                except queue.Full:
                    continue
            k += 1

    threading.Thread(target=produce, daemon=True, name="examples").start()
    try:
        while True:
            item = made.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
