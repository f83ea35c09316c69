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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, overload

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
from ptrnet.types import Example, Floats, Indices

# The fields of an `Example` that a `Dataset` keeps as lists in `carried`, not as arrays.
_CARRIED = tuple(
    f for f in fields(Example) if f.name not in ("inputs", "outputs", "log_prob", "grades")
)


@dataclass(frozen=True, eq=False)
class Dataset(Sequence[Example]):
    """B instances, which may have different sizes. All elements are stored one after another.

    Row i is an instance with the elements `elements[starts[i]:starts[i + 1]]`. A dataset is a
    sequence of `Example`s: `data[3]` is a row, and `data[10:20]` is a view of ten rows. Each row
    unpacks as `(inputs, outputs)`. The arrays may be memory maps.

    Args:
        elements: `(num_elements, d)` float64, the elements of all instances.
        starts: `(B + 1,)`, the index in `elements` where each instance begins. The last entry is
            num_elements.
        answers: `(num_indices,)` 0-based indices of all answers, flat; None if no answer is known.
        answer_starts: `(B + 1,)`, the index in `answers` where each answer begins. The last entry
            is num_indices.
        is_answered: `(B,)`, which answers are known; None if all answers or no answers are known.
        item_size: the number of indices in one item of an answer, such as 3 for triangles.
        log_probs: `(B,)`, the log-probabilities of the answers; NaN for an answer that no model
            gave. None if no model gave an answer.
        grades: `(num_elements,)`, the grade of each element, NaN in rows without grades. None if
            no row has grades.
        carried: the other fields of `Example`: `source`, `extra`, `table`, `nodes`, `distance`,
            `rules`, `elements` (the user's dictionaries), `weight`, `group`. `carried` maps the
            name of a field to B values. Fields that have their default in all rows are left out.
        fingerprint: identifies the content of memory maps and long tables; empty for other data.

    Examples:
        >>> data, is_one = instances_of([[0.3, 0.1], [0.5, 0.2, 0.4]], tasks.get("sort"))
        >>> is_one, len(data), data.elements.ravel().tolist(), data.starts.tolist()
        (False, 2, [0.3, 0.1, 0.5, 0.2, 0.4], [0, 2, 5])
        >>> data[1].inputs.tolist()
        [[0.5], [0.2], [0.4]]
    """

    elements: Floats
    starts: Indices
    answers: Indices | None = None
    answer_starts: Indices | None = None
    is_answered: NDArray[np.bool_] | None = None
    item_size: int = 1
    log_probs: Floats | None = None
    grades: Floats | None = None
    carried: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    fingerprint: str = ""

    @classmethod
    def of(cls, examples: Iterable[Example], item_size: int = 1) -> "Dataset":
        """Make a dataset of examples that have been validated before.

        A `Dataset` is returned unchanged.

        Args:
            examples: the examples. The elements of all examples must have the same number of
                features.
            item_size: the number of indices in one item of an answer.
        """
        if isinstance(examples, Dataset):
            return examples
        rows = list(examples)
        elements = [row.inputs for row in rows]
        widths = {inputs.shape[1] for inputs in elements}
        if len(widths) > 1:  # possible for `tsp`: matrices of distances, and points in space
            raise InputError(
                "expected elements with the same number of features in all instances, got "
                f"{sorted(widths)}"
            )
        carried, grades, log_probs = {}, None, None
        for f in _CARRIED:
            values = [getattr(row, f.name) for row in rows]
            default = {} if f.name == "extra" else f.default
            if any(value != default for value in values):
                carried[f.name] = values
        if any(row.grades is not None for row in rows):
            parts = [
                np.full(len(row.inputs), np.nan) if row.grades is None else row.grades
                for row in rows
            ]
            grades = np.concatenate(parts)
        if any(row.log_prob is not None for row in rows):
            log_probs = np.array([np.nan if r.log_prob is None else r.log_prob for r in rows])
        data = cls(
            np.concatenate(elements) if elements else np.zeros((0, 1)),
            _starts_of([len(inputs) for inputs in elements]),
            item_size=item_size,
            grades=grades,
            carried=carried,
        )
        known = [row.outputs for row in rows]
        if any(outputs is not None for outputs in known):
            data = data.with_answers(known)
        return replace(data, log_probs=log_probs)

    def with_answers(
        self, answers: Sequence[Indices | None], log_probs: Floats | None = None
    ) -> "Dataset":
        """Return the same instances with other answers.

        Args:
            answers: B answers, `(m,)` or `(t, item_size)` each; None for an unknown answer.
            log_probs: `(B,)` log-probabilities of the answers; None if no model gave the answers.
        """
        known = [np.zeros(0, np.int64) if a is None else a.ravel() for a in answers]
        return replace(
            self,
            answers=np.concatenate([np.zeros(0, np.int64), *known]),
            answer_starts=_starts_of([len(a) for a in known]),
            is_answered=np.array([a is not None for a in answers], bool),
            log_probs=log_probs,
        )

    @cached_property
    def sizes(self) -> Indices:
        """`(B,)`: the number of elements of each instance."""
        return np.diff(self.starts)

    @cached_property
    def lengths(self) -> Indices:
        """`(B,)`: the number of indices of each answer; 0 for an unknown answer."""
        if self.answer_starts is None:
            return np.zeros(len(self), np.int64)
        return np.diff(self.answer_starts)

    @cached_property
    def weights(self) -> Floats | None:
        """`(B,)`: the weights of the instances in the losses of a training; None if all are 1."""
        values = self.carried.get("weight")
        return None if values is None else np.asarray(values, np.float64)

    @property
    def groups(self) -> Indices | None:
        """`(B,)`: the code of each instance's group; None if the instances have no groups."""
        return np.asarray(self.carried["group"]) if "group" in self.carried else None

    @property
    def indices(self) -> Indices:
        """`(num_indices,)`: a flat copy of all answers. All answers have to be known."""
        assert self.answers is not None
        return self.answers.astype(np.int64)

    def outputs(self, row: int) -> Indices | None:
        """Return the answer of one row, `(m,)` or `(t, item_size)`; None if it is unknown."""
        if self.answers is None or self.answer_starts is None:
            return None
        if self.is_answered is not None and not self.is_answered[row]:
            return None
        flat = self.answers[self.answer_starts[row] : self.answer_starts[row + 1]]
        outputs = np.asarray(flat, np.int64)
        return outputs if self.item_size == 1 else outputs.reshape(-1, self.item_size)

    def grades_in_order(self, row: int) -> Floats | None:
        """Return the grades `(m,)` of the elements in a row's answer, in the order of the answer.

        Return None if the row has no grades or no answer.
        """
        grades = self._grades(self.starts[row], self.starts[row + 1])
        if grades is None:
            return None
        outputs = self.outputs(row)
        return None if outputs is None else grades[outputs]

    def rows_of_one_size(self, rows: Indices) -> tuple[Floats, list[Indices]]:
        """Return inputs `(B, n, d)` and the answers of rows with n elements each."""
        assert self.answers is not None and self.answer_starts is not None
        elements = np.arange(self.sizes[rows[0]])
        inputs = self.elements[self.starts[rows][:, None] + elements]
        starts, lengths = self.answer_starts[rows], self.lengths[rows]
        stops = np.cumsum(lengths)
        places = np.repeat(starts + lengths - stops, lengths) + np.arange(stops[-1])
        flat = self.answers[places].astype(np.int64)
        if self.item_size > 1:
            flat, stops = flat.reshape(-1, self.item_size), stops // self.item_size
        return inputs, [flat[i:j] for i, j in pairwise([0, *stops.tolist()])]

    def chunks(self, size: int) -> Iterator["Dataset"]:
        """Yield views of `size` consecutive rows; the last view may have fewer rows."""
        for first in range(0, len(self), size):
            yield self[first : first + size]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> "Dataset": ...
    def __getitem__(self, index: int | slice) -> "Example | Dataset":
        if isinstance(index, slice):
            return self._view(*index.indices(len(self)))
        row = range(len(self))[index]  # resolves negative indices, and raises IndexError
        begin, end = self.starts[row], self.starts[row + 1]
        return Example(
            np.asarray(self.elements[begin:end]),
            self.outputs(row),
            log_prob=self._log_prob(row),
            grades=self._grades(begin, end),
            **{name: values[row] for name, values in self.carried.items()},
        )

    def _log_prob(self, row: int) -> float | None:
        if self.log_probs is None or np.isnan(self.log_probs[row]):
            return None
        return float(self.log_probs[row])

    def _grades(self, begin: int, end: int) -> Floats | None:
        if self.grades is None or begin == end or np.isnan(self.grades[begin]):
            return None
        return np.asarray(self.grades[begin:end])

    def _view(self, first: int, stop: int, step: int) -> "Dataset":
        if step != 1:
            raise InputError(f"Dataset: expected a slice of step 1, got {step}")
        stop = max(first, stop)
        rows, elements = slice(first, stop), slice(self.starts[first], self.starts[stop])
        answers, answer_starts = self.answers, self.answer_starts
        if answers is not None and answer_starts is not None:
            answers = answers[answer_starts[first] : answer_starts[stop]]
            answer_starts = answer_starts[first : stop + 1] - answer_starts[first]
        return replace(
            self,
            elements=self.elements[elements],
            starts=self.starts[first : stop + 1] - self.starts[first],
            answers=answers,
            answer_starts=answer_starts,
            is_answered=None if self.is_answered is None else self.is_answered[rows],
            log_probs=None if self.log_probs is None else self.log_probs[rows],
            grades=None if self.grades is None else self.grades[elements],
            carried={name: values[rows] for name, values in self.carried.items()},
        )


