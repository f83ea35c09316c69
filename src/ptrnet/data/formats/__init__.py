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

Plug-ins register such a module, or a class with these members. `parts/` holds what formats share.

In the functions of this module `path` is a file, or `-` for standard input or output, and `task` is
the task of the examples. They raise an InputError for a file that does not exist, an unknown
extension, a format of another task, or the first line that cannot be used, and a MissingExtraError
for a format whose package is not installed.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

from ptrnet.data import checks
from ptrnet.data.dataset import Dataset, chunks_of
from ptrnet.data.formats.parts.lines import count_lines, display_name, standard_input_is_json
from ptrnet.errors import InputError, MissingExtraError, short, unknown
from ptrnet.files import atomic_path, check_writable, exists, to_standard_output
from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.plugins import Registry
from ptrnet.tasks.base import Task
from ptrnet.types import Example

if TYPE_CHECKING:
    from ptrnet.data.tables import Columns, Sets, Table

_registry = Registry("file format", __name__)
_ALIASES = {"svm": "svmlight", "libsvm": "svmlight"}
_CHECKED_TOGETHER = 2**14  # elements of the examples whose answers are checked together
_IN_MEMORY = 2**26  # bytes of output that we keep in memory before we use a temporary file


@dataclass(frozen=True)
class Capabilities:
    """What files of a format can hold, so that we can refuse the rest instead of losing it.

    Every module of `ptrnet.data.formats` has an object of this class as `CAPABILITIES`.

    Args:
        multiple: whether a file can hold more than one example.
        answers: whether reading a file gives back the answers that were written.
        extra: whether reading a file gives back the `extra` of an example.
        distances: the distances that an example may have.
        dictionaries: whether elements may have named fields.
        task: the only task that the format serves; None for all tasks.
        binary: whether `write` takes a stream of bytes instead of text.
        stdout_format: the format of answers on standard output; empty for the same format.
        package: an optional package that the format needs. The extra has the format's name.
    """

    multiple: bool = True
    answers: bool = True
    extra: bool = False
    distances: tuple[str, ...] = (EUCLIDEAN,)
    dictionaries: bool = False
    task: str | None = None
    binary: bool = False
    stdout_format: str = ""
    package: str = ""


@dataclass(frozen=True)
class Format:
    """A file format: its extension without the dot, and its module."""

    extension: str
    module: Any

    @property
    def capabilities(self) -> Capabilities:
        """What files of the format can hold."""
        capabilities: Capabilities = self.module.CAPABILITIES
        return capabilities

    @property
    def columns(self) -> "Columns | None":
        """The columns of every file, if they are long tables that name their columns alike."""
        columns: Columns | None = getattr(self.module, "COLUMNS", None)
        return columns

    def has(self, member: str) -> bool:
        """Whether the module has an optional member, such as `write_table`."""
        return hasattr(self.module, member)

    def dictionaries(self, path: str) -> Iterator[tuple[list[Mapping[str, Any]], str]] | None:
        """Return the named elements of each instance, and its source; None if they are numbers."""
        return self.module.dictionaries(path) if self.has("dictionaries") else None

    def table(self, path: str) -> "Table":
        """Return a file as a long table."""
        self.check_has("table", path)
        table: Table = self.module.table(path)
        return table

    def open_for_writing(self, path: Path) -> IO[Any]:
        """Open a stream for `write`."""
        if self.capabilities.binary:
            return path.open("wb")
        return path.open("w", encoding="utf-8", newline="\n")

    def check_has(self, member: str, path: str) -> None:
        """Refuse a format without long tables, or whose package is not installed."""
        if not self.has(member):
            others = [f".{name}" for name in names() if get(name).has(member)]
            raise InputError(f"{path}: expected a table, {' or '.join(others)}")
        self.check_package()

    def check_package(self) -> None:
        """Refuse a format whose package is not installed."""
        package = self.capabilities.package
        if package and find_spec(package) is None:
            raise MissingExtraError(f".{self.extension}", self.extension)

    def check_task(self, task: Task, path: str) -> None:
        """Refuse a format that only serves another task, or whose package is not installed."""
        if self.capabilities.task not in (None, task.name):
            raise InputError(
                f"{path}: .{self.extension} files are of task {self.capabilities.task}, "
                f"asked for {task.name}"
            )
        self.check_package()

    def checked(
        self, examples: Iterable[Example], task: Task, keep_answers: bool = False
    ) -> Iterator[Example]:
        """Yield the examples; raise InputError at the first that the format cannot hold.

        If `keep_answers`, also refuse answers that could not be read back.
        """
        can, name = self.capabilities, f"a .{self.extension} file"
        for count, example in enumerate(examples):
            if count and not can.multiple:
                others = _alternatives(example, task, "multiple")
                raise InputError(f"{name} holds one instance; write several to {others}")
            lost, needs = "", ""
            if example.distance == EUCLIDEAN not in can.distances:
                lost = "rounds every distance, in the unit square to 0 or 1"
            elif example.distance not in can.distances:
                lost = f"says nothing of distances, here {example.distance}"
            elif example.elements is not None and not can.dictionaries:
                lost, needs = "would lose the names of the elements' fields", "dictionaries"
            elif keep_answers and example.outputs is not None and not can.answers:
                lost, needs = "would lose the answer", "answers"
            elif keep_answers and example.rules.is_open and not can.extra:
                lost, needs = "would lose that the path is open", "extra"
            if lost:
                others = _alternatives(example, task, needs)
                raise InputError(f"{example.source}: {name} {lost}; write to {others}")
            yield example


