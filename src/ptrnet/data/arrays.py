"""Convert arrays, tensors and frames of other libraries to NumPy arrays.

The functions accept:

- NumPy arrays, and objects with NumPy's array interface
- torch tensors, on any device, also with a gradient
- frames and series with `to_numpy` (pandas, polars)
- nested lists of numbers

This module does not import torch, pandas or polars.
"""

import contextlib
import hashlib
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, short
from ptrnet.tasks.schema import LARGEST_UNROUNDED, Level, Numbers, is_empty
from ptrnet.types import Floats

_NOT_ARRAYS = (Mapping, set, frozenset, np.ma.MaskedArray)  # a set has no order
_PLAIN = {float, int, list, tuple}  # NumPy can convert nested lists that have only these types
# The types of columns of numbers that NumPy has, too, in pandas, polars and pyarrow.
_NUMERIC = re.compile(
    r"(u?int(8|16|32|64)|float(16|32|64)?|double|halffloat)(\[pyarrow\])?", re.IGNORECASE
)
_KINDS = {
    "c": "complex numbers",
    "M": "dates",
    "m": "durations",
    "S": "strings",
    "T": "strings",
    "U": "strings",
    "V": "records",
}


def real_array(values: Any, source: str, expected: str) -> Floats:
    """Convert real numbers to a float64 array. A float64 array is returned without a copy.

    Args:
        values: an array, or nested lists of arrays or numbers. Booleans become 0 and 1 in an array,
            and are refused in a list.
        source: the file and line, or the argument, that the values came from.
        expected: the form that error messages ask for.

    Raises:
        InputError: the values are not an array of real numbers. For example, they are a masked
            array, strings, dates, missing values or lists of different lengths. Or float64 would
            round one of the whole numbers, which is possible beyond 2^53.

    Examples:
        >>> real_array([torch.tensor([1, 2]), [3, 4]], "points", "numbers")
        array([[1., 2.],
               [3., 4.]])
    """
    array = to_array(values, source, expected)
    with np.errstate(over="ignore"):  # a longdouble may become infinite, which callers refuse
        floats = array.astype(np.float64, copy=False)
    is_large = np.abs(floats) > LARGEST_UNROUNDED
    if is_large.any():
        exact = array if array.dtype.kind in "iu" else np.array(_exact_numbers(values), object)
        for index in map(tuple, np.argwhere(is_large)):
            value, near = exact[index], floats[index]
            if isinstance(value, Integral) and np.isfinite(near) and int(value) != int(near):
                raise InputError(
                    f"{source}: expected whole numbers that float64 holds, got {int(value)}, "
                    f"which it rounds to {int(near)}"
                )
    return floats


def _exact_numbers(values: Any) -> Any:
    """Return the numbers, each in its own type.

    A frame's `to_numpy` would convert all columns to one type.
    """
    if is_frame(values):
        return [[*row.values()] for row in rows_of(values)]
    return _convert_nested(values)


def to_array(values: Any, source: str, expected: str) -> NDArray[Any]:
    """Convert values to a NumPy array, as `real_array` does, but keep the type of the numbers.

    An array of Python objects, such as `Decimal`, becomes float64.
    """
    try:
        array = np.asarray(_convert_nested(values))
        if array.dtype.kind == "O":
            return _objects_to_floats(array)
        if array.dtype.kind in _KINDS:
            raise TypeError(_KINDS[array.dtype.kind])
    except TypeError as error:
        raise InputError(f"{source}: expected {expected}, got {error}") from None
    except OverflowError:
        raise InputError(f"{source}: expected {expected}, got a number too large") from None
    except (ValueError, RecursionError):
        raise InputError(f"{source}: expected {expected}, got lists of different lengths") from None
    return array


def _objects_to_floats(array: NDArray[Any]) -> Floats:
    """Convert Python objects to floats. Raises TypeError for an object that is not a number."""
    flat = array.ravel().tolist()
    for value in flat:
        if isinstance(value, str):
            raise TypeError(_KINDS["U"])
        if isinstance(value, complex):
            raise TypeError(_KINDS["c"])
        if not isinstance(value, Real | Decimal):
            raise TypeError(f"{short(value)} among the numbers")
    # `float` refuses a signalling NaN.
    floats = [math.nan if is_empty(value) else float(value) for value in flat]
    return np.array(floats).reshape(array.shape)


