"""A table: the whole file is one instance, a row an element.

A header is optional. The numeric columns are the features, in their order; where they are too
many, those are left out that are named as ids are. The other columns are written again with their
rows. An answer is written as the rows that it points at, in its order; for triangles that is three
rows each. A model of elements with fields reads these by the header's names.
"""

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, TextIO

from ptrnet.data import checks
from ptrnet.data.formats.parts.capabilities import Capabilities
from ptrnet.data.formats.parts.csv_rows import check_header, csv_rows, is_number
from ptrnet.data.formats.parts.lines import display_name
from ptrnet.data.formats.parts.parsing import parse_number
from ptrnet.data.sizes import LARGEST
from ptrnet.errors import AmbiguousInputWarning, InputError, short
from ptrnet.tasks.base import Task
from ptrnet.tasks.written_numbers import are_foreign_numbers, is_missing
from ptrnet.types import Example, Table

CAPABILITIES = Capabilities(multiple=False, answers=False, dictionaries=True)


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    source = display_name(path)
    rows: list[list[str]] = []
    lines: list[int] = []
    for row, line in csv_rows(path, source):
        if len(rows) > LARGEST:
            raise InputError(f"{source}: expected at most {LARGEST} rows")
        rows.append(row)
        lines.append(line)
    if not rows:
        return
    if task.schema is not None:
        yield _with_fields(rows, lines, task, source)
        return
    columns = list(zip(*rows, strict=True))
    bodies = [column[1:] or column for column in columns]  # without the first row: maybe a header
    numeric = [k for k, body in enumerate(bodies) if all(map(is_number, body))]
    ids: list[int] = []
    if len(numeric) > task.num_features:
        ids = [k for k in numeric if checks.is_id(rows[0][k])]
        numeric = [k for k in numeric if k not in ids]
    if len(numeric) != task.num_features:
        _refuse_columns(bodies, lines, numeric, task.num_features, source)
    _check_ignored_columns(rows[0], bodies, lines, numeric, source)
    header = None
    if _has_header(rows[0], numeric, ids, f"{source}:{lines[0]}"):
        names = [rows[0][k] for k in numeric]
        checks.check_no_ids(names, task.num_features, f"{source}:{lines[0]}")
        header, rows, lines = rows[0], rows[1:], lines[1:]
    else:
        _check_first_row([[row[k] for k in numeric] for row in rows], f"{source}:{lines[0]}")
    values = [
        [parse_number(row[k], f"{source}:{line}: column {k + 1}") for k in numeric]
        for row, line in zip(rows, lines, strict=True)
    ]
    inputs = checks.check_instance(values, task, source)
    yield Example(inputs, None, source, table=Table(header, rows, numeric))


def _with_fields(rows: list[list[str]], lines: list[int], task: Task, source: str) -> Example:
    """The instance of a model that reads fields by their names, which the header has."""
    schema, header = task.schema, rows[0]
    assert schema is not None
    check_header(header, f"{source}:{lines[0]}")
    elements = []
    for row, line in zip(rows[1:], lines[1:], strict=True):
        element: dict[str, Any] = dict(zip(header, row, strict=True))
        for field, texts in zip(schema.fields, schema.categories, strict=True):
            if field in element and not texts:
                element[field] = parse_number(element[field], f'{source}:{line}: "{field}"')
        elements.append(element)
    inputs = checks.check_instance(elements, task, source)
    table = Table(header, rows[1:], [header.index(field) for field in schema.fields])
    return Example(inputs, None, source, table=table, elements=elements)


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    writer = csv.writer(stream, lineterminator="\n")
    for example in examples:
        rows = [[repr(value) for value in element] for element in example.inputs.tolist()]
        if example.elements and not example.table:
            names = list(example.elements[0])
            writer.writerow(names)
            rows = [_cells(element, names, example.source) for element in example.elements]
        if example.table:
            rows = example.table.rows
            if example.table.header:
                writer.writerow(example.table.header)
        order = range(len(rows)) if example.outputs is None else example.outputs.ravel()
        writer.writerows(rows[i] for i in order)


def _cells(element: Mapping[str, Any], names: list[str], source: str) -> list[str]:
    """The values of an element in the order of the columns' names; nothing for None."""
    if element.keys() != {*names}:
        raise InputError(
            f"{source}: a .csv has the same fields in every row: expected "
            f"{short(', '.join(names))}, got {short(', '.join(map(str, element)))}"
        )
    return ["" if element[name] is None else str(element[name]) for name in names]


