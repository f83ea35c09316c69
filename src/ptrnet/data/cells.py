"""What the values of a table mean: numbers, missing values, ids, headers.

The readers of `.csv`, of long tables, of `.jsonl` and of frames decide by these functions which of
a user's columns are features. Where a column of numbers would be skipped without a word, because
its numbers are written `1,5` or `3 kg` or because some are missing, they refuse it: otherwise the
next column of numbers, perhaps one of ids, would be read as a coordinate.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from ptrnet.errors import InputError, short
from ptrnet.tasks.schema import LARGEST_UNROUNDED, Place, is_missing

_ID_NAMES = {"", "#", "id", "index", "no", "nr", "number", "node", "unnamed: 0"}
# 007 and 1_000 do not match: they are names.
_PLAIN = re.compile(r"[+-]?(0|[1-9][0-9]*|[0-9]*\.[0-9]+|(0|[1-9][0-9]*)\.)([eE][+-]?[0-9]+)?")
_SPACES = " \u00a0\u202f"
_UNIT = r"%|\u00b0?[NSEWO]|\u00b0|[$\u20ac\u00a3\u00a5]|[kcm]?m|[km]?g|m?s|h|min|mi|ft|lb"
# A sign, which may be the typographic minus, a currency, digits in groups of three or with a
# decimal comma, and a unit: 1,234 or 52,5 or $3.50 or 3 kg or 13.4E; not 14a.
_FOREIGN = re.compile(
    rf"[<>~]?[-+\u2212]?[$\u20ac\u00a3\u00a5]?[{_SPACES}]?"
    rf"(?:\d{{1,3}}(?:[,.'\u2019{_SPACES}]\d{{3}})+(?:[.,]\d+)?|\d+[.,]\d+|\d+)"
    rf"(?:[eE][-+]?\d+)?(?P<unit>[{_SPACES}]?(?:{_UNIT})|[{_SPACES}][a-zA-Z\u00b5]{{1,3}}|)"
)
_DIRECTIONS = {*"NSEWO"}


# Numbers


def is_number(text: str) -> bool:
    """Whether a text is meant as a number. `nan` and `1e400` are; `parse_number` refuses them."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_finite_number(text: str) -> bool:
    """Whether Python reads a text as a finite number."""
    return is_number(text) and math.isfinite(float(text))


def is_plain_number(text: str) -> bool:
    """Whether a text is written as numbers usually are, unlike 007 and 1_000."""
    return _PLAIN.fullmatch(text) is not None


def parse_cells(column: Sequence[str]) -> list[Any]:
    """Return the number in each cell, None for a missing one, and other texts as they are.

    Every reader of .csv decides by this rule which cells are numbers. A number beyond float64
    becomes infinity.
    """
    if all(map(_PLAIN.fullmatch, column)):
        return [_parse_plain(cell) for cell in column]
    return [_parse_cell(cell) for cell in column]


def _parse_cell(cell: str) -> Any:
    if is_plain_number(cell):
        return _parse_plain(cell)
    if is_missing(cell):
        return None
    return float(cell) if is_number(cell) and not is_finite_number(cell) else cell


def _parse_plain(cell: str) -> int | float:
    number = float(cell)
    return int(cell) if number.is_integer() and cell.lstrip("+-").isdecimal() else number


def parse_column(column: Sequence[str], place: Place) -> Sequence[Any]:
    """Return the numbers of a column, None for a missing one; its texts if it has others.

    This is the rule for long tables, in which any column may hold names.

    Raises:
        InputError: a number is infinite, or too large for a float.
    """
    values = parse_cells(column)
    types = {*map(type, values)}
    if str in types or not types & {int, float}:
        return column
    for infinity in (math.inf, -math.inf):
        if infinity in values:
            k = values.index(infinity)
            raise InputError(f"{place(k)}: expected a finite number, got {short(column[k])}")
    return values


