"""Parquet: one example per row, with columns `inputs` and `outputs` as in `.jsonl`.

Other columns become the `extra` of examples, and are written again. A null is a missing value. We
read files in batches and write them in row groups, so files of examples need not fit into memory.
"""

from base64 import b64decode
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from ptrnet.data import checks
from ptrnet.data.arrays import arrow_cells, is_categorical, records_of
from ptrnet.data.dataset import chunks_by_elements, examples_of_rows
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import json_values
from ptrnet.errors import InputError
from ptrnet.geometry.distances import PLANAR
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Example

if TYPE_CHECKING:
    import pyarrow as pa

    from ptrnet.data import tables

CAPABILITIES = Capabilities(
    extra=True, distances=PLANAR, binary=True, stdout_format="jsonl", package="pyarrow"
)

_BATCH_ROWS = 64  # how many rows are decoded together, each of them an instance
_TABLE_ROWS = 2**13  # how many rows of a long table are
_GROUP_ELEMENTS = 2**20  # about how many elements are in a row group that we write: 16 MB of points


# Reading


def read(path: str, task: Task) -> Iterator[Example]:
    return examples_of_rows(_rows(path, task), path)


def _rows(path: str, task: Task) -> Iterator[dict[str, Any]]:
    """Yield the arguments of an example for each row."""
    number = 0
    for batch in _batches(path, "inputs"):
        for k in range(len(batch)):
            number += 1
            source = f"{path}: row {number}"
            row = {key: batch[key][k] for key in batch.schema.names}
            values = _elements(row.pop("inputs"), task.facts.num_features)
            inputs = checks.check_instance(values, task, f'{source}: "inputs"')
            others = {key: _to_python(cell, f'{source}: "{key}"') for key, cell in row.items()}
            others = {key: value for key, value in others.items() if value is not None}
            elements = records_of(values)
            yield json_values.arguments_of(inputs, others, task, source, elements)


def instances(path: str) -> Iterator[tuple[Any, str]]:
    cells = (cell for batch in _batches(path, "inputs") for cell in batch["inputs"])
    for number, cell in enumerate(cells, 1):
        source = f'{path}: row {number}: "inputs"'
        yield _to_python(cell, source), source


def table(path: str) -> "tables.Table":
    import pyarrow as pa

    from ptrnet.data import tables

    batches = list(_batches(path, rows=_TABLE_ROWS))
    if not batches:
        raise InputError(f"{path}: expected at least one row, got none")
    arrow = pa.Table.from_batches(batches)
    categorical = _categorical_columns(path)
    columns = {
        name: arrow_cells(
            arrow[name], partial(_column_to_python, arrow[name], path, name), name in categorical
        )
        for name in arrow.column_names
    }
    return tables.Table(columns, path, lambda k: f"{path}: row {k + 1}", arrow=arrow)


