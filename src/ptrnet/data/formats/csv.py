"""CSV: the whole file is one instance, a row is an element.

A header is optional. The numeric columns are the features, in their order; if there are too many,
those that are named as ids are left out. The other columns are carried along and written again
with their rows. A model that reads fields by their names finds its columns by the header instead.
Which cells are numbers is decided as in long tables: 007 and 1_000 are not.
A task that takes distances also reads a square matrix of them, with or without names of its rows
and columns. The answer to one is the names in its order; any other answer is written as the rows
that it points at, in its order; for triangles that is three rows each.
"""

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ptrnet.data import cells, checks
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts.lines import all_lines, display_name
from ptrnet.data.sizes import LARGEST
from ptrnet.errors import AmbiguousInputWarning, InputError, short
from ptrnet.geometry.distances import EUCLIDEAN, EXPLICIT
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import is_empty
from ptrnet.types import Example, Table

if TYPE_CHECKING:
    from ptrnet.data import tables

CAPABILITIES = Capabilities(
    multiple=False, answers=False, distances=(EUCLIDEAN, EXPLICIT), dictionaries=True
)
_COMMAS = "columns must be separated by commas"
_POINTS = f"{_COMMAS}, and numbers have decimal points"

Row = list[str]


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`.

    Warns:
        AmbiguousInputWarning: the first row may be the header that pandas gives to unnamed columns.
    """
    source = display_name(path)
    rows: list[Row] = []
    lines: list[int] = []
    for row, line in _rows(path):
        if len(rows) > LARGEST:
            raise InputError(f"{source}: expected at most {LARGEST} rows")
        rows.append(row)
        lines.append(line)
    if rows:
        matrix = _read_matrix(rows, task, source) if task.takes_matrices else None
        read_rows = _read_numbers if task.schema is None else _read_fields
        yield matrix or read_rows(rows, lines, task, source)


def table(path: str) -> "tables.Table":
    """See `ptrnet.data.formats`."""
    numbered = list(_rows(path))
    rows, lines = [row for row, _ in numbered], [line for _, line in numbered]
    table = _long_table(rows, lines, path)
    if "" in table.columns:
        raise InputError(
            f"{path}:{lines[0]}: column {rows[0].index('') + 1}: expected a name, got none; if it "
            "is the index of pandas, write the file by to_csv(index=False)"
        )
    return table


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    writer = csv.writer(stream, lineterminator="\n")
    for example in examples:
        rows = [[repr(value) for value in element] for element in example.inputs.tolist()]
        if example.table:
            rows = example.table.rows
            if example.table.header:
                writer.writerow(example.table.header)
        elif example.elements:
            names = list(example.elements[0])
            writer.writerow(names)
            rows = [_row_of(element, names, example.source) for element in example.elements]
        elif example.distance == EXPLICIT and example.outputs is not None:
            rows = [[str(k)] for k in range(len(rows))]
        order = range(len(rows)) if example.outputs is None else example.outputs.ravel()
        writer.writerows(rows[i] for i in order)


def _row_of(element: Mapping[str, Any], names: list[str], source: str) -> Row:
    """Return the values of an element in the order of the columns' names, empty for None."""
    if element.keys() != {*names}:
        raise InputError(
            f"{source}: a .csv has the same fields in every row: expected "
            f"{short(', '.join(names))}, got {short(', '.join(map(str, element)))}"
        )
    return ["" if element[name] is None else str(element[name]) for name in names]


def write_table(stream: TextIO, table: "tables.Table") -> None:
    """See `ptrnet.data.formats`."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.columns)
    rows = zip(*table.columns.values(), strict=True)
    writer.writerows(["" if is_empty(cell) else cell for cell in row] for row in rows)


def _rows(path: str) -> Iterator[tuple[Row, int]]:
    """Yield the cells of each row, stripped, and the line on which the row ends.

    Raises:
        InputError: a file that cannot be read or is not CSV, or a row of another width.
    """
    source, line_number, width = display_name(path), 1, None

    def lines() -> Iterator[str]:
        nonlocal line_number
        for line_number, text in all_lines(path):  # noqa: B007  read outside
            yield text

    try:
        for row in csv.reader(lines(), strict=True):
            if len(row) < 2 and not any(cell.strip() for cell in row):
                continue  # a blank line; one within a quoted text is a part of the text
            width = len(row) if width is None else width
            if len(row) != width:
                expected = f"expected {width} columns, got {len(row)}"
                if any(mark in cell for cell in row for mark in ";\t"):
                    expected = f"{_POINTS}, got {short(','.join(row))}"
                raise InputError(f"{source}:{line_number}: {expected}")
            yield [cell.strip() for cell in row], line_number
    except csv.Error as error:
        raise InputError(f"{source}:{line_number}: not CSV: {error}") from None


def _read_matrix(rows: list[Row], task: Task, source: str) -> Example | None:
    """Return the instance whose distances are the rows; None if they are no square of 3 or more.

    There may be a row of names above them and a column of names beside them; if there are both, the
    names are equal. All cells of the diagonal are equal, of numbers or empty.
    """
    height, width = len(rows), len(rows[0])
    has_header = height > width or (height == width and not cells.is_number(rows[0][0]))
    has_names = width > height or (height == width and has_header)
    body = [row[has_names:] for row in rows[has_header:]]
    n = len(body)
    if n < 3 or len(body[0]) != n or len({body[i][i] for i in range(n)}) > 1:
        return None
    for i in range(n):
        body[i][i] = "0"
    if not all(cells.is_number(cell) for row in body for cell in row):
        return None
    above = rows[0][has_names:] if has_header else [str(k) for k in range(n)]
    names = [row[0] for row in rows[has_header:]] if has_names else above
    if has_header and names != above:
        return None
    dist = checks.check_matrix([[*map(float, row)] for row in body], task, source)
    table = Table(None, [[name] for name in names], [])  # an answer is a list of names
    return Example(dist, source=source, table=table, distance=EXPLICIT)


def _read_fields(rows: list[Row], lines: list[int], task: Task, source: str) -> Example:
    """Return the instance of a model that reads columns by their names in the header."""
    schema = task.schema
    assert schema is not None
    table = _long_table(rows, lines, source).typed(schema)
    inputs = table.encode(schema)
    checks.check_size(len(inputs), task.min_elements, source)
    checks.check_solvable(inputs, task, source)
    columns = Table(rows[0], rows[1:], [rows[0].index(field) for field in schema.fields])
    return Example(inputs, None, source, table=columns, elements=table.elements(rows[0]))


def _long_table(rows: list[Row], lines: list[int], source: str) -> "tables.Table":
    """Return the table of rows below a header."""
    from ptrnet.data import tables

    if len(rows) < 2:
        raise InputError(f"{source}: expected a header and at least one row")
    header, place = rows[0], f"{source}:{lines[0]}"
    if len({*header}) != len(header):  # one of the two would be lost
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{place}: duplicate column name {short(twice)}")
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise InputError(f"{place}: {_COMMAS}, got one column")
    return tables.Table(
        dict(zip(header, zip(*rows[1:], strict=True), strict=True)),
        source,
        lambda k: f"{source}:{lines[k + 1]}",
        is_text=True,
    )


def _read_numbers(rows: list[Row], lines: list[int], task: Task, source: str) -> Example:
    """Return the instance whose elements are the numeric columns of the rows."""
    d, first, place = task.num_features, rows[0], f"{source}:{lines[0]}"
    # The first row may be a header, so only the rows below it tell which columns are numeric.
    columns = {k: column[1:] or column for k, column in enumerate(zip(*rows, strict=True))}
    others = {k: _others(column) for k, column in columns.items()}
    below = lines[1:] or lines
    _check_separators(rows, lines, others, source)
    numeric = cells.numeric_columns(
        columns, others, first, d, lambda k, i: f"{source}:{below[i]}: column {k + 1}"
    )
    if not numeric and len(rows) == 1:
        raise InputError(f"{source}: expected an element in each line below the header, got none")
    if len(numeric) != d:
        raise InputError(
            f"{source}: expected {d} numeric column{'s' * (d > 1)} and any number of others, "
            f"got {len(numeric)} numeric"
        )
    ids = [k for k, bad in others.items() if not bad and k not in numeric]
    header = None
    if _is_header(first, numeric, ids, place):
        cells.check_no_ids([first[k] for k in numeric], d, place)
        header, rows, lines = first, rows[1:], below
    else:
        _warn_of_numbered_columns([[row[k] for k in numeric] for row in rows], place)
    values = [
        [cells.parse_number(row[k], f"{source}:{line}: column {k + 1}") for k in numeric]
        for row, line in zip(rows, lines, strict=True)
    ]
    inputs = checks.check_instance(values, task, source)
    return Example(inputs, None, source, table=Table(header, rows, numeric))


def _others(column: Sequence[str]) -> list[int]:
    """Return where the cells of a column are not numbers."""
    values = cells.parse_cells(column)
    return [i for i, value in enumerate(values) if value is None or isinstance(value, str)]


def _check_separators(
    rows: list[Row], lines: list[int], others: Mapping[int, list[int]], source: str
) -> None:
    """Refuse columns that are separated by semicolons, tabs or blanks.

    If numbers have decimal commas, `2,5;3,5` became the cells `2`, `5;3` and `5`.

    Args:
        rows: of the table, the first of which may be the header.
        lines: of the rows.
        others: where the cells of each column are not numbers, below the first row.
        source: of the table.
    """
    first, body = rows[0], rows[1:] or rows
    for k, bad in others.items():
        if not bad:
            continue
        if len(first) == 1 and any(mark in body[0][0] for mark in "; \t"):
            raise InputError(f"{source}:{lines[0]}: {_COMMAS}, got one column")
        row = body[bad[0]]
        place, cell = f"{source}:{(lines[1:] or lines)[bad[0]]}", short(row[k])
        if all(_is_joined(body[i][k]) for i in bad):
            if all(others.values()):  # no column of numbers
                raise InputError(f"{place}: {_POINTS}, got {short(','.join(row))}")
            raise InputError(f"{place}: {_COMMAS}, got {cell}")
        is_inner = 0 < k < len(first) - 1
        if is_inner and all(_is_pair(r[k]) for r in rows):
            numbers = [j for j, bad in others.items() if not bad]
            if not any("." in r[j] for r in body for j in numbers):
                raise InputError(f"{place}: {_POINTS}, got {cell} between two commas")


def _is_joined(cell: str) -> bool:
    """Whether a cell holds two columns that are separated by a semicolon or a tab."""
    last = re.split("[;\t]", cell)[-1]
    return last != cell and cells.is_number(last)


def _is_pair(cell: str) -> bool:
    """Whether a cell is the end of a number, a space and the beginning of the next number."""
    parts = cell.split()
    return len(parts) == 2 and parts[0].isdecimal() and cells.is_number(parts[1])


def _is_header(first: Row, numeric: list[int], ids: list[int], source: str) -> bool:
    """Whether the first row is a header: it has text above the features and above skipped ids.

    Raises:
        InputError: it has numbers, or what may be numbers, above some of them: a damaged row.
    """
    titles = [k for k in (*ids, *numeric) if not cells.is_plain_number(first[k])]
    if not titles:
        return False
    if [first[k] for k in numeric] == [str(k) for k in range(len(numeric))]:
        return True  # pandas wrote unnamed columns and an index
    bad = titles
    if len(titles) == len(ids) + len(numeric):
        bad = [k for k in numeric if _may_be_number(first[k])]
    if bad:
        raise InputError(
            f"{source}: column {bad[0] + 1}: expected a number, or a header with no number in a "
            f"numeric column, got {short(first[bad[0]])}"
        )
    return True


def _may_be_number(cell: str) -> bool:
    """Whether a cell is missing, or a number in some notation."""
    return cells.is_missing(cell) or cells.is_number(cell) or cells.are_foreign_numbers([cell])


def _warn_of_numbered_columns(rows: list[Row], source: str) -> None:
    """Warn if the first row is 0, 1, ... above fractions, as pandas names unnamed columns."""
    is_count = len(rows[0]) > 1 and rows[0] == [str(k) for k in range(len(rows[0]))]
    if is_count and len(rows) > 1 and all("." in cell for row in rows[1:] for cell in row):
        warnings.warn(
            f"{source}: {','.join(rows[0])} is read as a row; if pandas wrote it as the names of "
            "unnamed columns, remove it or name the columns",
            AmbiguousInputWarning,
            stacklevel=2,
        )
