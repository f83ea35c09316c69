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
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from ptrnet.data import cells, checks
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts.lines import csv_rows, display_name
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


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`.

    Warns:
        AmbiguousInputWarning: the first row may be the header that pandas gives to unnamed columns.
    """
    source = display_name(path)
    rows: list[list[str]] = []
    lines: list[int] = []
    for row, line in csv_rows(path, source):
        if len(rows) > LARGEST:
            raise InputError(f"{source}: expected at most {LARGEST} rows")
        rows.append(row)
        lines.append(line)
    if rows:
        read_rows = _read_numbers if task.schema is None else _read_fields
        matrix = _read_matrix(rows, task, source) if task.takes_matrices else None
        yield matrix or read_rows(rows, lines, task, source)


def _read_matrix(rows: list[list[str]], task: Task, source: str) -> Example | None:
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
    if not all(map(cells.is_number, (body[i][j] for i in range(n) for j in range(n) if i != j))):
        return None
    names = [str(k) for k in range(n)]
    if has_header:
        names = rows[0][has_names:]
    if has_names:
        named = [row[0] for row in rows[has_header:]]
        if has_header and named != names:
            return None
        names = named
    dist = [
        [float(cell) if i != j else 0.0 for j, cell in enumerate(r)] for i, r in enumerate(body)
    ]
    table = Table(None, [[name] for name in names], [])  # an answer is a list of names
    return Example(
        checks.check_matrix(dist, task, source), source=source, table=table, distance=EXPLICIT
    )


def _read_fields(rows: list[list[str]], lines: list[int], task: Task, source: str) -> Example:
    """Return the instance of a model that reads columns by their names in the header."""
    schema = task.schema
    assert schema is not None
    table = _long_table(rows, lines, source).typed(schema)
    inputs = table.encode(schema)
    checks.check_size(len(inputs), task, source)
    checks.check_solvable(inputs, task, source)
    columns = Table(rows[0], rows[1:], [rows[0].index(field) for field in schema.fields])
    return Example(inputs, None, source, table=columns, elements=table.elements(table.columns))


def _read_numbers(rows: list[list[str]], lines: list[int], task: Task, source: str) -> Example:
    """Return the instance whose elements are the numeric columns of the rows."""
    d, first = task.num_features, rows[0]
    # The first row may be a header, so only the rows below it tell which columns are numeric.
    bodies = [column[1:] or column for column in zip(*rows, strict=True)]
    numbers = [k for k, body in enumerate(bodies) if not _others(body)]
    numeric = cells.without_ids(numbers, [first[k] for k in numbers], d)
    if len(numeric) != d:
        _refuse_columns(bodies, lines, numeric, d, source)
    skipped = sorted({*range(len(bodies))} - {*numbers})
    have_points = any("." in cell for k in numeric for cell in bodies[k])
    for k in skipped:
        may_be_joined = 0 < k < len(bodies) - 1 and not have_points and _is_pair(first[k])
        _check_skipped_column(bodies[k], lines, k, may_be_joined, source)
    header = None
    place = f"{source}:{lines[0]}"
    if _is_header(first, numeric, [k for k in numbers if k not in numeric], place):
        cells.check_no_ids([first[k] for k in numeric], d, place)
        header, rows, lines = first, rows[1:], lines[1:]
    else:
        _warn_of_numbered_columns([[row[k] for k in numeric] for row in rows], place)
    values = [
        [cells.parse_number(row[k], f"{source}:{line}: column {k + 1}") for k in numeric]
        for row, line in zip(rows, lines, strict=True)
    ]
    inputs = checks.check_instance(values, task, source)
    return Example(inputs, None, source, table=Table(header, rows, numeric))


def table(path: str) -> "tables.Table":
    """See `ptrnet.data.formats`."""
    numbered = list(csv_rows(path, path))
    rows, lines = [row for row, _ in numbered], [line for _, line in numbered]
    table = _long_table(rows, lines, path)
    if "" in table.columns:
        raise InputError(
            f"{path}:{lines[0]}: column {rows[0].index('') + 1}: expected a name, got none; if it "
            "is the index of pandas, write the file by to_csv(index=False)"
        )
    return table


def _long_table(rows: list[list[str]], lines: list[int], source: str) -> "tables.Table":
    """Return the table of rows below a header."""
    from ptrnet.data import tables

    if len(rows) < 2:
        raise InputError(f"{source}: expected a header and at least one row")
    cells.check_header(rows[0], f"{source}:{lines[0]}")
    columns = zip(*rows[1:], strict=True)
    return tables.Table(
        dict(zip(rows[0], columns, strict=True)),
        source,
        lambda k: f"{source}:{lines[k + 1]}",
        is_text=True,
    )


def write_table(stream: TextIO, table: "tables.Table") -> None:
    """See `ptrnet.data.formats`."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.columns)
    rows = zip(*table.columns.values(), strict=True)
    writer.writerows(["" if is_empty(cell) else cell for cell in row] for row in rows)


def _is_header(first: list[str], numeric: list[int], ids: list[int], source: str) -> bool:
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
        bad = [
            k
            for k in numeric
            if cells.is_missing(first[k])
            or cells.is_number(first[k])
            or cells.are_foreign_numbers([first[k]])
        ]
    if bad:
        raise InputError(
            f"{source}: column {bad[0] + 1}: expected a number, or a header with no number in a "
            f"numeric column, got {short(first[bad[0]])}"
        )
    return True


def _warn_of_numbered_columns(rows: list[list[str]], source: str) -> None:
    """Warn if the first row is 0, 1, ... above fractions, as pandas names unnamed columns."""
    is_count = len(rows[0]) > 1 and rows[0] == [str(k) for k in range(len(rows[0]))]
    if is_count and len(rows) > 1 and all("." in cell for row in rows[1:] for cell in row):
        warnings.warn(
            f"{source}: {','.join(rows[0])} is read as a row; if pandas wrote it as the names of "
            "unnamed columns, remove it or name the columns",
            AmbiguousInputWarning,
            stacklevel=2,
        )


def _check_skipped_column(
    body: Sequence[str], lines: list[int], k: int, may_be_joined: bool, source: str
) -> None:
    """Refuse to skip column k as text if it was probably meant as numbers, or as several columns.

    Args:
        body: its cells without the first row; at least one is not a number.
        lines: the line of each row.
        k: the number of the column, from 0 on.
        may_be_joined: whether the file may have decimal commas and another separator, so that
            `0,5 0,7` became the cells `0`, `5 0` and `7`. A header above such columns would have
            another width.
        source: of the table.
    """
    bad = _others(body)
    others = [body[i] for i in bad]
    place, got = f"{source}:{_line_of(bad[0], body, lines)}", short(others[0])
    if cells.hides_numbers(others, has_numbers=len(bad) < len(body)):
        is_foreign = not all(map(cells.is_missing, others))
        example = " such as 1234.5" if is_foreign else ""
        raise InputError(f"{place}: column {k + 1}: expected a number{example}, got {got}")
    if may_be_joined and all(map(_is_pair, body)):
        raise InputError(
            f"{place}: columns must be separated by commas, and numbers have decimal points, "
            f"got {got} between two commas"
        )
    if all(map(_is_joined, others)):
        raise InputError(f"{place}: columns must be separated by commas, got {got}")


def _others(body: Sequence[str]) -> list[int]:
    """Return where the cells of a column are not numbers, by the rule for long tables."""
    values = cells.parse_cells(body)
    return [i for i, value in enumerate(values) if value is None or isinstance(value, str)]


def _is_joined(cell: str) -> bool:
    """Whether a cell holds two columns that are separated by a semicolon or a tab."""
    last = re.split("[;\t]", cell)[-1]
    return last != cell and cells.is_number(last)


def _is_pair(cell: str) -> bool:
    """Whether a cell is the end of a number, a space and the beginning of the next number."""
    parts = cell.split()
    return len(parts) == 2 and parts[0].isdecimal() and cells.is_number(parts[1])


def _refuse_columns(
    bodies: list[tuple[str, ...]], lines: list[int], numeric: list[int], d: int, source: str
) -> NoReturn:
    """Raise the error for a number of numeric columns other than d.

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
        bad = _others(body)
        if not numeric and all(map(_is_joined, body)):
            row = ",".join(column[0] for column in bodies)
            raise InputError(
                f"{source}:{_line_of(0, body, lines)}: columns must be separated by commas, and "
                f"numbers have decimal points, got {short(row)}"
            )
        if len(numeric) < d and 0 < len(bad) < len(body) / 2:
            line = _line_of(bad[0], body, lines)
            raise InputError(
                f"{source}:{line}: column {k + 1}: expected a number, got {short(body[bad[0]])}"
            )
    raise InputError(
        f"{source}: expected {d} numeric column{'s' * (d > 1)} and any number of others, "
        f"got {len(numeric)} numeric"
    )


def _line_of(index: int, body: Sequence[str], lines: list[int]) -> int:
    """The line of cell `index` of a column's body, which ends with the last row."""
    return lines[index - len(body)]


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    writer = csv.writer(stream, lineterminator="\n")
    for example in examples:
        rows = [[repr(value) for value in element] for element in example.inputs.tolist()]
        if example.elements and not example.table:
            names = list(example.elements[0])
            writer.writerow(names)
            rows = [_row_of(element, names, example.source) for element in example.elements]
        if example.table:
            rows = example.table.rows
            if example.table.header:
                writer.writerow(example.table.header)
        elif example.distance == EXPLICIT and example.outputs is not None:
            rows = [[str(k)] for k in range(len(rows))]
        order = range(len(rows)) if example.outputs is None else example.outputs.ravel()
        writer.writerows(rows[i] for i in order)


def _row_of(element: Mapping[str, Any], names: list[str], source: str) -> list[str]:
    """Return the values of an element in the order of the columns' names, empty for None."""
    if element.keys() != {*names}:
        raise InputError(
            f"{source}: a .csv has the same fields in every row: expected "
            f"{short(', '.join(names))}, got {short(', '.join(map(str, element)))}"
        )
    return ["" if element[name] is None else str(element[name]) for name in names]
