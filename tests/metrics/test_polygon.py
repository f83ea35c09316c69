"""Known polygons, and an independent count of crossings."""

from itertools import combinations

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.metrics import moments_of, polygon, summary
from ptrnet.metrics.polygon import same, simple
from ptrnet.types import Example

POINTS = np.array([[0.0, 0.0], [1, 0], [1, 1], [0, 1], [0.5, 0.5], [0.5, 0.0]])
TRUTH = np.array([0, 1, 2, 3])


def score(*answers, points=POINTS, truth=TRUTH):
    examples = [Example(points, truth)] * len(answers)
    scores = polygon.score(examples, [np.array(a, np.int64) for a in answers])
    return summary.summarize(moments_of(scores))


@pytest.mark.parametrize("answer", [[0, 1, 2, 3], [2, 3, 0, 1], [3, 2, 1, 0], [1, 2, 3, 0, 1]])
def test_start_direction_and_closing_repeat_do_not_matter(answer):
    measures = score(answer)
    assert measures["accuracy"].value == measures["simple"].value == measures["area"].value == 1


def test_half_of_the_hull_has_an_area_of_one_half():
    measures = score([0, 1, 2])
    assert measures["accuracy"].value == 0 and measures["simple"].value == 1
    assert measures["area"].value == pytest.approx(0.5)


@pytest.mark.parametrize("answer", [[0, 2, 1, 3], [0, 1], [0], [], [0, 1, 2, 1], [0, 5, 1]])
def test_crossing_and_repeated_vertices_are_not_simple(answer):
    """Crossing edges; too few vertices; a vertex twice; no area."""
    measures = score(answer)
    assert measures["simple"].value == 0
    assert measures["area"].fail and measures["area"].value is None


def test_area_fails_above_one_percent_only():
    right, wrong = [0, 1, 2, 3], [0, 2, 1, 3]
    at_limit = score(*[right] * 99, wrong)
    assert not at_limit["area"].fail and at_limit["area"].count == 99
    assert score(*[right] * 98, wrong, wrong)["area"].fail


def test_flat_truth_has_one_simple_answer_and_no_area():
    points = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]])
    measures = score([0, 2], [0, 1], points=points, truth=np.array([0, 2]))
    assert measures["accuracy"].value == measures["simple"].value == 0.5
    assert measures["area"].count == 0


def test_equal_points_are_one_vertex():
    points = np.concatenate([POINTS, POINTS[:1]])
    assert score([6, 1, 2, 3], points=points)["accuracy"].value == 1


def crosses(p, q, r, s):
    def side(a, b, c):
        return np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

    return side(p, q, r) != side(p, q, s) and side(r, s, p) != side(r, s, q)


def test_simple_against_a_count_of_crossings():
    rng = np.random.default_rng(1)
    rings = [rng.random((rng.integers(3, 7), 2)) for _ in range(300)]
    for ring, is_simple in zip(rings, simple(rings), strict=True):
        k = len(ring)
        edges = [(ring[i], ring[(i + 1) % k]) for i in range(k)]
        apart = [(i, j) for i, j in combinations(range(k), 2) if j - i > 1 and (i, j) != (0, k - 1)]
        assert is_simple == (not any(crosses(*edges[i], *edges[j]) for i, j in apart))


def test_same_is_by_coordinates_not_by_order():
    ring = np.random.default_rng(2).random((5, 2))
    assert same(ring, np.roll(ring[::-1], 2, axis=0))
    assert not same(ring, ring[[0, 2, 1, 3, 4]])


def test_a_label_scores_perfectly_and_a_hull_without_one_vertex_does_not():
    task = tasks.get("hull")
    points = task.sample(np.random.default_rng(3), 20, 12)
    answers = labellers.label(task, points)
    examples = [Example(p, a) for p, a in zip(points, answers, strict=True)]
    assert all(m.value == 1 for m in summary.measure(task, examples, answers).values())
    less = summary.measure(task, examples, [a[1:] for a in answers])
    assert less["accuracy"].value == 0 and less["area"].value < 1


def test_a_truth_without_area_is_no_division_by_zero():
    points = np.array([[0.0, 0.0], [1, 1], [2, 2], [0, 1]])
    measures = score([0, 2, 3], [0, 1, 2], points=points, truth=np.array([0, 1, 2]))
    assert measures["area"].count == 0 and measures["simple"].value == 0.5


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_scores_do_not_depend_on_magnitude(size):
    measures = score([0, 1, 2], [3, 2, 1, 0], points=POINTS * size)
    assert measures["area"].value == pytest.approx(0.75)
    assert measures["accuracy"].value == 0.5 and measures["simple"].value == 1


def test_a_sliver_is_the_same_in_either_direction():
    """Its area is smaller than the rounding errors of its terms, so floats cannot tell its sign."""
    ring = np.array([[0, 0], [2**52 + 1, 2**52], [2**52, 2**52 - 1]], float)
    for k in range(3):
        assert same(ring, np.roll(ring, k, axis=0)) and same(ring, np.roll(ring[::-1], k, axis=0))


@pytest.mark.parametrize("scale", [[1e300, 1e-300], [1, 1e-17], [1e-200, 1]])
def test_slivers_have_their_areas(scale):
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]) * scale
    measured = score([0, 1, 2], points=points, truth=np.arange(4))
    assert measured["simple"].value == 1
    assert measured["area"].value == pytest.approx(0.5)


def test_a_sliver_far_from_the_origin_has_its_area():
    points = np.array([[0, 0], [2, 1], [4, 2], [3, 2]]) * 2.0**10 + 2.0**50
    points[:, 1] = points[:, 0] + [0, -1, 0, 1]
    measured = score([0, 1, 2], points=points, truth=np.arange(4))
    assert measured["area"].value == pytest.approx(0.5)