def _convert_nested(values: Any) -> Any:
    """Convert an array, or all arrays in nested lists, to NumPy arrays.

    Return nested lists of numbers unchanged: NumPy converts these lists faster than we can. Raises
    TypeError for dictionaries, sets, masked arrays, and booleans in lists.
    """
    if isinstance(values, list | tuple):
        types = {*map(type, values)}
        if bool in types:
            raise TypeError("booleans")
        rows = (row for row in values if isinstance(row, list | tuple))
        if types <= _PLAIN and all({*map(type, row)} <= _PLAIN for row in rows):
            return values
        return [_convert_nested(item) for item in values]
    if isinstance(values, _NOT_ARRAYS):
        raise TypeError(_type_name(values))
    return _convert_array(values)


def _convert_array(values: Any) -> Any:
    """Convert a tensor, frame or array to a NumPy array. Return any other value unchanged."""
    if isinstance(values, np.ndarray):
        return values
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        tensor = values.detach().cpu().to_dense()
        if tensor.dtype is torch.bfloat16:  # NumPy has no bfloat16
            tensor = tensor.float()
        return tensor.resolve_conj().resolve_neg().numpy()
    if hasattr(values, "to_numpy"):
        with contextlib.suppress(ValueError):  # raised by pyarrow if it would have to copy
            return np.asarray(values.to_numpy())
    if hasattr(values, "__array__") or hasattr(values, "__array_interface__"):
        return np.asarray(values)
    return values


def _type_name(values: Any) -> str:
    if isinstance(values, np.ma.MaskedArray):
        return "a masked array"
    if type(values).__module__.startswith("scipy.sparse"):
        return "a sparse matrix"
    return type(values).__name__


def checksum_of(arrays: Iterable[NDArray[Any]]) -> str:
    """Return the SHA-256 of the bytes of arrays, one after another, as hexadecimal digits."""
    digest = hashlib.sha256()
    for array in arrays:  # without copies, because arrays may be large
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def split(values: Any, source: str) -> list[Any]:
    """Return the items of an array (along its first axis), list, series or iterator.

    Raises:
        InputError: the values are of another type, such as a number, a text, a set or a dictionary.
    """
    values = _convert_array(values)
    is_scalar = isinstance(values, np.ndarray) and not values.ndim
    is_refused = is_scalar or isinstance(values, (str, bytes, *_NOT_ARRAYS))
    if is_refused or not isinstance(values, Iterable):
        raise InputError(f"{source}: expected a list or an array, got {_type_name(values)}")
    return list(values)


def unpack_objects(values: Any) -> Any:
    """Convert an array or series of Python objects to a list. Return other values unchanged.

    An array of objects may hold instances of different sizes.
    """
    array = values if is_frame(values) else _convert_array(values)
    if isinstance(array, np.ndarray) and array.dtype.kind == "O" and array.ndim == 1:
        return list(array)
    return values


def depth(values: Any) -> int:
    """Return the number of axes of nested lists and arrays: 2 for a list of lists of numbers.

    Only the first item of each list is looked at. A dictionary counts as a list of numbers.
    """
    if isinstance(values, list | tuple):
        return 1 + (depth(values[0]) if values else 0)
    if isinstance(values, Mapping):
        return 1
    array = _convert_array(values)
    return array.ndim if isinstance(array, np.ndarray) else 0


def count_features(values: Any) -> int:
    """Return d for an instance `(n, d)`, and 1 for all other values."""
    try:
        shape = np.shape(_convert_nested(values))
    except (TypeError, ValueError, RecursionError):
        return 1
    return shape[1] if len(shape) == 2 and shape[1] else 1


# Elements with named fields


def is_frame(values: Any) -> bool:
    """Whether the values are a frame, a table with named columns."""
    # Ask the type: `columns` of a polars LazyFrame runs a query.
    return hasattr(type(values), "columns")


def records_of(values: Any) -> list[Mapping[str, Any]] | None:
    """Return elements with named fields as dictionaries, and None for elements that are numbers.

    A frame whose columns are all numeric counts as numbers, so the function returns None.
    """
    if isinstance(values, list | tuple):
        return list(values) if values and isinstance(values[0], Mapping) else None
    if not is_frame(values):
        return None
    if not hasattr(values, "to_numpy"):
        raise InputError(f"expected a frame of pandas or polars, got {type(values).__name__}")
    is_numeric = np.asarray(values.to_numpy()).dtype.kind in "biuf"
    return None if is_numeric else rows_of(values)


def named_records_of(values: Any) -> list[Mapping[str, Any]] | None:
    """As `records_of`, but also convert a numeric frame if all its column names are texts."""
    if is_frame(values) and all(isinstance(name, str) for name in values.columns):
        return rows_of(values)
    return records_of(values)


def split_instances(values: Any, source: str) -> list[Any]:
    """As `split`, but refuse a single instance: a frame, or a list of dictionaries."""
    if is_frame(values) or records_of(values) is not None:
        raise InputError(f"{source}: expected a list of instances, got one instance")
    return split(values, source)


