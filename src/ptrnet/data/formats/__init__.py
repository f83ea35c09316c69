"""Read and write examples in many file formats, chosen by the extension.

Each format is a module in this folder, with the file extension as its name. Its members are:

- `CAPABILITIES`: what its files can hold
- `read(path, task)`: yields the examples of a file; text formats also accept `-`
- `write(stream, examples, task)`: writes examples to an open stream of text or bytes

A module may also have these members:

- `instances(path)`, for formats whose files tell what their elements are: yields pairs of the
  elements of an instance, which are not checked, and their source. The elements are numbers, or
  dictionaries of named fields.
- `table(path)` and `write_table(stream, table)`, for formats of long tables, in which each row is
  an element: read and write a `ptrnet.data.tables.Table`.
- `COLUMNS`, for formats whose files all use the same names: the columns of ids and answers
- `companions(path)`, for formats that read several files together, such as a tour and its cities:
  returns the paths of the other files. A file that `read` can do without is left out if it does not
  exist.

Plug-ins register a module or a class with these members. The folder `parts/` has code that several
formats share.

In the functions below, `path` is a file, or `-` for standard input or output, and `task` is the
task of the examples. A folder of documents of pages is read and written like a file. The functions
raise InputError if a file does not exist, its extension is unknown, its format serves another task,
or a line cannot be used. If a format needs a package that is not installed, the functions raise
MissingExtraError.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

from ptrnet.data import checks
from ptrnet.data.arrays import is_frame
from ptrnet.data.dataset import chunks_by_elements
from ptrnet.data.formats.parts import count_lines, display_name, standard_input_is_json
from ptrnet.data.groups import with_groups
from ptrnet.errors import InputError, check_package, short
from ptrnet.files import (
    atomic_folder,
    atomic_path,
    check_writable,
    checksum,
    exists,
    to_standard_output,
)
from ptrnet.geometry.distances import EUCLIDEAN, EXPLICIT
from ptrnet.plugins import Registry
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import NO_LAYOUT, Layout
from ptrnet.types import Dataset, Document, Example

if TYPE_CHECKING:
    from ptrnet.data.columns import Columns
    from ptrnet.data.tables import Table

_registry = Registry("file format", __name__, unlisted=("folder",))
_ALIASES = {
    "svm": "svmlight",
    "libsvm": "svmlight",
    "dat": "tsv",
    **dict.fromkeys(("html", "htm", "xhtml"), "hocr"),
}
_CHECKED_TOGETHER = 2**14  # check examples in chunks of about this many elements
IN_MEMORY = 2**26  # how many bytes of output are kept in memory before we use a temporary file


@dataclass(frozen=True)
class Capabilities:
    """What files of a format can hold. `Format.checked` refuses all other data.

    Every module of `ptrnet.data.formats` has an object of this class as `CAPABILITIES`.

    Args:
        multiple: whether `write` can write more than one example to a file.
        answers: whether reading a file gives back the answers that were written.
        extra: whether reading a file gives back the `extra` of an example.
        distances: the names of the distances that an example may use, such as `EUC_2D`.
        dictionaries: whether elements may have named fields.
        task: the only task that the format serves; None for all tasks.
        document: whether answers are written into the document that was read. `write` then takes
            only the examples of one such document.
        binary: whether `write` takes a stream of bytes instead of text.
        stdout_format: the extension of the format in which answers are printed; empty for the
            format of the file.
        package: an optional package that the format needs. `pip install ptrnet[EXTENSION]`
            installs it, where EXTENSION is the extension of the format's files.
    """

    multiple: bool = True
    answers: bool = True
    extra: bool = False
    distances: tuple[str, ...] = (EUCLIDEAN,)
    dictionaries: bool = False
    task: str | None = None
    document: bool = False
    binary: bool = False
    stdout_format: str = ""
    package: str = ""

    @property
    def is_unanswered(self) -> bool:
        """Whether `write` ignores answers.

        False for .csv, though `answers` is False: `write` sorts the rows into the answer's order,
        but `read` cannot tell that rows were sorted.
        """
        return bool(self.stdout_format) and not self.answers


@dataclass(frozen=True)
class Format:
    """A file format: its extension without the dot, and its module. A folder has no extension."""

    extension: str
    module: Any

    @property
    def capabilities(self) -> Capabilities:
        """What files of the format can hold."""
        return self.module.CAPABILITIES

    @property
    def kind(self) -> str:
        """What messages call a file of the format."""
        return f"a .{self.extension} file" if self.extension else "a folder"

    @property
    def columns(self) -> "Columns | None":
        """The columns of ids and answers; None if the format does not fix their names."""
        return getattr(self.module, "COLUMNS", None)

    def has(self, member: str) -> bool:
        """Whether the module has an optional member, such as `write_table`."""
        return hasattr(self.module, member)

    def check(self, path: str, task: Task | None = None, member: str = "") -> None:
        """Refuse to read or write a file.

        Args:
            path: the file, for the error message.
            task: the task of the file's examples. A format may serve only another task.
            member: a function that the module needs: "table" or "write_table".

        Raises:
            InputError: the format does not serve the task, or lacks the function.
            MissingExtraError: the format's package is not installed.
        """
        if member and not self.has(member):
            raise InputError(f"{path}: expected a table, {_joined_by_or(_with(member))}")
        if task is not None and self.capabilities.task not in (None, task.name):
            files = f".{self.extension} files" if self.extension else "folders"
            raise InputError(
                f"{path}: {files} are for task {self.capabilities.task}, not for {task.name}"
            )
        if package := self.capabilities.package:
            check_package(package, f".{self.extension}", self.extension)

    def checked(
        self, examples: Iterable[Example], task: Task, keep_answers: bool = False
    ) -> Iterator[Example]:
        """Yield the examples. Raises InputError for an example that the format cannot hold.

        If `keep_answers` is true, also refuse answers that could not be read back.
        """
        can, document = self.capabilities, None
        for count, example in enumerate(examples):
            start, needs = f"{example.source}: {self.kind}", ""
            if count and not can.multiple and example.page is None:
                start, lost, needs = self.kind, "holds one instance", "multiple"
            elif can.document and not self._is_of(example, document):
                lost, needs = "holds only documents into which answers are written", "multiple"
                if self.extension:
                    start, lost = self.kind, "holds only the document that was read"
            elif example.distance != EXPLICIT and can.distances == (EXPLICIT,):
                lost = "holds a matrix of distances, and cannot hold points"
            # A chained comparison: the distance is Euclidean, and `can.distances` lacks EUCLIDEAN.
            elif example.distance == EUCLIDEAN not in can.distances:
                lost = "would round every distance to a whole number, in the unit square to 0 or 1"
            elif example.distance not in can.distances:
                lost = f"cannot say that distances are {example.distance}"
            elif example.elements is not None and not can.dictionaries:
                lost, needs = "would lose the names of the elements' fields", "dictionaries"
            elif example.outputs is not None and (
                can.is_unanswered or (keep_answers and not can.answers)
            ):
                lost, needs = "would lose the answer", "answers"
            elif keep_answers and example.rules.is_open and not can.extra:
                lost, needs = "would lose that the path is open", "extra"
            else:
                document = example.page.document if example.page else None
                yield example
                continue
            others = _alternatives(example, task, needs)
            several = "several " * (needs == "multiple")
            raise InputError(f"{start} {lost}; write {several}to {others}")

    def _is_of(self, example: Example, document: Document | None) -> bool:
        """Whether the format can write an example after one of the given document."""
        own = example.page.document if example.page else None
        if own is None or not self.extension:
            return own is not None
        return format_of(own.path) == self and document in (None, own)


def _alternatives(example: Example, task: Task, needs: str) -> str:
    """List the formats that can hold an example, as in `.csv, .jsonl or .txt`.

    `needs` is a capability that they must also have, such as "extra"; empty for none.
    """

    def suits(can: Capabilities) -> bool:
        serves = can.task in (None, task.name) and (not needs or getattr(can, needs))
        serves = serves and not can.document
        holds_answer = can.answers or example.outputs is None
        return serves and holds_answer and example.distance in can.distances

    return _joined_by_or(name for name in names() if suits(get(name).capabilities))


def _with(member: str) -> Iterator[str]:
    """Yield the extensions of the formats that have an optional member."""
    return (name for name in names() if get(name).has(member))


def extensions_for(task: Task) -> str:
    """List the extensions of formats that serve only this task, as in `.atsp, .npy or .tsp`."""
    return _joined_by_or(name for name in names() if get(name).capabilities.task == task.name)


def _joined_by_or(names: Iterable[str]) -> str:
    """Return extensions as a text, as in `.csv, .jsonl or .txt`."""
    *others, last = [f".{name}" for name in names] or [""]
    return f"{', '.join(others)} or {last}" if others else last


def names() -> list[str]:
    """Return the known extensions, without the dot."""
    return _registry.names()


def register(extension: str, module: Any) -> None:
    """Add a format: a module or a class with `CAPABILITIES`, `read` and `write`.

    Raises:
        InputError: a member is missing, `CAPABILITIES` has the wrong type, or the extension is
            taken.

    Examples:
        >>> class Points:  # each line is an instance: x1,y1,x2,y2,...
        ...     CAPABILITIES = Capabilities(answers=False, task="hull")
        ...
        ...     @staticmethod
        ...     def read(path, task):
        ...         for line in open(path):
        ...             yield Example(np.array(line.split(","), float).reshape(-1, 2))
        ...
        ...     @staticmethod
        ...     def write(stream, examples, task):
        ...         for example in examples:
        ...             print(*example.inputs.ravel(), sep=",", file=stream)
        >>> register("points", Points)
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
    """Return the format of a file by its extension. The format of `-` is `txt`.

    A folder, or a path that ends in a slash, has the format of documents in a folder.

    Raises:
        InputError: the extension is missing or unknown. The message lists or suggests extensions.
    """
    if path.endswith("/") or os.path.isdir(path):  # noqa: PTH112  as files.exists
        return Format("", _registry.builtin("folder"))
    extension = "txt" if path == "-" else Path(path).suffix.removeprefix(".").lower()
    # LightGBM's files in the format svmlight have names such as rank.train and rank.train.query.
    if extension not in _registry and exists(f"{path}.query"):
        return get("svmlight")
    extension = _ALIASES.get(extension, extension)
    if extension in ("xls", "xlsx", "ods") and extension not in _registry:
        raise InputError(f"unknown file format {extension!r}: save the sheet as .csv")
    if not extension:
        raise InputError(
            f"{path}: expected an extension, one of .{', .'.join(names())}; or for a new folder of "
            "pages a slash at the end"
        )
    return get(extension)


