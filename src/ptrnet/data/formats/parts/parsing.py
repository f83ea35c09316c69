"""Numbers written as text, one at a time, so that a complaint can name the field."""

import math

from ptrnet.errors import InputError, short


def parse_number(text: str, source: str) -> float:
    """A finite float. Raises InputError for text, `nan`, `inf` and what overflows."""
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{source}: expected a number, got {short(text)}") from None
    if not math.isfinite(value) or "_" in text or not text.isascii():
        raise InputError(f"{source}: expected a finite number, got {short(text)}")
    return value


def parse_index(text: str, source: str) -> int:
    """A whole number. Raises InputError for anything else."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
        raise InputError(f"{source}: expected an index, got {short(text)}")
    return int(text)
