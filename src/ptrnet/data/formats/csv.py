"""A table: the whole file is one instance, a row an element.

A header is optional. The numeric columns are the features, in their order; the others are names
that are kept. An answer is written as the rows in its order, triangle by triangle.
"""

import csv
from collections.abc import Iterable, Iterator
from typing import TextIO

from ptrnet.data import checks
from ptrnet.data.formats.parts.capabilities import Capabilities
from ptrnet.data.formats.parts.lines import numbered
from ptrnet.data.formats.parts.parsing import number
from ptrnet.data.sizes import LARGEST
from ptrnet.errors import InputError, short
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Table

CAPABILITIES = Capabilities(several=False, answers=False)


def read(name: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    shown = "standard input" if name == "-" else name
    rows, lines = _rows(name, shown)
    if not rows:
        return
    columns = list(zip(*rows, strict=True))
    body = [column[1:] or column for column in columns]
    numeric = [k for k, column in enumerate(body) if all(map(_is_number, column))]
    d = task.num_features
    if len(numeric) != d:
        _explain(body, lines, numeric, d, shown)
    header = None
    text = [k for k in numeric if not _is_number(rows[0][k])]
    if text and len(text) < len(numeric):
        raise InputError(
            f"{shown}:{lines[0]}: column {text[0] + 1}: expected a number, or a header with no "
            f"number in a numeric column, got {short(rows[0][text[0]])}"
        )
    if text:
        header, rows, lines = rows[0], rows[1:], lines[1:]
    values = [
        [number(row[k], f"{shown}:{line}: column {k + 1}") for k in numeric]
        for row, line in zip(rows, lines, strict=True)
    ]
    inputs = checks.instance(values, task, shown)
    yield Example(inputs, None, shown, table=Table(header, rows, numeric))


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    writer = csv.writer(stream, lineterminator="\n")
    for example in examples:
        rows = [[repr(value) for value in element] for element in example.inputs.tolist()]
        if example.table:
            rows = example.table.rows
            if example.table.header:
                writer.writerow(example.table.header)
        order = range(len(rows)) if example.outputs is None else example.outputs.ravel()
        writer.writerows(rows[i] for i in order)


def _rows(name: str, shown: str) -> tuple[list[list[str]], list[int]]:
    """The cells, and the line that each row ends on."""
    numbers = []

    def lines() -> Iterator[str]:
        for line, text in numbered(name):
            numbers.append(line)
            yield text

    rows: list[list[str]] = []
    ends: list[int] = []
    try:
        for row in csv.reader(lines(), strict=True):
            rows.append([cell.strip() for cell in row])
            ends.append(numbers[-1])
            if len(row) != len(rows[0]):
                raise InputError(
                    f"{shown}:{ends[-1]}: expected {len(rows[0])} columns, got {len(row)}"
                )
            if len(rows) > LARGEST + 1:
                raise InputError(f"{shown}: expected at most {LARGEST} rows")
    except csv.Error as error:
        raise InputError(f"{shown}:{numbers[-1] if numbers else 1}: not CSV: {error}") from None
    return rows, ends


def _is_number(cell: str) -> bool:
    """Whether a cell was meant as a number; `nan` and `1e400` were, and are refused later."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _explain(
    body: list[tuple[str, ...]], lines: list[int], numeric: list[int], d: int, shown: str
) -> None:
    """Raises the complaint about too few or too many numeric columns."""
    for k, column in enumerate(body):
        bad = [i for i, cell in enumerate(column) if not _is_number(cell)]
        if len(numeric) < d and 0 < len(bad) < len(column) / 2:
            line = lines[bad[0] + len(lines) - len(column)]
            raise InputError(
                f"{shown}:{line}: column {k + 1}: expected a number, got {short(column[bad[0]])}"
            )
    if len(body) == 1 and any(mark in body[0][0] for mark in ";\t"):
        raise InputError(f"{shown}:{lines[0]}: columns must be separated by commas, got one column")
    raise InputError(
        f"{shown}: expected {d} numeric column{'s' * (d > 1)} and any number of others, "
        f"got {len(numeric)} numeric"
    )
