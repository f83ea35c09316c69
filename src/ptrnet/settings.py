"""Checking one named value against the type that is written down for it."""

import typing
from typing import Any

from ptrnet.errors import InputError, short, unknown


def check_type(name: str, value: Any, hint: Any) -> None:
    """Refuses a value that is not of the type `hint`.

    Types are a Literal's choices, bool, int, float (an int will do), str, and a tuple of floats
    (a list of numbers will do).

    Raises:
        InputError: names the value, what was expected and what came.
    """
    if typing.get_origin(hint) is typing.Literal:
        if value not in typing.get_args(hint):
            raise unknown(name, str(value), typing.get_args(hint))
        return
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list | tuple) or any(type(v) not in (int, float) for v in value):
            raise InputError(f"{name} must be a list of numbers, got {short(value)}")
        return
    if type(value) is not hint and not (type(value) is int and hint is float):
        raise InputError(f"{name} must be {hint.__name__}, got {short(value)}")
