"""File formats by extension. Each is a module here, listed nowhere else, with these members:

- `CAPABILITIES`: what its files can hold
- `read(path, task)`: yields the examples of a file; text formats also take `-`
- `write(stream, examples, task)`: writes examples to an open stream of text or bytes
- `num_features(path)`: numbers of an element, d; only if files tell it without a task
- `dictionaries(path)`: yields the elements of each instance, which are dictionaries, and its
  source; returns None if the elements of the first instance are rows of numbers, and raises
  InputError if those of a later one are; only if elements may be dictionaries

`parts/` holds what formats share, and the class `Format`, which is such a module with its checks.
"""

import os
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path
from tempfile import SpooledTemporaryFile

from ptrnet.data.dataset import Dataset, chunks_of
from ptrnet.data.formats.parts.format import (
    Capabilities,
    Format,
    format_of,
    get,
    input_format,
    names,
    output_format,
    register,
)
from ptrnet.data.formats.parts.lines import count_lines, display_name
from ptrnet.errors import InputError
from ptrnet.files import atomic_path, check_writable, to_standard_output
from ptrnet.tasks.base import Task
from ptrnet.types import Example

__all__ = [
    "Capabilities",
    "Format",
    "check_input",
    "check_keeps_extra",
    "check_not_overwritten",
    "check_output",
    "count_instances",
    "format_of",
    "get",
    "names",
    "num_features",
    "output_format",
    "print_as_they_come",
    "read",
    "read_chunks",
    "register",
    "write",
    "write_checked",
]

_IN_MEMORY = 2**26  # bytes of output that we keep in memory before we use a temporary file


def read(path: str, task: Task) -> Iterator[Example]:
    """Yield the examples of a file.

    Raises:
        InputError: no such file, a format of another task, a line that cannot be used, or no
            instance at all.
        MissingExtraError: the format needs a package that is not installed.
    """
    source_format = input_format(path)
    source_format.check_task(task, path)
    empty = True
    for example in source_format.read(path, task):
        empty = False
        yield example
    if empty:
        raise InputError(f"{display_name(path)}: holds no instance")


def read_chunks(path: str, task: Task, size: int) -> Iterator[Dataset]:
    """Yield the examples of a file, `size` at a time.

    Raises:
        InputError: no such file, another task's format, the first line that cannot be used, or no
            instance at all.
        MissingExtraError: the format needs a package that is not installed.
    """
    return chunks_of(read(path, task), task, size)


def write(path: str, examples: Iterable[Example], task: Task, like: str | None = None) -> None:
    """Write the whole file or nothing.

    Args:
        path: the file; `-` is standard output.
        examples: to be written.
        task: of the examples.
        like: the file that the instances came from, if any. It sets the format of standard output.

    Raises:
        InputError: the format cannot hold one of the examples.
        OutputError: the file cannot be written completely.
        MissingExtraError: the format needs a package that is not installed.
    """
    target = output_format(path, like)
    target.check_task(task, path)
    write_checked(path, target.checked(examples, task), task, like)


def write_checked(
    path: str, examples: Iterable[Example], task: Task, like: str | None = None
) -> None:
    """As `write`, without its checks: call `check_output` and `Format.checked` first.

    Args: as in `write`.

    Raises:
        OutputError: the file cannot be written completely.
    """
    target = output_format(path, like)
    if path == "-":
        with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="\n") as stream:
            target.write(stream, examples, task)
            stream.seek(0)
            to_standard_output(stream)
        return
    with atomic_path(Path(path)) as temporary, target.open_for_writing(temporary) as stream:
        target.write(stream, examples, task)


def print_as_they_come(examples: Iterable[Example], task: Task) -> None:
    """Print each example as soon as it is there, in the format of standard input.

    Raises:
        InputError: the format cannot hold an example. Those before it have been printed.
    """
    target = output_format("-", "-")
    for example in target.checked(examples, task):
        text = StringIO()
        target.write(text, [example], task)
        to_standard_output([text.getvalue()])


def num_features(path: str) -> int:
    """Count the numbers of an element in a file's first instance.

    Raises:
        InputError: no such file, a first instance that cannot be used, or a format whose files do
            not tell.
        MissingExtraError: the format needs a package that is not installed.
    """
    source_format = check_input(path)
    source_format.check_package()
    if not source_format.tells_num_features:
        telling = [f".{other}" for other in names() if get(other).tells_num_features]
        raise InputError(
            f"{path}: a .{source_format.extension} file does not say how many numbers an element "
            f"has; name the task, or write the examples to {' or '.join(telling)}"
            + ", a long table by ptrnet convert --set-id"
            * (source_format.extension == "csv")
        )
    return source_format.num_features(path)


def count_instances(path: str) -> int | None:
    """Return how many instances a file has, for a progress bar; None if it is binary."""
    capabilities = format_of(path).capabilities
    if not capabilities.multiple:
        return 1
    return None if capabilities.binary else count_lines(path)


def check_input(path: str) -> Format:
    """Return the format of a file. Raises InputError if it does not exist or is unknown."""
    source_format = format_of(path)
    if not os.path.exists(path):  # noqa: PTH110  Path.exists raises for names that are too long
        raise InputError(f"{path}: cannot be read: No such file or directory")
    return source_format


def check_keeps_extra(path: str, task: Task) -> None:
    """Refuse a file that cannot hold scores of its examples, or that cannot be written."""
    if not format_of(path).capabilities.extra:
        others = " or ".join(f".{name}" for name in names() if get(name).capabilities.extra)
        raise InputError(f"{path}: has no room for scores; write to {others}")
    check_output(path, task)


def check_not_overwritten(path: str, output: str) -> None:
    """Refuse to overwrite the instances by their answers, if the format only keeps the answers.

    Args:
        path: the file of the instances; `-` is standard input.
        output: the file of the answers; `-` is standard output.
    """
    if "-" in (path, output) or format_of(output).capabilities.answers:
        return
    if os.path.exists(output) and Path(path).samefile(output):  # noqa: PTH110
        raise InputError(
            f"{output}: holds the instance, and only its answer would be left; name another file "
            "for the answer"
        )


def check_output(path: str, task: Task | None = None) -> None:
    """Refuse a file that cannot be written, before any work is done for it.

    Args:
        path: the file; `-` is standard output.
        task: of the examples; None if it is not known yet.
    """
    target = format_of(path)
    if task is None:
        target.check_package()
    else:
        target.check_task(task, path)
    if path != "-":
        check_writable(Path(path))