def _batches(
    path: str, column: str | None = None, rows: int = _BATCH_ROWS
) -> Iterator["pa.RecordBatch"]:
    """Yield the rows in batches of `rows`. If `column` is given, the file must have this column.

    Raises:
        InputError: Arrow cannot read the whole file, `column` is missing, or two columns have the
            same name.
    """
    from pyarrow import ArrowException, parquet

    count = 0
    try:
        with Path(path).open("rb") as stream:
            file = parquet.ParquetFile(stream, page_checksum_verification=True)
            names = file.schema_arrow.names
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise InputError(f'{path}: column "{twice[0]}" occurs twice')
            if column is not None and column not in names:
                raise InputError(
                    f'{path}: expected a column "{column}", got {", ".join(names)[:80] or "none"}; '
                    "a long table needs set_id (--set-id)"
                )
            for batch in file.iter_batches(rows):
                batch.validate(full=True)  # refuses texts that are not UTF-8
                yield batch
                count += len(batch)
            if count != file.metadata.num_rows:
                raise InputError(
                    f"{path}: damaged: expected {file.metadata.num_rows} rows, got {count}"
                )
    except InputError:  # InputError is a ValueError, too
        raise
    except (ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        if count:
            raise InputError(f"{path}: damaged at row {count + 1} or after it") from None
        raise InputError(f"{path}: not a Parquet file, or a damaged one") from None


def _elements(cell: "pa.Scalar", d: int) -> ArrayLike:
    """Return a cell's elements: an array `(n, d)` if each has d numbers, otherwise nested lists."""
    import pyarrow as pa
    from pyarrow import compute

    lists = cell.values if isinstance(cell, pa.ListScalar) else None
    if isinstance(lists, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        counts = compute.list_value_length(lists).to_numpy(zero_copy_only=False)
        flat = lists.flatten()
        numbers = np.asarray(flat)
        if numbers.dtype.kind in "iuf" and not flat.null_count and (counts == d).all():
            return numbers.reshape(-1, d)
    return cell.as_py()


def _to_python(cell: "pa.Scalar", source: str) -> Any:
    """Return a cell's value, as a text if Python has no type for it, such as for nanoseconds."""
    from pyarrow import ArrowException

    try:
        return cell.as_py()
    except (ValueError, OverflowError):
        try:
            return cell.cast("string").as_py()
        except (ArrowException, ValueError):
            raise InputError(f"{source}: cannot read the type {str(cell.type)[:80]}") from None


def _column_to_python(column: "pa.ChunkedArray", path: str, name: str) -> list[Any]:
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):  # Python lacks the type of a cell
        return [_to_python(cell, f'{path}: row {k}: "{name}"') for k, cell in enumerate(column, 1)]


def _categorical_columns(path: str) -> set[str]:
    """Return the names of the columns that were categorical in the table that was written.

    Arrow reads categories that are numbers as a column of numbers. But Arrow and pandas also write
    the table's own types, as text in the file's metadata.
    """
    import pyarrow as pa
    from pyarrow import parquet

    text = (parquet.read_metadata(path).metadata or {}).get(b"ARROW:schema")
    if text is None:
        return set()
    schema = pa.ipc.read_schema(pa.py_buffer(b64decode(text)))
    return {field.name for field in schema if is_categorical(field.type)}


# Writing


def write(stream: BinaryIO, examples: Iterable[Example], task: Task) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    groups = chunks_by_elements(examples, _GROUP_ELEMENTS)
    first = next(groups, Dataset.of([]))
    try:
        schema = _table(first, task, None).schema
        is_full = len(first.elements) >= _GROUP_ELEMENTS
        if task.facts.may_be_unproved and is_full and "proved" not in schema.names:
            schema = schema.append(pa.field("proved", pa.bool_()))  # a later example may have it
        with parquet.ParquetWriter(stream, schema, write_page_checksum=True) as writer:
            for group in chain([first], groups):
                writer.write_table(_table(group, task, schema))
    except (pa.ArrowException, UnicodeEncodeError) as error:
        # Parquet lacks some types of Arrow, and JSON allows keys with lone surrogates.
        reason = str(error).splitlines()[0]
        raise InputError(f"{first[0].source}: cannot be written as Parquet: {reason}") from None


def write_table(stream: BinaryIO, table: "tables.Table") -> None:
    import pyarrow as pa
    from pyarrow import parquet

    # Columns that came from a Parquet file keep their types.
    kept = [] if table.arrow is None else table.arrow.column_names
    columns = {n: table.arrow[n] if n in kept else table.values(n) for n in table.columns}
    try:
        parquet.write_table(pa.table(columns), stream)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{table.source}: cannot be written as Parquet: {reason}") from None


def _table(examples: Dataset, task: Task, schema: "pa.Schema | None") -> "pa.Table":
    """Convert the examples of a row group to a table.

    `schema` is that of the file; None for the first row group, whose types Arrow infers. Arrow does
    not say which value does not fit the type of its column, so the message names the row group's
    first example.
    """
    import pyarrow as pa

    numbers = pa.array(examples.elements.ravel())
    lists = pa.FixedSizeListArray.from_arrays(numbers, examples.elements.shape[1])
    elements = lists.cast(pa.list_(pa.float64()))
    columns = {"inputs": pa.ListArray.from_arrays(pa.array(examples.starts, pa.int32()), elements)}
    indices = pa.list_(pa.int64())
    types = {"outputs": indices if task.facts.item_size == 1 else pa.list_(indices)}
    rows = [
        {
            "outputs": None if example.outputs is None else example.outputs.tolist(),
            **json_values.other_keys(example),
        }
        for example in examples
    ]
    if schema is None:
        keys = dict.fromkeys(["outputs", *(key for row in rows for key in row)])
    else:
        keys = dict.fromkeys(schema.names[1:])
        types = {key: schema.field(key).type for key in keys}
        for example, row in zip(examples, rows, strict=True):
            for key in row.keys() - keys.keys():
                raise InputError(f'{example.source}: "{key}": earlier examples have no such key')
    for key in keys:
        try:
            columns[key] = pa.array([row.get(key) for row in rows], types.get(key))
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f'{examples[0].source} or after it: "{key}": does not fit the type of its column: '
                f"{reason}"
            ) from None
    return pa.table(columns, schema)