def is_document(path: str) -> bool:
    """Whether the extension of a file is that of documents of pages."""
    extension = Path(path).suffix.removeprefix(".").lower()
    extension = _ALIASES.get(extension, extension)
    return extension in names() and get(extension).capabilities.document


def table_format(path: str) -> Format:
    """As `format_of`, for a long table. A `.txt` has the columns of a `.tsv`."""
    source = format_of(path)
    return get("tsv") if source.extension == "txt" and path != "-" else source


def writes_table(path: str, like: str) -> bool:
    """Whether the answers to the long table `like` are written to `path` as a long table.

    A `.txt` has the authors' format, unless the answered table is a `.txt`, too.
    """
    target = format_of(path)
    is_like = target.extension == "txt" == format_of(like).extension
    return is_like or target.has("write_table")


def input_format(path: str) -> Format:
    """Return the format of an input file. Standard input that begins with `{` is `jsonl`."""
    return get("jsonl") if path == "-" and standard_input_is_json() else format_of(path)


def output_format(path: str, like: str | None) -> Format:
    """Return the format in which answers are written to `path`.

    Args:
        path: the output. A file has the format of its extension.
        like: the file of the instances, or None. This file sets the format of standard output.
    """
    if path != "-" or like is None:
        return format_of(path)
    source = input_format(like)
    return get(source.capabilities.stdout_format or source.extension)


