"""Tables whose columns are separated by tabs: `.csv` with another delimiter, also as `.dat`.

If the header has no tab, commas or semicolons separate the columns.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from ptrnet.data.formats import csv
from ptrnet.tasks.base import Task
from ptrnet.types import Example

if TYPE_CHECKING:
    from ptrnet.data.tables import Table

CAPABILITIES = csv.CAPABILITIES


def read(path: str, task: Task) -> Iterator[Example]:
    return csv.read(path, task, "\t")


def table(path: str) -> "Table":
    return csv.table(path, "\t")


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    csv.write(stream, examples, task, "\t")


def write_table(stream: TextIO, table: "Table") -> None:
    csv.write_table(stream, table, "\t")
