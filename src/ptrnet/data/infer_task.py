"""What a user's own examples are: what their answers have in common, and how features lie."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from ptrnet.data import formats
from ptrnet.data.streams.memmap import Packed, packed
from ptrnet.errors import InputError, unknown
from ptrnet.tasks.custom import CONSTRAINTS, MAX_LENGTH, MIN_SPREAD, Custom, Kind
from ptrnet.types import Floats, Indices

_AT_ONCE = 2**20  # elements that are looked at together


class InferredTask(NamedTuple):
    """What is said of a file of examples."""

    task: Custom
    sizes: Indices  # (m,) elements of each instance
    widths: Indices  # (m,) indices of each answer


def infer_task(name: str, constraint: str | None = None) -> InferredTask:
    """Reads all examples of a file.

    Args:
        name: of the file.
        constraint: what answers are; the strictest that they obey when None.

    Raises:
        InputError: a file that cannot be used, an example without an answer, or the first answer
            that does not obey the constraint, by its line.
    """
    if constraint not in (None, *CONSTRAINTS):
        raise unknown("constraint", str(constraint), CONSTRAINTS)
    loosest = _loosest(formats.num_features(name))
    file = packed(name, loosest)
    center, spread = _scaling(file)
    task = replace(
        loosest,
        constraint=cast("Kind", constraint or _strictest(file)),
        center=tuple(center.tolist()),
        spread=tuple(spread.tolist()),
        longest_answer=min(int(file.widths.max()), MAX_LENGTH),
        longest_share=min(float((file.widths / file.sizes).max()), MAX_LENGTH),
    )
    check_examples(name, task)
    return InferredTask(task, file.sizes, file.widths)


def check_examples(name: str, task: Custom) -> None:
    """Refuses a file whose examples are not of the task.

    Raises:
        InputError: elements of other numbers, or the first answer that is too long or does not
            obey the constraint, by its line.
    """
    d = formats.num_features(name)
    if d != task.num_features:
        raise InputError(f"{name}: expected elements of {task.num_features} numbers, got {d}")
    file = packed(name, _loosest(d))
    longest = np.array([task.max_length(n) for n in file.sizes])
    bad = CONSTRAINTS.index(_strictest(file)) > CONSTRAINTS.index(task.constraint)
    if bad or (file.widths > longest).any():
        for example in formats.read(name, task):
            outputs, most = example.outputs, task.max_length(len(example.inputs))
            if outputs is not None and len(outputs) > most:
                raise InputError(
                    f"{example.source}: expected at most {most} indices, got {len(outputs)}"
                )


def _loosest(d: int) -> Custom:
    """What any examples with elements of d numbers are of."""
    return Custom(center=(0.0,) * d, spread=(1.0,) * d)


def _strictest(file: Packed) -> Kind:
    """The strictest constraint that all answers obey."""
    most = int(file.sizes.max())
    for first, last in _chunks(file):
        indices, widths = file.indices(first, last), file.widths[first:last]
        owners = np.repeat(np.arange(last - first), widths)
        if len(np.unique(owners * most + indices)) < len(indices):
            return "free"
    return "permutation" if (file.widths == file.sizes).all() else "subset"


def _scaling(file: Packed) -> tuple[Floats, Floats]:
    """Mean and standard deviation `(d,)` of each feature; of one that never changes 1."""

    def parts() -> Iterator[Floats]:
        return (file.elements(*chunk) for chunk in _chunks(file))

    low = np.min([part.min(0) for part in parts()], axis=0)
    high = np.max([part.max(0) for part in parts()], axis=0)
    unit = np.maximum(np.abs(low), np.abs(high))  # in which sums of squares stay finite
    unit = np.where(unit > 0, unit, 1)
    count = file.sizes.sum()
    mean = np.sum([(part / unit).sum(0) for part in parts()], axis=0) / count
    squares = [((part / unit - mean) ** 2).sum(0) for part in parts()]
    spread = np.sqrt(np.sum(squares, axis=0) / count) * unit
    return mean * unit, np.where((low < high) & (spread >= MIN_SPREAD), spread, 1)


def _chunks(file: Packed) -> Iterator[tuple[int, int]]:
    """Ranges of examples of about so many elements and indices."""
    ends = np.cumsum(file.sizes + file.widths)
    first = 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _AT_ONCE)))
        yield first, last
        first = last
