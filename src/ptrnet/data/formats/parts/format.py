"""File formats by extension: the modules of `ptrnet.data.formats` and those of plug-ins."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from ptrnet.data.formats.parts.lines import standard_input_is_json
from ptrnet.errors import InputError, MissingExtraError, short, unknown
from ptrnet.files import exists
from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.plugins import Registry
from ptrnet.tasks.base import Task
from ptrnet.types import Example

if TYPE_CHECKING:
    from ptrnet.data.tables import Columns, Table

_registry = Registry("file format", __name__.removesuffix(".parts.format"))


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
    """One file format."""

    extension: str  # without the dot
    module: ModuleType  # with `CAPABILITIES`, `read` and `write`

    @property
    def capabilities(self) -> Capabilities:
        """What files of the format can hold."""
        capabilities: Capabilities = self.module.CAPABILITIES
        return capabilities

    @property
    def tells_num_features(self) -> bool:
        """Whether a file tells how many numbers an element has, without its task."""
        return hasattr(self.module, "num_features")

    def dictionaries(self, path: str) -> Iterator[tuple[list[Mapping[str, Any]], str]] | None:
        """The elements of each instance, which are dictionaries, and its source.

        None if the elements of the first instance are rows of numbers.

        Raises:
            InputError: a line that cannot be read, or a later instance of rows of numbers.
        """
        if not hasattr(self.module, "dictionaries"):
            return None
        instances: Iterator[tuple[list[Mapping[str, Any]], str]] | None
        instances = self.module.dictionaries(path)
        return instances

    def num_features(self, path: str) -> int:
        """How many numbers an element of a file has; only if `tells_num_features`."""
        count: int = self.module.num_features(path)
        return count

    def read(self, path: str, task: Task) -> Iterator[Example]:
        """Yield the examples of a file."""
        examples: Iterator[Example] = self.module.read(path, task)
        return examples

    @property
    def columns(self) -> "Columns | None":
        """The columns of every file, if they are long tables that name their columns alike."""
        columns: Columns | None = getattr(self.module, "COLUMNS", None)
        return columns

    @property
    def writes_tables(self) -> bool:
        """Whether a file may be a long table with any columns."""
        return hasattr(self.module, "write_table")

    def table(self, path: str) -> "Table":
        """Return a file as a long table. Raises InputError if the format has none."""
        self._check_is_table("table", path)
        table: Table = self.module.table(path)
        return table

    def write_table(self, stream: IO[Any], table: "Table", path: str) -> None:
        """Write a long table. Raises InputError if the format has none."""
        self._check_is_table("write_table", path)
        self.module.write_table(stream, table)

    def _check_is_table(self, member: str, path: str) -> None:
        if not hasattr(self.module, member):
            others = [f".{name}" for name in names() if hasattr(get(name).module, member)]
            raise InputError(f"{path}: expected a table, {' or '.join(others)}")
        self.check_package()

    def write(self, stream: IO[Any], examples: Iterable[Example], task: Task) -> None:
        """Write examples to a stream of text or, if the format is binary, of bytes."""
        self.module.write(stream, examples, task)

    def open_for_writing(self, path: Path) -> IO[Any]:
        """Open a stream for `write`."""
        if self.capabilities.binary:
            return path.open("wb")
        return path.open("w", encoding="utf-8", newline="\n")

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

    def checked(self, examples: Iterable[Example], task: Task) -> Iterator[Example]:
        """Yield the examples; raise InputError at the first that the format cannot hold."""
        for count, example in enumerate(examples):
            if count and not self.capabilities.multiple:
                others = alternatives(example, task, lambda other: other.multiple)
                raise InputError(
                    f"a .{self.extension} file holds one instance; write several to {others}"
                )
            if example.distance not in self.capabilities.distances:
                reason = f"says nothing of distances, here {example.distance}"
                if example.distance == EUCLIDEAN:
                    reason = "rounds every distance, in the unit square to 0 or 1"
                raise InputError(
                    f"{example.source}: a .{self.extension} file {reason}; "
                    f"write to {alternatives(example, task)}"
                )
            if example.elements is not None and not self.capabilities.dictionaries:
                others = alternatives(example, task, lambda other: other.dictionaries)
                raise InputError(
                    f"{example.source}: a .{self.extension} file would lose the names of the "
                    f"elements' fields; write to {others}"
                )
            yield example

    def checked_with_answers(self, examples: Iterable[Example], task: Task) -> Iterator[Example]:
        """As `checked`, but also refuse an answer that could not be read back."""
        for example in self.checked(examples, task):
            if example.outputs is not None and not self.capabilities.answers:
                others = alternatives(example, task, lambda other: other.answers)
                raise InputError(
                    f"{example.source}: a .{self.extension} file would lose the answer; "
                    f"write to {others}"
                )
            if example.rules.is_open and not self.capabilities.extra:
                others = alternatives(example, task, lambda other: other.extra)
                raise InputError(
                    f"{example.source}: a .{self.extension} file would lose that the path is open; "
                    f"write to {others}"
                )
            yield example


def names() -> list[str]:
    """The known extensions, without the dot."""
    return _registry.names()


def register(extension: str, module: ModuleType) -> None:
    """Add a format: a module with `CAPABILITIES`, `read` and `write`, as in `ptrnet.data.formats`.

    Raises:
        InputError: one of these is missing, CAPABILITIES has another type than `Capabilities`, or
            the extension is taken.
    """
    _check_module(module)
    _registry.register(extension, module)
    _formats[extension] = Format(extension, module)


def get(extension: str) -> Format:
    """Return the format of a known extension."""
    module = _registry.get(extension)
    known = _formats.get(extension)
    if known is None or known.module is not module:
        _check_module(module)
        known = _formats[extension] = Format(extension, module)
    return known


_ALIASES = {"svm": "svmlight", "libsvm": "svmlight"}
_formats: dict[str, Format] = {}  # by extension; their modules have been checked


def _check_module(module: ModuleType) -> None:
    """Refuse a module that lacks a member that every format has."""
    for member in ("CAPABILITIES", "read", "write"):
        if not hasattr(module, member):
            raise InputError(f"register a file format: {module!r} has no {member}")
    if not isinstance(module.CAPABILITIES, Capabilities):
        raise InputError(
            f"register a file format: {module!r}: CAPABILITIES: expected Capabilities, "
            f"got {short(module.CAPABILITIES)}"
        )


def format_of(path: str) -> Format:
    """Return the format of a file by its extension; that of `-` is `txt`.

    Raises:
        InputError: no extension, or an unknown one; the message suggests the nearest.
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


def alternatives(
    example: Example, task: Task, fits: Callable[[Capabilities], bool] = lambda _: True
) -> str:
    """List the extensions that an error message recommends, as in `.csv, .jsonl or .txt`.

    Args:
        example: the formats must be able to hold all of it.
        task: the formats must serve it.
        fits: what else the formats must be able to hold.
    """
    extensions = []
    for extension in names():
        capabilities = get(extension).capabilities
        serves = capabilities.task in (None, task.name)
        holds_distance = example.distance in capabilities.distances
        holds_answer = capabilities.answers or example.outputs is None
        if serves and holds_distance and holds_answer and fits(capabilities):
            extensions.append(f".{extension}")
    *others, last = extensions or [""]
    return f"{', '.join(others)} or {last}" if others else last
