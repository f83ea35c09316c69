"""A bar with rate and time left for what takes over two seconds. On standard error."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

QUIET = 2.0  # seconds


def track(items: Iterable[T], what: str, total: int | None = None, done: int = 0) -> Iterator[T]:
    """The same items; a bar counts them, behind those already done, after QUIET seconds."""
    began = time.perf_counter()
    bar = None
    try:
        for count, item in enumerate(items, 1):
            yield item
            if bar is None and time.perf_counter() - began > QUIET:
                bar = _bar(what, total)
                bar.start()
            if bar is not None:
                passed = time.perf_counter() - began
                rate = count / passed
                shown_rate = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
                bar.update(bar.task_ids[0], completed=done + count, rate=shown_rate)
    finally:
        if bar is not None:
            bar.stop()


def _bar(what: str, total: int | None):  # type: ignore[no-untyped-def]
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console, disable=not console.is_terminal)
    bar.add_task(what, total=total, rate="")
    return bar
