"""Triangulations against exact arithmetic."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from ptrnet.labellers import qhull
from ptrnet.labellers.qhull import flip, label


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
    """Return every triangle whose circle contains no point, by brute force in fractions."""
    exact = [tuple(map(Fraction, map(float, p))) for p in points]
    empty = set()
    for triple in combinations(range(len(points)), 3):
        corners = [exact[k] for k in triple]
        others = [exact[k] for k in range(len(points)) if k not in triple]
        if turn(*corners) and all(in_circle(*corners, p) <= 0 for p in others):
            empty.add(triple)
    return empty


def triangles(points):
    row = label(np.asarray(points, float)[None])[0].reshape(-1, 3)
    assert len(set(map(tuple, np.sort(row, 1)))) == len(row)
    return set(map(tuple, np.sort(row, 1).tolist()))


@pytest.mark.parametrize("n", [3, 4, 5, 7, 10, 15])
def test_triangulations_equal_brute_force(n):
    rng = np.random.default_rng(n)
    for _ in range(8):
        points = rng.random((n, 2)) * 10.0 ** rng.integers(-200, 200)
        assert triangles(points) == empty_triangles(points)


@pytest.mark.parametrize("corner", [1e3, -1e6, 1e9])
def test_triangulations_far_from_the_origin_are_right(corner):
    """Maps in metres: Qhull alone would lose the digits that differ, and so whole vertices."""
    for seed in range(5):
        points = corner + np.random.default_rng(seed).random((12, 2))
        assert triangles(points) == empty_triangles(points)


def test_points_on_one_circle_get_one_of_the_right_answers():
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
    assert label(np.array([points], float))[0].shape == (0, 3)


def clusters(rng, n):
    corner = rng.integers(0, 2, (n, 2))
    return corner + (1 - 2 * corner) * rng.random((n, 2)) * 10.0 ** -rng.integers(6, 17)


def near_a_line(rng, n):
    x = rng.random(n)
    return np.column_stack([x, x / 3 + rng.standard_normal(n) * 10.0 ** -rng.integers(10, 18)])


def on_a_circle(rng, n):
    angles = 2 * np.pi * rng.integers(0, 60, n) / 60
    return np.column_stack([np.cos(angles), np.sin(angles)])


HOSTILE = {
    "clusters at corners": clusters,
    "denormal": lambda rng, n: rng.integers(0, 50, (n, 2)) * 5e-324,
    "near a line": near_a_line,
    "grid": lambda rng, n: rng.integers(0, 4, (n, 2)).astype(float),
    "tenths": lambda rng, n: rng.integers(0, 5, (n, 2)) / 10,
    "huge offset": lambda rng, n: 1e15 + rng.integers(0, 6, (n, 2)),
    "any magnitude": lambda rng, n: rng.random((n, 2)) * 10.0 ** rng.integers(-40, 40, (n, 2)),
    "circle": on_a_circle,
}


def hull_area(points):
    """Return twice the area of the hull of pairs of fractions, by the monotone chain."""
    ring = []
    for path in (sorted(set(points)), sorted(set(points), reverse=True)):
        chain = []
        for p in path:
            while len(chain) > 1 and turn(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        ring += chain[:-1]
    return sum(a[0] * b[1] - a[1] * b[0] for a, b in zip(ring, ring[1:] + ring[:1], strict=True))


def assert_delaunay(points):
    """Check in fractions: circles are empty, and the triangles' areas sum to the hull's."""
    exact = [tuple(map(Fraction, map(float, p))) for p in points]
    answer = [[exact[k] for k in t] for t in triangles(points)]
    for a, b, c in answer:
        assert turn(a, b, c) and all(in_circle(a, b, c, p) <= 0 for p in exact)
    area = hull_area(exact)
    assert sum(abs(turn(*t)) for t in answer) == area
    if area:
        assert {p for t in answer for p in t} == set(exact)
        assert {exact.index(exact[k]) for t in triangles(points) for k in t} == {
            k for t in triangles(points) for k in t
        }


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_sets_are_triangulated_right(kind):
    """Without our proof, one in ten triangulations of clusters at the corners would be wrong."""
    rng = np.random.default_rng(7)
    for _ in range(12):
        assert_delaunay(HOSTILE[kind](rng, int(rng.integers(3, 14))))


@pytest.mark.parametrize("kind", ["clusters at corners", "grid", "circle"])
def test_the_exact_algorithm_alone_gives_right_triangulations(kind, monkeypatch):
    def refuse(points):
        raise qhull.QhullError

    monkeypatch.setattr(qhull, "Delaunay", refuse)
    rng = np.random.default_rng(8)
    for _ in range(6):
        assert_delaunay(HOSTILE[kind](rng, int(rng.integers(3, 14))))


def test_a_triangulation_that_is_not_delaunay_is_flipped_until_it_is():
    """Start from a fan over points on a parabola, in which every edge is wrong."""
    n = 12
    points = np.column_stack([np.arange(n), np.arange(n) ** 2.0])
    fan = np.array([[0, k, k + 1] for k in range(1, n - 1)])
    flipped = flip(points, fan, fan[:, [2, 0]])
    assert set(map(tuple, np.sort(flipped, 1).tolist())) == empty_triangles(points)
