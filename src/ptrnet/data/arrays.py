"""Arrays, tensors and frames of other libraries as NumPy arrays: only this module knows of them.

An array is what NumPy takes for one, a torch tensor (with a gradient, on any device), a frame or a
series with `to_numpy` (pandas, polars), or lists of numbers. None of these libraries is imported.
"""

import contextlib
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, short
from ptrnet.tasks.schema import LARGEST_UNROUNDED
from ptrnet.types import Floats

_NO_LISTS = (str, bytes, Mapping, set, frozenset, np.ma.MaskedArray)  # a set has no order
_PLAIN = {float, int, list, tuple}  # what a list of numbers is made of
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
    """Return real numbers of any type and layout as float64, without a copy if they are float64.

    Args:
        values: an array, or lists of arrays or of numbers; booleans are 0 and 1.
        source: the file and line, or the argument, that they came from.
        expected: what the message says was expected.

    Raises:
        InputError: anything but an array of real numbers, such as masked arrays, strings, dates,
            missing values or lists of different lengths; or a whole number beyond 2^53 that
            float64 would round.
    """
    array = to_array(values, source, expected)
    with np.errstate(over="ignore"):  # a longdouble beyond float64 is refused as infinite
        floats = array.astype(np.float64, copy=False)
    is_large = np.abs(floats) > LARGEST_UNROUNDED
    if is_large.any():
        whole = array if array.dtype.kind in "iu" else np.array(_unrounded(values), object)
        for index in map(tuple, np.argwhere(is_large)):
            value, near = whole[index], floats[index]
            if isinstance(value, Integral) and np.isfinite(near) and int(value) != int(near):
                raise InputError(
                    f"{source}: expected whole numbers that float64 holds, got {int(value)}, "
                    f"which it rounds to {int(near)}"
                )
    return floats


def _unrounded(values: Any) -> Any:
    """Return numbers in their own types. NumPy would give all columns of a frame one type."""
    if is_frame(values):
        return [[*row.values()] for row in rows_of(values)]
    return _unwrapped(values)


def to_array(values: Any, source: str, expected: str) -> NDArray[Any]:
    """Return the values as a NumPy array of their own type; all else is as in `real_array`."""
    try:
        array = np.asarray(_unwrapped(values))
        if array.dtype.kind == "O":
            return _objects_to_floats(array)
        if array.dtype.kind in _KINDS:
            raise TypeError(_KINDS[array.dtype.kind])
    except TypeError as error:
        raise InputError(f"{source}: expected {expected}, got {error}") from None
    except OverflowError:
        raise InputError(f"{source}: expected {expected}, got a number too large") from None
    except ValueError:
        raise InputError(f"{source}: expected {expected}, got lists of different lengths") from None
    return array


def _objects_to_floats(array: NDArray[Any]) -> Floats:
    """Convert Python objects to floats. Raises TypeError at the first that is not a number."""
    flat = array.ravel().tolist()
    for value in flat:
        if isinstance(value, str):
            raise TypeError(_KINDS["U"])
        if isinstance(value, complex):
            raise TypeError(_KINDS["c"])
        if not isinstance(value, Real | Decimal):
            raise TypeError(f"{short(value)} among the numbers")
    return np.array([float(value) for value in flat]).reshape(array.shape)


def _unwrapped(values: Any) -> Any:
    """Return arrays as NumPy's, in lists too. Raises TypeError for what is not an array."""
    if isinstance(values, list | tuple):
        types = {*map(type, values)}
        rows = (row for row in values if isinstance(row, list | tuple))
        if types <= _PLAIN and all({*map(type, row)} <= _PLAIN for row in rows):
            return values
        return [_unwrapped(item) for item in values]
    if isinstance(values, Mapping | set | frozenset | np.ma.MaskedArray):
        raise TypeError(_type_name(values))
    return _single(values)


def _single(values: Any) -> Any:
    """Return a tensor, frame or array as NumPy's array, and anything else as it is."""
    if isinstance(values, np.ndarray):
        return values
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        tensor = values.detach().cpu().to_dense()
        if tensor.dtype is torch.bfloat16:  # which NumPy does not have
            tensor = tensor.float()
        return tensor.resolve_conj().resolve_neg().numpy()
    if hasattr(values, "to_numpy"):
        with contextlib.suppress(ValueError):  # pyarrow raises it if it would have to copy
            return np.asarray(values.to_numpy())
    if hasattr(values, "__array__") or hasattr(values, "__array_interface__"):
        return np.asarray(values)
    return values


def _type_name(values: Any) -> str:
    return "a masked array" if isinstance(values, np.ma.MaskedArray) else type(values).__name__


def split(values: Any, source: str) -> list[Any]:
    """Return the items along the first axis of an array, list, series or iterator.

    Raises:
        InputError: anything else: a number, a text, a set, a dictionary.
    """
    values = _single(values)
    is_scalar = isinstance(values, np.ndarray) and not values.ndim
    if is_scalar or isinstance(values, _NO_LISTS) or not isinstance(values, Iterable):
        raise InputError(f"{source}: expected a list or an array, got {_type_name(values)}")
    return list(values)


def unpack_objects(values: Any) -> Any:
    """Return an array or series of Python objects, such as arrays of several lengths, as a list."""
    array = values if is_frame(values) else _single(values)
    if isinstance(array, np.ndarray) and array.dtype.kind == "O" and array.ndim == 1:
        return list(array)
    return values


def depth(values: Any) -> int:
    """Return how deep the first number of nested lists and arrays is: 2 in a list of lists.

    A dictionary counts as a list.
    """
    if isinstance(values, list | tuple):
        return 1 + (depth(values[0]) if values else 0)
    if isinstance(values, Mapping):
        return 1
    array = _single(values)
    return array.ndim if isinstance(array, np.ndarray) else 0


def count_features(values: Any) -> int:
    """Return d of an instance `(n, d)`, and 1 for any other values."""
    try:
        shape = np.shape(_unwrapped(values))
    except (TypeError, ValueError):
        return 1
    return shape[1] if len(shape) == 2 and shape[1] else 1


# Elements with names


def is_frame(values: Any) -> bool:
    """Whether these are a table with names of columns."""
    return hasattr(type(values), "columns")  # asking the values costs polars' lazy ones a query


def records_of(values: Any) -> list[Mapping[str, Any]] | None:
    """Return the elements of an instance if they have names: dictionaries, or rows of a frame.

    Return None if they are numbers, as in a frame whose columns are all numbers.
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
    """As `records_of`, with the rows of every frame whose columns' names are texts."""
    if is_frame(values) and all(isinstance(name, str) for name in values.columns):
        return rows_of(values)
    return records_of(values)


def rows_of(frame: Any) -> list[Mapping[str, Any]]:
    """Return the rows of a frame of pandas or polars, by its columns' names."""
    _check_frame(frame)
    rows: list[Mapping[str, Any]] = (
        frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    )
    return rows


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a frame of pandas, polars or pyarrow by their names."""
    if hasattr(frame, "to_pydict"):  # pyarrow
        columns: dict[str, list[Any]] = frame.to_pydict()
        return columns
    _check_frame(frame)
    return {name: frame[name].to_list() for name in frame.columns}


def _check_frame(frame: Any) -> None:
    """Refuse frames of other libraries. Refuse equal column names: one column would be lost."""
    if not hasattr(frame, "to_dicts") and not hasattr(frame, "to_dict"):
        raise InputError(f"expected a frame of pandas or polars, got {type(frame).__name__}")
    names = list(frame.columns)
    if len({*names}) != len(names):
        raise InputError(f"DataFrame has duplicate column names: {short(names)}")
