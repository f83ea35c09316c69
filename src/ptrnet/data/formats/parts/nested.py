"""Rows of keys and values, whose instances and answers are nested lists: from JSON or Parquet."""

import json
from typing import Any

from ptrnet.data import checks
from ptrnet.errors import InputError
from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats


def example_of(inputs: Floats, row: dict[str, Any], task: Task, source: str) -> Example:
    """The example of a row whose `inputs` are taken out; keys of no meaning are its `extra`.

    Raises:
        InputError: `outputs` that are no answer, or a `distance` that the task does not know.
    """
    outputs = row.pop("outputs", None)
    if outputs is not None:
        indices = flat_indices(outputs, task.item_size, f'{source}: "outputs"')
        outputs = checks.check_answer(indices, len(inputs), task, f'{source}: "outputs"')
    distance = checks.pop_distance(row, inputs, task, source)
    return Example(inputs, outputs, source, row, distance=distance)


def other_keys(example: Example) -> dict[str, Any]:
    """What a row says of an example beside its inputs and outputs."""
    distance = {} if example.distance == EUCLIDEAN else {"distance": example.distance}
    return {**distance, **example.extra}


def check_numbers(values: Any, source: str) -> None:
    """Refuses as inputs what NumPy would turn into numbers: text, booleans, null."""
    if not isinstance(values, list):
        raise InputError(f'{source}: "inputs": expected a list of elements')
    for k, element in enumerate(values, 1):
        for value in element if isinstance(element, list) else [element]:
            if type(value) not in (int, float):
                raise InputError(
                    f'{source}: "inputs": element {k}: expected a number, '
                    f"got {json.dumps(value)[:40]}"
                )


def num_features(values: Any, source: str) -> int:
    """How many numbers the first element of an instance has."""
    check_numbers(values, source)
    if not values or values[0] == []:
        raise InputError(f'{source}: "inputs": expected elements of one number or more')
    return len(values[0]) if isinstance(values[0], list) else 1


def flat_indices(outputs: Any, item_size: int, source: str) -> list[int]:
    """The indices of a list, or of a list of lists of `item_size` indices each."""
    items = [outputs] if item_size == 1 else outputs
    nested = isinstance(items, list) and all(isinstance(item, list) for item in items)
    if not nested or not all(type(i) is int for item in items for i in item):
        lists = "" if item_size == 1 else f"lists of {item_size} "
        raise InputError(f"{source}: expected a list of {lists}whole numbers")
    for number, item in enumerate(items, 1):
        if item_size > 1 and len(item) != item_size:
            raise InputError(
                f"{source}: item {number}: expected {item_size} indices, got {len(item)}"
            )
    return [i for item in items for i in item]
