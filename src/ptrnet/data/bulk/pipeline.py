"""Reading or writing in a thread of its own, while others compute."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Full, Queue
from typing import Any, TypeVar, cast

Item = TypeVar("Item")

_MAX_WAITING = 2  # items that wait to be taken
_POLL = 0.1  # seconds between two looks at a thread that takes nothing
_END = object()


def read_ahead(items: Iterable[Item]) -> Generator[Item]:
    """The items; a thread draws the next ones while whoever asked works on one.

    What drawing raises is raised here, after the items before it.
    """
    rest = iter(items)
    thread = ThreadPoolExecutor(1, "reading")
    try:
        ready: deque[Future[Any]] = deque(
            thread.submit(next, rest, _END) for _ in range(_MAX_WAITING)
        )
        while (item := ready.popleft().result()) is not _END:
            ready.append(thread.submit(next, rest, _END))
            yield cast(Item, item)
    finally:
        thread.shutdown(cancel_futures=True)


def consumed_aside(
    items: Iterable[Item], consume: Callable[[Iterator[Item]], object]
) -> Generator[Item]:
    """The items; `consume`, in a thread, takes them too, a few behind the caller at most.

    It has taken all that came when this ends, also where drawing an item raises or the caller is
    interrupted. What it raises is raised here, at an item soon after or at the end.
    """
    waiting: Queue[Any] = Queue(_MAX_WAITING)
    with ThreadPoolExecutor(1, "writing") as thread:
        consuming = thread.submit(consume, iter(waiting.get, _END))
        try:
            for item in items:
                _put(waiting, item, consuming)
                yield item
        finally:
            try:
                _put(waiting, _END, consuming)
            except BaseException:  # interrupted once more: what waits is left, the thread ends
                while not waiting.empty():
                    waiting.get_nowait()
                waiting.put_nowait(_END)
                raise
        consuming.result()


def _put(waiting: "Queue[Any]", item: object, consuming: "Future[object]") -> None:
    """Hands an item on as soon as there is room, unless nobody takes it any more."""
    while not consuming.done():
        try:
            waiting.put(item, timeout=_POLL)
        except Full:
            continue
        return
    if item is not _END:
        consuming.result()
