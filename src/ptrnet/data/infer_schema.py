"""Infer from the elements of a user's examples which fields a model reads, and as what numbers."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from ptrnet.data.cells import is_empty, is_finite_number, is_missing
from ptrnet.errors import AmbiguousInputWarning, InputError, short
from ptrnet.tasks.schema import Element, Schema, is_text, value_of

MAX_CATEGORIES = 1000  # of a field; texts of a field with more are probably names


def infer_schema(
    instances: Iterable[tuple[Sequence[Element], str]],
    fields: Sequence[str] = (),
    ignores_unknown: bool = False,
) -> Schema:
    """Return the schema of all elements of instances.

    Args:
        instances: the elements of each training instance, and its source.
        fields: the fields that the model reads, in this order; by default all of the first element.
        ignores_unknown: see `Schema`.

    Raises:
        InputError: an element lacks one of the fields, a field is a number in one element and a
            text in another, or a field has too many different texts.

    Warns:
        AmbiguousInputWarning: all texts of a field are numbers, and some have a point or a comma.
    """
    read = tuple(fields)
    texts: dict[str, set[str]] = {}
    for elements, source in instances:
        for k, element in enumerate(elements, 1):
            place = f"{source}: element {k}"
            if not texts:
                read = read or tuple(element)
                if not read:
                    raise InputError(f"{place}: expected a field to learn from, got none")
                _check_names(read, place)
                texts = {field: set() for field in read}
                are_texts = [f for f in read if is_text(value_of(element, f, place))]
            if not fields and not {*element} <= {*read}:
                added = next(field for field in element if field not in read)
                raise InputError(
                    f'{place}: "{added}": the first element has no such field; fill it in, or '
                    "name the fields that the model is to read (fields)"
                )
            for field in read:
                value = value_of(element, field, place)
                if is_text(value) != (field in are_texts):
                    expected = "a text" if field in are_texts else "a number"
                    got = "a missing value" if is_empty(value) else short(value)
                    raise InputError(
                        f'{place}: "{field}": expected {expected} as before, got {got}'
                    )
                if is_text(value):
                    _check_unicode(value, f'{place}: "{field}"')
                    texts[field].add(value)
                    if len(texts[field]) > MAX_CATEGORIES:
                        raise InputError(
                            f'{place}: "{field}": more than {MAX_CATEGORIES} different texts are '
                            "no categories; name the fields that the model is to read (fields)"
                        )
    for field in read:
        _check_none_missing(field, texts[field])
        _warn_of_numbers(field, texts[field])
    return Schema(read, tuple(tuple(sorted(texts[f])) for f in read), ignores_unknown)


def _check_none_missing(field: str, texts: set[str]) -> None:
    """Refuse numbers that became categories because one of them is missing, as `n/a`."""
    others = {text for text in texts if not is_finite_number(text)}
    if len(others) < len(texts) and others and all(map(is_missing, others)):
        raise InputError(
            f'"{field}": expected only numbers, or texts, got numbers and {short(min(others))}; '
            "give these elements a number or leave them out, or rename the category"
        )


def _warn_of_numbers(field: str, texts: set[str]) -> None:
    """Warn if the categories of a field are probably numbers in quotes."""
    with_points = [text.replace(",", ".", 1) for text in texts]
    if any("." in text for text in with_points) and all(map(is_finite_number, with_points)):
        warnings.warn(
            f'"{field}": texts such as {short(min(texts))} are taken as categories; write numbers '
            "without quotes",
            AmbiguousInputWarning,
            stacklevel=3,
        )


def _check_names(fields: Sequence[Any], source: str) -> None:
    for field in fields:
        if not isinstance(field, str) or not field:
            raise InputError(f"{source}: expected texts as names of fields, got {short(field)}")
        _check_unicode(field, source)


def _check_unicode(text: str, source: str) -> None:
    """Refuse a lone surrogate, half a character: no file can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{source}: expected a text of whole characters, got {short(text)}"
        ) from None
