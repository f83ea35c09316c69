"""`Dataset`: a table whose rows are instances, each with its answer if the answer is known.

Functions that solve, label, evaluate or train take a `Dataset`, and do not check its rows again.
Each instance and each answer is validated once, before the row is made:

- `instances_of` and `examples_of` validate values in memory.
- `chunks_of` takes the examples of a file, which the file's reader has validated.

The shape of values decides whether the values are one instance or many:

- One instance is an array, tensor or frame `(n, d)`, or nested lists of that shape. If d is 1, the
  shape may also be `(n,)`.
- Many instances are a list of instances, or an array `(B, n, d)`.
- A tuple `(inputs, outputs)` is an instance with its answer.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.data import checks
from ptrnet.data.arrays import (
    depth,
    is_frame,
    records_of,
    rows_of,
    split,
    split_instances,
    unpack_objects,
)
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import Element
from ptrnet.types import DEFAULTS, Dataset, Example, Floats

_TOGETHER = 256  # how many rows of a file become a dataset


def chunks_of(examples: Iterable[Example], size: int) -> Iterator[Dataset]:
    """Yield examples as datasets of `size` rows; the last dataset may have fewer rows.

    This function does not check the examples: the caller must have validated them.
    """
    rest = iter(examples)
    while chunk := list(islice(rest, size)):
        yield Dataset.of(chunk)


def views_of(rows: Iterable[Mapping[str, Any]], path: str) -> Iterator[Example]:
    """Yield an example for each row that was read from a file, as a view of a larger dataset.

    Args:
        rows: the arguments of `Example`, which have been validated.
        path: the file. Rows of standard input, `-`, are yielded immediately, because the next row
            may come much later.
    """
    rest = iter(rows)
    while chunk := list(islice(rest, 1 if path == "-" else _TOGETHER)):
        inputs = [row["inputs"] for row in chunk]
        grades = [row.get("grades") for row in chunk]
        columns = {
            name: [row.get(name, default) for row in chunk]
            for name, default in DEFAULTS.items()
            if any(row.get(name, default) != default for row in chunk)
        }
        data = Dataset(np.concatenate(inputs), np.cumsum([0, *map(len, inputs)]), columns=columns)
        if any(row.get("outputs") is not None for row in chunk):
            data = data.with_answers([row.get("outputs") for row in chunk])
        if any(part is not None for part in grades):
            filled = [
                np.full(len(elements), np.nan) if part is None else part
                for elements, part in zip(inputs, grades, strict=True)
            ]
            data = replace(data, grades=np.concatenate(filled))
        yield from data


def groups_of(examples: Iterable[Example], num_elements: int) -> Iterator[Dataset]:
    """Yield examples as datasets. A dataset ends when it has `num_elements` elements or more."""
    group, count = list[Example](), 0
    for example in examples:
        group.append(example)
        count += len(example.inputs)
        if count >= num_elements:
            yield Dataset.of(group)
            group, count = [], 0
    if group:
        yield Dataset.of(group)


# Datasets of values in memory. Error messages name an instance by its index in the values.


def instances_of(values: Any, task: Task) -> tuple[Dataset, bool]:
    """Validate one instance or many. Return a dataset, and whether `values` was a single instance.

    Args:
        values: see the docstring of this module. A dictionary holds the fields of one instance of a
            problem (`ptrnet.problems`). A `Dataset` is returned unchanged. The outputs of a tuple
            `(inputs, outputs)` are checked, but not kept.
        task: the task of the instances.
    """
    if isinstance(values, Dataset):
        _check_width(values, task)
        return values, False
    if isinstance(values, Mapping):
        values = checks.from_dictionary(values, task, "instance 0")
    elif isinstance(values, list):
        values = [
            checks.from_dictionary(v, task, f"instance {k}") if isinstance(v, Mapping) else v
            for k, v in enumerate(values)
        ]
    _check_in_memory(values, "instances")
    values = unpack_objects(values)
    is_one = is_example(values, task) or _is_instance(values, task.facts.num_features)
    rows = []
    for k, item in enumerate([values] if is_one else split(values, "instances")):
        if isinstance(item, tuple) and is_example(item, task):
            rows.append(checked_example(item, task, f"instance {k}").replace(outputs=None))
        else:
            rows.append(checked_instance(item, task, f"instance {k}"))
    return Dataset.of(rows), is_one


def examples_of(values: Any, task: Task) -> tuple[Dataset, bool]:
    """Validate one example or many. Return a dataset, and whether `values` was a single example.

    Args:
        values: an `Example` or a tuple `(inputs, outputs)`, a list of examples or tuples, or a
            `Dataset`. If an `Example` holds arrays, we only check the range of the indices. Its
            answer may be a model's answer, which may break the rules of the task.
        task: the task of the examples.

    Raises:
        InputError: an example is malformed or has no answer.
    """
    if isinstance(values, Dataset):
        _check_width(values, task)
        for row in values:
            checks.required_answer(row, task)
        return values, False
    _check_in_memory(values, "examples")
    is_one = is_example(values, task)
    if not is_one and _is_instance(values, task.facts.num_features):
        raise InputError(
            "examples: expected pairs of inputs (n, d) and outputs (m,), got an instance without "
            "an answer"
        )
    items = [values] if is_one else split(values, "examples")
    rows = [checked_example(item, task, example_name(k, item)) for k, item in enumerate(items)]
    return Dataset.of(rows), is_one


def _check_in_memory(values: Any, name: str) -> None:
    """Refuse the path of a file, which other functions read."""
    if isinstance(values, str | Path):
        raise InputError(
            f"{name}: expected a list or an array, got the file {values}; a file is read by "
            "solve_file and evaluate_file, and a table if you give set_id"
        )


def _check_width(data: Dataset, task: Task) -> None:
    """Refuse a dataset whose elements have another number of features than those of the task."""
    d = data.elements.shape[1]
    # Instances with other distances, such as matrices, may have any number of features.
    if len(data) and d != task.facts.num_features and "distance" not in data.columns:
        raise InputError(
            f"Dataset: expected elements of {task.facts.num_features} numbers for {task.name}, "
            f"got {d}"
        )


def one_example(values: Any, task: Task) -> Example:
    """Validate a single instance, with or without an answer, and return it as an `Example`."""
    data, is_one = (examples_of if has_answer(values, task) else instances_of)(values, task)
    if not is_one:
        raise InputError(f"expected one instance, got a list of {len(data)}")
    return data[0]


def is_example(values: Any, task: Task) -> bool:
    """Whether the values are an `Example`, or a tuple of an instance and an answer."""
    if isinstance(values, Example):
        return True
    if not isinstance(values, tuple) or len(values) != 2:
        return False
    inputs, outputs = map(depth, values)
    return inputs == 2 if task.facts.num_features > 1 else inputs > 0 and outputs == 1


def has_answer(values: Any, task: Task) -> bool:
    """Whether the values are one example whose answer is known."""
    return is_example(values, task) and inputs_and_outputs(values, "")[1] is not None


def _is_instance(values: Any, d: int) -> bool:
    """Whether the values have the shape of one instance; see the docstring of this module."""
    if is_frame(values):
        return True
    is_list = isinstance(values, list | tuple)
    if is_list and (not values or isinstance(values[0], Example) or is_frame(values[0])):
        return False  # a list of instances
    if isinstance(values, Mapping):
        return False
    ndim = depth(values)
    if d == 1 and is_list and ndim == 2:  # one instance (n, 1), or a list of instances (n,)
        return all(
            isinstance(row, Mapping) or (depth(row) == 1 and len(row) == 1) for row in values
        )
    return 0 < ndim <= (1 if d == 1 and is_list else 2)


def checked_instance(values: Any, task: Task, source: str) -> Example:
    """Validate one instance, and return it as an `Example`. An `Example` keeps its answer."""
    if not isinstance(values, Example):
        instance, elements = _instance_of(values, task, source)
        return Example(instance, source=source, elements=elements)
    source = values.source or source
    # Prefer `elements`: the schema of another model may have encoded `inputs`.
    inputs = values.inputs if values.elements is None else values.elements
    instance, elements = _instance_of(inputs, task, source)
    return values.replace(inputs=instance, source=source, elements=elements)


def checked_example(pair: Any, task: Task, source: str) -> Example:
    """Validate an `Example` with an answer, or a pair of inputs and outputs."""
    example = None
    if isinstance(pair, Example):
        example = pair
        checks.required_answer(pair, task, source)
        if isinstance(pair.inputs, np.ndarray) and isinstance(pair.outputs, np.ndarray):
            _check_indices(pair.outputs, len(pair.inputs), source)
            return pair
    inputs, outputs = inputs_and_outputs(pair, source)
    instance, elements = _instance_of(inputs, task, f"{source}: inputs")
    indices = checks.check_outputs(outputs, len(instance), task, f"{source}: outputs")
    checks.check_feasible([Example(instance, indices, f"{source}: outputs")], task)
    example = example or Example(instance, source=source)
    return example.replace(inputs=instance, outputs=indices, elements=elements)


def _instance_of(values: Any, task: Task, source: str) -> tuple[Floats, list[Element] | None]:
    """Validate an instance. Return its features, and its dictionaries or None (`records_of`)."""
    if task.facts.schema is not None and is_frame(values):
        values = rows_of(values)
    return checks.check_instance(values, task, source), records_of(values)


def _check_indices(outputs: NDArray[Any], n: int, source: str) -> None:
    """Refuse indices that are out of range. Accept answers that the task does not allow."""
    if outputs.dtype.kind not in "iu":
        raise InputError(f"{source}: outputs: expected whole numbers, got {outputs.dtype}")
    outside = outputs[(outputs < 0) | (outputs >= n)]
    if outside.size:
        raise InputError(f"{source}: outputs: expected 0 to {n - 1}, got {outside[0]}")


def example_name(number: int, item: Any) -> str:
    """Return the name of a list's item for error messages: its number, and its source if known."""
    source = item.source if isinstance(item, Example) else ""
    return f"example {number}" + (f" ({source})" if source else "")


def pairs_of(inputs: Any, outputs: Any, name: str = "inputs") -> Iterator[tuple[Any, Any]]:
    """Pair the items of two sequences. Raises InputError if their lengths differ."""
    xs, ys = split_instances(inputs, name), split(outputs, "outputs")
    if len(xs) != len(ys):
        raise InputError(
            f"expected as many outputs as inputs, got {len(ys)} outputs and {len(xs)} inputs"
        )
    return zip(xs, ys, strict=True)


def inputs_and_outputs(values: Any, source: str) -> tuple[Any, Any]:
    """Unpack a pair of inputs and outputs. Raises InputError if the values are not a pair."""
    try:
        if isinstance(values, Mapping | str):
            raise TypeError
        inputs, outputs = values
    except (TypeError, ValueError):
        raise InputError(
            f"{source}: expected a pair of inputs (n, d) and outputs (m,), got "
            f"{type(values).__name__}"
        ) from None
    return inputs, outputs
