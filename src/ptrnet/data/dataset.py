"""Validate values in memory, and make datasets of examples.

One rule says what values are. They are one instance if they are an `Example`, a tuple `(inputs,
outputs)`, a frame, a dictionary of a problem's fields, or numbers or dictionaries in the shape of
an instance: `(n, d)`, or `(n,)` if d is 1. Otherwise, they are a list, an array or an iterator of
such instances.

Functions that solve, label, evaluate or train take a `Dataset`, and do not check its rows again.
Readers of files check each line, and `chunks_of` makes datasets of what they yield.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

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
from ptrnet.types import Dataset, Example, Indices

_TOGETHER = 256  # how many rows of a file become a dataset


def chunks_of(examples: Iterable[Example], size: int) -> Iterator[Dataset]:
    """Yield examples as datasets of `size` rows; the last dataset may have fewer rows.

    This function does not check the examples: the caller must have validated them.
    """
    rest = iter(examples)
    while chunk := list(islice(rest, size)):
        yield Dataset.of(chunk)


def examples_of_rows(rows: Iterable[Mapping[str, Any]], path: str) -> Iterator[Example]:
    """Yield an example for each row that was read from a file, as a view of a larger dataset.

    The rows are validated arguments of `Example`. Those of standard input, `-`, are yielded
    immediately, because the next row may come much later.
    """
    rest = iter(rows)
    while chunk := list(islice(rest, 1 if path == "-" else _TOGETHER)):
        yield from Dataset.of_rows(chunk)


def chunks_by_elements(examples: Iterable[Example], num_elements: int) -> Iterator[Dataset]:
    """Yield examples as datasets. A dataset ends when it has `num_elements` elements or more."""
    chunk, count = list[Example](), 0
    for example in examples:
        chunk.append(example)
        count += len(example.inputs)
        if count >= num_elements:
            yield Dataset.of(chunk)
            chunk, count = [], 0
    if chunk:
        yield Dataset.of(chunk)


# Datasets of values in memory. Error messages name an instance by its index in the values.


def instances_of(values: Any, task: Task) -> tuple[Dataset, bool]:
    """Validate one instance or many. Return a dataset, and whether `values` was a single instance.

    Args:
        values: see the docstring of this module; or a `Dataset`, which is returned unchanged. The
            outputs of a tuple `(inputs, outputs)` are checked, but not kept.
    """
    if isinstance(values, Dataset):
        _check_width(values, task)
        return values, False
    items, is_one = _items(values, task, "instances")
    names = [f"instance {k}" for k in range(len(items))]
    pairs = {k for k, i in enumerate(items) if isinstance(i, tuple) and is_example(i, task)}
    if pairs:
        checked_examples([items[k] for k in pairs], [names[k] for k in pairs], task)
    instances = [item[0] if k in pairs else item for k, item in enumerate(items)]
    return checked_instances(instances, names, task), is_one


def examples_of(values: Any, task: Task) -> tuple[Dataset, bool]:
    """Validate one example or many. Return a dataset, and whether `values` was a single example.

    Args:
        values: an `Example` or a pair `(inputs, outputs)`, a list of these, or a `Dataset`. The
            answer of an `Example` may break the rules of the task, because a model may have given
            it. We only check that its indices are in range.

    Raises:
        InputError: an example is malformed or has no answer.
    """
    if isinstance(values, Dataset):
        _check_width(values, task)
        for row in values:
            checks.required_answer(row, task)
        return values, False
    items, is_one = _items(values, task, "examples")
    if is_one and not is_example(items[0], task):
        raise InputError(
            "examples: expected pairs of inputs (n, d) and outputs (m,), got an instance without "
            "an answer"
        )
    return checked_examples(items, [example_name(k, i) for k, i in enumerate(items)], task), is_one


def checked_instances(values: Sequence[Any], names: Sequence[str], task: Task) -> Dataset:
    """Validate instances, which error messages call by `names`. An `Example` keeps its columns."""
    rows = []
    for value, name in zip(values, names, strict=True):
        given, source = value, name
        if isinstance(value, Example):
            # Prefer `elements`: the schema of another model may have encoded `inputs`.
            given = value.inputs if value.elements is None else value.elements
            source = value.source or name
        if task.facts.schema is not None and is_frame(given):
            given = rows_of(given)
        features, elements = checks.encode(given, task, source), records_of(given)
        kept = value.to_row() if isinstance(value, Example) else {}
        rows.append({**kept, "inputs": features, "source": source, "elements": elements})
    data = Dataset.of_rows(rows)
    checks.check_instances(data, task)
    return data


def checked_examples(items: Sequence[Any], names: Sequence[str], task: Task) -> Dataset:
    """Validate `Example`s and pairs of inputs and outputs, which error messages call by `names`."""
    known = [
        (item, checks.required_answer(item, task, name))
        if isinstance(item, Example)
        else inputs_and_outputs(item, name)
        for item, name in zip(items, names, strict=True)
    ]
    data = checked_instances([inputs for inputs, _ in known], [f"{n}: inputs" for n in names], task)
    answers, pairs = list[Indices](), list[Example]()
    for row, item, (_, outputs), name in zip(data, items, known, names, strict=True):
        n = len(row.inputs)
        if isinstance(item, Example):
            outside = outputs[(outputs < 0) | (outputs >= n)]
            if outside.size:
                raise InputError(f"{name}: outputs: expected 0 to {n - 1}, got {outside[0]}")
            answers.append(outputs)
        else:
            answers.append(checks.check_outputs(outputs, n, task, f"{name}: outputs"))
            pairs.append(Example(row.inputs, answers[-1], f"{name}: outputs"))
    checks.check_feasible(pairs, task)
    sources = [
        (item.source if isinstance(item, Example) else "") or name
        for item, name in zip(items, names, strict=True)
    ]
    return data.with_answers(answers, data.columns.get("log_prob")).with_columns(source=sources)


def _items(values: Any, task: Task, name: str) -> tuple[list[Any], bool]:
    """Return the instances in values, and whether they are one instance, by the rule above."""
    if isinstance(values, str | Path):
        raise InputError(
            f"{name}: expected a list or an array, got the file {values}; a file is read by "
            "solve_file and evaluate_file, and a table if you give set_id"
        )
    if isinstance(values, Mapping):
        values = checks.from_dictionary(values, task, "instance 0")
    elif isinstance(values, list):
        values = [
            checks.from_dictionary(v, task, f"instance {k}") if isinstance(v, Mapping) else v
            for k, v in enumerate(values)
        ]
    values = unpack_objects(values)
    is_one = is_example(values, task) or _is_instance(values, task.facts.num_features)
    return [values] if is_one else split(values, name), is_one


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