def _starts_of(counts: Sequence[int]) -> Indices:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def chunks_of(examples: Iterable[Example], task: Task, size: int) -> Iterator[Dataset]:
    """Yield examples as datasets of `size` rows; the last dataset may have fewer rows.

    This function does not check the examples: the caller must have validated them.
    """
    rest = iter(examples)
    while chunk := list(islice(rest, size)):
        yield Dataset.of(chunk, task.facts.item_size)


def groups_of(examples: Iterable[Example], num_elements: int) -> Iterator[list[Example]]:
    """Split examples into lists. A list ends when it has `num_elements` elements or more."""
    group, count = list[Example](), 0
    for example in examples:
        group.append(example)
        count += len(example.inputs)
        if count >= num_elements:
            yield group
            group, count = [], 0
    if group:
        yield group


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
        values = task.from_dictionary(values, "instance 0")
    elif isinstance(values, list):
        values = [
            task.from_dictionary(value, f"instance {k}") if isinstance(value, Mapping) else value
            for k, value in enumerate(values)
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
    return Dataset.of(rows, task.facts.item_size), is_one


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
    return Dataset.of(rows, task.facts.item_size), is_one


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
    if len(data) and d != task.facts.num_features and "distance" not in data.carried:
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
    example = values if isinstance(values, Example) else Example(values, source=source)
    source = example.source or source
    # Prefer `elements`: the schema of another model may have encoded `inputs`.
    inputs = example.inputs if example.elements is None else example.elements
    instance, elements = _instance_of(inputs, task, source)
    return example.replace(inputs=instance, source=source, elements=elements)


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
