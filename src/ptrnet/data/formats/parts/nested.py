"""Rows of keys and values, of JSON or Parquet, in which instances and answers are nested lists."""

import json
import warnings
from collections.abc import Mapping
from typing import Any

from ptrnet.data import checks
from ptrnet.errors import AmbiguousInputWarning, InputError, file_of, short
from ptrnet.geometry.distances import EUCLIDEAN, NAMES
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats


def example_from_row(inputs: Floats, row: dict[str, Any], task: Task, source: str) -> Example:
    """The example of a row.

    Args:
        inputs: `(n, d)`, checked already.
        row: all other keys; those with a meaning are taken out, the rest is the example's `extra`.
        task: of the example.
        source: of the row.

    Raises:
        InputError: `outputs` that are no answer, or a `distance` that the task does not know.

    Warns:
        AmbiguousInputWarning: one of the two stands under a name that is nearly its own.
    """
    outputs = row.pop("outputs", None)
    if outputs is not None:
        indices = flat_indices(outputs, task.item_size, f'{source}: "outputs"')
        outputs = checks.check_answer(indices, len(inputs), task, f'{source}: "outputs"')
    distance = checks.pop_distance(row, inputs, task, source)
    for key, value in row.items():
        name = key.strip().lower().rstrip("s")
        if name == "output" and outputs is None and isinstance(value, list):
            _warn_of_name(key, "outputs", source)
        if name == "distance" and key != name and distance == EUCLIDEAN and value in NAMES:
            _warn_of_name(key, name, source)
    return Example(inputs, outputs, source, row, distance=distance)


def _warn_of_name(key: str, expected: str, source: str) -> None:
    warnings.warn(
        f'{file_of(source)}: {short(key)} is kept as a key of your own; ours is "{expected}"',
        AmbiguousInputWarning,
        stacklevel=4,
    )


def other_keys(example: Example) -> dict[str, Any]:
    """The keys of an example's row other than inputs and outputs, with their values."""
    distance = {} if example.distance == EUCLIDEAN else {"distance": example.distance}
    for key in ("inputs", "outputs", *distance):
        if key in example.extra:
            raise InputError(
                f'{example.source}: "{key}" stands for something else in a line: rename that key'
            )
    return {**distance, **example.extra}


def records(values: Any, source: str) -> list[Mapping[str, Any]]:
    """The elements of an instance that are JSON objects. Raises InputError where they are not."""
    if not isinstance(values, list) or not values:
        raise InputError(f"{source}: expected a list of objects")
    for k, element in enumerate(values, 1):
        if not isinstance(element, Mapping):
            raise InputError(f"{source}: element {k}: expected an object, got {short(element)}")
    return values


def check_numbers(values: Any, source: str) -> None:
    """Refuses text, booleans and null as inputs: NumPy would turn them into numbers."""
    if not isinstance(values, list):
        raise InputError(f"{source}: expected a list of elements")
    if values and isinstance(values[0], dict):
        return  # the task's schema says what is wrong with their values
    if {type(v) for e in values for v in (e if isinstance(e, list) else (e,))} <= {int, float}:
        return
    for k, element in enumerate(values, 1):
        for value in element if isinstance(element, list) else [element]:
            if type(value) not in (int, float):
                raise InputError(
                    f"{source}: element {k}: expected a number, got {json.dumps(value)[:40]}"
                )


def num_features(values: Any, source: str) -> int:
    """How many numbers the first element of an instance has."""
    check_numbers(values, source)
    if values and isinstance(values[0], dict):
        raise InputError(f"{source}: expected elements of numbers, got an object")
    if not values or values[0] == []:
        raise InputError(f"{source}: expected elements of one number or more")
    return len(values[0]) if isinstance(values[0], list) else 1


def flat_indices(outputs: Any, item_size: int, source: str) -> list[int]:
    """The indices of an answer, one after another.

    Args:
        outputs: what should be a list of indices or, where `item_size` is not 1, of lists of
            `item_size` indices each.
        item_size: indices in an item of the answer.
        source: of the answer.

    Raises:
        InputError: anything else.
    """
    items = [outputs] if item_size == 1 else outputs
    is_nested = isinstance(items, list) and all(isinstance(item, list) for item in items)
    if not is_nested or not all(type(i) is int for item in items for i in item):
        lists = "" if item_size == 1 else f"lists of {item_size} "
        raise InputError(f"{source}: expected a list of {lists}whole numbers")
    for number, item in enumerate(items, 1):
        if item_size > 1 and len(item) != item_size:
            raise InputError(
                f"{source}: item {number}: expected {item_size} indices, got {len(item)}"
            )
    return [i for item in items for i in item]
