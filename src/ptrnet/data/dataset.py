"""`Dataset`: instances and what is known of them, as columns.

Everything that answers, labels, measures or learns maps a `Dataset` to a `Dataset`. Rows become one
from values in memory (`instances_of`, `examples_of`), or from a file that `ptrnet.data.formats`
reads (`chunks_of`). Each instance and each answer is validated once, before it becomes a row. What
takes a `Dataset` does not check it again.

The rule for one or many: an array, tensor or frame `(n, d)`, or nested lists of that shape, is one
instance (`(n,)` as well where d = 1); a list of instances, or an array `(B, n, d)`, is many; and a
tuple `(inputs, outputs)` is an instance with its answer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ptrnet.data import checks
from ptrnet.data.arrays import depth, is_frame, records_of, split, unpack_objects
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Answers, Example, Floats, Indices

# The fields of an `Example` that are neither arrays of a `Dataset` nor derived from them.
_CARRIED = tuple(
    f for f in fields(Example) if f.name not in ("inputs", "outputs", "log_prob", "grades")
)


@dataclass(frozen=True, eq=False)
class Dataset(Sequence[Example]):
    """Ragged columns of B instances; row i is `elements[starts[i]:starts[i + 1]]`.

    A sequence of `Example`s: `data[3]` is one row, `data[10:20]` a view of ten rows, and each row
    unpacks as `(inputs, outputs)`. The arrays may be memory maps.

    Args:
        elements: `(num_elements, d)` float64, the elements of all instances, one after another.
        starts: `(B + 1,)`, where each instance begins in `elements`, and the end.
        answers: `(num_indices,)` 0-based indices of all answers, flat; None if no answer is known.
        answer_starts: `(B + 1,)`, where each answer begins in `answers`, and the end.
        is_answered: `(B,)`, which answers are known; None if all of `answers` are.
        item_size: the indices of one item of an answer: 3 for triangles.
        log_probs: `(B,)` of the answers, if a model gave them.
        grades: `(num_elements,)`, how right each element is; NaN in rows without grades. None if
            no row has any.
        carried: by name the B values of a field of `Example` that is carried along: `source`,
            `extra`, `table`, `nodes`, `distance`, `rules`, `elements` (the user's dictionaries).
        fingerprint: of the file that the arrays are of, if they are on disk.
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
        """Return the columns of examples that have been validated.

        Args:
            examples: all with elements of d numbers.
            item_size: of the task.
        """
        if isinstance(examples, Dataset):
            return examples
        rows = list(examples)
        elements = [row.inputs for row in rows]
        widths = {inputs.shape[1] for inputs in elements}
        if len(widths) > 1:  # matrices of distances, points of space
            raise InputError(
                f"expected instances with equally many numbers an element, got {sorted(widths)}"
            )
        carried, grades, log_probs = {}, None, None
        for f in _CARRIED:
            values = [getattr(row, f.name) for row in rows]
            default = {} if f.name == "extra" else f.default
            if any(value != default for value in values):
                carried[f.name] = values
        if any(row.grades is not None for row in rows):
            none = np.nan
            parts = [np.full(len(r.inputs), none) if r.grades is None else r.grades for r in rows]
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
        """Return the same instances with other answers: `(m,)` or `(t, item_size)`; None: unknown.

        Args:
            answers: B of them.
            log_probs: `(B,)`, if a model gave them.
        """
        known = [np.zeros(0, np.int64) if a is None else a.ravel() for a in answers]
        return replace(
            self,
            answers=np.concatenate([np.zeros(0, np.int64), *known]),
            answer_starts=_starts_of([len(a) for a in known]),
            is_answered=np.array([a is not None for a in answers], bool),
            log_probs=log_probs,
        )

    def with_extra(self, extra: Sequence[Mapping[str, Any]]) -> "Dataset":
        """Return the same rows with other values in `Example.extra`."""
        return replace(self, carried={**self.carried, "extra": extra})

    @cached_property
    def sizes(self) -> Indices:
        """`(B,)`: the number of elements of each instance."""
        return np.diff(self.starts)

    @cached_property
    def lengths(self) -> Indices:
        """`(B,)`: the number of indices of each answer; 0 if it is not known."""
        if self.answer_starts is None:
            return np.zeros(len(self), np.int64)
        return np.diff(self.answer_starts)

    @property
    def indices(self) -> Indices:
        """`(num_indices,)`: a copy of all answers, flat; they have to be known."""
        assert self.answers is not None
        return self.answers.astype(np.int64)

    def outputs(self, row: int) -> Indices | None:
        """Return the answer of one row, `(m,)` or `(t, item_size)`; None if it is not known."""
        if self.answers is None or self.answer_starts is None:
            return None
        if self.is_answered is not None and not self.is_answered[row]:
            return None
        flat = self.answers[self.answer_starts[row] : self.answer_starts[row + 1]]
        outputs = np.asarray(flat, np.int64)
        return outputs if self.item_size == 1 else outputs.reshape(-1, self.item_size)

    def grades_in_order(self, row: int) -> Floats | None:
        """Return the grades `(m,)` of a row's answer, element by element; None if it has none."""
        grades = self._grades(self.starts[row], self.starts[row + 1])
        if grades is None:
            return None
        outputs = self.outputs(row)
        return None if outputs is None else grades[outputs]

    def rows_of_one_size(self, rows: Indices) -> tuple[Floats, Answers]:
        """Return inputs `(B, n, d)` and padded answers `(B, M)` of rows that have one size n."""
        assert self.answers is not None and self.answer_starts is not None
        elements = np.arange(self.sizes[rows[0]])
        inputs = self.elements[self.starts[rows][:, None] + elements]
        starts, lengths = self.answer_starts[rows], self.lengths[rows]
        places = starts[:, None] + np.arange(lengths.max())
        mask = Answers(places, lengths).mask
        flat = self.answers[np.where(mask, places, 0)]
        return inputs, Answers(np.where(mask, flat, 0).astype(np.int64), lengths)

    def chunks(self, size: int) -> Iterator["Dataset"]:
        """Yield views of `size` rows, the last one of fewer."""
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
        row = range(len(self))[index]  # negative numbers count from the end; raises IndexError
        begin, end = self.starts[row], self.starts[row + 1]
        return Example(
            np.asarray(self.elements[begin:end]),
            self.outputs(row),
            log_prob=None if self.log_probs is None else float(self.log_probs[row]),
            grades=self._grades(begin, end),
            **{name: values[row] for name, values in self.carried.items()},
        )

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
    """Yield validated examples as datasets of `size` rows, the last one of fewer."""
    rest = iter(examples)
    while chunk := list(islice(rest, size)):
        yield Dataset.of(chunk, task.item_size)


# Datasets of values in memory. Messages name an instance by its number, from 0 on.


def instances_of(values: Any, task: Task) -> tuple[Dataset, bool]:
    """Return one instance or many as a dataset, and whether it was one.

    Args:
        values: by the rule of this module; a `Dataset` is taken as it is. The outputs of a tuple
            are checked, and left out.
        task: of the instances.
    """
    if isinstance(values, Dataset):
        return values, False
    if isinstance(values, Mapping):
        values = task.from_fields(values, "instance 0")
    elif isinstance(values, list):
        values = [
            task.from_fields(value, f"instance {k}") if isinstance(value, Mapping) else value
            for k, value in enumerate(values)
        ]
    values = unpack_objects(values)
    is_one = is_example(values, task) or _is_instance(values, task.num_features)
    rows = []
    for k, item in enumerate([values] if is_one else split(values, "instances")):
        if isinstance(item, tuple) and is_example(item, task):
            rows.append(checked_example(item, task, f"instance {k}").replace(outputs=None))
        else:
            rows.append(checked_instance(item, task, f"instance {k}"))
    return Dataset.of(rows, task.item_size), is_one


def examples_of(values: Any, task: Task) -> tuple[Dataset, bool]:
    """Return one example with its answer or many as a dataset, and whether it was one.

    Args:
        values: an `Example` or a tuple `(inputs, outputs)`; a list of such, or a `Dataset`. The
            arrays of an `Example` are taken as they are, so that an answer of a model that is not
            a valid answer of the task can be measured, too.
        task: of the examples.
    """
    if isinstance(values, Dataset):
        for row in values:
            checks.required_answer(row, task)
        return values, False
    is_one = is_example(values, task)
    if not is_one and _is_instance(values, task.num_features):
        raise InputError(
            "examples: expected pairs of inputs (n, d) and outputs (m,), got an instance without "
            "an answer"
        )
    items = [values] if is_one else split(values, "examples")
    rows = [checked_example(item, task, example_name(k, item)) for k, item in enumerate(items)]
    return Dataset.of(rows, task.item_size), is_one


def one_example(values: Any, task: Task) -> Example:
    """Return one validated instance, with its answer if it has one."""
    data, is_one = (examples_of if has_answer(values, task) else instances_of)(values, task)
    if not is_one:
        raise InputError(f"expected one instance, got a list of {len(data)}")
    return data[0]


def is_example(values: Any, task: Task) -> bool:
    """Whether this is an `Example`, or a tuple of an instance and an answer."""
    if isinstance(values, Example):
        return True
    if not isinstance(values, tuple) or len(values) != 2:
        return False
    inputs, outputs = map(depth, values)
    return inputs == 2 if task.num_features > 1 else inputs > 0 and outputs == 1


def has_answer(values: Any, task: Task) -> bool:
    """Whether this is one example whose answer is known."""
    return is_example(values, task) and inputs_and_outputs(values, "")[1] is not None


def _is_instance(values: Any, d: int) -> bool:
    """Whether this has the shape of one instance, by the rule of this module."""
    if is_frame(values):
        return True
    is_list = isinstance(values, list | tuple)
    if isinstance(values, Mapping) or (is_list and (not values or is_row(values[0]))):
        return False
    ndim = depth(values)
    if d == 1 and is_list and ndim == 2:  # (n, 1) if each row has one number; else rows are (n,)
        return all(
            isinstance(row, Mapping) or (depth(row) == 1 and len(row) == 1) for row in values
        )
    return 0 < ndim <= (1 if d == 1 and is_list else 2)


def is_row(values: Any) -> bool:
    """Whether this is a row of a dataset, or an instance that is a frame."""
    return isinstance(values, Example) or is_frame(values)


def checked_instance(values: Any, task: Task, source: str) -> Example:
    """Return one validated instance, which keeps everything that an `Example` knows."""
    example = values if isinstance(values, Example) else Example(values, source=source)
    source = example.source or source
    # `inputs` may be the features of the elements that another model reads.
    inputs = example.inputs if example.elements is None else example.elements
    inputs = checks.frame_as_rows(inputs, task)
    return example.replace(
        inputs=checks.check_instance(inputs, task, source),
        source=source,
        elements=records_of(inputs),
    )


def checked_example(pair: Any, task: Task, source: str) -> Example:
    """Return a validated example with its answer, from an `Example` or a pair."""
    example = None
    if isinstance(pair, Example):
        example = pair
        checks.required_answer(pair, task, source)
        if isinstance(pair.inputs, np.ndarray) and isinstance(pair.outputs, np.ndarray):
            _check_indices(pair.outputs, len(pair.inputs), source)
            return pair
    inputs, outputs = inputs_and_outputs(pair, source)
    inputs = checks.frame_as_rows(inputs, task)
    instance = checks.check_instance(inputs, task, f"{source}: inputs")
    indices = checks.check_outputs(outputs, len(instance), task, f"{source}: outputs")
    checks.check_feasible(instance, indices, task, f"{source}: outputs")
    example = example or Example(instance, source=source)
    return example.replace(inputs=instance, outputs=indices, elements=records_of(inputs))


def _check_indices(outputs: NDArray[Any], n: int, source: str) -> None:
    """Refuse indices of no element. The answer need not be one that the task allows."""
    if outputs.dtype.kind not in "iu":
        raise InputError(f"{source}: outputs: expected whole numbers, got {outputs.dtype}")
    outside = outputs[(outputs < 0) | (outputs >= n)]
    if outside.size:
        raise InputError(f"{source}: outputs: expected 0 to {n - 1}, got {outside[0]}")


def example_name(number: int, item: Any) -> str:
    """Return what messages call an item of a list: its number, and where it was read."""
    source = item.source if isinstance(item, Example) else ""
    return f"example {number}" + (f" ({source})" if source else "")


def pairs_of(inputs: Any, outputs: Any) -> Iterator[tuple[Any, Any]]:
    """Return the pairs of two sequences. Raises InputError if their lengths differ."""
    xs, ys = split(inputs, "inputs"), split(outputs, "outputs")
    if len(xs) != len(ys):
        raise InputError(
            f"expected as many outputs as inputs, got {len(ys)} outputs and {len(xs)} inputs"
        )
    return zip(xs, ys, strict=True)


def inputs_and_outputs(values: Any, source: str) -> tuple[Any, Any]:
    """Return inputs and outputs. Raises InputError if the values are not a pair."""
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
