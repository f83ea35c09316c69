"""A progress bar with rate and time left for what takes over two seconds. On standard error."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

DELAY = 2.0  # seconds before a bar appears


def track(
    items: Iterable[T],
    description: str,
    total: int | None = None,
    completed: int = 0,
    size: Callable[[T], int] = lambda _: 1,
) -> Iterator[T]:
    """The same items; after DELAY seconds a bar counts them, where standard error is a terminal.

    Args:
        items: whose consumer takes the time.
        description: what stands beside the bar.
        total: how many items there are in all, where that is known.
        completed: how many of them were done before.
        size: how many an item counts for, such as the rows of a chunk.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield from items  # without rich, which takes 8 MB
        return
    began = time.perf_counter()
    bar = None
    try:
        count = 0
        for item in items:
            yield item
            count += size(item)
            if bar is None and time.perf_counter() - began > DELAY:
                bar = _bar(description, total)
                bar.start()
            if bar is not None:
                rate = count / (time.perf_counter() - began)
                text = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
                bar.update(bar.task_ids[0], completed=completed + count, rate=text)
    finally:
        if bar is not None:
            bar.stop()


def _bar(description: str, total: int | None) -> "Progress":
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(description),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=Console(stderr=True))
    bar.add_task(description, total=total, rate="")
    return bar