def _alternatives(example: Example, task: Task, needs: str) -> str:
    """List the extensions that can hold an example, as in `.csv, .jsonl or .txt`.

    If `needs` is not empty, it names a capability that the formats must have, too.
    """
    extensions = []
    for extension in names():
        can = get(extension).capabilities
        serves = can.task in (None, task.name) and (not needs or getattr(can, needs))
        holds_answer = can.answers or example.outputs is None
        if serves and holds_answer and example.distance in can.distances:
            extensions.append(f".{extension}")
    *others, last = extensions or [""]
    return f"{', '.join(others)} or {last}" if others else last


def names() -> list[str]:
    """The known extensions, without the dot."""
    return _registry.names()


def register(extension: str, module: Any) -> None:
    """Add a format: a module or a class with `CAPABILITIES`, `read` and `write`.

    Raises:
        InputError: one of these is missing, CAPABILITIES has another type than `Capabilities`, or
            the extension is taken.
    """
    for member in ("CAPABILITIES", "read", "write"):
        if not hasattr(module, member):
            raise InputError(f"register a file format: {module!r} has no {member}")
    if not isinstance(module.CAPABILITIES, Capabilities):
        raise InputError(
            f"register a file format: {module!r}: CAPABILITIES: expected Capabilities, "
            f"got {short(module.CAPABILITIES)}"
        )
    _registry.register(extension, module)


def get(extension: str) -> Format:
    """Return the format of a known extension."""
    return Format(extension, _registry.get(extension))


def format_of(path: str) -> Format:
    """Return the format of a file by its extension; that of `-` is `txt`.

    If the extension is missing or unknown, the message suggests the nearest.
    """
    extension = "txt" if path == "-" else Path(path).suffix.removeprefix(".").lower()
    extension = _ALIASES.get(extension, extension)
    known = names()
    if extension not in known and exists(f"{path}.query"):  # as LightGBM's examples are named
        return get("svmlight")
    if not extension:
        raise InputError(f"{path}: expected an extension, one of .{', .'.join(known)}")
    if extension not in known:
        raise unknown("file format", extension, known)
    return get(extension)


def input_format(path: str) -> Format:
    """Return the format of a file to be read; standard input that begins with `{` is `jsonl`."""
    return get("jsonl") if path == "-" and standard_input_is_json() else format_of(path)


def output_format(path: str, like: str | None) -> Format:
    """Return the format in which answers to the instances of `like` are written to `path`.

    On standard output, `-`, that is the format of `like` or its `stdout_format`, and `txt` if
    `like` is None.
    """
    if path != "-" or like is None:
        return format_of(path)
    source = input_format(like)
    return get(source.capabilities.stdout_format or source.extension)


# Reading


def read(path: str, task: Task, columns: "Columns | None" = None) -> Iterator[Example]:
    """Yield the examples of a file; of a long table if `columns` say which of them say what."""
    source = input_format(path)
    source.check_task(task, path)
    examples: Iterable[Example]
    if columns:
        sets = open_sets(path, columns)
        assert sets is not None
        examples = sets.dataset(task)
    else:
        examples = source.module.read(path, task)
        # A line of standard input does not wait for the next one.
        examples = checks.feasible(examples, task, 1 if path == "-" else _CHECKED_TOGETHER)
    count = 0
    for count, example in enumerate(examples, 1):  # noqa: B007  used below
        yield example
    if not count:
        raise InputError(f"{display_name(path)}: holds no instance")


def read_chunks(
    path: str, task: Task, size: int, columns: "Columns | None" = None
) -> Iterator[Dataset]:
    """Yield the examples of a file, `size` at a time; see `read`."""
    return chunks_of(read(path, task, columns), task, size)


def open_sets(path: str, columns: "Columns | None" = None) -> "Sets | None":
    """Return the sets of a long table, whose `columns` say what; None if the file is not one."""
    source = input_format(path)
    columns = columns or source.columns
    if not columns:
        return None
    from ptrnet.data.tables import Sets

    check_input(path)
    return Sets(source.table(path), columns)


