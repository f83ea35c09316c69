"""Long tables: a row an element, with a column that says which instance the element is of."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, cast

import numpy as np

from ptrnet.data.arrays import dictionaries_of, rows_of, split
from ptrnet.data.formats.parts import nested
from ptrnet.data.formats.parts.csv_rows import csv_rows, is_number
from ptrnet.data.formats.parts.json_object import parse_object
from ptrnet.data.formats.parts.lines import numbered_lines
from ptrnet.data.formats.parts.parsing import parse_number
from ptrnet.data.infer_task import loosest_task
from ptrnet.errors import InputError, short
from ptrnet.files import atomic_path
from ptrnet.types import Example, Indices

Row = Mapping[str, Any]
_TRUE, _FALSE = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")


def read_table(
    table: Any, *, set_id: str, rank: str | None = None, label: str | None = None
) -> list[Example]:
    """The instances of a table, whose elements are dictionaries of its other columns.

    What `ptrnet.fit`, `solve`, `evaluate` and so on take. Rows of one instance need not stand
    together; instances come in the order of their first rows.

    Args:
        table: a CSV file with a header, a frame of pandas or polars, or a list of dictionaries.
        set_id: the column by which rows are of one instance. Its value is in the `extra` of each.
        rank: the column with an element's place in the answer: any distinct numbers, in their
            order; empty where the element is not in the answer.
        label: the column that says whether an element is in the answer: 1 or 0, true or false,
            yes or no; the answer has its elements as they stand in the table.

    Returns:
        An `Example` for each instance, with its answer where `rank` or `label` is named.

    Raises:
        InputError: no such file or column, a cell that cannot be used, by its line or row.
    """
    if rank is not None and label is not None:
        raise InputError("read_table: expected rank or label, got both")
    if isinstance(table, str | Path):
        rows: Iterable[tuple[Row, str]] = _csv_rows(str(table))
    else:
        frame = rows_of(table) if hasattr(table, "columns") else split(table, "table")
        rows = ((row, f"row {k}") for k, row in enumerate(frame))
    instances: dict[Any, list[tuple[Row, str]]] = {}
    for row, source in rows:
        for column in filter(None, (set_id, rank, label)):
            if not isinstance(row, Mapping) or column not in row:
                raise InputError(f'{source}: expected the column "{column}", got {_columns(row)}')
        instances.setdefault(row[set_id], []).append((row, source))
    if not instances:
        raise InputError("table: expected at least one row, got none")
    apart = {set_id, rank, label}
    examples = []
    for key, members in instances.items():
        elements = [{name: row[name] for name in row if name not in apart} for row, _ in members]
        outputs = _ranked(members, rank) if rank else None
        if label:
            outputs = _labelled(members, label)
        source = f"{set_id} {short(key)}"
        examples.append(
            Example(cast("Any", elements), outputs, source, {set_id: key}, elements=elements)
        )
    return examples


def write_table(path: str, examples: Iterable[Example], *, set_id: str, rank: str) -> None:
    """Writes a CSV file with a row for each element of each instance.

    Its columns are the instance's id, the element's place in the answer from 1 on, empty where
    it is not in it, and the fields of the elements.

    Args:
        path: the file.
        examples: with `elements`; the id is in `extra` under `set_id`, else it is the number of the
            instance from 1 on.
        set_id: the column of the ids.
        rank: the column of the places.

    Raises:
        InputError: an answer that has an element twice, elements of other fields than the first.
        OutputError: the file cannot be written.
    """
    columns: list[str] = []
    with (
        atomic_path(Path(path)) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        for number, example in enumerate(examples, 1):
            for place, element in zip(_places(example), example.elements or [], strict=True):
                if not columns:
                    columns = list(element)
                    _check_apart(columns, (set_id, rank))
                    writer.writerow([set_id, rank, *columns])
                if list(element) != columns:
                    raise InputError(
                        f"{example.source}: expected elements with the fields "
                        f"{', '.join(columns)}, got {_columns(element)}"
                    )
                writer.writerow([example.extra.get(set_id, number), place, *element.values()])


def read_lines(path: str) -> Iterator[Example]:
    """The examples of a .jsonl as they stand, with elements of whatever fields.

    Raises:
        InputError: a line that is no example of such elements.
    """
    for line, text in numbered_lines(path):
        source = f"{path}:{line}"
        row = parse_object(text, source)
        elements = dictionaries_of(row.pop("inputs", None))
        if elements is None:
            raise InputError(f'{source}: "inputs": expected a list of objects')
        nothing = np.zeros((len(elements), 1))
        example = nested.example_of(nothing, row, loosest_task(1), source)
        yield example._replace(elements=elements)


def _check_apart(columns: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name in columns:
            raise InputError(f'the elements have a field "{name}"; name that column otherwise')


def _places(example: Example) -> list[Any]:
    """Of each element its place in the answer, from 1 on, or an empty text."""
    places: list[Any] = [""] * len(example.inputs)
    if example.outputs is not None:
        if example.outputs.ndim != 1 or len(set(example.outputs.tolist())) != len(example.outputs):
            raise InputError(f"{example.source}: an element has no place of its own in the answer")
        for place, index in enumerate(example.outputs, 1):
            places[index] = place
    return places


def _csv_rows(path: str) -> Iterator[tuple[Row, str]]:
    """The rows of a CSV file by its header; numbers in columns of which all cells are such."""
    rows = list(csv_rows(path, path))
    if len(rows) < 2:
        raise InputError(f"{path}: expected a header and at least one row")
    (header, _), *body = rows
    if len(set(header)) != len(header):
        raise InputError(f"{path}:1: expected a name of its own for each column")
    cells = zip(*(row for row, _ in body), strict=True)
    numeric = [all(is_number(cell) for cell in column if cell) for column in cells]
    for row, line in body:
        source = f"{path}:{line}"
        yield (
            {
                name: _number(cell, f'{source}: "{name}"') if is_numeric and cell else cell
                for name, cell, is_numeric in zip(header, row, numeric, strict=True)
            },
            source,
        )


def _number(cell: str, source: str) -> float | int:
    value = parse_number(cell, source)
    return int(value) if cell.lstrip("+-").isdecimal() else value


def _ranked(members: Sequence[tuple[Row, str]], rank: str) -> Indices:
    """The elements that have a rank, in their order."""
    ranks: dict[float, int] = {}
    for index, (row, source) in enumerate(members):
        value = row[rank]
        if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
            continue
        if not isinstance(value, Real):
            raise InputError(
                f'{source}: "{rank}": expected a number or nothing, got {short(value)}'
            )
        if float(value) in ranks:
            other = members[ranks[float(value)]][1]
            raise InputError(f'{source}: "{rank}": {value} stands in {other}, too')
        ranks[float(value)] = index
    return np.array([ranks[value] for value in sorted(ranks)], np.int64)


def _labelled(members: Sequence[tuple[Row, str]], label: str) -> Indices:
    """The elements that are in the answer, as they stand."""
    chosen = []
    for index, (row, source) in enumerate(members):
        text = str(row[label]).strip().lower()
        if text not in (*_TRUE, *_FALSE):
            raise InputError(f'{source}: "{label}": expected 1 or 0, got {short(row[label])}')
        if text in _TRUE:
            chosen.append(index)
    return np.array(chosen, np.int64)


def _columns(row: Any) -> str:
    return short(", ".join(map(str, row)) if isinstance(row, Mapping) else row)