def _has_header(row: list[str], numeric: list[int], ids: list[int], source: str) -> bool:
    """Whether the first row is a header: above numbers that are read, or left out as ids, is text.

    Raises:
        InputError: above some of the others stand numbers, or what may be one: a damaged row.
    """
    titles = [k for k in (*ids, *numeric) if not is_number(row[k])]
    if not titles:
        return False
    if [row[k] for k in numeric] == [str(k) for k in range(len(numeric))]:
        return True  # a frame without names, with its index
    bad = titles
    if len(titles) == len(ids) + len(numeric):
        bad = [k for k in numeric if is_missing(row[k]) or are_foreign_numbers([row[k]])]
    if bad:
        raise InputError(
            f"{source}: column {bad[0] + 1}: expected a number, or a header with no number in a "
            f"numeric column, got {short(row[bad[0]])}"
        )
    return True


def _check_ignored_columns(
    first: list[str],
    bodies: list[tuple[str, ...]],
    lines: list[int],
    numeric: list[int],
    source: str,
) -> None:
    """Refuses a column of numbers that would be skipped as text.

    Such are numbers in another notation (1,5 or 3 kg) and columns in which some are missing. Else
    another column of numbers, such as ids, would be read in its place.

    Args:
        first: the first row, maybe a header.
        bodies: these and the others as in `_refuse_columns`.
    """
    have_points = any("." in cell for k in numeric for cell in bodies[k])
    for k in sorted({*range(len(bodies))} - {*numeric}):
        bad = [i for i, cell in enumerate(bodies[k]) if not is_number(cell)]
        if not bad:  # all are numbers: ids, which were left out by their name
            continue
        line, cell = _line_of(bad[0], bodies[k], lines), bodies[k][bad[0]]
        filled = [bodies[k][i] for i in bad if not is_missing(bodies[k][i])]
        has_numbers = len(bad) < len(bodies[k])
        if are_foreign_numbers(filled) or (has_numbers and not filled):
            raise InputError(
                f"{source}:{line}: column {k + 1}: expected a number"
                f"{' such as 1234.5' * bool(filled)}, got {short(cell)}"
            )
        is_between = 0 < k < len(bodies) - 1
        # Of 0,5 0,7 the cell `5 0`. A header over such columns would be of another width.
        if is_between and not have_points and all(map(_is_pair, (first[k], *bodies[k]))):
            raise InputError(
                f"{source}:{line}: columns must be separated by commas, and numbers have points, "
                f"got {short(cell)} between two commas"
            )
        if all(map(_is_joined, (bodies[k][i] for i in bad))):
            raise InputError(
                f"{source}:{line}: columns must be separated by commas, got {short(cell)}"
            )


def _is_joined(cell: str) -> bool:
    """Whether a cell is two of a table whose columns are separated otherwise."""
    last = re.split("[;\t]", cell)[-1]
    return last != cell and is_number(last)


def _is_pair(cell: str) -> bool:
    """Whether a cell is the end of a number, a space and the beginning of another one."""
    parts = cell.split()
    return len(parts) == 2 and parts[0].isdecimal() and is_number(parts[1])


def _line_of(index: int, body: tuple[str, ...], lines: list[int]) -> int:
    """The line of cell `index` of a column's body, which lacks the first row if there are more."""
    return lines[index + len(lines) - len(body)]


def _check_first_row(rows: list[list[str]], source: str) -> None:
    """Warns of a first row of 0, 1, ... above fractions: the header of a frame without names."""
    is_count = len(rows[0]) > 1 and rows[0] == [str(k) for k in range(len(rows[0]))]
    if is_count and len(rows) > 1 and all("." in cell for row in rows[1:] for cell in row):
        warnings.warn(
            f"{source}: {','.join(rows[0])} is read as a row; if a frame without names wrote it, "
            "remove it or name the columns",
            AmbiguousInputWarning,
            stacklevel=2,
        )


def _refuse_columns(
    bodies: list[tuple[str, ...]], lines: list[int], numeric: list[int], d: int, source: str
) -> NoReturn:
    """Raises the complaint about too few or too many numeric columns.

    Args:
        bodies: the cells of each column, without the first row.
        lines: the line of each row.
        numeric: the columns that have numbers alone.
        d: how many such columns were expected.
        source: of the table.
    """
    if len(bodies) == 1 and any(mark in bodies[0][0] for mark in "; \t"):
        raise InputError(
            f"{source}:{lines[0]}: columns must be separated by commas, got one column"
        )
    if len(lines) == 1 and not numeric:
        raise InputError(f"{source}: expected an element in each line below the header, got none")
    for k, body in enumerate(bodies):
        bad = [i for i, cell in enumerate(body) if not is_number(cell)]
        if len(numeric) < d and 0 < len(bad) < len(body) / 2:
            line = _line_of(bad[0], body, lines)
            raise InputError(
                f"{source}:{line}: column {k + 1}: expected a number, got {short(body[bad[0]])}"
            )
    raise InputError(
        f"{source}: expected {d} numeric column{'s' * (d > 1)} and any number of others, "
        f"got {len(numeric)} numeric"
    )
