"""Augmentation: other orders of an instance's elements, and the symmetries of the unit square.

`apply_symmetry` and `permute_elements` change instances, `remap_indices` takes answers along;
`canonicalize` brings examples into the one order that the model reads.
"""

from collections.abc import Callable

import numpy as np

from ptrnet.tasks.base import Task
from ptrnet.types import Answers, Floats, Indices

SYMMETRIES = 8  # of a square

# A change of examples each time that they are drawn. It takes a random generator, the task, inputs
# (B, n, d) and answers, and returns new inputs and answers of the same shapes.
Transform = Callable[[np.random.Generator, Task, Floats, Answers], tuple[Floats, Answers]]


def identity(
    rng: np.random.Generator, task: Task, inputs: Floats, answers: Answers
) -> tuple[Floats, Answers]:
    """The examples as they are."""
    return inputs, answers


def augment(
    rng: np.random.Generator, task: Task, inputs: Floats, answers: Answers
) -> tuple[Floats, Answers]:
    """Shuffles the elements and, where the task allows it, turns or mirrors the square.

    Args:
        rng: draws order and symmetry of each example.
        task: of the examples.
        inputs: `(B, n, d)` instances in the unit cube.
        answers: the answers to the instances.

    Returns:
        New inputs and answers of the same shapes; right answers stay right, though perhaps not
        canonical.
    """
    batch, n, _ = inputs.shape
    if task.symmetric:
        inputs = apply_symmetry(inputs, rng.integers(SYMMETRIES, size=(batch,)))
    order = np.tile(np.arange(n), (batch, 1))
    order[:, task.fixed :] = rng.permuted(order[:, task.fixed :], axis=1)
    return permute_elements(inputs, order), remap_indices(answers, np.argsort(order, axis=1))


def canonicalize(task: Task, inputs: Floats, answers: Answers) -> tuple[Floats, Answers]:
    """The examples with their elements in the order that the model reads, answers canonical."""
    order = task.element_order(inputs)
    inputs = permute_elements(inputs, order)
    answers = remap_indices(answers, np.argsort(order, axis=1))
    return inputs, task.canonicalize(inputs, answers)


def augmented_view(number: int, task: Task, instance: Floats) -> tuple[Floats, Indices]:
    """One view of an instance for test-time augmentation: turned or mirrored, and shuffled.

    Args:
        number: which view; 0 is the instance as it is. `number % 8` is the symmetry of the square,
            where the task allows symmetries. The order is drawn with the number as the seed, unless
            the task sets the order in which the model reads.
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
    """Points `(B, n, 2)`, row b moved by symmetry `symmetries[b]` of the unit square.

    Further numbers of an element, after its two coordinates, stay.

    A symmetry is a number from 0 to 7: first, bit 0 swaps x and y; then bit 1 mirrors x, and bit 2
    mirrors y. So 0 changes nothing.
    """
    bits = symmetries[:, None, None] >> np.arange(3) & 1  # (B, 1, 3)
    swapped = np.where(bits[..., :1], points[..., 1::-1], points[..., :2])
    moved = np.where(bits[..., 1:], 1 - swapped, swapped)
    return np.concatenate([moved, points[..., 2:]], -1)


def permute_elements(inputs: Floats, order: Indices) -> Floats:
    """`(B, n, d)` instances; element i of row b is element `order[b, i]` of `inputs[b]`."""
    return np.take_along_axis(inputs, order[..., None], 1)


def remap_indices(answers: Answers, indices: Indices) -> Answers:
    """Answers in which `indices[b, i]` replaces each index i of row b.

    Let `order` be that of `permute_elements`. With `indices = order`, answers to the permuted
    instances become answers to the original ones; with its argsort, the other way round.
    """
    remapped = np.take_along_axis(indices, answers.indices, 1)
    return Answers(np.where(answers.mask, remapped, 0), answers.lengths)
