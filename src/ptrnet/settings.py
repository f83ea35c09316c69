"""Checking one named value against the type that is written down for it."""

import typing
from typing import Any

from ptrnet.errors import InputError, unknown


def check_type(what: str, value: Any, hint: Any) -> None:
    """Refuses a value that is not of the type `hint`.

    Types are a Literal's choices, bool, int, float, str, and a tuple of floats (a list will do).

    Raises:
        InputError: names `what`, what was expected and what came.
    """
    if typing.get_origin(hint) is typing.Literal:
        if value not in typing.get_args(hint):
            raise unknown(what, str(value), typing.get_args(hint))
        return
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list | tuple) or any(type(v) not in (int, float) for v in value):
            raise InputError(f"{what} must be a list of numbers, got {str(value)[:40]!r}")
        return
    whole = type(value) is int and hint is float
    if type(value) is not hint and not whole:
        raise InputError(f"{what} must be {hint.__name__}, got {value!r}")
