"""Augmentation: other orders of an instance's elements, and the symmetries of the unit square.

`apply_symmetry` and `permute_elements` change instances, and `remap_indices` changes their answers
accordingly. `canonicalize` brings examples into the order that the model reads.
"""

from collections.abc import Callable

import numpy as np

from ptrnet.tasks.base import Task
from ptrnet.types import Answers, Floats, Indices

SYMMETRIES = 8  # of a square

# Changes examples each time that they are drawn. Takes a random generator, the task, inputs
# (B, n, d) and answers, and returns new inputs and answers of the same shapes.
Transform = Callable[[np.random.Generator, Task, Floats, Answers], tuple[Floats, Answers]]


def identity(
    rng: np.random.Generator, task: Task, inputs: Floats, answers: Answers
) -> tuple[Floats, Answers]:
    """Return the examples unchanged."""
    return inputs, answers


def augment(
    rng: np.random.Generator, task: Task, inputs: Floats, answers: Answers
) -> tuple[Floats, Answers]:
    """Shuffle the elements and, if the task allows it, rotate or mirror the square.

    Right answers stay right, but they may not be canonical.

    Args:
        rng: draws the order and the symmetry of each example.
        task: of the examples.
        inputs: `(B, n, d)` instances in the unit cube.
        answers: to the instances.
    """
    batch, n, _ = inputs.shape
    if task.symmetric:
        inputs = apply_symmetry(inputs, rng.integers(SYMMETRIES, size=(batch,)))
    order = np.tile(np.arange(n), (batch, 1))
    order[:, task.fixed :] = rng.permuted(order[:, task.fixed :], axis=1)
    return permute_elements(inputs, order), remap_indices(answers, np.argsort(order, axis=1))


def canonicalize(task: Task, inputs: Floats, answers: Answers) -> tuple[Floats, Answers]:
    """Return examples with elements in the order that the model reads, and canonical answers."""
    order = task.element_order(inputs)
    inputs = permute_elements(inputs, order)
    answers = remap_indices(answers, np.argsort(order, axis=1))
    return inputs, task.canonicalize(inputs, answers)


def augmented_view(number: int, task: Task, instance: Floats) -> tuple[Floats, Indices]:
    """Return a view of an instance for test-time augmentation: rotated or mirrored, and shuffled.

    Args:
        number: which view; 0 is the instance itself. `number % 8` is the symmetry of the square, if
            the task allows symmetries. The number is also the seed of the order, unless the task
            sets the order in which the model reads.
        task: of the instance.
        instance: `(n, d)` in the unit cube.

    Returns:
        The view `(n, d)`, and `(n,)`: the indices of its elements in the instance.
    """
    order = np.arange(len(instance))
    if number:
        if task.symmetric:
            (instance,) = apply_symmetry(instance[None], np.array([number % SYMMETRIES]))
        rng = np.random.default_rng([number, len(instance)])
        order[task.fixed :] = rng.permutation(order[task.fixed :])
    order = order[task.element_order(instance[None, order])[0]]
    return instance[order], order


def apply_symmetry(points: Floats, symmetries: Indices) -> Floats:
    """Return points `(B, n, 2)` with row b moved by symmetry `symmetries[b]` of the unit square.

    If elements have more numbers than two coordinates, these do not change. A symmetry is a number
    from 0 to 7: first, bit 0 swaps x and y; then bit 1 mirrors x, and bit 2 mirrors y.
    """
    bits = symmetries[:, None, None] >> np.arange(3) & 1  # (B, 1, 3)
    swapped = np.where(bits[..., :1], points[..., 1::-1], points[..., :2])
    moved = np.where(bits[..., 1:], 1 - swapped, swapped)
    return np.concatenate([moved, points[..., 2:]], -1)


def permute_elements(inputs: Floats, order: Indices) -> Floats:
    """Return instances `(B, n, d)` whose element i is element `order[b, i]` of `inputs[b]`."""
    return np.take_along_axis(inputs, order[..., None], 1)


def remap_indices(answers: Answers, indices: Indices) -> Answers:
    """Return answers in which `indices[b, i]` replaces each index i of row b.

    With the `order` of `permute_elements`, answers to the permuted instances become answers to the
    original ones. With its argsort, answers to the original instances become answers to the others.
    """
    remapped = np.take_along_axis(indices, answers.indices, 1)
    return Answers(np.where(answers.mask, remapped, 0), answers.lengths)
