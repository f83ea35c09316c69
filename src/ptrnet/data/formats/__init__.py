"""File formats by extension. Each is a module here, listed nowhere else, with these members:

- `CAPABILITIES`: what its files can hold
- `read(path, task)`: yields the examples of a file; text formats also take `-`
- `write(stream, examples, task)`: writes examples to an open stream of text or bytes
- `num_features(path)`: numbers of an element, d; only if files tell it without a task
- `table(path)` and `write_table(stream, table)`: of `ptrnet.data.tables.Table`; only if a file may
  be a long table, in which a row is an element
- `COLUMNS`: the columns of its tables, if all files name them alike
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
from typing import TYPE_CHECKING, Any

from ptrnet.data.checks import labeller_advice
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

if TYPE_CHECKING:
    from ptrnet.data.tables import Columns, Sets, Table

__all__ = [
    "Capabilities",
    "Format",
    "check_has_answers",
    "check_input",
    "check_keeps_extra",
    "check_not_overwritten",
    "check_output",
    "count_instances",
    "format_of",
    "get",
    "names",
    "num_features",
    "open_sets",
    "output_format",
    "print_as_they_come",
    "read",
    "read_chunks",
    "read_table",
    "register",
    "write",
    "write_checked",
    "write_table",
]

_IN_MEMORY = 2**26  # bytes of output that we keep in memory before we use a temporary file


def open_sets(path: str, columns: "Columns | None" = None) -> "Sets | None":
    """Return the sets of a long table; None if the file is not one.

    Args:
        path: of the file.
        columns: which of its columns say what; empty if it is not a long table.

    Raises:
        InputError: no such file, a format without tables, or a file that cannot be used.
        MissingExtraError: the format needs a package that is not installed.
    """
    source_format = input_format(path)
    columns = columns or source_format.columns
    if not columns:
        return None
    from ptrnet.data.tables import Sets

    check_input(path)
    return Sets(source_format.table(path), columns)


def read_table(
    table: Any,
    *,
    set_id: str,
    chosen: str = "",
    rank: str = "",
    grade: str = "",
    member: str = "",
) -> list[Example]:
    """Return the sets of a long table, whose elements are dictionaries of its other columns.

    `ptrnet.fit`, `solve` and `evaluate` take tables by the same names of columns; this function is
    for what needs sets one by one, such as splitting them. The rows of a set may be anywhere. Sets
    are in the order of their first rows.

    Args:
        table: a file (.csv, .parquet, .svmlight), a frame of pandas or polars, or a list of
            dictionaries.
        set_id: the column whose value the rows of a set share; the key of the same name in
            `extra`.
        chosen: the column that is 1 in the one row that was chosen, 0 elsewhere.
        rank: the column with an element's place in the answer: any numbers, the least first. Equal
            ones are ties. A cell is empty if the element is not in the answer.
        grade: the column with an element's grade, the highest first.
        member: the column that is 1 if an element belongs to the answer, a set without an order.

    Raises:
        InputError: no such file or column, or a cell that cannot be used, by its line or row.
    """
    from ptrnet.data.tables import Columns, Sets

    columns = Columns(set_id=set_id, chosen=chosen, rank=rank, grade=grade, member=member)
    return Sets(table_of(table), columns).examples()


def table_of(values: Any) -> "Table":
    """Return the long table in a file, a frame or a list of dictionaries; see `read_table`."""
    from ptrnet.data.tables import Table

    if isinstance(values, str | Path):
        return check_input(str(values)).table(str(values))
    return Table.of(values)


def read(path: str, task: Task, columns: "Columns | None" = None) -> Iterator[Example]:
    """Yield the examples of a file; of a long table if `columns` say which of them say what.

    Raises:
        InputError: no such file, a format of another task, a line that cannot be used, or no
            instance at all.
        MissingExtraError: the format needs a package that is not installed.
    """
    source_format = input_format(path)
    source_format.check_task(task, path)
    if columns:
        sets = open_sets(path, columns)
        assert sets is not None
        yield from sets.dataset(task)
        return
    empty = True
    for example in source_format.read(path, task):
        empty = False
        yield example
    if empty:
        raise InputError(f"{display_name(path)}: holds no instance")


def read_chunks(
    path: str, task: Task, size: int, columns: "Columns | None" = None
) -> Iterator[Dataset]:
    """Yield the examples of a file, `size` at a time; see `read`.

    Raises:
        InputError: no such file, another task's format, the first line that cannot be used, or no
            instance at all.
        MissingExtraError: the format needs a package that is not installed.
    """
    return chunks_of(read(path, task, columns), task, size)


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


def write_table(path: str, table: "Table") -> None:
    """Write a long table; to standard output as .csv.

    Raises:
        InputError: a format without tables, or a table that it cannot hold.
        OutputError: the file cannot be written completely.
    """
    if path == "-":
        text = StringIO()
        get("csv").write_table(text, table, path)
        to_standard_output(text.getvalue().splitlines(keepends=True))
        return
    target = format_of(path)
    with atomic_path(Path(path)) as temporary, target.open_for_writing(temporary) as stream:
        target.write_table(stream, table, path)


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


def check_has_answers(path: str, task: Task, columns: "Columns") -> None:
    """Refuse a table if the user did not name the column of its answers.

    Args:
        path: the file of the examples; `-` is standard input.
        task: of the examples.
        columns: of the file, if it is a long table.
    """
    source_format = input_format(path)
    if columns:
        has_answers = bool(columns.answer[0])
    else:
        has_answers = source_format.capabilities.answers or not source_format.writes_tables
    if not has_answers:
        check_input(path)
        raise InputError(
            f"{path}: has no answer to measure against; a long table needs --set-id "
            "and the column of its answers (--chosen, --rank, --grade or --member), such as "
            f"--set-id trip --chosen bought{labeller_advice(task)}"
        )


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
