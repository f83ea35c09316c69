import numpy as np
import pytest

from ptrnet.metrics import moments_of
from ptrnet.metrics.summary import summarize
from ptrnet.metrics.tour import length, score
from ptrnet.types import Example


def measure(examples, answers):
    return summarize(moments_of(score(examples, answers)))


SQUARE = np.array([[0.0, 0.0], [3, 0], [3, 4], [0, 4]])


def test_length_is_closed():
    assert length(SQUARE, np.array([0, 1, 2, 3])) == 14
    assert length(SQUARE, np.array([0, 2, 1, 3])) == 5 + 4 + 5 + 4
    assert length(SQUARE[:2], np.array([0, 1])) == 6
    assert length(SQUARE[:1], np.array([0])) == 0


@pytest.mark.parametrize(
    ("distance", "expected"), [("EUC_2D", 2 * 14 + 8), ("CEIL_2D", 2 * 15 + 8), ("ATT", 2 * 5 + 4)]
)
def test_lengths_use_the_distance_of_the_file(distance, expected):
    """Legs of 4 and 14.14; ATT: sqrt(16 / 10) = 1.26 up to 2, sqrt(200 / 10) = 4.47 up to 5."""
    points = np.array([[0.0, 0.0], [10, 10], [10, 14], [0, 4]])
    assert length(points, np.arange(4), distance) == expected


def test_gap_is_paired_and_the_invalid_are_left_out():
    examples = [Example(SQUARE, np.arange(4)), Example(2 * SQUARE, np.array([0, 2, 1, 3]))]
    measures = measure(
        [*examples, examples[0]], [np.array([0, 2, 1, 3]), np.arange(4), np.arange(3)]
    )
    assert (
        measures["length"].value == pytest.approx((18 + 28) / 2) and measures["length"].count == 2
    )
    assert measures["gap"].value == pytest.approx((4 / 14 - 8 / 36) / 2)
    assert measures["valid"].value == pytest.approx(2 / 3)


def test_repeats_are_not_valid_and_nothing_valid_has_no_length():
    measures = measure([Example(SQUARE, np.arange(4))], [np.array([0, 1, 2, 2])])
    assert measures["valid"].value == 0 and measures["length"].value is None


def test_one_place_has_no_gap():
    measures = measure([Example(np.ones((3, 2)), np.arange(3))], [np.array([0, 2, 1])])
    assert measures["gap"].value == 0 and measures["length"].value == 0


def test_a_longer_tour_than_one_of_no_length_has_no_gap():
    """EUC_2D rounds distances below a half to 0, and a gap relative to 0 is undefined."""
    points = np.array([[0.0, 0], [0.4, 0], [0.8, 0], [0.4, 0.2]])
    known, longer = np.array([0, 1, 2, 3]), np.array([0, 2, 1, 3])
    measures = measure([Example(points, known, distance="EUC_2D")], [longer])
    assert length(points, known, "EUC_2D") == 0 and measures["length"].value > 0
    assert measures["gap"].value is None and measures["gap"].count == 0
