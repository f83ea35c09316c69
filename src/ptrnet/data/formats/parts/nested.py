"""Instances and answers that come as nested lists, from JSON or from Parquet."""

import json
from typing import Any

from ptrnet.errors import InputError


def check_numbers(values: Any, where: str) -> None:
    """Refuses as inputs what NumPy would turn into numbers: text, booleans, null."""
    if not isinstance(values, list):
        raise InputError(f'{where}: "inputs": expected a list of elements')
    for k, element in enumerate(values, 1):
        for value in element if isinstance(element, list) else [element]:
            if type(value) not in (int, float):
                raise InputError(
                    f'{where}: "inputs": element {k}: expected a number, '
                    f"got {json.dumps(value)[:40]}"
                )


def features(values: Any, where: str) -> int:
    """How many numbers the first element of an instance has."""
    check_numbers(values, where)
    if not values or values[0] == []:
        raise InputError(f'{where}: "inputs": expected elements of one number or more')
    return len(values[0]) if isinstance(values[0], list) else 1


def flat(outputs: Any, item_size: int, where: str) -> list[int]:
    """The indices of a list, or of a list of lists of `item_size` indices each."""
    items = [outputs] if item_size == 1 else outputs
    rows = isinstance(items, list) and all(isinstance(item, list) for item in items)
    if not rows or not all(type(i) is int for item in items for i in item):
        lists = "" if item_size == 1 else f"lists of {item_size} "
        raise InputError(f"{where}: expected a list of {lists}whole numbers")
    for place, item in enumerate(items, 1):
        if item_size > 1 and len(item) != item_size:
            raise InputError(
                f"{where}: item {place}: expected {item_size} indices, got {len(item)}"
            )
    return [i for item in items for i in item]
