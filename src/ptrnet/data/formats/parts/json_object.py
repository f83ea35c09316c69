"""JSON as ptrnet reads it: one object, all of whose numbers are finite."""

import json
import math
import sys
from collections.abc import Callable
from typing import Any

from ptrnet.errors import InputError


def parse_object(
    text: str, source: str, parse_float: Callable[[str], float] | None = None
) -> dict[str, Any]:
    """The object in a text.

    Args:
        text: JSON.
        source: of the text.
        parse_float: makes digits a number. By default they may not overflow; with `float`, which
            takes less time, what overflows is infinite.

    Raises:
        InputError: anything but an object, a key that occurs twice, `NaN`, and what overflows.
    """

    def refuse(word: str) -> float:
        raise InputError(f"{source}: expected a finite number, got {word[:40]}")

    def finite(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else refuse(digits)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise InputError(f'{source}: the key "{key[:40]}" occurs twice')
                seen.add(key)
        return row

    try:
        row = json.loads(
            text,
            parse_constant=refuse,
            parse_float=parse_float or finite,
            object_pairs_hook=unique,
        )
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise InputError(f"{source}: not JSON at {line}column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{source}: lists or objects too deep in one another") from None
    except ValueError as error:
        if isinstance(error, InputError):  # of `refuse`: it is a ValueError, too
            raise
        # The one that is left: Python reads whole numbers of so many digits and no more.
        digits = sys.get_int_max_str_digits()
        raise InputError(f"{source}: a whole number of more than {digits} digits") from None
    if not isinstance(row, dict):
        got = "a list" if isinstance(row, list) else json.dumps(row)[:40]
        raise InputError(f"{source}: expected a JSON object, got {got}")
    return row
