"""Symmetries and permutations keep correct answers correct."""

import itertools

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.data.batches import (
    SYMMETRIES,
    apply_symmetry,
    augment,
    canonicalize,
    permute_elements,
    remap_indices,
)
from ptrnet.errors import InputError
from ptrnet.metrics import summary
from ptrnet.types import Example

SQUARE = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])

# The boxes of a page are no points: their numbers are not free.
OF_POINTS = [name for name in tasks.names() if name != "reading-order"]


def test_the_eight_symmetries_map_the_square_to_itself():
    points = np.concatenate([SQUARE, [[0.25, 0.125], [0.5, 0.5]]])
    images = apply_symmetry(np.stack([points] * SYMMETRIES), np.arange(SYMMETRIES))
    assert images[0].tolist() == points.tolist()
    dists = [np.hypot(*(a - b)) for a, b in itertools.combinations(points, 2)]
    for image in images:
        assert [np.hypot(*(a - b)) for a, b in itertools.combinations(image, 2)] == dists
        assert sorted(image[:4].tolist()) == sorted(SQUARE.tolist())
        assert image[5].tolist() == [0.5, 0.5]
    assert len({tuple(image[4]) for image in images}) == 8


def test_permuting_and_remapping_by_hand():
    inputs = np.array([[[0.1], [0.2], [0.3]], [[0.4], [0.5], [0.6]]])
    order = np.array([[2, 0, 1], [1, 0, 2]])
    permuted = permute_elements(inputs, order)
    assert permuted[..., 0].tolist() == [[0.3, 0.1, 0.2], [0.5, 0.4, 0.6]]
    # The first answer points at 0.1 and 0.2, the second one at 0.6.
    answers = [np.array([0, 1]), np.array([2])]
    remapped = remap_indices(answers, np.argsort(order, axis=1))
    assert [row.tolist() for row in remapped] == [[1, 2], [2]]
    assert all(map(np.array_equal, remap_indices(remapped, order), answers))


@pytest.mark.parametrize("name", OF_POINTS)
@pytest.mark.parametrize("n", [3, 4, 9])
@pytest.mark.parametrize("steps", [4, 2**53], ids=["grid", "fine"])
def test_augmented_answers_are_correct(name, n, steps):
    """A coarse grid has equal points, points on a line and points on a circle."""
    task, rng = tasks.get(name), np.random.default_rng(n)
    inputs = rng.integers(0, steps, (60, n, task.facts.num_features), endpoint=True) / steps
    inputs = np.array([i for i in inputs if not task.instance_error(i)])
    labeller = "held-karp" if name == "tsp" else None  # exact, and equal cities do not slow it down
    inputs, mapped = augment(rng, task, inputs, labellers.label(task, inputs, labeller))
    answers = task.canonicalize(inputs, mapped)
    labels = labellers.label(task, inputs, labeller)
    for instance, answer, label in zip(inputs, answers, labels, strict=True):
        assert task.answer_error(n, answer) is None
        assert summary.is_correct(task, Example(instance, label), answer)
        if name == "hull" and steps == 2**53:
            assert answer.tolist() == label.tolist()


@pytest.mark.parametrize("name", OF_POINTS)
def test_draws_all_orders_and_symmetries_equally_often(name):
    task = tasks.get(name)
    instance = np.array([[0.0, 0.25], [0.5, 0.0], [0.75, 1.0]])[:, : task.facts.num_features]
    inputs = np.stack([instance] * 2000)
    augmented, _ = augment(np.random.default_rng(0), task, inputs, labellers.label(task, inputs))
    kinds, counts = np.unique(augmented.reshape(2000, -1), axis=0, return_counts=True)
    assert len(kinds) == (6 * 8 if task.facts.symmetric else 6)
    expected = 2000 / len(kinds)
    assert (abs(counts - expected) < 5 * expected**0.5).all()


@pytest.mark.parametrize("name", OF_POINTS)
@pytest.mark.parametrize("order", ["lexicographic", "hilbert"])
def test_canonical_examples_do_not_depend_on_the_given_order(name, order):
    if order == "hilbert" and tasks.get(name).facts.num_features != 2:
        with pytest.raises(InputError, match=r"hilbert takes elements of 2 numbers, got 1"):
            tasks.get(name, order=order)
        return
    task, rng = tasks.get(name, order=order), np.random.default_rng(4)
    inputs = rng.random((30, 7, task.facts.num_features))
    shuffled = permute_elements(inputs, rng.permuted(np.tile(np.arange(7), (30, 1)), axis=1))
    (first, answers), (second, others) = (
        canonicalize(task, i, labellers.label(task, i)) for i in (inputs, shuffled)
    )
    assert np.array_equal(first, second)
    for instance, answer, other in zip(first, answers, others, strict=True):
        (label,) = labellers.label(task, instance[None])
        assert summary.is_correct(task, Example(instance, label), answer)
        assert summary.is_correct(task, Example(instance, label), other)
