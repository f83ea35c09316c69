"""A progress bar on standard error, with rate and remaining time, for work of over two seconds."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

DELAY = 2.0  # seconds before a bar appears: a bar for shorter work would only flicker


def track(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Yield the items, and show their count in a `Bar`.

    Args:
        items: the items. The bar counts an item when the caller asks for the next item.
        total: number of items; None if unknown.

    Examples:
        >>> for chunk in track(chunks, "labelling", len(chunks)):
        ...     label(chunk)
    """
    with Bar(description, total) as bar:
        for item in items:
            yield item
            bar.add(1)


class Bar:
    """A bar that appears after DELAY seconds, if standard error is a terminal.

    Use it as a context manager. The bar stops at the end of the block, so that it does not
    overwrite text that is printed afterwards.

    Args:
        description: the text next to the bar. If the text is empty, there is no bar.
        total: the count at the end; None if unknown.
        completed: the count at the beginning, from an earlier run. The rate does not include it.

    Examples:
        >>> with Bar("labelling", total=1000) as bar:
        ...     bar.add(250)
    """

    def __init__(self, description: str, total: int | None = None, completed: int = 0) -> None:
        self._description, self._total, self._completed = description, total, completed
        self._count, self._began = 0, time.perf_counter()
        self._bar: Progress | None = None
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._is_shown = bool(description) and is_terminal

    def add(self, count: int) -> None:
        """Count `count` more items, and update the bar."""
        self._count += count
        seconds = time.perf_counter() - self._began
        if not self._is_shown or (self._bar is None and seconds <= DELAY):
            return
        if self._bar is None:  # import rich only now, because rich takes 8 MB
            self._bar = _bar(self._description, self._total)
            self._bar.start()
        rate = self._count / seconds
        text = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
        done = self._completed + self._count
        self._bar.update(self._bar.task_ids[0], completed=done, rate=text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar(description: str, total: int | None) -> "Progress":
    from rich import progress
    from rich.console import Console

    bar = progress.Progress(
        progress.TextColumn(description),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    bar.add_task(description, total=total, rate="")
    return bar