# Reading


def read(path: str, task: Task, columns: "Columns | None" = None) -> Iterator[Example]:
    """Yield the examples of a file.

    Args:
        path: the file.
        task: the task of the examples.
        columns: the columns of ids and answers, if the file is a long table; and the field of
            groups. If `columns` are None, groups are not read.
    """
    opened = open_sets(path, columns, task)
    yield from read_instances(path, task, columns) if opened is None else opened[0]


def read_instances(path: str, task: Task, columns: "Columns | None" = None) -> Iterator[Example]:
    """As `read`, for a file that is not a table of sets."""
    source = input_format(path)
    source.check(path, task)
    # Check each example of standard input immediately: the next example may come much later.
    size = 1 if path == "-" else _CHECKED_TOGETHER
    chunks, chunk = chunks_by_elements(source.module.read(path, task), size), Dataset.of([])
    for chunk in chunks if columns is None else with_groups(chunks, columns.group):
        checks.check_feasible(chunk, task)
        yield from chunk
    if not len(chunk):
        raise InputError(f"{display_name(path)}: holds no instance")


def open_sets(
    table: Any, columns: "Columns | None", task: Task, with_answers: bool = True
) -> "tuple[Dataset, Table, Columns] | None":
    """As `open_table`, but also return the sets, which are read for a task.

    The task knows how the rows of wide tables hold sets.
    """
    if isinstance(table, str | Path):
        input_format(str(table)).check(str(table), task)
    opened = open_table(table, columns, task.facts.layout, with_answers)
    if opened is None:
        return None
    from ptrnet.data.tables import sets_for_task

    return sets_for_task(*opened, task, with_answers), *opened


