"""A table: the whole file is one instance, a row an element.

A header is optional. The numeric columns are the features, in their order; the others are text
and come back with the rows. An answer is written as the rows in its order, triangle by triangle.
"""

import csv
from collections.abc import Iterable, Iterator
from typing import TextIO

from ptrnet.data import checks
from ptrnet.data.formats.parts.capabilities import Capabilities
from ptrnet.data.formats.parts.lines import display_name, numbered_lines
from ptrnet.data.formats.parts.parsing import parse_number
from ptrnet.data.sizes import LARGEST
from ptrnet.errors import InputError, short
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Table

CAPABILITIES = Capabilities(multiple=False, answers=False)


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    source = display_name(path)
    rows, lines = _rows(path, source)
    if not rows:
        return
    columns = list(zip(*rows, strict=True))
    bodies = [column[1:] or column for column in columns]  # without a header, if there is one
    numeric = [k for k, body in enumerate(bodies) if all(map(_is_number, body))]
    if len(numeric) != task.num_features:
        _refuse_columns(bodies, lines, numeric, task.num_features, source)
    header = None
    titles = [k for k in numeric if not _is_number(rows[0][k])]
    if titles and len(titles) < len(numeric):
        raise InputError(
            f"{source}:{lines[0]}: column {titles[0] + 1}: expected a number, or a header with no "
            f"number in a numeric column, got {short(rows[0][titles[0]])}"
        )
    if titles:
        header, rows, lines = rows[0], rows[1:], lines[1:]
    values = [
        [parse_number(row[k], f"{source}:{line}: column {k + 1}") for k in numeric]
        for row, line in zip(rows, lines, strict=True)
    ]
    inputs = checks.check_instance(values, task, source)
    yield Example(inputs, None, source, table=Table(header, rows, numeric))


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


def _rows(path: str, source: str) -> tuple[list[list[str]], list[int]]:
    """The cells, and the number of the line that each row ends on."""
    line_number = 1

    def lines() -> Iterator[str]:
        nonlocal line_number
        for line_number, text in numbered_lines(path):  # noqa: B007  read outside
            yield text

    rows: list[list[str]] = []
    ends: list[int] = []
    try:
        for row in csv.reader(lines(), strict=True):
            rows.append([cell.strip() for cell in row])
            ends.append(line_number)
            if len(row) != len(rows[0]):
                raise InputError(
                    f"{source}:{line_number}: expected {len(rows[0])} columns, got {len(row)}"
                )
            if len(rows) > LARGEST + 1:
                raise InputError(f"{source}: expected at most {LARGEST} rows")
    except csv.Error as error:
        raise InputError(f"{source}:{line_number}: not CSV: {error}") from None
    return rows, ends


def _is_number(cell: str) -> bool:
    """Whether a cell was meant as a number; `nan` and `1e400` were, and are refused later."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _refuse_columns(
    bodies: list[tuple[str, ...]], lines: list[int], numeric: list[int], d: int, source: str
) -> None:
    """Raises the complaint about too few or too many numeric columns."""
    for k, body in enumerate(bodies):
        bad = [i for i, cell in enumerate(body) if not _is_number(cell)]
        if len(numeric) < d and 0 < len(bad) < len(body) / 2:
            line = lines[bad[0] + len(lines) - len(body)]
            raise InputError(
                f"{source}:{line}: column {k + 1}: expected a number, got {short(body[bad[0]])}"
            )
    if len(bodies) == 1 and any(mark in bodies[0][0] for mark in ";\t"):
        raise InputError(
            f"{source}:{lines[0]}: columns must be separated by commas, got one column"
        )
    raise InputError(
        f"{source}: expected {d} numeric column{'s' * (d > 1)} and any number of others, "
        f"got {len(numeric)} numeric"
    )
