"""Decide which cells of a table are numbers, and which columns are features.

The readers of `.csv`, of long tables, of `.jsonl` and of frames share these rules. A column of
texts is not a feature. Unless the model reads named fields, we refuse a column if only some of its
cells are numbers, or if its texts are numbers in another notation, such as `1,5` or `3 kg`. If we
skipped these columns, we would silently read the next numeric column, perhaps a column of ids, as a
coordinate.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from ptrnet.errors import InputError, short
from ptrnet.tasks.schema import LARGEST_UNROUNDED, is_empty, is_missing

_ID_NAMES = {"", "#", "id", "index", "no", "nr", "number", "node", "unnamed: 0", "rownames"}
_ID_NAMES |= {"__index_level_0__"}  # pandas writes the index of a frame's rows to Parquet
# 007 and 1_000 do not match, because people write codes and names like this.
_PLAIN = re.compile(r"[+-]?(0|[1-9][0-9]*|[0-9]*\.[0-9]+|(0|[1-9][0-9]*)\.)([eE][+-]?[0-9]+)?")
# Digits, perhaps in groups or with a decimal comma, a currency before them, a unit behind them.
# Matches 1,234 and 52,5 and $3.50 and EUR 3 and 3 kg and 13.4E, but not 14a and 2020-01-02.
CURRENCY = r"(?:EUR|USD|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN)"
_DIGITS = r"\d+(?:\.\d+)?"
_FOREIGN = re.compile(
    rf"\W*{CURRENCY}?\W*{_DIGITS}(?:[,;'\u2019\s]+[-+]?{_DIGITS})*"
    rf"\W*(?:\s[^\W\d]{{1,3}}|{CURRENCY})?|\W*\d+[.,]\d+[A-Z]"
)


# Numbers


def is_number(text: str) -> bool:
    """Whether `float` accepts a text. `nan` and `1e400` count, although they are not finite."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_finite_number(text: str) -> bool:
    """Whether `float` converts a text to a finite number."""
    return is_number(text) and math.isfinite(float(text))


def is_plain_number(text: str) -> bool:
    """Whether a text is a number in the usual notation, unlike `007`, `1_000` and `nan`."""
    return _PLAIN.fullmatch(text) is not None


def parse_cells(column: Sequence[Any]) -> list[Any]:
    """Convert texts to numbers, and missing ones to None. All other cells stay unchanged.

    A number beyond float64 becomes infinity.

    Examples:
        >>> parse_cells(["3", "2.5", "n/a", "007", "red"])
        [3, 2.5, None, '007', 'red']
    """
    return [_parse_cell(cell) if isinstance(cell, str) else cell for cell in column]


def _parse_cell(cell: str) -> Any:
    if _PLAIN.fullmatch(cell):
        number = float(cell)
        return int(cell) if number.is_integer() and cell.lstrip("+-").isdecimal() else number
    if is_missing(cell):
        return None
    return float(cell) if is_number(cell) and not is_finite_number(cell) else cell


def parse_column(column: Sequence[str]) -> Sequence[Any]:
    """Return a column of numbers as numbers, with None for missing cells.

    Any other column, such as one of names, stays unchanged, also if all its cells are missing.
    """
    values = parse_cells(column)
    types = {*map(type, values)}
    return column if str in types or not types & {int, float} else values


def are_foreign_numbers(texts: Collection[str]) -> bool:
    """Whether all texts are numbers, perhaps in notations that Python cannot read.

    If all texts consist of digits only, return False: codes and ids are written like this.

    Examples:
        >>> are_foreign_numbers(["1,5", "2,25"]), are_foreign_numbers(["14a", "16"])
        (True, False)
    """
    return (
        bool(texts)
        and all(_FOREIGN.fullmatch(text) for text in texts)
        and not all(text.strip().isdecimal() for text in texts)
    )


