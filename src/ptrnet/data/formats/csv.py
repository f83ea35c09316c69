"""CSV: the whole file is one instance, and each row is an element.

A header is optional. The numeric columns are the features. If there are too many numeric columns,
columns with names of ids are left out. Columns that are not features are kept, and are written
again with their rows. If the model reads named fields, the header tells which columns are the
features. As in long tables, cells such as 007 and 1_000 are not numbers.

Commas separate the columns, or tabs or semicolons if the header has those.

An answer is written as the rows of its elements, in the answer's order. A triangle is three rows.

Tasks that accept matrices of distances also read a square matrix. Its rows and columns may have
names. An answer to a matrix is written as a list of these names. If there are no names, it is
written as a list of indices. A matrix without an answer is written as a matrix.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from ptrnet.data import cells, checks
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts.lines import all_lines, display_name
from ptrnet.errors import InputError, short
from ptrnet.geometry.distances import EUCLIDEAN, EXPLICIT
from ptrnet.sizes import LARGEST
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import is_empty
from ptrnet.types import CsvText, Example

if TYPE_CHECKING:
    from ptrnet.data import tables

CAPABILITIES = Capabilities(
    multiple=False, answers=False, distances=(EUCLIDEAN, EXPLICIT), dictionaries=True
)
_NAMES = {",": "commas", "\t": "tabs", ";": "semicolons"}  # of the delimiters

Row = list[str]
Placed = Iterator[tuple[Row, str]]  # rows, each with the source of the line on which it ends


def read(path: str, task: Task, usual: str = ",") -> Iterator[Example]:
    """See `ptrnet.data.formats`. `usual` is the delimiter unless the header has another one."""
    source = display_name(path)
    rows: list[Row] = []
    places: list[str] = []
    placed, delimiter = _open(path, usual)
    for row, place in placed:
        if len(rows) > LARGEST:
            raise InputError(f"{source}: expected at most {LARGEST} rows")
        rows.append(row)
        places.append(place)
    if rows:
        matrix = _read_matrix(rows, task, source) if task.takes_matrices else None
        read_rows = _read_numbers if task.schema is None else _read_fields
        yield matrix or read_rows(rows, places, task, source, delimiter)


def table(path: str, usual: str = ",") -> "tables.Table":
    """See `ptrnet.data.formats`. `usual` is the delimiter, as in `read`."""
    lines, delimiter = _open(path, usual)
    placed = list(lines)
    rows, places = [row for row, _ in placed], [place for _, place in placed]
    table = _long_table(rows, places, path, delimiter)
    if "" in table.columns:
        raise InputError(
            f"{places[0]}: column {rows[0].index('') + 1}: expected a name, got none; if it "
            "is the index of pandas, write the file by to_csv(index=False)"
        )
    return table


def write(stream: TextIO, examples: Iterable[Example], task: Task, delimiter: str = ",") -> None:
    """See `ptrnet.data.formats`."""
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    for example in examples:
        rows: list[Any] = example.inputs.tolist()
        if example.distance == EXPLICIT and example.outputs is None:
            writer.writerows(_with_names(rows, example.table))
            continue
        if example.table:
            rows = example.table.rows
            if example.table.header:
                writer.writerow(example.table.header)
        elif example.elements:
            names = list(example.elements[0])
            if any(element.keys() != {*names} for element in example.elements):
                raise InputError(
                    f"{example.source}: a .csv file needs elements with the same fields: expected "
                    f"{short(', '.join(names))} in all of them"
                )
            writer.writerow(names)
            rows = [[element[name] for name in names] for element in example.elements]
        elif example.distance == EXPLICIT:
            rows = [[k] for k in range(len(rows))]
        order = range(len(rows)) if example.outputs is None else example.outputs.ravel()
        writer.writerows(rows[i] for i in order)


def _with_names(matrix: list[list[float]], table: CsvText | None) -> list[list[Any]]:
    """Return the rows of a matrix, with the names of a matrix that was read as .csv around them."""
    if table is None:
        return matrix
    names = [name for (name,) in table.rows]
    rows = [[name, *row] for name, row in zip(names, matrix, strict=True)]
    return [["", *names], *rows]


def write_table(stream: TextIO, table: "tables.Table", delimiter: str = ",") -> None:
    """See `ptrnet.data.formats`."""
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.columns)
    rows = zip(*table.columns.values(), strict=True)
    writer.writerows(["" if is_empty(cell) else cell for cell in row] for row in rows)


def _open(path: str, usual: str) -> tuple[Placed, str]:
    """Return the rows of a file, and the delimiter of its columns.

    A file is read only once, because it may be a pipe.

    Raises:
        InputError: the file cannot be read, or its first line is not CSV.
    """
    lines = all_lines(path)
    first = next((line for line in lines if line[1].strip()), (f"{display_name(path)}:1", ""))
    try:
        delimiter = _delimiter(first[1], usual)
    except csv.Error as error:
        raise InputError(f"{first[0]}: not CSV: {error}") from None
    return _rows(chain([first], lines), delimiter), delimiter


def _delimiter(first: str, usual: str) -> str:
    """Return the delimiter of a file with this first line.

    It is the one that splits the line into most cells, if the line is a header. The cells of a
    header are not numbers: in `1;2`, the semicolon may be a typo. In equal cases it is the usual
    one, and always if that is a tab in the line, because names may have commas but no tabs.
    """
    split = {mark: next(csv.reader([first], delimiter=mark), []) for mark in _NAMES}
    found = max(split, key=lambda mark: (len(split[mark]), mark == usual))
    has_tabs = usual == "\t" and len(split[usual]) > 1
    return usual if has_tabs or any(map(cells.is_number, split[found])) else found


def _separators(delimiter: str) -> str:
    """Return what error messages say of the columns."""
    return f"columns must be separated by {_NAMES[delimiter]}, and numbers have decimal points"


def _rows(placed_lines: Iterable[tuple[str, str]], delimiter: str) -> Placed:
    """Yield the stripped cells of each row, and the source of the line on which the row ends.

    Raises:
        InputError: the file cannot be read, is not CSV, or has rows of different lengths.
    """
    source, width = "", None

    def lines() -> Iterator[str]:
        nonlocal source
        for source, text in placed_lines:  # noqa: B007  read outside
            yield text

    try:
        for row in csv.reader(lines(), delimiter=delimiter, strict=True):
            if len(row) < 2 and not any(cell.strip() for cell in row):
                continue  # skip blank lines; a blank line within quotes is part of a cell
            width = len(row) if width is None else width
            if len(row) != width:
                expected = f"expected {width} columns, got {len(row)}"
                if delimiter == "," and any(mark in cell for cell in row for mark in ";\t"):
                    expected = f"{_separators(delimiter)}, got {short(','.join(row))}"
                raise InputError(f"{source}: {expected}")
            yield [cell.strip() for cell in row], source
    except csv.Error as error:
        if "field limit" in str(error):
            limit = csv.field_size_limit()
            raise InputError(
                f"{source}: a cell has more than {limit:,} characters; close its quotes, or leave "
                "out the column"
            ) from None
        raise InputError(f"{source}: not CSV: {error}") from None


def _read_matrix(rows: list[Row], task: Task, source: str) -> Example | None:
    """Return the instance of a matrix of distances, or None if the rows are not a matrix.

    A matrix is a square of at least 3 x 3 numbers. The cells of its diagonal are equal, and may be
    empty. There may be a row of names above the matrix, and a column of names to its left. If both
    exist, they must have the same names in the same order.
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
    if not all(_is_distance(cell) for row in body for cell in row):
        return None
    above = rows[0][has_names:] if has_header else [str(k) for k in range(n)]
    names = [row[0] for row in rows[has_header:]] if has_names else above
    if has_header and names != above:
        return None
    dist = checks.check_matrix([[*map(float, row)] for row in body], task, source)
    table = CsvText(None, [[name] for name in names], [])  # `write` writes an answer as names
    return Example(dist, source=source, table=table, distance=EXPLICIT)


