"""A page of results for each day, to which every measurement adds a section."""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from ptrnet.bench.machine import commit
from ptrnet.bench.row import Row, format_table
from ptrnet.errors import OutputError
from ptrnet.files import atomic_path


def add_section(
    folder: Path, command: str, machine: str, measured: Mapping[str, Sequence[Row]]
) -> Path:
    """Adds what was measured to `folder/YYYY-MM-DD.md`, which begins with it where it is not there.

    Args:
        folder: of the pages, as `benchmarks/results`; made where it is missing.
        command: that measured.
        machine: what it measured on, in lines.
        measured: the rows of each measurement.

    Returns:
        The page.

    Raises:
        OutputError: it cannot be written.
    """
    page = page_of(folder)
    tables = "\n\n".join(f"{name}: {format_table(rows)}" for name, rows in measured.items())
    section = (
        f"# {page.stem}, commit {commit()}\n\n`{command}`\n\n```text\n{machine}\n\n{tables}\n```\n"
    )
    try:
        former = page.read_text(encoding="utf-8").rstrip() if page.exists() else ""
    except OSError as error:
        raise OutputError(f"{page}: cannot be written: {error.strerror}") from None
    with atomic_path(page) as temporary:
        temporary.write_text(f"{former}\n\n{section}" if former else section, encoding="utf-8")
    return page


def page_of(folder: Path) -> Path:
    """The page of today, in its folder, which is made where it is missing.

    Raises:
        OutputError: it cannot be written.
    """
    page = folder / f"{datetime.now().date().isoformat()}.md"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{page}: cannot be written: {error.strerror}") from None
    if page.is_dir() or not os.access(folder, os.W_OK):
        raise OutputError(f"{page}: cannot be written")
    return page
