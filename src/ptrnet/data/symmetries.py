"""What changes an instance but not what it asks: orders of its elements, symmetries of the square.

`moved` and `reordered` change instances, `renamed` takes answers along; `arranged` brings
examples into the one order that the model reads.
"""

from collections.abc import Callable

import numpy as np

from ptrnet.tasks.base import Task
from ptrnet.types import Answers, Floats, Indices

SYMMETRIES = 8

# What is done to examples that are drawn: (generator, task, inputs (B, n, d), answers) to the
# new inputs and answers.
Change = Callable[[np.random.Generator, Task, Floats, Answers], tuple[Floats, Answers]]


def unchanged(
    rng: np.random.Generator, task: Task, inputs: Floats, answers: Answers
) -> tuple[Floats, Answers]:
    """The examples as they are."""
    return inputs, answers


def augmented(
    rng: np.random.Generator, task: Task, inputs: Floats, answers: Answers
) -> tuple[Floats, Answers]:
    """The examples in another order of elements and, where the task allows it, turned or mirrored.

    Args:
        rng: decides for each example alone.
        task: whose answers they are.
        inputs: `(B, n, d)` instances in the unit cube.
        answers: of them.

    Returns:
        The same shapes; right answers stay right, though perhaps not canonical.
    """
    batch, n, _ = inputs.shape
    if task.symmetric:
        inputs = moved(inputs, rng.integers(SYMMETRIES, size=(batch,)))
    order = rng.permuted(np.tile(np.arange(n), (batch, 1)), axis=1)
    return reordered(inputs, order), renamed(answers, np.argsort(order, axis=1))


def arranged(task: Task, inputs: Floats, answers: Answers) -> tuple[Floats, Answers]:
    """The examples with their elements in the order that the model reads, answers canonical."""
    order = task.element_order(inputs)
    inputs, answers = reordered(inputs, order), renamed(answers, np.argsort(order, axis=1))
    return inputs, task.canonicalize(inputs, answers)


def view(number: int, task: Task, instance: Floats) -> tuple[Floats, Indices]:
    """Another look at an instance, by number: turned or mirrored, its elements in another order.

    Args:
        number: 0 is the instance as it is; 1 to 7 are the other symmetries of the square where
            the task allows them, and so on with other orders. The order is drawn by the number,
            unless the task has one that the model reads.
        task: which the instance is of.
        instance: `(n, d)` in the unit cube.

    Returns:
        What the model is to see, and the element `(n,)` that each of its elements is.
    """
    order = np.arange(len(instance))
    if number:
        if task.symmetric:
            (instance,) = moved(instance[None], np.array([number % SYMMETRIES]))
        order = np.random.default_rng([number, len(instance)]).permutation(len(instance))
    order = order[task.element_order(instance[None, order])[0]]
    return instance[order], order


def moved(points: Floats, which: Indices) -> Floats:
    """Points `(B, n, 2)`, row b moved by symmetry `which[b]` of the unit square.

    Of the symmetries 0 to 7 the first leaves all as it is; bit 0 swaps x and y, then bit 1
    mirrors x, and bit 2 mirrors y.
    """
    bits = which[:, None, None] >> np.arange(3) & 1  # (B, 1, 3)
    swapped = np.where(bits[..., :1], points[..., ::-1], points)
    return np.where(bits[..., 1:], 1 - swapped, swapped)


def reordered(inputs: Floats, order: Indices) -> Floats:
    """`(B, n, d)` instances whose element i is the element `order[b, i]` of the given ones."""
    return np.take_along_axis(inputs, order[..., None], 1)


def renamed(answers: Answers, names: Indices) -> Answers:
    """Answers in which `names[b, i]` stands for each i of row b.

    With an `order`, answers to reordered instances become answers to the given ones; with its
    argsort, the other way.
    """
    indices = np.where(answers.mask, np.take_along_axis(names, answers.indices, 1), 0)
    return Answers(indices, answers.lengths)
