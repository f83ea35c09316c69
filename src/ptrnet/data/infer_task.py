"""What a user's own examples are: which rule their answers obey, and how their features lie.

Both follow from the memory-mapped examples. A file is read with the loosest task, as its rule is
not known yet; so whether answers obey a rule is checked here, and not by the reader.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from ptrnet.data import formats
from ptrnet.data.streams.memmap import MemmapExamples, open_memmap
from ptrnet.errors import InputError, unknown
from ptrnet.tasks.custom import CONSTRAINTS, MAX_LENGTH, MIN_SPREAD, Custom, Kind
from ptrnet.types import Floats, Indices

_CHUNK = 2**20  # elements and indices in memory at a time


class InferredTask(NamedTuple):
    """The task that a file's examples are of, and their sizes."""

    task: Custom
    sizes: Indices  # (m,) elements of each instance
    lengths: Indices  # (m,) indices of each answer


class _Summary(NamedTuple):
    """What one pass over a file's examples tells."""

    lowest: Floats  # (d,) the least value of each feature
    highest: Floats  # (d,)
    repeats: NDArray[np.bool_]  # (m,) whether an index stands twice in the answer


def infer_task(path: str, constraint: str | None = None) -> InferredTask:
    """The task of all examples of a file.

    Args:
        path: of the file.
        constraint: what answers are; the strictest that they obey when None.

    Raises:
        InputError: a file that cannot be used, an example without an answer, or the first answer
            that does not obey the constraint, by its line.
    """
    if constraint not in (None, *CONSTRAINTS):
        raise unknown("constraint", str(constraint), CONSTRAINTS)
    loosest = _loosest(formats.num_features(path))
    examples = open_memmap(path, loosest)
    summary = _summarise(examples)
    center, spread = _scaling(examples, summary)
    task = replace(
        loosest,
        constraint=cast("Kind", constraint or _strictest(examples, summary)),
        center=tuple(center.tolist()),
        spread=tuple(spread.tolist()),
        longest_answer=min(int(examples.lengths.max()), MAX_LENGTH),
        longest_share=min(float((examples.lengths / examples.sizes).max()), MAX_LENGTH),
    )
    _check_answers(path, task, examples, summary)
    return InferredTask(task, examples.sizes, examples.lengths)


def check_examples(path: str, task: Custom) -> None:
    """Refuses a file whose examples are not of the task.

    Raises:
        InputError: elements of other numbers, or the first answer that is too long or does not
            obey the constraint, by its line.
    """
    d = formats.num_features(path)
    if d != task.num_features:
        raise InputError(f"{path}: expected elements of {task.num_features} numbers, got {d}")
    examples = open_memmap(path, _loosest(d))
    _check_answers(path, task, examples, _summarise(examples))


def _loosest(d: int) -> Custom:
    """The task of which all examples with elements of d numbers are."""
    return Custom(center=(0.0,) * d, spread=(1.0,) * d)


def _summarise(examples: MemmapExamples) -> _Summary:
    num_indices = int(examples.sizes.max())
    lowest, highest, repeats = [], [], []
    for first, stop in _chunks(examples):
        elements = examples.elements(first, stop)
        lowest.append(elements.min(0))
        highest.append(elements.max(0))
        owners = np.repeat(np.arange(stop - first), examples.lengths[first:stop])
        pairs = np.sort(owners * num_indices + examples.indices(first, stop))
        repeated = pairs[1:][pairs[1:] == pairs[:-1]] // num_indices
        repeats.append(np.bincount(repeated, minlength=stop - first) > 0)
    return _Summary(np.min(lowest, 0), np.max(highest, 0), np.concatenate(repeats))


def _strictest(examples: MemmapExamples, summary: _Summary) -> Kind:
    """The strictest constraint that all answers obey."""
    if summary.repeats.any():
        return "free"
    return "permutation" if (examples.lengths == examples.sizes).all() else "subset"


def _check_answers(path: str, task: Custom, examples: MemmapExamples, summary: _Summary) -> None:
    """Refuses the first answer that is too long, or does not obey the constraint."""
    sizes, of_size = np.unique(examples.sizes, return_inverse=True)
    max_lengths = np.array([task.max_length(int(n)) for n in sizes])[of_size]
    refused = examples.lengths > max_lengths
    if task.constraint != "free":
        refused |= summary.repeats
    if task.constraint == "permutation":
        refused |= examples.lengths != examples.sizes
    if refused.any():
        _refuse(path, task, int(np.argmax(refused)))


def _refuse(path: str, task: Custom, number: int) -> NoReturn:
    """Raises what is wrong with an example's answer, by the example's line."""
    for example in islice(formats.read(path, _loosest(task.num_features)), number, None):
        n, outputs = len(example.inputs), example.outputs
        if outputs is None:
            break
        complaint = task.answer_error(n, outputs)
        if complaint:
            raise InputError(f'{example.source}: "outputs": answer: {complaint}')
        raise InputError(
            f"{example.source}: expected at most {task.max_length(n)} indices, got {len(outputs)}"
        )
    raise InputError(f"{path}: was changed while it was read")


def _scaling(examples: MemmapExamples, summary: _Summary) -> tuple[Floats, Floats]:
    """Mean and standard deviation `(d,)` of each feature; of one that never changes 1.

    A pass for the mean and one for the squares behind it: sums of squares about 0 lose the spread
    of values that are far from 0.
    """
    lowest, highest, _ = summary
    unit = np.maximum(np.abs(lowest), np.abs(highest))  # in which sums of squares stay finite
    unit = np.where(unit > 0, unit, 1)
    count = examples.sizes.sum()

    def parts() -> Iterator[Floats]:
        return (examples.elements(first, stop) / unit for first, stop in _chunks(examples))

    mean = np.sum([part.sum(0) for part in parts()], axis=0) / count
    squares = [((part - mean) ** 2).sum(0) for part in parts()]
    spread = np.sqrt(np.sum(squares, axis=0) / count) * unit
    return mean * unit, np.where((lowest < highest) & (spread >= MIN_SPREAD), spread, 1)


def _chunks(examples: MemmapExamples) -> Iterator[tuple[int, int]]:
    """Ranges of examples, each of about _CHUNK elements and indices."""
    ends = np.cumsum(examples.sizes + examples.lengths)
    first = 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(ends, before + _CHUNK)))
        yield first, stop
        first = stop
