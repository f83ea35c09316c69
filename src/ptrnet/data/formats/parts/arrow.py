"""Examples as the columns of an Arrow table, and what types those may have."""

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ptrnet.data.formats.parts.nested import other_keys
from ptrnet.errors import InputError, short
from ptrnet.tasks.base import Task
from ptrnet.types import Example

if TYPE_CHECKING:
    import pyarrow as pa

WRITTEN_BY_PTRNET = {b"writer": b"ptrnet"}  # of a schema's metadata


def check_schema_copy(schema: "pa.Schema", metadata: Mapping[bytes, bytes], path: str) -> None:
    """Refuses a file whose schema differs from the copy of it that Arrow keeps in the metadata.

    A footer has no checksum, so a damaged one is known by that. Names are compared always, types
    in files of ptrnet alone: other writers' copies may have other types.
    """
    import pyarrow as pa

    if b"ARROW:schema" not in metadata:
        return
    content = base64.b64decode(metadata[b"ARROW:schema"])
    written = pa.ipc.read_schema(pa.py_buffer(content))
    is_ours = WRITTEN_BY_PTRNET.items() <= metadata.items()
    if written.names != schema.names or (
        is_ours and [*map(_type_ids, written.types)] != [*map(_type_ids, schema.types)]
    ):
        raise InputError(f"{path}: damaged: it says twice what its columns are, and differently")


def _type_ids(kind: "pa.DataType") -> list[Any]:
    """The ids of a type and of the types in it; without names of fields, which Parquet changes."""
    return [kind.id, *(_type_ids(kind.field(k).type) for k in range(kind.num_fields))]


def check_schema(schema: "pa.Schema", task: Task | None, path: str) -> None:
    """Refuses columns that cannot be the examples of the task; where it is None, of any task.

    Raises:
        InputError: no `inputs`, a column twice, or `inputs` or `outputs` of another type.
    """
    from pyarrow import types

    names = schema.names
    twice = [key for key in names if names.count(key) > 1]
    if twice:
        raise InputError(f'{path}: column "{twice[0]}": occurs twice')
    if "inputs" not in names:
        raise InputError(
            f'{path}: expected a column "inputs", got {", ".join(names)[:80] or "none"}'
        )
    depth, leaf = _nesting(schema.field("inputs").type)
    number = types.is_floating(leaf) or types.is_integer(leaf)
    flat = depth == 1 and (task is None or task.num_features == 1)
    if not number or not (depth == 2 or flat):
        _refuse(schema, "inputs", "list<list<double>>", path)
    if task is not None and "outputs" in names:
        depth, leaf = _nesting(schema.field("outputs").type)
        lists = 1 if task.item_size == 1 else 2
        if not types.is_null(leaf) and (depth != lists or not types.is_integer(leaf)):
            expected = "list<int64>" if lists == 1 else "list<list<int64>>"
            _refuse(schema, "outputs", expected, path)


def _refuse(schema: "pa.Schema", key: str, expected: str, path: str) -> NoReturn:
    """Raises that a column is of another type than expected."""
    got = str(schema.field(key).type).replace("element: ", "").replace("item: ", "")
    raise InputError(f'{path}: column "{key}": expected {expected}, got {got[:80]}')


def _nesting(kind: "pa.DataType") -> tuple[int, "pa.DataType"]:
    """How many lists deep a type is, and the type of what is in the innermost."""
    from pyarrow import types

    depth = 0
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        depth, kind = depth + 1, kind.value_type
    return depth, kind


def schema_of(examples: Sequence[Example], task: Task) -> "pa.Schema":
    """The columns of a file whose first row group has these examples."""
    import pyarrow as pa

    indices = pa.list_(pa.int64())
    fields: list[tuple[str, Any]] = [
        ("inputs", pa.list_(pa.list_(pa.float64()))),
        ("outputs", indices if task.item_size == 1 else pa.list_(indices)),
    ]
    rows = [other_keys(example) for example in examples]
    for key in dict.fromkeys(key for row in rows for key in row):
        _check_name(key, rows, examples)
        fields.append((key, _column(key, rows, examples, None).type))
    return pa.schema(fields)


def _check_name(key: str, rows: Sequence[dict[str, Any]], examples: Sequence[Example]) -> None:
    """Refuses what cannot be a column's name: JSON has keys that are no Unicode text."""
    try:
        key.encode()
    except UnicodeEncodeError:
        source = next(e.source for e, row in zip(examples, rows, strict=True) if key in row)
        raise InputError(f"{source}: key {short(key)}: not Unicode text") from None


def with_proved(schema: "pa.Schema") -> "pa.Schema":
    """The schema with a column `proved`: false where a labeller has not proved its answer."""
    import pyarrow as pa

    return schema if "proved" in schema.names else schema.append(pa.field("proved", pa.bool_()))


def table_of(examples: Sequence[Example], schema: "pa.Schema") -> "pa.Table":
    """Examples as rows of a schema.

    Raises:
        InputError: an example has a key or a value that fits no column; the example is named.
    """
    import pyarrow as pa

    rows = [other_keys(example) for example in examples]
    for example, row in zip(examples, rows, strict=True):
        unknown = [key for key in row if key not in schema.names]
        if unknown:
            raise InputError(
                f'{example.source}: "{unknown[0]}": examples before it have no such key'
            )
    flat = np.concatenate([np.zeros(0), *(e.inputs.ravel() for e in examples)])
    d = examples[0].inputs.shape[1] if examples else 1
    elements = pa.ListArray.from_arrays(_offsets([d] * (len(flat) // d)), flat)
    outputs = [None if e.outputs is None else e.outputs.tolist() for e in examples]
    arrays = [
        pa.ListArray.from_arrays(_offsets([len(e.inputs) for e in examples]), elements),
        pa.array(outputs, schema.field("outputs").type),
    ]
    for key in schema.names[2:]:
        arrays.append(_column(key, rows, examples, schema.field(key).type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _offsets(counts: list[int]) -> "pa.Array":
    """The offsets of an Arrow list array: `counts` are the lengths of its lists."""
    import pyarrow as pa

    return pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())


def _column(
    key: str,
    rows: Sequence[dict[str, Any]],
    examples: Sequence[Example],
    kind: "pa.DataType | None",
) -> "pa.Array":
    """The values under a key, null where it is missing; where `kind` is None, its type is inferred.

    Raises:
        InputError: a value does not fit the type; the message begins with its example's source.
    """
    import pyarrow as pa

    values = [row.get(key) for row in rows]
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
    misfit = next(
        (e for e, value in zip(examples, values, strict=True) if not _fits(value, values, kind)),
        examples[0],
    )
    raise InputError(f'{misfit.source}: "{key}": does not fit the type of its column: {reason}')


def _fits(value: Any, values: Sequence[Any], kind: "pa.DataType | None") -> bool:
    """Whether one of the values fits the type `kind`; where that is None, that of the first."""
    import pyarrow as pa

    if kind is None:
        first = next(v for v in values if v is not None)
        return value is None or type(value) is type(first)
    try:
        pa.scalar(value, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return False
    return True
