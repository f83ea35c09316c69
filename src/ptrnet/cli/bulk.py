"""What `generate` and `label` share: examples by the chunk, in many processes, to a file."""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ptrnet.version import VERSION

if TYPE_CHECKING:
    from ptrnet.tasks.base import Task
    from ptrnet.types import Example

Item = TypeVar("Item")

Jobs = Annotated[
    int, typer.Option("--jobs", help="Processes; -1 for one a core. The file is the same.")
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend", help="Where they run: local, or a cluster of dask or ray (docs/scale.md)."
    ),
]


def check_jobs(jobs: int, backend: str) -> None:
    """Refuses what cannot run, before anything is done."""
    from ptrnet.errors import InputError
    from ptrnet.parallel import check_backend

    if jobs < 1 and jobs != -1:
        raise InputError(f"--jobs: expected 1 or more, or -1 for one a core, got {jobs}")
    check_backend(backend)


def grow(
    output: str,
    task: "Task",
    facts: Mapping[str, Any],
    work: Callable[[Item], "list[Example]"],
    items: Callable[[int], Iterable[Item]],
    total: int | None,
    jobs: int,
    backend: str,
) -> None:
    """Writes the examples that `work` makes of each item, or goes on where that was stopped.

    Args:
        output: the file.
        task: of the examples.
        facts: everything else that decides the lines.
        work: makes `CHUNK` examples of an item; the last may be fewer.
        items: gives the items behind the first k examples.
        total: how many examples there will be, where that is known.
        jobs: processes.
        backend: where they run.
    """
    from ptrnet.data.generate import CHUNK
    from ptrnet.data.resumable import ResumableFile
    from ptrnet.errors import OutputError, PtrnetError
    from ptrnet.parallel import in_order
    from ptrnet.progress import track

    everything = {"ptrnet": VERSION, "task": task.name, **asdict(task), **facts}
    with ResumableFile(Path(output), everything, CHUNK) as kept:
        done = kept.kept(total)
        if done:
            print(f"going on behind {done:,} examples in {kept.lines}", file=sys.stderr)
        lines = partial(_lines, work, task, kept.extension)
        made = (
            None
            for count in kept.append(in_order(lines, items(done), jobs, backend))
            for _ in range(count)
        )
        written = 0
        try:
            for _ in track(made, facts["command"], total, done):
                written += 1
            kept.finish(task)
        except (PtrnetError, KeyboardInterrupt) as error:
            if done or (written and isinstance(error, OutputError | KeyboardInterrupt)):
                print(f"kept in {kept.lines}: the same command goes on from there", file=sys.stderr)
            else:
                kept.discard()
            raise


def _lines(
    work: Callable[[Item], "list[Example]"], task: "Task", extension: str, item: Item
) -> bytes:
    from ptrnet.data import formats

    text = StringIO()
    formats.module(extension).write(text, work(item), task)
    return text.getvalue().encode()
