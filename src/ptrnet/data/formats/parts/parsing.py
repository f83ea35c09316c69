"""Numbers written as text, one at a time, so that a complaint can name the field."""

import math

from ptrnet.data.arrays import LARGEST_UNROUNDED
from ptrnet.errors import InputError, short


def parse_number(text: str, source: str) -> float:
    """A finite float.

    Raises:
        InputError: text, `nan`, `inf`, what overflows, and digits of a whole number that is no
            float64: another number would be answered.
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
    """A whole number of at most 18 digits. Raises InputError for anything else."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
        raise InputError(f"{source}: expected an index, got {short(text)}")
    return int(text)