def is_real(value: Any) -> bool:
    """Whether a value is a real number of any library. Booleans are not numbers here."""
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def parse_number(text: str, source: str) -> float:
    """Convert a text to a finite float.

    Raises:
        InputError: the text is not a finite number, or is a whole number that float64 would round.
            A rounded number would silently change the user's instance.
    """
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{source}: expected a number, got {short(text)}") from None
    if not math.isfinite(value) or "_" in text or not text.isascii():
        raise InputError(f"{source}: expected a finite number, got {short(text)}")
    digits = text.strip().lstrip("+-0")
    if abs(value) > LARGEST_UNROUNDED and digits.isdecimal() and int(digits) != abs(value):
        raise InputError(
            f"{source}: expected a whole number that float64 holds, got {short(text)}, which it "
            f"rounds to {value:.0f}"
        )
    return value


def parse_index(text: str, source: str) -> int:
    """Convert a text of at most 18 digits, perhaps after a minus sign, to a whole number.

    Raises InputError for other texts. Numbers of 18 digits fit into int64.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
        raise InputError(f"{source}: expected an index, got {short(text)}")
    return int(text)


# Columns


def numeric_columns(
    columns: Mapping[Any, Sequence[Any]],
    misfits: Mapping[Any, Sequence[int]],
    names: Sequence[Any],
    d: int,
    place: Callable[[Any, int], str],
) -> list[Any]:
    """Return the keys of the numeric columns. If there are more than d, leave out columns of ids.

    Args:
        columns: the values of each column, by its key.
        misfits: for each column, the positions of the values that are not numbers.
        names: the names of the columns, by which we recognize columns of ids.
        d: the expected number of numeric columns. The caller checks that the result has d keys.
        place: a function of a column's key and a position k. Its result is the name of the value at
            position k of this column, for error messages.

    Raises:
        InputError: a column has numbers in only some cells, or in another notation.
    """
    candidates = [key for key in columns if not misfits[key]]
    named = dict(zip(columns, names, strict=True))
    numeric = without_ids(candidates, [named[key] for key in candidates], d)
    for key, bad in misfits.items():
        texts = [value for value in (columns[key][k] for k in bad) if not is_missing(value)]
        is_foreign = all(isinstance(text, str) for text in texts) and are_foreign_numbers(texts)
        is_mixed = 0 < len(bad) < len(columns[key]) and not is_id(named[key])
        if is_mixed or is_foreign:
            like = " such as 1234.5" if is_foreign else " in all cells or in none"
            raise InputError(
                f"{place(key, bad[0])}: expected a number{like}, got {short(columns[key][bad[0]])}"
            )
    return numeric


def check_id(value: Any, source: str) -> Any:
    """Return an id. Raises InputError if the value cannot be an id, or may have been rounded."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or is_empty(value) or not isinstance(value, str | Real | date):
        raise InputError(f"{source}: expected a name or a number, got {short(value)}")
    check_unrounded(value, source)
    return value


def check_unrounded(value: Any, source: str) -> None:
    """Refuse a float beyond 2^53, because a different whole number may have been rounded to it."""
    if isinstance(value, float) and abs(value) > LARGEST_UNROUNDED:
        raise InputError(
            f"{source}: {value:.0f} may have been another whole number, because floats of this "
            "size are rounded; read the column as whole numbers or as text"
        )


def is_id(name: Any) -> bool:
    """Whether a name, such as `index` or `no`, is a usual name for a column or field of ids."""
    return isinstance(name, str) and name.strip().lower() in _ID_NAMES


def without_ids(columns: Sequence[Any], names: Sequence[Any], d: int) -> list[Any]:
    """Return the columns. If there are more than d, leave out the columns with names of ids."""
    if len(columns) <= d:
        return list(columns)
    return [column for column, name in zip(columns, names, strict=True) if not is_id(name)]


def check_no_ids(names: Iterable[Any], d: int, source: str) -> None:
    """If d is more than 1, refuse features that have names of ids.

    If d is 1, the ids may be the numbers that the user wants to sort.
    """
    ids = [name for name in names if is_id(name)] if d > 1 else []
    if ids:
        raise InputError(
            f"{source}: expected {d} numbers of each element besides ids, got "
            f"{short(ids[0])} as one of them; if it is not an id, rename it"
        )
