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

Rows of task `reading-order` are boxes. A file may have several pages; see `parts/box_rows.py`.
"""

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from ptrnet.data import cells, checks
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import all_lines, display_name
from ptrnet.errors import InputError, short, warn_ambiguous
from ptrnet.geometry.distances import EUCLIDEAN, EXPLICIT
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import is_empty
from ptrnet.types import LARGEST, CsvText, Example

if TYPE_CHECKING:
    from ptrnet.data import tables

CAPABILITIES = Capabilities(
    multiple=False, answers=False, distances=(EUCLIDEAN, EXPLICIT), dictionaries=True
)
Row = list[str]


class Text(NamedTuple):
    """The stripped cells of each row of a file, and the source of the line on which it ends."""

    rows: list[Row]
    places: list[str]
    source: str
    delimiter: str


def read(path: str, task: Task, usual: str = ",") -> Iterator[Example]:
    """Yield the only example. `usual` is the delimiter unless the header has another one."""
    text = _parse(path, usual, LARGEST + 1)
    if text.rows and task.name == "reading-order":
        from ptrnet.data.formats.parts import box_rows  # other tasks do not need its imports

        yield from box_rows.read(text.rows, text.places, text.source, task)
    elif text.rows:
        matrix = _read_matrix(text, task) if task.facts.takes_matrices else None
        yield matrix or (_read_numbers if task.facts.schema is None else _read_fields)(text, task)


def table(path: str, usual: str = ",") -> "tables.Table":
    """Return the long table in a file. `usual` is the delimiter, as in `read`."""
    text = _parse(path, usual)
    found = _long_table(text)
    if "" in found.columns:
        raise InputError(
            f"{text.places[0]}: column {text.rows[0].index('') + 1}: expected a name, got none; if "
            "it is the index of pandas, write the file by to_csv(index=False)"
        )
    return found


def write(stream: TextIO, examples: Iterable[Example], task: Task, delimiter: str = ",") -> None:
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    header = None
    for example in examples:
        if task.name == "reading-order" and not example.table:
            from ptrnet.data.formats.parts import box_rows

            example = example.replace(table=box_rows.table_of(example))
        rows: list[Any] = example.inputs.tolist()
        if example.distance == EXPLICIT and example.outputs is None:
            writer.writerows(_with_names(rows, example.table))
            continue
        if example.table:
            rows = example.table.rows
            if example.table.header not in (None, header):  # pages of a file share a header
                header = example.table.header
                writer.writerow(header)
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
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.columns)
    rows = zip(*table.columns.values(), strict=True)
    writer.writerows(["" if is_empty(cell) else cell for cell in row] for row in rows)


def _parse(path: str, usual: str, most: int | None = None) -> Text:
    """Return the rows of a file. If there are more than `most` rows, refuse the file.

    A file is read only once, because it may be a pipe. Raises InputError if the file cannot be
    read, is not CSV, has rows of different lengths, or too many.
    """
    lines, place = all_lines(path), f"{display_name(path)}:1"

    def texts() -> Iterator[str]:
        nonlocal place
        for place, text in lines:  # noqa: B007  read outside
            yield text

    filled = texts()
    first = next((text for text in filled if text.strip()), "")
    rows: list[Row] = []
    places: list[str] = []
    try:
        delimiter = _delimiter(first, usual)
        for row in csv.reader(chain([first], filled), delimiter=delimiter, strict=True):
            if len(row) < 2 and not any(cell.strip() for cell in row):
                continue  # skip blank lines; a blank line within quotes is part of a cell
            if rows and len(row) != len(rows[0]):
                raise InputError(f"{place}: expected {len(rows[0])} columns, got {len(row)}")
            if most is not None and len(rows) == most:
                raise InputError(f"{display_name(path)}: expected at most {most - 1} rows")
            rows.append([cell.strip() for cell in row])
            places.append(place)
    except csv.Error as error:
        if "field limit" in str(error):
            limit = csv.field_size_limit()
            raise InputError(
                f"{place}: a cell has more than {limit:,} characters; close its quotes, or leave "
                "out the column"
            ) from None
        raise InputError(f"{place}: not CSV: {error}") from None
    return Text(rows, places, display_name(path), delimiter)


def _delimiter(first: str, usual: str) -> str:
    """Return the delimiter of a file with this first line.

    It is the one that splits the line into most cells, if the line is a header. The cells of a
    header are not numbers: in `1;2`, the semicolon may be a typo. In equal cases it is the usual
    one, and always if that is a tab in the line, because names may have commas but no tabs.
    """
    split = {mark: next(csv.reader([first], delimiter=mark), []) for mark in ",\t;"}
    found = max(split, key=lambda mark: (len(split[mark]), mark == usual))
    has_tabs = usual == "\t" and len(split[usual]) > 1
    return usual if has_tabs or any(map(cells.is_number, split[found])) else found


def _read_matrix(text: Text, task: Task) -> Example | None:
    """Return the instance of a matrix of distances, or None if the rows are not a matrix.

    A matrix is a square of at least 3 x 3 numbers. The cells of its diagonal are equal, and may be
    empty. There may be a row of names above the matrix, and a column of names to its left. If both
    exist, they must have the same names in the same order.
    """
    rows, height, width = text.rows, len(text.rows), len(text.rows[0])
    has_header = height > width or (height == width and not cells.is_number(rows[0][0]))
    has_names = width > height or (height == width and has_header)
    body = [row[has_names:] for row in rows[has_header:]]
    n = len(body)
    if n < 3 or len(body[0]) != n or len({body[i][i] for i in range(n)}) > 1:
        return None
    for i in range(n):
        body[i][i] = "0"
    if not all(map(_is_number, chain.from_iterable(body))):
        return None
    above = rows[0][has_names:] if has_header else [str(k) for k in range(n)]
    names = [row[0] for row in rows[has_header:]] if has_names else above
    if has_header and names != above:
        return None
    dist = checks.check_matrix([[*map(float, row)] for row in body], task, text.source)
    table = CsvText(None, [[name] for name in names], [])  # `write` writes an answer as names
    return Example(dist, source=text.source, table=table, distance=EXPLICIT)


def _read_fields(text: Text, task: Task) -> Example:
    """Return the instance for a model that finds its columns by the names in the header."""
    schema, table, (header, *rows) = task.facts.schema, _long_table(text), text.rows
    assert schema is not None
    inputs = table.encode(schema)
    checks.check_size(len(inputs), task.facts.min_elements, text.source)
    checks.check_solvable(inputs, task, text.source)
    columns = CsvText(header, rows, [header.index(field) for field in schema.fields])
    elements = table.elements(header)
    return Example(inputs, None, text.source, table=columns, elements=elements)


def _long_table(text: Text) -> "tables.Table":
    """Return the long table whose header is the first row."""
    from ptrnet.data import tables

    if len(text.rows) < 2:
        raise InputError(f"{text.source}: expected a header and at least one row")
    (header, *rows), (place, *places) = text.rows, text.places
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    if len(columns) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{place}: duplicate column name {short(twice)}")
    # Programs that write decimal commas separate columns by semicolons. We refuse these numbers,
    # because they would be read as texts.
    for name, column in columns.items() if text.delimiter == ";" else ():
        commas = [k for k, cell in enumerate(column) if "," in cell]
        filled = [cell for cell in column if not cells.is_missing(cell)]
        if commas and cells.are_foreign_numbers(filled):
            raise InputError(
                f'{places[commas[0]]}: "{name}": expected numbers such as 1234.5, got '
                f"{short(column[commas[0]])}"
            )
    return tables.Table(columns, text.source, places.__getitem__, is_text=True)


def _read_numbers(text: Text, task: Task) -> Example:
    """Return the instance whose features are the numeric columns."""
    d, (first, *below), (place, *places) = task.facts.num_features, text.rows, text.places
    least = d - task.facts.optional_features
    # The first row may be a header, so only the other rows tell which columns are numeric.
    body, body_places = below or [first], places or [place]
    # In a table with decimal commas, commas have split the rows: `2,5;3,5` became 2, 5;3 and 5.
    marks = ";\t" if text.delimiter == "," else ""
    if any(all(any(mark in cell for cell in row) for row in body) for mark in marks):
        raise InputError(
            f"{body_places[0]}: columns must be separated by commas, and numbers have decimal "
            f"points, got {short(','.join(body[0]))}"
        )
    columns = dict(enumerate(zip(*body, strict=True)))
    misfits = {
        k: [i for i, cell in enumerate(column) if cells.is_missing(cell) or not _is_number(cell)]
        for k, column in columns.items()
    }
    numeric = cells.numeric_columns(
        columns, misfits, first, least, lambda k, i: f"{body_places[i]}: column {k + 1}"
    )
    if not numeric and not below:
        raise InputError(f"{text.source}: expected elements below the header, got none")
    if not least <= len(numeric) <= d:
        wanted = ", ".join(task.facts.number_names[:least])
        raise InputError(
            f"{text.source}: expected {least} numeric column{'s' * (least > 1)}"
            f"{f' ({wanted})' * bool(wanted)} and any number of others, got {len(numeric)} numeric"
        )
    ids = [k for k, bad in misfits.items() if not bad and k not in numeric]
    header = first if _is_header(first, numeric, ids, place) else None
    names = [first[k] for k in numeric]
    if header:
        cells.check_no_ids(names, d, place)
        lowered, expected = [name.lower() for name in names], task.facts.number_names
        if any(a != b and a in expected for a, b in zip(lowered, expected, strict=False)):
            raise InputError(
                f"{place}: expected the columns {', '.join(expected)} in this order, got "
                f"{', '.join(lowered)}"
            )
        # Coordinates may have any names, but in a table of weights and values the order is a guess.
        if any(a != b and " " not in b for a, b in zip(lowered, expected, strict=False)):
            warn_ambiguous(
                f"{place}: the columns {', '.join(names)} are read as "
                f"{', '.join(expected[: len(names)])}"
            )
    # pandas writes the header 0, 1, ... for unnamed columns, but it may also be an element.
    is_count = d > 1 and bool(below) and names == [str(k) for k in range(d)]
    if is_count and all("." in row[k] for row in below for k in numeric):
        raise InputError(
            f"{place}: expected a header of names, or elements, got {','.join(names)}; remove a "
            f"header of pandas, and write an element as {','.join(f'{name}.0' for name in names)}"
        )
    if is_count:
        warn_ambiguous(
            f"{place}: {','.join(names)} is read as an element; remove it if it is a header of "
            "pandas"
        )
    rows = below if header else text.rows
    values = [
        [cells.parse_number(row[k], f"{place}: column {k + 1}") for k in numeric]
        for row, place in zip(rows, places if header else text.places, strict=True)
    ]
    inputs = checks.check_instance(values, task, text.source)
    return Example(inputs, None, text.source, table=CsvText(header, rows, numeric))


def _is_header(first: Row, numeric: list[int], ids: list[int], place: str) -> bool:
    """Whether the first row is a header, which has a text above each feature and each id.

    Raises:
        InputError: the row has texts above some features and ids but not above all, or texts that
            may be numbers. The row is then probably a damaged element, not a header.
    """
    bad = titles = [k for k in (*ids, *numeric) if not cells.is_plain_number(first[k])]
    if len(titles) == len(ids) + len(numeric):
        bad = [k for k in numeric if _may_be_number(first[k])]
    if bad:
        raise InputError(
            f"{place}: column {bad[0] + 1}: expected a number, or a header without numbers, "
            f"got {short(first[bad[0]])}"
        )
    return bool(titles)


def _is_number(cell: str) -> bool:
    """Whether a cell is a plain number, or `nan` or infinite, which later checks refuse."""
    is_infinite = cells.is_number(cell) and not cells.is_finite_number(cell)
    return is_infinite or cells.is_plain_number(cell)


def _may_be_number(cell: str) -> bool:
    """Whether a cell is a missing value, or a number in any notation."""
    return cells.is_missing(cell) or cells.is_number(cell) or cells.are_foreign_numbers([cell])
