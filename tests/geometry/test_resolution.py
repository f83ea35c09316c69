"""Answers that are right up to a model's resolution become exact; wrong ones stay."""

from fractions import Fraction

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.geometry.predicates import MERGED, RESOLUTION, merge_near_points
from tests.stress import exact_answers

GAPS = [10.0**-k for k in range(6, 18)]
SORT, HULL, DELAUNAY = (tasks.get(name) for name in ("sort", "hull", "delaunay"))


def swapped(answer, i, j):
    """Return the answer with the elements i and j exchanged."""
    to = np.arange(10)
    to[[i, j]] = j, i
    return to[answer]


def pair_of_points(gap, seed):
    """Ten points, of which points 3 and 7 are corners of the hull, `gap` apart."""
    rng = np.random.default_rng(seed)
    points = rng.random((10, 2)) * 0.8 + 0.1
    angle = rng.random() * 7
    points[3] = rng.random(2) < 0.5
    points[7] = points[3] + gap * np.array([np.cos(angle), np.sin(angle)])
    return points


@pytest.mark.parametrize("gap", GAPS)
def test_sorted_up_to_resolution_becomes_exact(gap):
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.random(8)
        values[5] = values[2] + gap
        exact = sorted(range(8), key=lambda k: (Fraction(values[k]), k))
        answer = swapped(np.array(exact), 2, 5)
        assert SORT.facts.settle(values[:, None], answer).tolist() == exact


def test_wrong_order_beyond_resolution_stays():
    values = np.array([[0.1], [0.1 + 3 * RESOLUTION], [0.9]])
    assert SORT.facts.settle(values, np.array([1, 0, 2])).tolist() == [1, 0, 2]


@pytest.mark.parametrize("gap", [gap for gap in GAPS if gap > 1e-14])
def test_hull_up_to_resolution_becomes_exact(gap):
    for seed in range(20):
        points = pair_of_points(gap, seed)
        (exact,) = labellers.label(HULL, points[None])
        truth = exact_answers.hull_of(exact_answers.whole_points(points))
        one = exact if 3 in exact and 7 not in exact else exact[exact != 3]
        for answer in (swapped(exact, 3, 7), one, swapped(one, 3, 7)):
            settled = HULL.facts.settle(points, answer)
            whole = [exact_answers.whole_points(points)[k] for k in settled]
            assert sorted(whole) == sorted(truth)


def test_hull_without_a_far_corner_stays():
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]], float)
    assert HULL.facts.settle(points, np.array([0, 1, 2])).tolist() == [0, 1, 2]
    assert HULL.facts.settle(points, np.array([0, 2, 1, 3])).tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize("gap", GAPS)
def test_triangulation_up_to_resolution_becomes_exact(gap):
    for seed in range(10):
        points = pair_of_points(gap, seed)
        exact = exact_answers.whole_points(points)
        (label,) = labellers.label(DELAUNAY, points[None])
        # A model that cannot distinguish points 3 and 7 triangulates without one of them.
        merged = np.where(label == 7, 3, label)
        merged = merged[[len(set(t)) == 3 for t in merged.tolist()]]
        for answer in (merged, swapped(merged, 3, 7), swapped(label, 3, 7)):
            settled = DELAUNAY.facts.settle(points, answer)
            assert exact_answers.is_delaunay(exact, [tuple(t) for t in settled.tolist()])


def test_wrong_triangulations_stay():
    points = np.array([[0, 0], [1, 0.1], [0.9, 1], [0.1, 0.9]], float)
    (label,) = labellers.label(DELAUNAY, points[None])
    shared = set(label[0].tolist()) & set(label[1].tolist())
    flipped = np.array([sorted({0, 1, 2, 3} - {k}) for k in sorted(shared)])
    for answer in (label[:1], flipped):
        assert DELAUNAY.facts.settle(points, answer) is answer


def test_triangulation_without_a_small_triangle_stays():
    points = np.array([[0.49, 0.0005], [0.5, 0], [0.51, 0.0005], [0.5, 1]])
    (label,) = labellers.label(DELAUNAY, points[None])
    small = (np.sort(label, 1) == [0, 1, 2]).all(1)
    assert small.sum() == 1
    answer = label[~small]
    assert DELAUNAY.facts.settle(points, answer) is answer


def test_right_answers_stay_as_they_are():
    rng = np.random.default_rng(0)
    for n in (3, 7, 30):
        points = rng.random((n, 2))
        (ring,) = labellers.label(HULL, points[None])
        (triangles,) = labellers.label(DELAUNAY, points[None])
        assert HULL.facts.settle(points, np.roll(ring, 1)).tolist() == np.roll(ring, 1).tolist()
        assert DELAUNAY.facts.settle(points, triangles[::-1]).tolist() == triangles[::-1].tolist()


def test_only_near_points_are_merged():
    rng = np.random.default_rng(0)
    batch = rng.random((4, 9, 2))
    batch[2, 5] = batch[2, 1] + MERGED / 2
    batch[3, 5] = batch[3, 1] + [MERGED / 2, 2 * MERGED]
    merged = merge_near_points(batch)
    assert (merged[2, 5] == batch[2, 1]).all()
    batch[2, 5] = batch[2, 1]
    assert (merged == batch).all()
    assert (merge_near_points(batch[2]) == batch[2]).all()
