"""What makes an instance, and an answer to it, usable. Complaints name where it came from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ptrnet.data.sizes import LARGEST
from ptrnet.distances import EUCLIDEAN
from ptrnet.errors import InputError, short
from ptrnet.tasks.base import Task
from ptrnet.types import Answers, Floats, Indices

LARGEST_WHOLE = 1e10  # sums of 100,000 such distances are still exact floats


def instance(values: ArrayLike, task: Task, where: str) -> Floats:
    """`(n, d)` finite float64 numbers, n in 1..LARGEST.

    Raises:
        InputError: anything else; `where` opens the message.
    """
    d = task.num_features
    try:
        if np.iscomplexobj(values):  # whose imaginary part NumPy would drop
            raise TypeError
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where}: expected elements of {d} numbers each") from None
    if array.ndim == 1 and d == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != d:
        if array.size == 0:
            raise InputError(f"{where}: expected at least one element, got none")
        raise InputError(f"{where}: expected shape (n, {d}) for {task.name}, got {array.shape}")
    size(len(array), task, where)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"{where}: element {row + 1}, number {column + 1}: expected a finite number, "
            f"got {array[row, column]}"
        )
    fit(array, task, where)
    return array


def size(n: int, task: Task, where: str) -> None:
    """Refuses an instance of too few elements for the task, or of too many for any."""
    if not task.min_elements <= n <= LARGEST:
        raise InputError(f"{where}: expected {task.min_elements} to {LARGEST} elements, got {n}")


def fit(inputs: Floats, task: Task, where: str) -> None:
    """Refuses an instance that has no answer."""
    unfit = task.instance_error(inputs)
    if unfit:
        raise InputError(f"{where}: {unfit}")


def sizes(wanted: Sequence[int], task: Task) -> None:
    """Refuses sizes of which one is too small for the task."""
    if min(wanted) < task.min_elements:
        raise InputError(
            f"n: expected {task.min_elements} or more for {task.name}, got {min(wanted)}"
        )


def answer(values: Any, n: int, task: Task, where: str, first: int = 0) -> Indices:
    """0-based indices that `task` can accept as an answer to `n` elements.

    Args:
        values: flat whole numbers, counted from `first` (1 in the authors' text format).

    Raises:
        InputError: an index out of range, repeated where the task forbids it, or missing.
    """
    for place, value in enumerate(values, 1):
        if not first <= value < n + first:
            raise InputError(
                f"{where}: index {place}: expected {first} to {n - 1 + first}, got {value}"
            )
    if len(values) % task.item_size:
        raise InputError(
            f"{where}: answer: expected {task.item_size} indices for each item, "
            f"got {len(values)} in all"
        )
    (indices,) = task.unpad(
        Answers(np.asarray([values], np.int64) - first, np.array([len(values)]))
    )
    complaint = task.answer_error(n, indices, first)
    if complaint:
        raise InputError(f"{where}: answer: {complaint}")
    return indices


def measurable(inputs: Floats, distance: str, where: str) -> None:
    """Refuses coordinates so large that distances in whole numbers would not be exact."""
    if distance != EUCLIDEAN and np.abs(inputs).max() > LARGEST_WHOLE:
        raise InputError(
            f"{where}: {distance}: expected coordinates of at most {LARGEST_WHOLE:.0e}, "
            f"got {np.abs(inputs).max():.3g}"
        )


def take_distance(kept: dict[str, Any], inputs: Floats, task: Task, where: str) -> str:
    """Takes the key "distance" out of what else is said of an instance: `EUCLIDEAN` without it.

    Tasks that measure nothing leave it where it is: there it is a key like any other.

    Raises:
        InputError: a distance that the task does not know, or that the instance is too large for.
    """
    if task.distances == (EUCLIDEAN,):
        return EUCLIDEAN
    name = kept.pop("distance", EUCLIDEAN)
    if name not in task.distances:
        raise InputError(
            f'{where}: "distance": expected one of {", ".join(task.distances)}, '
            f"got {short(str(name))}"
        )
    measurable(inputs, name, where)
    return str(name)
