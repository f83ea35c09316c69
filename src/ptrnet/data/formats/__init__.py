"""File formats, by extension. One file each, with `read` and `write`; no list is kept elsewhere.

read(name, task)              examples of a file, one by one; `-` is standard input
write(stream, examples, task) examples to an open text stream
"""

import importlib
import os
import pkgutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import ModuleType
from typing import TextIO

from ptrnet.errors import InputError, unknown
from ptrnet.files import atomic_path, check_writable, to_standard_output
from ptrnet.tasks.base import Task
from ptrnet.types import Example

_IN_MEMORY = 2**26  # bytes of output that are held before a temporary file is used


def names() -> list[str]:
    """The known extensions, without the dot."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__))


def of(name: str) -> str:
    """The format of a file by its name; `-` is `txt`."""
    suffix = "txt" if name == "-" else Path(name).suffix.removeprefix(".").lower()
    if suffix not in names():
        if not suffix:
            raise InputError(f"{name}: expected an extension, one of .{', .'.join(names())}")
        raise unknown("file format", suffix, names())
    return suffix


def read(name: str, task: Task) -> Iterator[Example]:
    """The examples of a file, one by one.

    Raises:
        InputError: at the first line that cannot be used, or when there is no instance at all.
    """
    empty = True
    for example in module(of(name)).read(name, task):
        empty = False
        yield example
    if empty:
        raise InputError(f"{'standard input' if name == '-' else name}: holds no instance")


def write(name: str, examples: Iterable[Example], task: Task, like: str = "-") -> None:
    """Writes a whole file or nothing; to standard output for `-`, in the format of `like`."""
    if name == "-":
        with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="\n") as whole:
            module(of(like)).write(whole, examples, task)
            whole.seek(0)
            to_standard_output(whole)
        return
    form = module(of(name))
    with atomic_path(Path(name)) as temporary, _open(temporary) as stream:
        form.write(stream, examples, task)


def check_output(name: str) -> None:
    """Refuses, before any work is done for it, a file that could not be written."""
    of(name)
    if name != "-":
        check_writable(Path(name))


def check_input(name: str) -> None:
    """Refuses a file that is not there or has no known format."""
    of(name)
    if not os.path.exists(name):  # noqa: PTH110  Path.exists raises for names that are too long
        raise InputError(f"{name}: cannot be read: No such file or directory")


def _open(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="\n")


def module(name: str) -> ModuleType:
    """The format of an extension."""
    return importlib.import_module(f"{__name__}.{name}")
