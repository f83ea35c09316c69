import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.metrics import summary
from ptrnet.types import Example

SQUARE = np.array([[0.1, 0.1], [0.9, 0.9], [0.9, 0.1], [0.1, 0.9]])
TASK = tasks.get("tsp")


def canonical(points, *tours):
    inputs = np.repeat(points[None], len(tours), 0)
    canonical = TASK.canonicalize(inputs, [np.array(tour) for tour in tours])
    return [tour.tolist() for tour in canonical]


def test_from_the_first_city_counter_clockwise():
    same = [(0, 2, 1, 3), (2, 1, 3, 0), (3, 1, 2, 0), (1, 2, 0, 3)]
    assert canonical(SQUARE, *same) == [[0, 2, 1, 3]] * 4
    assert canonical(1e200 * (SQUARE - 5), *same) == [[0, 2, 1, 3]] * 4


def test_without_area_the_second_city_is_before_the_last():
    line = np.arange(4.0)[:, None].repeat(2, 1)
    assert canonical(line, (0, 3, 2, 1), (1, 2, 3, 0)) == [[0, 1, 2, 3]] * 2
    assert canonical(line[:2], (1, 0)) == [[0, 1]] and canonical(line[:1], (0,)) == [[0]]


def test_labels_are_the_shortest_and_canonical():
    assert labellers.label(TASK, SQUARE[None])[0].tolist() == [0, 2, 1, 3]


def test_invalid_answers_are_described():
    assert TASK.answer_error(4, np.array([0, 2, 1, 3])) is None
    assert (
        TASK.answer_error(4, np.array([0, 2, 1]), 1) == "expected each of 4 cities once, got no 4"
    )
    assert TASK.answer_error(4, np.array([0, 2, 1, 2]), 1) == "each index at most once, got 3 twice"


def test_any_start_and_direction_of_a_shortest_tour_is_correct():
    example = Example(SQUARE, np.array([0, 2, 1, 3]))
    assert summary.is_correct(TASK, example, np.array([3, 1, 2, 0]))
    assert not summary.is_correct(TASK, example, np.array([0, 1, 2, 3]))
    assert not summary.is_correct(TASK, example, np.array([0, 2, 1]))


def test_the_error_of_a_labeller_names_other_labellers_for_the_size():
    with pytest.raises(ValueError, match=r"held-karp: .* at most 20 .* got 21; .* size: exact, "):
        labellers.check_max_elements(TASK, "held-karp", 21)
    with pytest.raises(ValueError, match=r"got 100; labellers for this size: local-search"):
        labellers.check_max_elements(TASK, None, 100)