def _is_distance(cell: str) -> bool:
    """Whether a cell is a plain number, or `nan` or infinite, which `check_matrix` refuses."""
    is_infinite = cells.is_number(cell) and not cells.is_finite_number(cell)
    return is_infinite or cells.is_plain_number(cell)


def _read_fields(
    rows: list[Row], places: list[str], task: Task, source: str, delimiter: str
) -> Example:
    """Return the instance for a model that finds its columns by the names in the header."""
    schema = task.schema
    assert schema is not None
    table = _long_table(rows, places, source, delimiter)
    inputs = table.encode(schema)
    checks.check_size(len(inputs), task.min_elements, source)
    checks.check_solvable(inputs, task, source)
    columns = CsvText(rows[0], rows[1:], [rows[0].index(field) for field in schema.fields])
    return Example(inputs, None, source, table=columns, elements=table.elements(rows[0]))


def _long_table(rows: list[Row], places: list[str], source: str, delimiter: str) -> "tables.Table":
    """Return the long table whose header is the first row."""
    from ptrnet.data import tables

    if len(rows) < 2:
        raise InputError(f"{source}: expected a header and at least one row")
    header, place = rows[0], places[0]
    if len({*header}) != len(header):  # a dictionary would lose a column
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{place}: duplicate column name {short(twice)}")
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise InputError(f"{place}: {_separators(delimiter)}, got one column")
    columns = dict(zip(header, zip(*rows[1:], strict=True), strict=True))
    if delimiter == ";":
        _check_decimal_commas(columns, places[1:])
    return tables.Table(
        columns,
        source,
        places[1:].__getitem__,
        is_text=True,
    )


