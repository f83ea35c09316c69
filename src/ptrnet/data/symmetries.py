"""Augment training examples: permute elements, apply symmetries, and read instances backwards.

`apply_symmetry` changes the coordinates of instances, which does not change answers.
`permute_elements` changes the order of elements, and `remap_indices` adapts the indices in answers
to this order. `canonicalize` sorts the elements into the order that the model reads.
"""

from collections.abc import Sequence

import numpy as np

from ptrnet.geometry.points import reading_order
from ptrnet.tasks.base import Task
from ptrnet.types import Floats, Indices

SYMMETRIES = 8  # four rotations of a square, with and without a reflection


def augment(
    rng: np.random.Generator, task: Task, inputs: Floats, answers: Sequence[Indices]
) -> tuple[Floats, Sequence[Indices]]:
    """Shuffle the elements of each example and apply the symmetries that the task allows.

    The first `fixed` elements stay in place. If the task is symmetric, apply a random symmetry of
    the square to each instance. If the task is reversible, read about half of the examples
    backwards. Correct answers remain correct, but may no longer be canonical.

    Args:
        rng: draws the order, the symmetry and the direction of each example.
        task: the task of the examples.
        inputs: `(B, n, d)` instances in the unit cube.
        answers: the answers to the instances.
    """
    batch, n, _ = inputs.shape
    if task.facts.symmetric:
        inputs = apply_symmetry(inputs, rng.integers(SYMMETRIES, size=(batch,)))
    if task.facts.mirror:
        turned = np.asarray(rng.random(batch) < 0.5)
        backwards = task.facts.mirror.answers(inputs, answers)
        inputs = np.where(turned[:, None, None], task.facts.mirror.inputs(inputs), inputs)
        answers = [backwards[k] if turned[k] else answers[k] for k in range(batch)]
    order = np.tile(np.arange(n), (batch, 1))
    order[:, task.facts.fixed :] = rng.permuted(order[:, task.facts.fixed :], axis=1)
    return permute_elements(inputs, order), remap_indices(answers, np.argsort(order, axis=1))


def canonicalize(
    task: Task, inputs: Floats, answers: Sequence[Indices]
) -> tuple[Floats, Sequence[Indices]]:
    """Sort elements into the order that the model reads, and make answers canonical."""
    if task.order != "given":
        order = reading_order(inputs, task.order)
        inputs = permute_elements(inputs, order)
        answers = remap_indices(answers, np.argsort(order, axis=1))
    return inputs, task.canonicalize(inputs, answers)


def apply_symmetry(points: Floats, symmetries: Indices) -> Floats:
    """Apply a symmetry of the unit square to each instance `(n, d)` of a batch.

    Only the first two features of an element change.

    Args:
        points: `(B, n, d)`; the first two features are coordinates.
        symmetries: `(B,)` numbers from 0 to 7. Bit 0 swaps x and y. Then bit 1 mirrors x, and bit 2
            mirrors y.

    Examples:
        >>> apply_symmetry(np.array([[[0.0, 0.25]]]), np.array([3])).tolist()  # swap, mirror x
        [[[0.75, 0.0]]]
    """
    bits = symmetries[:, None, None] >> np.arange(3) & 1  # (B, 1, 3)
    swapped = np.where(bits[..., :1], points[..., 1::-1], points[..., :2])
    moved = np.where(bits[..., 1:], 1 - swapped, swapped)
    return np.concatenate([moved, points[..., 2:]], -1)


def permute_elements(inputs: Floats, order: Indices) -> Floats:
    """Return instances `(B, n, d)` whose element i is element `order[b, i]` of `inputs[b]`."""
    return np.take_along_axis(inputs, order[..., None], 1)


def remap_indices(answers: Sequence[Indices], indices: Indices) -> list[Indices]:
    """Replace each index i in the answer of row b by `indices[b, i]`.

    If `indices` is the `order` of `permute_elements`, this function converts answers of the
    permuted instances to answers of the original instances. If `indices` is the argsort of `order`,
    the function converts in the opposite direction.

    Examples:
        >>> remap_indices([np.array([0, 2])], np.array([[5, 6, 7]]))
        [array([5, 7])]
    """
    return [row[answer] for row, answer in zip(indices, answers, strict=True)]
