"""A progress bar on standard error for work that takes more than two seconds."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

DELAY = 2.0  # seconds before a bar appears


def track(
    items: Iterable[T], description: str, total: int | None = None, completed: int = 0
) -> Iterator[T]:
    """Yield the items, and count them by a bar after DELAY seconds if standard error is a terminal.

    Args:
        items: any iterable; the work is done by the consumer.
        description: text next to the bar.
        total: the number of all items, if it is known.
        completed: the number of items that were done before.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield from items  # without importing rich, which takes 8 MB
        return
    began = time.perf_counter()
    bar = None
    try:
        for count, item in enumerate(items, 1):
            yield item
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