def _check_decimal_commas(columns: Mapping[str, Sequence[str]], places: list[str]) -> None:
    """Refuse a column of numbers with decimal commas, which would be read as texts.

    Programs that write decimal commas separate columns by semicolons.
    """
    for name, column in columns.items():
        filled = [cell for cell in column if not cells.is_missing(cell)]
        commas = [k for k, cell in enumerate(column) if "," in cell]
        if commas and cells.are_foreign_numbers(filled):
            raise InputError(
                f'{places[commas[0]]}: "{name}": expected numbers such as 1234.5, got '
                f"{short(column[commas[0]])}"
            )


def _read_numbers(
    rows: list[Row], places: list[str], task: Task, source: str, delimiter: str
) -> Example:
    """Return the instance whose features are the numeric columns."""
    d, first, place = task.num_features, rows[0], places[0]
    # The first row may be a header, so only the other rows tell which columns are numeric.
    columns = {k: column[1:] or column for k, column in enumerate(zip(*rows, strict=True))}
    parsed = {k: cells.parse_cells(column) for k, column in columns.items()}
    misfits = {
        k: [i for i, value in enumerate(values) if value is None or isinstance(value, str)]
        for k, values in parsed.items()
    }
    below = places[1:] or places
    if delimiter == ",":
        _check_separators(rows[1:] or rows, below)
    numeric = cells.numeric_columns(
        columns, misfits, first, d, lambda k, i: f"{below[i]}: column {k + 1}"
    )
    if not numeric and len(rows) == 1:
        raise InputError(f"{source}: expected elements below the header, got none")
    if len(numeric) != d:
        named = f" ({', '.join(task.number_names)})" if task.number_names else ""
        raise InputError(
            f"{source}: expected {d} numeric column{'s' * (d > 1)}{named} and any number of "
            f"others, got {len(numeric)} numeric"
        )
    ids = [k for k, bad in misfits.items() if not bad and k not in numeric]
    header = None
    if _is_header(first, numeric, ids, place):
        names = [first[k] for k in numeric]
        cells.check_no_ids(names, d, place)
        _check_order([name.strip().lower() for name in names], task.number_names, place)
        header, rows, places = first, rows[1:], below
    else:
        _check_first([[row[k] for k in numeric] for row in rows], place)
    values = [
        [cells.parse_number(row[k], f"{place}: column {k + 1}") for k in numeric]
        for row, place in zip(rows, places, strict=True)
    ]
    inputs = checks.check_instance(values, task, source)
    return Example(inputs, None, source, table=CsvText(header, rows, numeric))


def _check_order(names: list[str], expected: Sequence[str], place: str) -> None:
    """Refuse columns whose names show another order than the order that the task reads."""
    for name, wanted in zip(names, expected, strict=False):
        if name != wanted and name in expected:
            raise InputError(
                f"{place}: expected the columns {', '.join(expected)} in this order, got "
                f"{', '.join(names)}"
            )


def _check_separators(rows: list[Row], places: list[str]) -> None:
    """Refuse rows that all have a semicolon or a tab: it probably separates the columns.

    If the table has decimal commas, `csv.reader` has split its rows at these commas. The line
    `2,5;3,5` becomes the cells `2`, `5;3` and `5`.
    """
    if any(all(any(mark in cell for cell in row) for row in rows) for mark in ";\t"):
        raise InputError(f"{places[0]}: {_separators(',')}, got {short(','.join(rows[0]))}")


def _is_header(first: Row, numeric: list[int], ids: list[int], source: str) -> bool:
    """Whether the first row is a header, which has a text above each feature and each id.

    Raises:
        InputError: the row has texts above some features and ids but not above all, or texts that
            may be numbers. The row is then probably a damaged element, not a header.
    """
    titles = [k for k in (*ids, *numeric) if not cells.is_plain_number(first[k])]
    if not titles:
        return False
    bad = titles
    if len(titles) == len(ids) + len(numeric):
        bad = [k for k in numeric if _may_be_number(first[k])]
    if bad:
        raise InputError(
            f"{source}: column {bad[0] + 1}: expected a number, or a header without numbers, "
            f"got {short(first[bad[0]])}"
        )
    return True


def _may_be_number(cell: str) -> bool:
    """Whether a cell is empty or another missing value, or a number in any notation."""
    return cells.is_missing(cell) or cells.is_number(cell) or cells.are_foreign_numbers([cell])


def _check_first(rows: list[Row], source: str) -> None:
    """Refuse a first row 0, 1, ... above cells that all have a decimal point.

    pandas writes the header 0, 1, ... for unnamed columns, but it may also be an element.
    """
    first, *others = rows
    is_count = len(first) > 1 and first == [str(k) for k in range(len(first))]
    if is_count and others and all("." in cell for row in others for cell in row):
        raise InputError(
            f"{source}: expected a header of names, or elements, got {','.join(first)}; remove a "
            f"header of pandas, and write an element as {','.join(f'{k}.0' for k in first)}"
        )
