"""Examples from what users hold: pairs of inputs and outputs, arrays of any library."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.data import checks
from ptrnet.data.arrays import depth, is_frame, records_of, split, split_instances, to_array
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Example


def instances_of(values: Any, task: Task) -> tuple[list[Example], bool]:
    """One instance or many, as checked examples without answers; and whether it was one.

    Of a pair of inputs and outputs, or a list of such, the inputs.

    Raises:
        InputError: names the instance by its number, from 0 on.
    """
    if isinstance(values, Example):
        return [checked_instance(values, task, "instance 0")], True
    values = _without_answers(values, task)
    values = checks.frame_as_rows(values, task)
    instances, is_one = split_instances(values, task.num_features)
    checked = [checked_instance(item, task, f"instance {k}") for k, item in enumerate(instances)]
    return checked, is_one


def _without_answers(values: Any, task: Task) -> Any:
    """The inputs of one pair of inputs and outputs, or of each of a list; other values as are."""
    if _is_pair(values, task):
        return values[0]
    if isinstance(values, list) and values and all(_is_pair(item, task) for item in values):
        return [inputs for inputs, _ in values]
    return values


def _is_pair(values: Any, task: Task) -> bool:
    """Whether this is a tuple of inputs and outputs: not two instances, nor two elements of one."""
    if isinstance(values, Example) or not is_example(values, task):
        return False
    inputs, outputs = values
    try:
        indices = np.asarray(to_array(outputs, "", ""))
    except InputError:
        return False
    is_index = indices.dtype.kind in "iu" and indices.ndim == (1 if task.item_size == 1 else 2)
    return is_index and bool(indices.size) and int(indices.max()) < len(inputs)


def checked_instance(values: Any, task: Task, source: str) -> Example:
    """One instance, never taken for many, as a checked `Example` that keeps all it has."""
    example = values if isinstance(values, Example) else Example(values, source=source)
    source = example.source or source
    inputs = checks.frame_as_rows(_as_they_came(example), task)
    return example._replace(
        inputs=checks.check_instance(inputs, task, source),
        source=source,
        elements=records_of(inputs),
    )


def _as_they_came(example: Example) -> Any:
    """The elements as they came: `inputs` may be features of them that another model reads."""
    return example.inputs if example.elements is None else example.elements


def examples_of(values: Any, task: Task) -> tuple[list[Example], bool]:
    """One example with its answer or many, checked; and whether it was one.

    Args:
        values: an `Example` or a tuple of inputs and outputs; or a list of such.
        task: of the examples. What an `Example` of arrays holds is taken as it is: a model's
            answer that is none of the task may be measured, too.

    Raises:
        InputError: names the example by its number, from 0 on.
    """
    is_one = is_example(values, task)
    # An instance is 2 deep, `(n, d)`, and with d = 1 it may be flat, `(n,)`; pairs are deeper.
    if is_frame(values) or (not is_one and depth(values) == min(2, task.num_features)):
        raise InputError(
            "examples: expected pairs of inputs (n, d) and outputs (m,), got an instance without "
            "an answer"
        )
    items = [values] if is_one else split(values, "examples")
    return [checked_example(x, task, example_name(k, x)) for k, x in enumerate(items)], is_one


def example_name(number: int, item: Any) -> str:
    """What complaints call an item of a list of examples: its number, and where it comes from."""
    source = item.source if isinstance(item, Example) else ""
    return f"example {number}" + (f" ({source})" if source else "")


def one_example(values: Any, task: Task) -> Example:
    """One checked instance, with its answer where it has one. Raises InputError for many."""
    examples, is_one = (examples_of if has_answer(values, task) else instances_of)(values, task)
    if not is_one:
        raise InputError(f"expected one instance, got a list of {len(examples)}")
    return examples[0]


def is_example(values: Any, task: Task) -> bool:
    """Whether this is one `Example`, or one tuple of inputs and outputs."""
    if isinstance(values, Example):
        return True
    if not isinstance(values, tuple) or len(values) != 2:
        return False
    inputs, outputs = map(depth, values)
    return inputs == 2 if task.num_features > 1 else inputs > 0 and outputs == 1


def has_answer(values: Any, task: Task) -> bool:
    """Whether this is one `Example`, or one tuple, with an answer."""
    return is_example(values, task) and inputs_and_outputs(values, "")[1] is not None


def checked_example(pair: Any, task: Task, source: str) -> Example:
    """An example with its answer: an `Example`, or a pair of inputs and outputs that is checked."""
    if isinstance(pair, Example):
        checks.required_answer(pair, task, source)
        if isinstance(pair.inputs, np.ndarray) and isinstance(pair.outputs, np.ndarray):
            _check_indices(pair.outputs, len(pair.inputs), source)
            return pair
    inputs, outputs = inputs_and_outputs(pair, source)
    inputs = checks.frame_as_rows(inputs, task)
    instance = checks.check_instance(inputs, task, f"{source}: inputs")
    indices = checks.check_outputs(outputs, len(instance), task, f"{source}: outputs")
    elements = records_of(inputs)
    if isinstance(pair, Example):
        return pair._replace(inputs=instance, outputs=indices, elements=elements)
    return Example(instance, indices, source, elements=elements)


def _check_indices(outputs: NDArray[Any], n: int, source: str) -> None:
    """Refuses what points at no element; whether it is an answer of the task is not asked."""
    if outputs.dtype.kind not in "iu":
        raise InputError(f"{source}: outputs: expected whole numbers, got {outputs.dtype}")
    outside = outputs[(outputs < 0) | (outputs >= n)]
    if outside.size:
        raise InputError(f"{source}: outputs: expected 0 to {n - 1}, got {outside[0]}")


def inputs_and_outputs(pair: Any, source: str) -> tuple[Any, Any]:
    """The inputs and the outputs of an example. Raises InputError where it is no pair."""
    if isinstance(pair, Example):
        return pair.inputs, pair.outputs
    try:
        if isinstance(pair, Mapping | str):
            raise TypeError
        inputs, outputs = pair
    except (TypeError, ValueError):
        raise InputError(
            f"{source}: expected a pair of inputs (n, d) and outputs (m,), got "
            f"{type(pair).__name__}"
        ) from None
    return inputs, outputs


def pairs_of(inputs: Any, outputs: Any) -> Iterator[tuple[Any, Any]]:
    """The pairs of two sequences of equal length.

    Raises:
        InputError: they are none, or of different lengths.
    """
    xs, ys = split(inputs, "inputs"), split(outputs, "outputs")
    if len(xs) != len(ys):
        raise InputError(
            f"expected as many outputs as inputs, got {len(ys)} outputs and {len(xs)} inputs"
        )
    return zip(xs, ys, strict=True)
