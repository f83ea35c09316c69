"""Triangulations against exact arithmetic."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from ptrnet.labellers.qhull import label


def turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def in_circle(a, b, c, p):
    """Positive inside the circle through a, b and c, in fractions, by the lifted determinant."""
    rows = [[q[0] - p[0], q[1] - p[1]] for q in (a, b, c)]
    (ax, ay), (bx, by), (cx, cy) = rows
    a2, b2, c2 = (x * x + y * y for x, y in rows)
    value = ax * (by * c2 - b2 * cy) - ay * (bx * c2 - b2 * cx) + a2 * (bx * cy - by * cx)
    return value if turn(a, b, c) > 0 else -value


def empty_triangles(points):
    """Every triangle whose circle holds no point, by brute force in fractions."""
    exact = [tuple(map(Fraction, map(float, p))) for p in points]
    empty = set()
    for triple in combinations(range(len(points)), 3):
        corners = [exact[k] for k in triple]
        others = [exact[k] for k in range(len(points)) if k not in triple]
        if turn(*corners) and all(in_circle(*corners, p) <= 0 for p in others):
            empty.add(triple)
    return empty


def triangles(points):
    row = label(np.asarray(points, float)[None]).rows()[0].reshape(-1, 3)
    assert len(set(map(tuple, np.sort(row, 1)))) == len(row)
    return set(map(tuple, np.sort(row, 1).tolist()))


@pytest.mark.parametrize("n", [3, 4, 5, 7, 10, 15])
def test_equals_brute_force(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        points = rng.random((n, 2)) * 10.0 ** rng.integers(-200, 200)
        assert triangles(points) == empty_triangles(points)


@pytest.mark.parametrize("corner", [1e3, -1e6, 1e9])
def test_far_from_the_origin(corner):
    """Maps in metres: Qhull alone loses the digits that differ, and then whole vertices."""
    for seed in range(5):
        points = corner + np.random.default_rng(seed).random((12, 2))
        assert triangles(points) == empty_triangles(points)


def test_one_of_the_right_answers_where_points_lie_on_one_circle():
    grid = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0)), -1).reshape(-1, 2)
    answer = triangles(grid)
    assert len(answer) == 8 and answer <= empty_triangles(grid)


def test_of_equal_points_the_first_is_a_vertex():
    points = np.array([[0.0, 0.0], [1, 0], [1, 0], [0, 0], [0, 1], [1, 0.9], [0, 1]])
    assert triangles(points) == {(0, 1, 5), (0, 4, 5)}


@pytest.mark.parametrize(
    "points", [[[0, 0], [1, 1]], [[0, 0], [1, 1], [2, 2], [5, 5]], [[1, 1]] * 4, [[3, 4]]]
)
def test_points_on_one_line_have_no_triangle(points):
    assert label(np.array([points], float)).lengths.tolist() == [0]