def open_table(
    table: Any,
    columns: "Columns | None" = None,
    layout: Layout = NO_LAYOUT,
    with_answers: bool = True,
) -> "tuple[Table, Columns] | None":
    """Return a long table and the names of its columns; None if there is no table of sets.

    There is one if `columns` are given, if the format of a file has `COLUMNS`, or if a table is
    wide, as `layout` says. See `table_format` for files, and `ptrnet.data.reshape` for wide tables.

    Args:
        table: a file, a frame, or a list of dictionaries; other values in memory are no table.
        columns: the names of columns that the user gave.
        layout: how the rows of tables hold sets, if a model knows it.
        with_answers: whether to read the answers, if the table is wide.
    """
    path = str(table) if isinstance(table, str | Path) else ""
    if path == "-" and columns:
        raise InputError("a long table cannot be read from standard input; name its file")
    fixed = input_format(path).columns if path else None
    if not columns and fixed is not None:
        columns = replace(fixed, group="" if columns is None else columns.group)
    may_be_wide = layout.alternatives and path != "-"
    if columns or (may_be_wide and (table_format(path).has("table") if path else _is_table(table))):
        found = table_of(table)
        if columns or layout.is_wide(found.columns):
            from ptrnet.data.columns import NO_COLUMNS
            from ptrnet.data.reshape import as_long

            return as_long(found, columns or NO_COLUMNS, layout, with_answers)
    if getattr(columns, "weight", ""):
        raise InputError("weight: names a column of a table, so it needs set_id")
    return None


def _is_table(values: Any) -> bool:
    """Whether values in memory have named columns: a frame, or a list of dictionaries."""
    is_list = isinstance(values, list) and len(values) > 0
    return is_frame(values) or (is_list and isinstance(values[0], Mapping))


def table_of(values: Any) -> "Table":
    """Convert a file, a frame or a list of dictionaries to a long table; see `read_table`."""
    from ptrnet.data.tables import Table

    if not isinstance(values, str | Path):
        return Table.of(values)
    path = str(values)
    check_input(path)
    source = table_format(path)
    source.check(path, member="table")
    return source.module.table(path)