def are_foreign_numbers(texts: Collection[str]) -> bool:
    """Whether texts are numbers in a notation that Python does not read, all with one unit if any.

    Digits alone are not: codes and ids are written so.
    """
    matches = [_FOREIGN.fullmatch(text.strip()) for text in texts]
    units = {match["unit"].strip(f"\u00b0{_SPACES}") for match in matches if match} - {""}
    return (
        bool(matches)
        and all(matches)
        and (len(units) <= 1 or units <= _DIRECTIONS)
        and not all(text.strip().isdecimal() for text in texts)
    )


def is_real(value: Any) -> bool:
    """Whether a value is a real number of any library; booleans are not."""
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def parse_number(text: str, source: str) -> float:
    """Return the finite float that a text stands for.

    Raises:
        InputError: other text, `nan`, `inf`, overflow, or the digits of a whole number that
            float64 would round, so that we would answer another instance.
    """
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{source}: expected a number, got {short(text)}") from None
    if not math.isfinite(value) or "_" in text or not text.isascii():
        raise InputError(f"{source}: expected a finite number, got {short(text)}")
    digits = text.strip().lstrip("+-")
    if abs(value) > LARGEST_UNROUNDED and digits.isdecimal() and int(digits) != abs(value):
        raise InputError(
            f"{source}: expected a whole number that float64 holds, got {short(text)}, which it "
            f"rounds to {value:.0f}"
        )
    return value


def parse_index(text: str, source: str) -> int:
    """Return the whole number of at most 18 digits that a text stands for, or raise InputError."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
        raise InputError(f"{source}: expected an index, got {short(text)}")
    return int(text)


# Columns


def numeric_columns(
    columns: Mapping[Any, Sequence[Any]],
    others: Mapping[Any, Sequence[int]],
    names: Sequence[Any],
    d: int,
    place: Callable[[Any, int], str],
) -> list[Any]:
    """Return the keys of the columns of numbers; if there are more than d, without ids.

    Args:
        columns: the values of each column, by its key.
        others: where the values of each column are not numbers.
        names: of the columns, by which ids are known.
        d: how many columns of numbers are expected. The caller checks that there are so many.
        place: what messages call value k of a column.

    Raises:
        InputError: a column that would be skipped was probably meant as numbers.
    """
    numbers = [key for key in columns if not others[key]]
    named = dict(zip(columns, names, strict=True))
    numeric = without_ids(numbers, [named[key] for key in numbers], d)
    for key, bad in others.items():
        values, count = [columns[key][k] for k in bad], len(columns[key])
        is_hidden = bool(bad) and _hides_numbers(values, has_numbers=len(bad) < count)
        if is_hidden or (len(numeric) < d and 0 < len(bad) < count / 2):
            is_foreign = is_hidden and not all(map(is_missing, values))
            like = " such as 1234.5" if is_foreign and isinstance(values[0], str) else ""
            raise InputError(
                f"{place(key, bad[0])}: expected a number{like}, got {short(values[0])}"
            )
    return numeric


def _hides_numbers(others: Sequence[Any], has_numbers: bool) -> bool:
    """Whether a column that is not numeric was probably meant to be.

    Args:
        others: its values that are not numbers.
        has_numbers: whether it has numbers, too.
    """
    filled = [value for value in others if not is_missing(value)]
    if not all(isinstance(value, str) for value in filled):
        return False  # lists and the like: we carry them along
    return are_foreign_numbers(filled) or (has_numbers and all(map(is_finite_number, filled)))


def is_id(name: Any) -> bool:
    """Whether a column or field has a name that people give to ids."""
    return isinstance(name, str) and name.strip().lower() in _ID_NAMES


def without_ids(columns: Sequence[Any], names: Sequence[Any], d: int) -> list[Any]:
    """Return the numeric columns; if there are more than d, without those that are named as ids."""
    if len(columns) <= d:
        return list(columns)
    return [column for column, name in zip(columns, names, strict=True) if not is_id(name)]


def check_no_ids(names: Iterable[Any], d: int, source: str) -> None:
    """Refuse to read ids among the d numbers of an element.

    If an element is a single number, ids may be exactly what the user wants to sort.
    """
    ids = [name for name in names if is_id(name)] if d > 1 else []
    if ids:
        raise InputError(
            f"{source}: expected {d} numbers of each element besides ids, got "
            f"{short(ids[0])} among them; if it is not an id, rename it"
        )
