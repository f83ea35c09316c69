"""File formats, by extension. One file each; no list is kept elsewhere.

CAPABILITIES                        what its files can hold
read(name, task)              examples of a file, one by one; of text, `-` is standard input
write(stream, examples, task) examples to an open stream, of text or of bytes
features(name)                numbers of an element, only where a file says so without its task
"""

import importlib
import os
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import ModuleType
from typing import IO, Any

from ptrnet.data.formats.parts.capabilities import Capabilities
from ptrnet.distances import EUCLIDEAN
from ptrnet.errors import InputError, MissingExtraError, unknown
from ptrnet.files import atomic_path, check_writable, to_standard_output
from ptrnet.tasks.base import Task
from ptrnet.types import Example

_IN_MEMORY = 2**26  # bytes of output that are held before a temporary file is used


def names() -> list[str]:
    """The known extensions, without the dot."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg)


def of(name: str) -> str:
    """The format of a file by its name; `-` is `txt`."""
    suffix = "txt" if name == "-" else Path(name).suffix.removeprefix(".").lower()
    if suffix not in names():
        if not suffix:
            raise InputError(f"{name}: expected an extension, one of .{', .'.join(names())}")
        raise unknown("file format", suffix, names())
    return suffix


def target(name: str, like: str) -> str:
    """The format that `write` writes; for `-` that of answers to `like`."""
    if name != "-":
        return of(name)
    return capabilities(of(like)).printed or of(like)


def capabilities(extension: str) -> Capabilities:
    """What files of a format can hold."""
    found: Capabilities = module(extension).CAPABILITIES
    return found


def read(name: str, task: Task) -> Iterator[Example]:
    """The examples of a file, one by one.

    Raises:
        InputError: at the first line that cannot be used, or when there is no instance at all.
    """
    check_served(name, task)
    empty = True
    for example in module(of(name)).read(name, task):
        empty = False
        yield example
    if empty:
        raise InputError(f"{'standard input' if name == '-' else name}: holds no instance")


def features(name: str) -> int:
    """How many numbers an element of a file's first instance has.

    Raises:
        InputError: no such file, a first instance that cannot be used, or a format whose files
            do not tell.
    """
    form = module(of(name))
    check_input(name)
    _check_package(of(name))
    if not hasattr(form, "features"):
        telling = [f".{other}" for other in names() if hasattr(module(other), "features")]
        raise InputError(
            f"{name}: a .{of(name)} file does not say how many numbers an element has; name the "
            f"task, or write the examples to {' or '.join(telling)}"
        )
    found: int = form.features(name)
    return found


def write(name: str, examples: Iterable[Example], task: Task, like: str = "-") -> None:
    """Writes a whole file or nothing; to standard output for `-`, as answers to `like`.

    Raises:
        InputError: at the first example that the format cannot hold.
    """
    extension = target(name, like)
    check_served(name, task)
    form, held = module(extension), fitting(extension, examples, task)
    if name == "-":
        with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="\n") as whole:
            form.write(whole, held, task)
            whole.seek(0)
            to_standard_output(whole)
        return
    with atomic_path(Path(name)) as temporary, _open(temporary, capabilities(extension)) as stream:
        form.write(stream, held, task)


def check_output(name: str, task: Task | None = None) -> None:
    """Refuses, before any work is done for it, a file that could not be written.

    Args:
        name: the file.
        task: of the examples, where it is known already.
    """
    _check_package(of(name))
    if task is not None:
        check_served(name, task)
    if name != "-":
        check_writable(Path(name))


def check_input(name: str) -> None:
    """Refuses a file that is not there or has no known format."""
    of(name)
    if not os.path.exists(name):  # noqa: PTH110  Path.exists raises for names that are too long
        raise InputError(f"{name}: cannot be read: No such file or directory")


def check_served(name: str, task: Task) -> None:
    """Refuses a file whose format is another task's, or takes a package that is missing."""
    extension, held = of(name), capabilities(of(name))
    if held.task not in (None, task.name):
        raise InputError(
            f"{name}: .{extension} files are of task {held.task}, asked for {task.name}"
        )
    _check_package(extension)


def fitting(extension: str, examples: Iterable[Example], task: Task) -> Iterator[Example]:
    """The same examples; InputError at the first that files of a format cannot hold."""
    held = capabilities(extension)
    for count, example in enumerate(examples):
        if count and not held.several:
            others = holding(example, task, lambda other: other.several)
            raise InputError(f"a .{extension} file holds one instance; write several to {others}")
        if example.distance not in held.distances:
            others = holding(example, task, lambda _: True)
            why = f"says nothing of distances, here {example.distance}"
            if example.distance == EUCLIDEAN:
                why = "rounds every distance, in the unit square to 0 or 1"
            raise InputError(f"{example.source}: a .{extension} file {why}; write to {others}")
        yield example


def holding(example: Example, task: Task, fits: Callable[[Capabilities], bool]) -> str:
    """The formats for complaints to name: those that fit, and hold all of the example."""
    found = []
    for extension in names():
        held = capabilities(extension)
        serves = held.task in (None, task.name) and example.distance in held.distances
        if serves and fits(held) and (held.answers or example.outputs is None):
            found.append(f".{extension}")
    return " or ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def _check_package(extension: str) -> None:
    package = capabilities(extension).needs
    if package and find_spec(package) is None:
        raise MissingExtraError(f".{extension}", extension)


def _open(path: Path, held: Capabilities) -> IO[Any]:
    if held.binary:
        return path.open("wb")
    return path.open("w", encoding="utf-8", newline="\n")


def module(extension: str) -> ModuleType:
    """The format of an extension."""
    return importlib.import_module(f"{__name__}.{extension}")
