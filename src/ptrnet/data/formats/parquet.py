"""Parquet: a row an example, columns `inputs` and `outputs`, 0-based as in `.jsonl`.

Other columns are the examples' `extra`, and are written again; a null in a cell counts as no value.
Reading goes batch by batch and writing row group by row group, so that no file has to fit into
memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ptrnet.data import checks
from ptrnet.data.formats.parts import arrow, nested, parquet_footer, parquet_pages
from ptrnet.data.formats.parts.capabilities import Capabilities
from ptrnet.data.formats.parts.lines import LONGEST_LINE
from ptrnet.data.sizes import LARGEST
from ptrnet.errors import InputError
from ptrnet.geometry.distances import NAMES
from ptrnet.tasks.base import Task
from ptrnet.types import Example

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

CAPABILITIES = Capabilities(
    extra=True, distances=NAMES, binary=True, stdout_format="jsonl", package="pyarrow"
)

_ROWS = 64  # decoded together
_MAX_UNCHECKED_VALUES = 2**25  # of a row group: together they take a quarter of a gigabyte
_ELEMENTS = 2**20  # in a row group that is written, about: 16 MB of points


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    number = 0
    for batch in _batches(path, task):
        for k in range(len(batch)):
            number += 1
            cells = {key: batch[key][k] for key in batch.schema.names}
            yield _example(cells, task, f"{path}: row {number}")


def num_features(path: str) -> int:
    """See `ptrnet.data.formats`."""
    for batch in _batches(path, None):
        return nested.num_features(_to_python(batch["inputs"][0], path), f'{path}: row 1: "inputs"')
    raise InputError(f"{path}: holds no instance")


def write(stream: BinaryIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    from pyarrow import ArrowException, parquet

    groups = _row_groups(examples)
    first = next(groups, [])
    schema = arrow.schema_of(first, task)
    if task.may_be_unproved and sum(len(e.inputs) for e in first) >= _ELEMENTS:
        schema = arrow.with_proved(schema)  # which an example of a later row group may say
    try:
        schema = schema.with_metadata(arrow.WRITTEN_BY_PTRNET)
        with parquet.ParquetWriter(stream, schema, write_page_checksum=True) as writer:
            for group in chain([first], groups):
                writer.write_table(arrow.table_of(group, schema))
    except ArrowException as error:  # a type that Arrow has and Parquet has not
        reason = str(error).splitlines()[0]
        raise InputError(f"{first[0].source}: cannot be written as Parquet: {reason}") from None


def _row_groups(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """The examples in lists of about _ELEMENTS elements."""
    group: list[Example] = []
    elements = 0
    for example in examples:
        group.append(example)
        elements += len(example.inputs)
        if elements >= _ELEMENTS:
            yield group
            group, elements = [], 0
    if group:
        yield group


def _batches(path: str, task: Task | None) -> Iterator["pa.RecordBatch"]:
    """The rows, some at a time; the types of the columns are those that the task needs.

    Where the task is None, the types are those that any task could need.

    Raises:
        InputError: other types, or a file that Arrow cannot read, or not to its end.
    """
    from pyarrow import ArrowException, parquet, types

    rows = 0
    try:
        with Path(path).open("rb") as stream:
            file = parquet.ParquetFile(stream, page_checksum_verification=True)
            arrow.check_schema_copy(file.schema_arrow, file.metadata.metadata or {}, path)
            arrow.check_schema(file.schema_arrow, task, path)
            columns = _columns(stream, file.schema)
            _check_sizes(columns, task, path)
            _check_rows(columns, stream, task, path)
            texts = [field.name for field in file.schema_arrow if types.is_string(field.type)]
            file = parquet.ParquetFile(
                stream,
                page_checksum_verification=True,
                read_dictionary=texts,  # a text that stands in every row is in memory but once
            )
            for batch in file.iter_batches(_ROWS):
                batch.validate(full=True)  # Arrow reads texts that their dictionary does not have
                yield batch
                rows += len(batch)
    except InputError:  # a ValueError, too
        raise
    except (ArrowException, OSError, ValueError, parquet_footer.DamagedFooterError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        if rows:
            raise InputError(f"{path}: damaged at row {rows + 1} or after it") from None
        raise InputError(f"{path}: not a Parquet file, or a damaged one") from None


class _Column(NamedTuple):
    """The part of a column that a row group has, and what is known of it before it is decoded."""

    group: int  # its number, from 1 on
    num_rows: int
    key: str  # the outermost name
    level: int  # the highest repetition level
    chunk: parquet_footer.Chunk


def _columns(stream: BinaryIO, schema: "parquet.ParquetSchema") -> list[_Column]:
    """All columns of all row groups. Raises DamagedFooterError where the schema has others."""
    expected = [schema.column(k) for k in range(len(schema))]
    columns = []
    for number, group in enumerate(parquet_footer.row_groups(stream), 1):
        if [chunk.path for chunk in group.chunks] != [column.path for column in expected]:
            raise parquet_footer.DamagedFooterError
        for column, chunk in zip(expected, group.chunks, strict=True):
            key, level = chunk.path.partition(".")[0], column.max_repetition_level
            columns.append(_Column(number, group.num_rows, key, level, chunk))
    return columns


def _check_sizes(columns: Sequence[_Column], task: Task | None, path: str) -> None:
    """Refuses row groups that say of themselves that rows are too large, before any is decoded.

    A few bytes can stand for millions of equal numbers.

    Raises:
        InputError: more numbers, or more bytes of text, than so many rows of text have.
    """
    for _, num_rows, key, _, chunk in columns:
        most = LONGEST_LINE // 2
        if task is not None and key == "inputs":
            most = LARGEST * task.num_features
        too_many = chunk.num_values > most * num_rows
        # A text may stand in a dictionary, and in the statistics as the least and the greatest.
        if too_many or chunk.uncompressed_size > 4 * LONGEST_LINE * num_rows:
            raise InputError(
                f'{path}: column "{key[:40]}": {chunk.num_values} values of '
                f"{chunk.uncompressed_size} bytes in {num_rows} rows are too many; an instance has "
                f"at most {LARGEST} elements"
            )


def _check_rows(columns: Sequence[_Column], stream: BinaryIO, task: Task | None, path: str) -> None:
    """Refuses a row that has what all rows of its group may have together, before it is decoded.

    Only large row groups are looked through, which costs half of what decoding does: a row of a
    smaller one is refused when it has been decoded.

    Raises:
        InputError: a row of more numbers, or a page of more bytes, than any that can be used.
    """
    for group, _, key, level, chunk in columns:
        if max(chunk.num_values, chunk.uncompressed_size // 8) <= _MAX_UNCHECKED_VALUES:
            continue
        is_inputs = task is not None and key == "inputs"
        most = LARGEST * task.num_features if task and is_inputs else LONGEST_LINE // 2
        try:
            longest = parquet_pages.longest_row(stream, chunk, level, most)
        except parquet_pages.UnknownPagesError:
            continue
        except parquet_pages.TooLargeError:
            longest = most + 1
        if longest > most:
            raise InputError(
                f'{path}: column "{chunk.path[:40]}": a row of row group {group} has more than '
                f"{most} values; an instance has at most {LARGEST} elements"
            )


def _example(cells: dict[str, "pa.Scalar"], task: Task, source: str) -> Example:
    """The example of a row, of which `cells` has the cell of each column."""
    values = _values(cells.pop("inputs"), task.num_features, source)
    inputs = checks.check_instance(values, task, f'{source}: "inputs"')
    row = {key: _to_python(cell, f'{source}: "{key}"') for key, cell in cells.items()}
    row = {key: value for key, value in row.items() if value is not None}
    return nested.example_from_row(inputs, row, task, source)


def _to_python(cell: "pa.Scalar", source: str) -> Any:
    """The value of a cell; as text where Python has no such value, as for times in nanoseconds."""
    from pyarrow import ArrowException

    try:
        return cell.as_py()
    except (ValueError, OverflowError):
        try:
            return cell.cast("string").as_py()
        except (ArrowException, ValueError):
            raise InputError(f"{source}: cannot be kept: {str(cell.type)[:80]}") from None


def _values(cell: "pa.Scalar", d: int, source: str) -> ArrayLike:
    """The elements in a cell: an array `(n, d)`, or lists where they make no such array."""
    from pyarrow import compute, types

    if cell.is_valid and not types.is_primitive(cell.values.type):
        counts = compute.list_value_length(cell.values).to_numpy(zero_copy_only=False)
        numbers = cell.values.flatten()
        if not numbers.null_count and (counts == d).all():
            return np.asarray(numbers).reshape(-1, d)
    values: ArrayLike = cell.as_py()
    nested.check_numbers(values, f'{source}: "inputs"')
    return values
