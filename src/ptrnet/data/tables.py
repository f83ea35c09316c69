"""Long tables: a row is an element, and one column tells to which instance it belongs."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, cast

import numpy as np

from ptrnet.data import cells
from ptrnet.data.arrays import is_frame, rows_of, split
from ptrnet.data.formats.parts import json_values
from ptrnet.data.formats.parts.lines import csv_rows, numbered_lines
from ptrnet.data.infer_task import loosest_task
from ptrnet.errors import InputError, short
from ptrnet.files import atomic_path
from ptrnet.types import Example, Indices

Row = Mapping[str, Any]
_TRUE, _FALSE = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")


def read_table(
    table: Any, *, set_id: str, rank: str | None = None, label: str | None = None
) -> list[Example]:
    """Return the instances of a table, whose elements are dictionaries of its other columns.

    `ptrnet.fit`, `solve`, `evaluate` and so on take the result. The rows of an instance may be
    apart. Instances are in the order of their first rows.

    Args:
        table: a CSV file with a header, a frame of pandas or polars, or a list of dictionaries.
        set_id: the column whose value the rows of an instance share. It becomes the `extra` of
            the instance.
        rank: the column with an element's place in the answer: any distinct numbers, which are
            sorted. A cell is empty if the element is not in the answer.
        label: the column that tells whether an element is in the answer: 1 or 0, true or false,
            yes or no. The answer has these elements in the order of the table.

    Returns:
        An `Example` for each instance, with its answer if `rank` or `label` is given.

    Raises:
        InputError: no such file or column, or a cell that cannot be used, by its line or row.
    """
    if not isinstance(set_id, str):
        raise InputError(f"set_id: expected the name of a column, got {short(set_id)}")
    if rank is not None and label is not None:
        raise InputError("expected a column rank or a column label, got both")
    key_columns = {name for name in (set_id, rank, label) if name is not None}
    instances: dict[Any, list[tuple[Row, str]]] = {}
    for row, source in _rows(table, key_columns):
        for column in key_columns:
            if not isinstance(row, Mapping) or column not in row:
                raise InputError(
                    f'{source}: expected the column "{column}", got {_describe_columns(row)}'
                )
        _check_id(row[set_id], f'{source}: "{set_id}"')
        instances.setdefault(row[set_id], []).append((row, source))
    if not instances:
        raise InputError("table: expected at least one row, got none")
    examples = []
    for key, members in instances.items():
        elements = [
            {name: row[name] for name in row if name not in key_columns} for row, _ in members
        ]
        outputs = _ranked(members, rank) if rank else None
        if label:
            outputs = _labelled(members, label)
        source = f"{set_id} {short(key)}"
        examples.append(
            Example(cast("Any", elements), outputs, source, {set_id: key}, elements=elements)
        )
    return examples


def _rows(table: Any, text_columns: set[str]) -> Iterator[tuple[Row, str]]:
    """Yield the rows of a table of any kind with their sources; see `_csv_rows`."""
    if isinstance(table, str | Path):
        if Path(table).suffix.lower() != ".csv":
            raise InputError(f"{table}: expected a .csv, or the rows of another table as a frame")
        yield from _csv_rows(str(table), text_columns)
        return
    rows = rows_of(table) if is_frame(table) else split(table, "table")
    yield from ((row, f"row {k}") for k, row in enumerate(rows))


def _check_id(value: Any, source: str) -> None:
    is_id = isinstance(value, str | Real | date) and not isinstance(value, bool | np.bool_)
    if not is_id or cells.is_empty(value):
        raise InputError(f"{source}: expected a name or a number, got {short(value)}")


def write_table(path: str, examples: Iterable[Example], *, set_id: str, rank: str) -> None:
    """Write a CSV file with a row for each element of each instance.

    Its columns are the instance's id, the element's place in the answer from 1 on, which is empty
    if the element is not in the answer, and the fields of the elements.

    Args:
        path: the file.
        examples: with `elements`. The id is in `extra` under `set_id`; if examples have no `extra`
            at all, it is the number of the instance from 1 on. The rest of `extra` becomes
            columns, too, with the same value for all elements of an instance.
        set_id: the column of the ids.
        rank: the column of the places.

    Raises:
        InputError: no answer, an answer with an element twice, elements with other fields than
            the first, or a field with the name of another column.
        OutputError: the file cannot be written.
    """
    columns: list[str] = []
    with (
        atomic_path(Path(path)) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        has_ids = False
        for number, example in enumerate(examples, 1):
            key, other_keys = _id_and_others(example, set_id)
            if number == 1:
                has_ids = key is not None
            if has_ids != (key is not None) or (not has_ids and other_keys):
                raise InputError(f'{example.source}: expected the key "{set_id}", which is the id')
            for place, element in zip(_places(example), example.elements or [], strict=True):
                row = {set_id: key if has_ids else number, rank: place, **other_keys, **element}
                if not columns:
                    columns = list(row)
                    writer.writerow(columns)
                if list(row) != columns or len(row) != 2 + len(other_keys) + len(element):
                    got = _describe_columns({**other_keys, **element})
                    raise InputError(
                        f"{example.source}: expected elements with the fields "
                        f"{', '.join(columns[2:])}, got {got}"
                    )
                writer.writerow(row.values())


def _id_and_others(example: Example, set_id: str) -> tuple[Any, dict[str, Any]]:
    """The id of an example, None if it has none, and the rest of its `extra`."""
    others = dict(example.extra)
    key = others.pop(set_id, None)
    return key, others


def read_lines(path: str) -> Iterator[Example]:
    """Yield the examples of a .jsonl whose elements are objects with any fields.

    Raises:
        InputError: a line that is not such an example.
    """
    for line, text in numbered_lines(path):
        source = f"{path}:{line}"
        row = json_values.parse_object(text, source)
        elements = json_values.records(row.pop("inputs", None), f'{source}: "inputs"')
        nothing = np.zeros((len(elements), 1))
        example = json_values.example_from_row(nothing, row, loosest_task(1), source)
        yield example.replace(elements=elements)


def _places(example: Example) -> list[Any]:
    """The place of each element in the answer, from 1 on; empty text if it is not in the answer."""
    places: list[Any] = [""] * len(example.inputs)
    if example.outputs is None:
        raise InputError(f"{example.source}: has no answer, so its elements have no places")
    if example.outputs.ndim != 1 or len(set(example.outputs.tolist())) != len(example.outputs):
        raise InputError(f"{example.source}: an element needs one place in the answer, got several")
    for place, index in enumerate(example.outputs, 1):
        places[index] = place
    return places


def _csv_rows(path: str, text_columns: set[str]) -> Iterator[tuple[Row, str]]:
    """Yield the rows of a CSV file as dictionaries, with their sources.

    A column whose cells are all plain numbers or empty becomes numbers and None, unless
    `text_columns` names it.
    """
    rows = list(csv_rows(path, path))
    if len(rows) < 2:
        raise InputError(f"{path}: expected a header and at least one row")
    (header, line), *body = rows
    cells.check_header(header, f"{path}:{line}")
    if "" in header:
        raise InputError(
            f"{path}:{line}: column {header.index('') + 1}: expected a name, got none; if it is "
            "the index of pandas, write the file by to_csv(index=False)"
        )
    columns = zip(header, zip(*(row for row, _ in body), strict=True), strict=True)
    numeric = {name for name, column in columns if cells.are_plain_numbers(column)} - text_columns
    for row, line in body:
        source = f"{path}:{line}"
        yield (
            {
                name: cells.parse_plain_number(cell, f'{source}: "{name}"')
                if name in numeric
                else cell
                for name, cell in zip(header, row, strict=True)
            },
            source,
        )


def _ranked(members: Sequence[tuple[Row, str]], rank: str) -> Indices:
    """The elements that have a rank, sorted by it."""
    ranks: dict[float, int] = {}
    for index, (row, source) in enumerate(members):
        value = row[rank]
        if cells.is_empty(value):
            continue
        if isinstance(value, str) and cells.is_plain_number(value):
            value = float(value)
        if isinstance(value, bool):
            raise InputError(
                f'{source}: "{rank}": expected a number or nothing, got {value}; a column that '
                "tells which elements belong to the answer is a label"
            )
        if not isinstance(value, Real | Decimal):
            raise InputError(
                f'{source}: "{rank}": expected a number or nothing, got {short(value)}'
            )
        if float(value) in ranks:
            other = members[ranks[float(value)]][1]
            raise InputError(f'{source}: "{rank}": {other} has {row[rank]}, too')
        ranks[float(value)] = index
    return np.array([ranks[value] for value in sorted(ranks)], np.int64)


def _labelled(members: Sequence[tuple[Row, str]], label: str) -> Indices:
    """The elements that are in the answer, in the order of the table."""
    in_answer = []
    for index, (row, source) in enumerate(members):
        text = "" if cells.is_empty(row[label]) else str(row[label]).strip().lower()
        if text not in (*_TRUE, *_FALSE):
            raise InputError(f'{source}: "{label}": expected 1 or 0, got {short(row[label])}')
        if text in _TRUE:
            in_answer.append(index)
    return np.array(in_answer, np.int64)


def _describe_columns(row: Any) -> str:
    return short(", ".join(map(str, row))) if isinstance(row, Mapping) else type(row).__name__
