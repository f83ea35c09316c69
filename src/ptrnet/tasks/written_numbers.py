"""Numbers as tables write them: those that Python reads, others, and missing ones."""

import math
import re
from collections.abc import Collection

_MISSING = {"", "--", ".", "?", "#n/a", "n/a", "na", "nan", "nil", "null", "missing"}
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
_SHEET_ERROR = re.compile(r"#[A-Z0-9/]+[!?]")  # #DIV/0!, #NAME?


def is_missing(text: str) -> bool:
    """Whether a text says that a number is missing."""
    text = text.strip()
    return text.lower() in _MISSING or _SHEET_ERROR.fullmatch(text) is not None


def is_written_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def are_foreign_numbers(texts: Collection[str]) -> bool:
    """Whether texts are numbers as Python does not read them, all of one unit if of any.

    Digits alone are none: codes and ids are written so.
    """
    matches = [_FOREIGN.fullmatch(text.strip()) for text in texts]
    units = {match["unit"].strip(f"\u00b0{_SPACES}") for match in matches if match} - {""}
    is_of_one_unit = len(units) <= 1 or units <= _DIRECTIONS
    return (
        bool(matches)
        and all(matches)
        and is_of_one_unit
        and not all(text.strip().isdecimal() for text in texts)
    )
