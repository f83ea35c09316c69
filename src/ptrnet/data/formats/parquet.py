"""Parquet: a row an example, columns `inputs` and `outputs`, 0-based as in `.jsonl`.

Other columns are kept, and written again; an empty cell is as good as none. Reading goes batch by
batch and writing row group by row group, so that no file has to fit into memory.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from ptrnet.data import checks
from ptrnet.data.formats.parts import arrow, nested
from ptrnet.data.formats.parts.capabilities import Capabilities
from ptrnet.distances import EUCLIDEAN, NAMES
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Example

if TYPE_CHECKING:
    import pyarrow as pa

CAPABILITIES = Capabilities(distances=NAMES, binary=True, printed="jsonl", needs="pyarrow")

_ROWS = 64  # that are decoded together
_ELEMENTS = 2**20  # of a row group that is written: 16 MB of points


def read(name: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    row = 0
    for batch in _batches(name, task):
        for place in range(len(batch)):
            row += 1
            cells = {key: batch[key][place] for key in batch.schema.names}
            yield _example(cells, task, f"{name}: row {row}")


def features(name: str) -> int:
    """See `ptrnet.data.formats`."""
    for batch in _batches(name, None):
        return nested.features(_python(batch["inputs"][0], name), f"{name}: row 1")
    raise InputError(f"{name}: holds no instance")


def write(stream: BinaryIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    from pyarrow import ArrowException, parquet

    groups = _groups(examples)
    first = next(groups, [])
    schema = arrow.schema(first, [_kept(e) for e in first], task)
    try:
        with parquet.ParquetWriter(stream, schema, write_page_checksum=True) as writer:
            for group in chain([first], groups):
                writer.write_table(arrow.table(group, [_kept(e) for e in group], schema))
    except ArrowException as error:  # a type that Arrow has and Parquet has not
        said = str(error).splitlines()[0]
        raise InputError(f"{first[0].source}: cannot be written as Parquet: {said}") from None


def _kept(example: Example) -> dict[str, Any]:
    measured = {} if example.distance == EUCLIDEAN else {"distance": example.distance}
    return {**measured, **example.extra}


def _groups(examples: Iterable[Example]) -> Iterator[list[Example]]:
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


def _batches(name: str, task: Task | None) -> Iterator["pa.RecordBatch"]:
    """The rows, some at a time, with the columns that a task asks for where it is known.

    Raises:
        InputError: where Arrow cannot read on.
    """
    from pyarrow import ArrowException, parquet

    rows = 0
    try:
        with Path(name).open("rb") as stream:
            file = parquet.ParquetFile(stream, page_checksum_verification=True)
            arrow.check_schema(file.schema_arrow, task, name)
            for batch in file.iter_batches(_ROWS):
                yield batch
                rows += len(batch)
    except InputError:
        raise
    except (ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"{name}: cannot be read: {error.strerror}") from None
        if rows:
            raise InputError(f"{name}: damaged at row {rows + 1} or behind it") from None
        raise InputError(f"{name}: not a Parquet file, or a damaged one") from None


def _example(cells: dict[str, "pa.Scalar"], task: Task, where: str) -> Example:
    inputs = checks.instance(
        _values(cells.pop("inputs"), task.num_features, where), task, f'{where}: "inputs"'
    )
    found = {key: _python(cell, f'{where}: "{key}"') for key, cell in cells.items()}
    kept = {key: value for key, value in found.items() if value is not None}
    outputs = kept.pop("outputs", None)
    if outputs is not None:
        flat = nested.flat(outputs, task.item_size, f'{where}: "outputs"')
        outputs = checks.answer(flat, len(inputs), task, f'{where}: "outputs"')
    distance = checks.take_distance(kept, inputs, task, where)
    return Example(inputs, outputs, where, kept, distance=distance)


def _python(cell: "pa.Scalar", where: str) -> Any:
    """What a cell holds; times that are too fine for Python as text."""
    from pyarrow import ArrowException

    try:
        return cell.as_py()
    except (ValueError, OverflowError):
        try:
            return cell.cast("string").as_py()
        except (ArrowException, ValueError):
            raise InputError(f"{where}: cannot be kept: {str(cell.type)[:80]}") from None


def _values(cell: "pa.Scalar", d: int, where: str) -> ArrayLike:
    """The elements of a cell: an array `(n, d)`, or what is there instead, as nested."""
    from pyarrow import compute, types

    if cell.is_valid and not types.is_primitive(cell.values.type):
        counts = compute.list_value_length(cell.values).to_numpy(zero_copy_only=False)
        numbers = cell.values.flatten()
        if not numbers.null_count and (counts == d).all():
            return np.asarray(numbers, np.float64).reshape(-1, d)
    values: ArrayLike = cell.as_py()
    nested.check_numbers(values, where)
    return values