def rows_of(frame: Any) -> list[Mapping[str, Any]]:
    """Return the rows of a pandas or polars frame as dictionaries."""
    _check_frame(frame)
    rows: list[dict[str, Any]] = (
        frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    )
    for name in filter(lambda name: is_categorical(frame[name].dtype), frame.columns):
        for row, level in zip(rows, levels([row[name] for row in rows]), strict=True):
            row[name] = level
    return list(rows)


def columns_of(frame: Any) -> dict[str, Sequence[Any]]:
    """Return the columns of a pandas, polars or pyarrow frame, by name."""
    if hasattr(frame, "to_pydict"):  # pyarrow
        _check_names(frame.schema.names)
        return {
            name: arrow_cells(frame[name], frame[name].to_pylist) for name in frame.schema.names
        }
    _check_frame(frame)
    return {name: _series_cells(frame[name]) for name in frame.columns}


def arrow_cells(
    column: Any, to_list: Callable[[], list[Any]], is_category: bool = False
) -> Sequence[Any]:
    """Return the cells of a pyarrow column. Numbers without gaps stay an array.

    Args:
        to_list: returns the cells as Python's values.
        is_category: whether the cells are categories, although the column's type does not say so.
    """
    if is_category or is_categorical(column.type):
        return levels(to_list())
    if column.null_count or not _NUMERIC.fullmatch(str(column.type)):
        return to_list()
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    return Numbers(np.from_dlpack(array))  # `to_numpy` would import pandas


def _series_cells(series: Any) -> Sequence[Any]:
    """Return the cells of a series of pandas or polars. Numbers without gaps stay an array."""
    if is_categorical(series.dtype):
        return levels(series.to_list())
    if _NUMERIC.fullmatch(str(series.dtype)):
        # Ask the type, because `series.null_count` of pandas may be the cell of a row of this name.
        is_pandas = hasattr(type(series), "hasnans")
        if not (series.hasnans if is_pandas else series.null_count()):
            return Numbers(np.asarray(series.to_numpy()))
    cells: list[Any] = series.to_list()
    return cells


def rows_like(values: Any, frame: Any, name: str) -> Any:
    """Return what the rows of a frame have in the form of the frame's library.

    An array becomes a series of this name, and a dictionary of arrays a frame. Those of pandas have
    the index of the frame. If `frame` is not a frame of pandas or polars, return the values
    unchanged.
    """
    is_columns = isinstance(values, dict)
    if is_frame(frame) and hasattr(frame, "index"):
        pandas, index = sys.modules["pandas"], frame.index
        if is_columns:
            return pandas.DataFrame(values, index)
        return pandas.Series(values, index, name=name)
    if is_frame(frame) and hasattr(frame, "to_dicts"):
        polars = sys.modules["polars"]
        return polars.DataFrame(values) if is_columns else polars.Series(name, values)
    return values


def frame_with(frame: Any, name: str, values: Any) -> Any:
    """Return a frame of pandas or polars with one more column, or another one of this name.

    Raises:
        InputError: it is not such a frame, or has another number of rows than `values`.
    """
    if not hasattr(frame, "assign") and not hasattr(frame, "with_columns"):
        got = type(frame).__name__
        raise InputError(
            f"expected a frame of pandas or polars, to which {name} is added, got {got}"
        )
    values = split(values, name)
    if len(values) != len(frame):
        raise InputError(
            f"{name}: expected a value for each of {len(frame)} rows, got {len(values)}"
        )
    if hasattr(frame, "assign"):
        return frame.assign(**{name: values})
    return frame.with_columns(sys.modules["polars"].Series(name, values))


def is_categorical(dtype: Any) -> bool:
    """Whether a column's type says that its values are categories (pandas, polars, pyarrow)."""
    return str(dtype).startswith(("category", "Categorical", "Enum", "dictionary"))


def levels(values: Iterable[Any]) -> list[Level | None]:
    """Convert the values of a categorical column to texts, and missing values to None."""
    return [
        None if is_empty(v) else Level(str(v).removesuffix(".0") if isinstance(v, float) else v)
        for v in values
    ]


def _check_frame(frame: Any) -> None:
    """Refuse frames of libraries other than pandas and polars, and duplicate column names."""
    if not hasattr(frame, "to_dicts") and not hasattr(frame, "to_dict"):
        raise InputError(f"expected a frame of pandas or polars, got {type(frame).__name__}")
    _check_names(list(frame.columns))


def _check_names(names: list[Any]) -> None:
    """Refuse duplicate column names, because a dictionary would lose one of the columns."""
    double = [name for name, count in Counter(names).items() if count > 1]
    if double:
        raise InputError(f"DataFrame has duplicate column names: {short(double)}")
