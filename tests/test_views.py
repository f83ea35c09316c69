import math

import numpy as np
import pytest

import ptrnet
from ptrnet import tasks
from ptrnet.metrics.tour import length
from ptrnet.types import Example
from ptrnet.views import best_answer

SQUARE = np.array([[0.1, 0.1], [0.9, 0.1], [0.9, 0.9], [0.1, 0.9]])


def best_of(task, *views):
    """Return the best of the answers of each view, which are pairs of a tour and a probability."""
    found = [[(np.array(tour), math.log(p)) for tour, p in view] for view in views]
    outputs, log_prob = best_answer(tasks.get(task), Example(SQUARE), found)
    return outputs.tolist(), log_prob


def test_probabilities_are_summed_over_views():
    """A probability of 0.5 loses against 0.3 + 0.3 of two views with equivalent answers."""
    found = best_of("hull", [([0, 1, 2], 0.5)], [([1, 2, 3, 0], 0.3)], [([0, 1, 2, 3], 0.3)])
    assert found == ([0, 1, 2, 3], math.log(0.3))


def test_view_counts_once_for_each_answer():
    twice = [([0, 1, 2, 3], 0.3), ([0, 1, 2, 3], 0.3)]
    assert best_of("hull", [([0, 1, 2], 0.5)], twice)[0] == [0, 1, 2]


def test_shortest_tour_is_chosen():
    views = [([0, 2, 1, 3], 0.9)], [([2, 1, 0, 3], 0.1)], [([0, 1, 1, 3], 0.9)]
    assert best_of("tsp", *views)[0] == [0, 1, 2, 3]


def test_invalid_answers_stay_unchanged():
    assert best_of("hull", [([1, 1], 0.9)], [([0, 1, 2], 0.1)])[0] == [1, 1]


@pytest.mark.parametrize("task", tasks.names())
@pytest.mark.parametrize("decoder", [ptrnet.Greedy(), ptrnet.Beam(2), ptrnet.Sample(2, seed=0)])
def test_augmented_answers_are_valid_and_do_not_depend_on_the_batch(small, task, decoder):
    solver = small(task, scale=8.0)
    instances = [solver.task.sample(np.random.default_rng(n), 1, n)[0] for n in (3, 6, 9, 6)]
    together = solver.solve(instances, decoder, augment=5)
    for instance, answer in zip(instances, together, strict=True):
        assert solver.task.answer_error(len(instance), answer) is None
        assert solver.solve(instance, decoder, augment=5).tolist() == answer.tolist()


def test_more_views_never_make_tours_longer(small):
    solver = small("tsp", scale=4.0)
    points = np.random.default_rng(3).random((12, 2))
    lengths = [length(points, solver.solve(points, augment=k, improve=False)) for k in (1, 4, 16)]
    assert lengths[0] >= lengths[1] >= lengths[2] and lengths[0] > lengths[2]


@pytest.mark.parametrize("bad", [0, 1.5, -1])
def test_invalid_number_of_views_is_refused(small, bad):
    with pytest.raises(ptrnet.InputError, match="augment"):
        small().solve(SQUARE, augment=bad)


def test_easy_hull_is_right_for_any_number_of_views():
    """The answers of all views are brought into the same canonical form."""
    model = ptrnet.load("hull")
    points = np.vstack([SQUARE, [[0.5, 0.5]]])
    assert model.solve(points, augment=9).tolist() == model.solve(points).tolist() == [0, 1, 2, 3]