def table_of(values: Any) -> "Table":
    """Return the long table in a file, a frame or a list of dictionaries; see `read_table`."""
    from ptrnet.data.tables import Table

    if isinstance(values, str | Path):
        return check_input(str(values)).table(str(values))
    return Table.of(values)


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

    Examples:
        >>> orders = {"order": [1, 1, 2, 2], "price": [3.0, 2.5, 9.0, 8.0], "bought": [0, 1, 0, 1]}
        >>> sets = read_table(pandas.DataFrame(orders), set_id="order", chosen="bought")
        >>> sets[0].elements, sets[0].outputs.tolist()
        ([{'price': 3.0}, {'price': 2.5}], [1])
    """
    from ptrnet.data.tables import Columns, Sets

    columns = Columns(set_id=set_id, chosen=chosen, rank=rank, grade=grade, member=member)
    return Sets(table_of(table), columns).examples()


def num_features(path: str) -> int:
    """Count the numbers of an element in a file's first instance."""
    source = check_input(path)
    source.check_package()
    if not source.has("num_features"):
        telling = [f".{other}" for other in names() if get(other).has("num_features")]
        raise InputError(
            f"{path}: a .{source.extension} file does not say how many numbers an element "
            f"has; name the task, or write the examples to {' or '.join(telling)}"
            + ", a long table by ptrnet convert --set-id"
            * (source.extension == "csv")
        )
    count: int = source.module.num_features(path)
    return count


def count_instances(path: str) -> int | None:
    """Return how many instances a file has, for a progress bar; None if it is binary."""
    capabilities = format_of(path).capabilities
    if not capabilities.multiple:
        return 1
    return None if capabilities.binary else count_lines(path)


# Writing


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
    """
    target = output_format(path, like)
    target.check_task(task, path)
    write_checked(path, target.checked(examples, task), task, like)


def write_checked(
    path: str, examples: Iterable[Example], task: Task, like: str | None = None
) -> None:
    """As `write`, without its checks: call `check_output` and `Format.checked` first."""
    target = output_format(path, like)
    if path == "-":
        with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="\n") as stream:
            target.module.write(stream, examples, task)
            stream.seek(0)
            to_standard_output(stream)
        return
    with atomic_path(Path(path)) as temporary, target.open_for_writing(temporary) as stream:
        target.module.write(stream, examples, task)


def write_table(path: str, table: "Table") -> None:
    """Write a long table; to standard output as .csv."""
    if path == "-":
        text = StringIO()
        get("csv").module.write_table(text, table)
        to_standard_output(text.getvalue().splitlines(keepends=True))
        return
    target = format_of(path)
    target.check_has("write_table", path)
    with atomic_path(Path(path)) as temporary, target.open_for_writing(temporary) as stream:
        target.module.write_table(stream, table)


def print_stream(examples: Iterable[Example], task: Task) -> None:
    """Print each example as soon as it is computed, in the format of standard input."""
    target = output_format("-", "-")
    for example in target.checked(examples, task):
        text = StringIO()
        target.module.write(text, [example], task)
        to_standard_output([text.getvalue()])


# Checks of a command's files, before any work is done


def check_input(path: str) -> Format:
    """Return the format of a file. Raises InputError if it does not exist or is unknown."""
    source = format_of(path)
    if not exists(path):
        raise InputError(f"{path}: cannot be read: No such file or directory")
    return source


def check_output(path: str, task: Task | None = None) -> None:
    """Refuse a file that cannot be written. The task is None if it is not known yet."""
    target = format_of(path)
    if task is None:
        target.check_package()
    else:
        target.check_task(task, path)
    if path != "-":
        check_writable(Path(path))


def check_has_answers(path: str, task: Task, columns: "Columns") -> None:
    """Refuse a table if the user did not name the column of its answers."""
    source = input_format(path)
    may_be_answered = source.capabilities.answers or not source.has("write_table")
    if not (columns.answer[0] if columns else may_be_answered):
        check_input(path)
        raise InputError(
            f"{path}: has no answer to measure against; a long table needs --set-id "
            "and the column of its answers (--chosen, --rank, --grade or --member), such as "
            f"--set-id trip --chosen bought{checks.labeller_advice(task)}"
        )


def check_keeps_extra(path: str, task: Task) -> None:
    """Refuse a file that cannot hold scores of its examples, or that cannot be written."""
    if not format_of(path).capabilities.extra:
        others = " or ".join(f".{name}" for name in names() if get(name).capabilities.extra)
        raise InputError(f"{path}: has no room for scores; write to {others}")
    check_output(path, task)


def check_not_overwritten(path: str, output: str) -> None:
    """Refuse to overwrite the instances by their answers, if the format only keeps the answers."""
    if "-" in (path, output) or format_of(output).capabilities.answers:
        return
    if exists(output) and os.path.samefile(path, output):  # noqa: PTH121  as files.exists
        raise InputError(
            f"{output}: holds the instance, and only its answer would be left; name another file "
            "for the answer"
        )
