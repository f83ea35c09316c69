from itertools import combinations

import numpy as np
import pytest
from scipy.spatial import Delaunay

from ptrnet import labellers, tasks
from ptrnet.metrics import moments_of
from ptrnet.metrics.summary import summarize
from ptrnet.metrics.triangulation import is_delaunay, score
from ptrnet.types import Example


def measure(examples, answers):
    return summarize(moments_of(score(examples, answers)))


SQUARE = np.array([[0.0, 0.0], [1, 0], [1, 1], [0, 1]])
ONE, OTHER = np.array([[0, 1, 2], [0, 2, 3]]), np.array([[0, 1, 3], [1, 2, 3]])


def test_both_diagonals_of_a_square_are_right():
    for truth, answer in ((ONE, OTHER), (OTHER, ONE), (ONE, ONE[::-1, ::-1])):
        measures = measure([Example(SQUARE, truth)], [answer])
        assert measures["accuracy"].value == 1 and measures["triangle_coverage"].value == 1


@pytest.mark.parametrize(
    "answer",
    [
        [[0, 1, 2], [0, 1, 3]],  # overlap, and leave a part open
        [[0, 1, 2]],
        [[0, 1, 2], [0, 1, 2]],
        [[0, 1, 2], [0, 2, 2]],
    ],
)
def test_wrong_triangulations_of_a_square_are_wrong(answer):
    measures = measure([Example(SQUARE, ONE)], [np.array(answer)])
    assert measures["accuracy"].value == 0 and measures["triangle_coverage"].value == 0.5


def test_an_edge_that_is_not_delaunay_is_wrong():
    points = np.array([[0.0, 0.0], [2, 0], [2.2, 1], [0, 1]])
    wrong = np.array([[0, 1, 2], [0, 2, 3]])
    truth = np.array([[0, 1, 3], [1, 2, 3]])
    measures = measure([Example(points, truth)], [wrong])
    assert measures["accuracy"].value == 0 and measures["triangle_coverage"].value == 0
    assert is_delaunay(points, truth) and not is_delaunay(points, wrong)


@pytest.mark.parametrize(("nudge", "right", "wrong"), [(1, ONE, OTHER), (-1, OTHER, ONE)])
def test_points_slightly_off_a_circle_are_distinguished(nudge, right, wrong):
    """Point 1 leaves the circle of the others, or enters it, by more than rounding."""
    points = SQUARE.copy()
    points[1] = [1 + nudge * 1e-13, 0]
    assert is_delaunay(points, right) and not is_delaunay(points, wrong)
    points[1] = [np.nextafter(1, 1 + nudge), 0]
    assert is_delaunay(points, right) and is_delaunay(points, wrong)


@pytest.mark.parametrize("step", [0.1, 1 / 3, 1e-5])
@pytest.mark.parametrize("corner", [0.0, 7.7, 1e4])
def test_points_off_a_circle_only_by_rounding_count_as_on_it(step, corner):
    """A grid of tenths is not exact in binary. Each of its squares may be split either way."""
    x, y = np.meshgrid(np.arange(4) * step + corner, np.arange(4) * step + corner)
    points = np.stack([x.ravel(), y.ravel()], 1)
    assert is_delaunay(points, Delaunay((points - corner) / step).simplices)
    ring = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    circle = np.stack([np.cos(ring), np.sin(ring)], 1) * step + corner
    fan = np.array([[0, k, k + 1] for k in range(1, 11)])
    assert is_delaunay(circle, fan) and is_delaunay(circle, (fan + 5) % 12)


def test_only_one_of_all_sets_of_triangles_is_right():
    points = np.random.default_rng(3).random((5, 2)) * 1e5
    every = list(combinations(range(5), 3))
    truth = {tuple(sorted(t)) for t in Delaunay(points).simplices.tolist()}
    for size in range(1, 6):
        for subset in combinations(every, size):
            assert is_delaunay(points, np.array(subset)) == (set(subset) == truth)


@pytest.mark.parametrize("n", [4, 10, 40])
def test_qhulls_answers_are_right_and_parts_of_them_wrong(n):
    points = np.random.default_rng(n).random((n, 2)) * 1e5
    truth = Delaunay(points).simplices
    assert is_delaunay(points, truth)
    assert not is_delaunay(points, truth[1:])
    assert not is_delaunay(points, np.concatenate([truth[1:], truth[1:2]]))


def test_a_grid_has_many_right_answers_and_half_covered_ones_are_wrong():
    x, y = np.meshgrid(np.arange(3.0), np.arange(3.0))
    points = np.stack([x.ravel(), y.ravel()], 1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        answer = []
        for i in (0, 1, 3, 4):
            corners = [i, i + 1, i + 4, i + 3]
            answer += [[corners[k] for k in t] for t in (ONE, OTHER)[rng.integers(2)]]
        assert is_delaunay(points, np.array(answer))
        answer[0] = answer[2]
        assert not is_delaunay(points, np.array(answer))


def test_equal_points_may_stand_for_each_other():
    points = np.concatenate([SQUARE, SQUARE[:1]])
    assert is_delaunay(points, np.array([[4, 1, 2], [0, 2, 3]]))


def test_coverage_is_a_mean_over_instances():
    points = np.random.default_rng(1).random((6, 2))
    truth = Delaunay(points).simplices
    measures = measure([Example(points, truth)] * 2, [truth, truth[:1]])
    assert measures["triangle_coverage"].value == pytest.approx((1 + 1 / len(truth)) / 2)
    assert measures["accuracy"].value == 0.5


def test_a_wrong_edge_inside_a_narrow_cluster_is_wrong():
    """A distant third point makes all determinants of the cluster small."""
    cluster = np.array([[0, 0], [2e-9, 0], [2.2e-9, 1e-9], [0, 1e-9]])
    points = np.concatenate([cluster, [[1.0, 0.7]]])
    truth = labellers.label(tasks.get("delaunay"), points[None])[0]
    flipped = [t for t in truth.tolist() if not {1, 3} <= set(t)] + [[0, 1, 2], [0, 2, 3]]
    assert is_delaunay(points, truth)
    assert not is_delaunay(points, np.array(flipped))


def test_integers_are_read_exactly():
    points = 1e15 + np.array([[0, 0], [2, 0], [3, 1], [0, 1]])
    assert is_delaunay(points, OTHER) and not is_delaunay(points, ONE)


def test_what_lies_on_the_hull_but_for_rounding_may_have_a_sliver_or_none():
    points = np.array([[0.1, 0.3], [0.2, 0.6], [0.3, 0.9], [1.0, 0.0]])
    truth = labellers.label(tasks.get("delaunay"), points[None])[0]
    assert is_delaunay(points, np.array([[0, 1, 3], [1, 2, 3]]))
    assert measure([Example(points, truth)], [np.array([[0, 1, 3], [1, 2, 3]])])["accuracy"].value


def test_no_triangle_at_all_is_wrong():
    measures = measure([Example(SQUARE, ONE)], [np.empty((0, 3), np.int64)])
    assert measures["accuracy"].value == measures["triangle_coverage"].value == 0
