"""Checking one named value against the type that is written down for it."""

import typing
from typing import Any

from ptrnet.errors import InputError, short, unknown

_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def check_type(name: str, value: Any, hint: Any) -> None:
    """Refuses a value that is not of the type `hint`.

    Types are a Literal's choices, bool, int, float (an int will do), str, and a tuple of any number
    of them (a list will do).

    Raises:
        InputError: names the value, what was expected and what came.
    """
    if typing.get_origin(hint) is typing.Literal:
        if value not in typing.get_args(hint):
            raise unknown(name, str(value), typing.get_args(hint))
        return
    if typing.get_origin(hint) is tuple:
        if not _is_list(value, typing.get_args(hint)[0]):
            raise InputError(f"{name} must be a {_described(hint)}, got {short(value)}")
        return
    if type(value) is not hint and not (type(value) is int and hint is float):
        raise InputError(f"{name} must be {_NAMES[hint]}, got {short(value)}")


def _is_list(values: Any, of: Any) -> bool:
    """Whether these are a list of such items, or of lists of them."""
    if not isinstance(values, list | tuple):
        return False
    if typing.get_origin(of) is tuple:
        return all(_is_list(value, typing.get_args(of)[0]) for value in values)
    return all(type(value) in ((int, float) if of is float else (of,)) for value in values)


def _described(hint: Any) -> str:
    item = typing.get_args(hint)[0]
    if typing.get_origin(item) is tuple:
        return "list of lists of texts"
    return {float: "list of numbers", str: "list of texts"}[item]
