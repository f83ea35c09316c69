"""Augmentation: other orders of an instance's elements, and the symmetries of the unit square.

`apply_symmetry` and `permute_elements` change instances, `remap_indices` takes answers along;
`canonicalize` brings examples into the one order that the model reads.
"""

from collections.abc import Callable

import numpy as np

from ptrnet.tasks.base import Task
from ptrnet.types import Answers, Floats, Indices

SYMMETRIES = 8

# What is done to examples each time that they are drawn: (generator, task, inputs (B, n, d),
# answers) to the new inputs and answers.
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
        answers: to them.

    Returns:
        The same shapes; right answers stay right, though perhaps not canonical.
    """
    batch, n, _ = inputs.shape
    if task.symmetric:
        inputs = apply_symmetry(inputs, rng.integers(SYMMETRIES, size=(batch,)))
    order = rng.permuted(np.tile(np.arange(n), (batch, 1)), axis=1)
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
        number: 0 is the instance as it is; 1 to 7 are the other symmetries of the square where
            the task allows them, and so on with other orders. The order is drawn by the number,
            unless the task has one that the model reads.
        task: of the instance.
        instance: `(n, d)` in the unit cube.

    Returns:
        The view `(n, d)`, and `(n,)`: which element of the instance each of its elements is.
    """
    order = np.arange(len(instance))
    if number:
        if task.symmetric:
            (instance,) = apply_symmetry(instance[None], np.array([number % SYMMETRIES]))
        order = np.random.default_rng([number, len(instance)]).permutation(len(instance))
    order = order[task.element_order(instance[None, order])[0]]
    return instance[order], order


def apply_symmetry(points: Floats, symmetries: Indices) -> Floats:
    """Points `(B, n, 2)`, row b moved by symmetry `symmetries[b]` of the unit square.

    Of the symmetries 0 to 7 the first leaves all as it is; bit 0 swaps x and y, then bit 1
    mirrors x, and bit 2 mirrors y.
    """
    bits = symmetries[:, None, None] >> np.arange(3) & 1  # (B, 1, 3)
    swapped = np.where(bits[..., :1], points[..., ::-1], points)
    return np.where(bits[..., 1:], 1 - swapped, swapped)


def permute_elements(inputs: Floats, order: Indices) -> Floats:
    """`(B, n, d)` instances; element i of row b is element `order[b, i]` of `inputs[b]`."""
    return np.take_along_axis(inputs, order[..., None], 1)


def remap_indices(answers: Answers, indices: Indices) -> Answers:
    """Answers in which `indices[b, i]` replaces each index i of row b.

    With an `order`, answers to permuted instances become answers to those before; with its
    argsort, the other way.
    """
    remapped = np.take_along_axis(indices, answers.indices, 1)
    return Answers(np.where(answers.mask, remapped, 0), answers.lengths)