def read_table(
    table: Any,
    *,
    set_id: str = "",
    chosen: str = "",
    rank: str = "",
    grade: str = "",
    member: str = "",
    weight: str = "",
    alternatives: str | Sequence[str] = "",
    pattern: str = "",
    available: str = "",
    outside: str = "",
    interact: str | Sequence[str] = "",
) -> list[Example]:
    """Return an example for each set of a long table, in which each row is an element.

    Use this function to work with the sets, for example to split them. `ptrnet.fit`, `solve` and
    `evaluate` read such tables themselves and have the same arguments. The rows of a set need not
    be next to each other. Sets are in the order of their first rows.

    Args:
        table: a file (.csv, .tsv, .dat, .txt, .parquet, .svmlight), a frame of pandas or polars, or
            a list of dictionaries.
        set_id: the column whose value the rows of a set share. The `extra` of an example
            has this value under the column's name.
        chosen: the column that is 1 in the chosen row of a set, and 0 in the other rows of the set.
        rank: the column with the rank of each element, any number. The lowest rank comes first, and
            equal ranks are ties. The cell of an element that is not in the answer is empty.
        grade: the column with the grade of each element, a number. The highest grade comes first.
        member: the column that is 1 for each element of the answer. The answer has no order.
        weight: the column with the weight of a set in the loss of a training; see `ptrnet.fit`.
        alternatives: for a wide table, in which each row is a set and `chosen` has a name or a
            number from 1: the names of the alternatives. No `set_id` is needed.
        pattern: the names of the alternatives' columns, such as "{alternative}_{field}". By
            default, ptrnet finds them.
        available: the column that is 1 if an element can be chosen; elements with 0 are left out.
            For a wide table a pattern, such as "{alternative}_AV".
        outside: the name of an answer "none of these". Each set gets it as its last element.
        interact: for a wide table, fields of the whole set that each alternative gets as a field of
            its own, such as "income of car".

    Raises:
        InputError: a file or column does not exist, or a cell cannot be used. For a cell, the
            message names the line or row.

    Examples:
        >>> orders = {"order": [1, 1, 2, 2], "price": [3.0, 2.5, 9.0, 8.0], "bought": [0, 1, 0, 1]}
        >>> sets = read_table(pandas.DataFrame(orders), set_id="order", chosen="bought")
        >>> sets[0].elements, sets[0].outputs.tolist()
        ([{'price': 3.0}, {'price': 2.5}], [1])
    """
    from ptrnet.data.columns import TrainingColumns
    from ptrnet.data.tables import read_sets

    columns = TrainingColumns(
        set_id=set_id,
        chosen=chosen,
        rank=rank,
        grade=grade,
        member=member,
        weight=weight,
        alternatives=alternatives,  # type: ignore[arg-type]  # it joins lists of names
        pattern=pattern,
        available=available,
        outside=outside,
        interact=interact,  # type: ignore[arg-type]
    )
    opened = open_table(table, columns)
    if opened is None:
        raise InputError("expected set_id, the column that says which rows are a set")
    return list(read_sets(*opened))


def instances(path: str) -> Iterator[tuple[Any, str]]:
    """Yield the elements of each instance in a file, which are not checked, and their source.

    Raises InputError if the format does not tell what the elements are, or there is no instance.
    """
    source = check_input(path)
    source.check(path)
    if not source.has("instances"):
        advice = f"name the task, or write the examples to {_joined_by_or(_with('instances'))}"
        if source.extension in ("csv", "tsv", "txt"):
            advice += (
                "; a table with a row for each element needs set_id and the column of its answers, "
                "such as --set-id order --chosen bought"
            )
        raise InputError(
            f"{path}: {source.kind} does not say how many numbers an element has; {advice}"
        )
    pair = None
    for pair in source.module.instances(path):
        yield pair
    if pair is None:
        raise InputError(f"{path}: holds no instance")


def count_instances(path: str) -> int | None:
    """Return the approximate number of instances in a file, for a progress bar; None if unknown."""
    source = format_of(path)
    if not source.capabilities.multiple:
        return 1
    # A line of a long table is an element.
    return None if source.capabilities.binary or source.columns else count_lines(path)


def content_checksum(path: str) -> str:
    """Return a SHA-256 of the content of a file and its companions, which `read` reads, too.

    Raises InputError if the file or a companion cannot be read.
    """
    content, source = _checksum(path), format_of(path)
    others = source.module.companions(path) if source.has("companions") else []
    return checksum(" ".join([content, *map(_checksum, others)]).encode()) if others else content


def _checksum(path: str) -> str:
    try:
        return checksum(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise InputError(f"{path}: cannot be read: {reason}") from None


# Writing


def write(path: str, examples: Iterable[Example], task: Task, like: str | None = None) -> None:
    """Write examples to a file. If an error occurs, an existing file does not change.

    Args:
        path: the file; `-` is standard output.
        examples: the examples.
        task: the task of the examples.
        like: the file of the instances, or None. This file sets the format of standard output.

    Raises:
        InputError: the format cannot hold one of the examples.
        OutputError: the file cannot be written completely.

    Examples:
        >>> tour = Example(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 1, 2]))
        >>> write("tours.jsonl", [tour], tasks.get("tsp"))
    """
    target = output_format(path, like)
    target.check(path, task)
    with _opened(path, target) as stream:
        target.module.write(stream, target.checked(examples, task), task)


def write_table(path: str, table: "Table") -> None:
    """Write a long table to a file, or as .csv to standard output."""
    target = get("csv") if path == "-" else table_format(path)
    target.check(path, member="write_table")
    with _opened(path, target) as stream:
        target.module.write_table(stream, table)


@contextmanager
def _opened(path: str, target: Format) -> Iterator[IO[Any]]:
    """Open a stream for `write`. At the end, the content replaces the file or is printed."""
    text: dict[str, Any] = {"encoding": "utf-8", "newline": "\n"}
    if path == "-":
        with SpooledTemporaryFile(IN_MEMORY, "w+", **text) as stream:
            yield stream
            stream.seek(0)
            to_standard_output(stream)
        return
    if not target.extension:
        with atomic_folder(Path(path)) as folder:
            yield folder  # type: ignore[misc]  # `write` of this format takes a folder
        return
    mode, options = ("wb", {}) if target.capabilities.binary else ("w", text)
    with atomic_path(Path(path)) as temporary, temporary.open(mode, **options) as stream:
        yield stream


# Commands call these functions to check their files before any work.


def check_input(path: str) -> Format:
    """Return the format of a file. Refuse a file or an extension that does not exist."""
    source = format_of(path)
    if not exists(path):
        raise InputError(f"{path}: cannot be read: No such file or directory")
    return source


def check_output(path: str, task: Task | None = None, has_answers: bool = True) -> None:
    """Refuse an output file that cannot be written, or whose format serves another task.

    If `has_answers` is true, also refuse a format that cannot hold answers. `task` is None if the
    task is not known yet.
    """
    target = format_of(path)
    if has_answers and target.capabilities.is_unanswered:
        other = target.capabilities.stdout_format
        raise InputError(f"{path}: cannot hold answers; write them to .{other}")
    target.check(path, task)
    if path == "-":
        return
    if target.extension:
        check_writable(Path(path))
    elif exists(path) and any(Path(path).iterdir()):
        raise InputError(f"{path}: the folder is not empty; name a new one")
    elif not exists(Path(path).parent):
        raise InputError(f"{path}: cannot be written: there is no folder {Path(path).parent}")


def check_keeps_extra(path: str, task: Task) -> None:
    """Refuse an output file that cannot be written, or whose format cannot hold scores."""
    if not format_of(path).capabilities.extra:
        able = (
            name
            for name in names()
            if (can := get(name).capabilities).extra and can.task in (None, task.name)
        )
        raise InputError(f"{path}: cannot hold scores; write to {_joined_by_or(able)}")
    check_output(path, task)


def check_not_overwritten(path: str, output: str) -> None:
    """Refuse to overwrite an instance with its answer.

    If the output's format can hold answers, the output may be the file of the instances.
    """
    if "-" in (path, output) or format_of(output).capabilities.answers:
        return
    if exists(output) and os.path.samefile(path, output):  # noqa: PTH121  as files.exists
        raise InputError(
            f"{output}: the answer would overwrite the instance; write it to another file"
        )
