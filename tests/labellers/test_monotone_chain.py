"""The hull against Qhull on random points, and against exact arithmetic on grids."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from ptrnet import labellers, tasks
from ptrnet.labellers.monotone_chain import label


def hull(points):
    return label(np.asarray(points, np.float64)[None])[0].tolist()


@pytest.mark.parametrize("n", [3, 4, 5, 10, 50, 500])
def test_random_hulls_equal_qhulls(n):
    batch = np.random.default_rng(n).random((200, n, 2))
    for points, answer in zip(batch, label(batch), strict=True):
        expected = ConvexHull(points).vertices
        start = np.flatnonzero(expected == answer[0])[0]
        assert np.roll(expected, -start).tolist() == answer.tolist()


def turn(a, b, c):
    ax, ay, bx, by, cx, cy = map(Fraction, (*a, *b, *c))
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


def exact_vertices(points):
    """Return the first indices of points that are not convex combinations of others."""
    distinct = list(dict.fromkeys(map(tuple, points)))
    vertices = set()
    for p in distinct:
        others = [q for q in distinct if q != p]
        inside = any(
            turn(p, a, b) == 0 and (a[0] - p[0]) * (b[0] - p[0]) + (a[1] - p[1]) * (b[1] - p[1]) < 0
            for a in others
            for b in others
        ) or any(
            (s := {turn(a, b, p) > 0, turn(b, c, p) > 0, turn(c, a, p) > 0}) == {turn(a, b, c) > 0}
            and 0 not in (turn(a, b, p), turn(b, c, p), turn(c, a, p), turn(a, b, c))
            and s
            for a in others
            for b in others
            for c in others
        )
        if not inside:
            vertices.add(list(map(tuple, points)).index(p))
    return vertices


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_degenerate_sets_equal_exact_arithmetic(points):
    answer = hull(points)
    assert set(answer) == exact_vertices(points)
    assert len(answer) == len(set(answer))
    corners = [points[i] for i in answer]
    if len(answer) > 2:  # strictly counter-clockwise
        rings = zip(corners, corners[1:] + corners[:1], corners[2:] + corners[:2], strict=True)
        assert all(turn(*ring) > 0 for ring in rings)
    assert corners[0] == min(corners)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([[3, 4]], [0]),
        ([[1, 1], [0, 0]], [1, 0]),
        ([[2, 2], [2, 2], [2, 2]], [0]),
        ([[0, 0], [1, 1], [0.5, 0.5], [2, 2]], [0, 3]),
        ([[0.1, 0.3], [0.2, 0.6], [0.3, 0.9]], [0, 2]),  # collinear in decimal, but not in binary
        ([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0], [1, 0.5], [0, 0]], [0, 1, 2, 3]),
    ],
)
def test_degenerate_sets_have_the_documented_hull(points, expected):
    assert hull(points) == expected


def test_a_square_far_from_the_origin_keeps_its_corners():
    """Coordinates of a map grid: metres from a far origin."""
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]) + [500_000.0, 5_000_000.0]
    assert hull(square) == [0, 1, 2, 3]


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-5, 1e5, 1e200, 1e308])
def test_hulls_do_not_depend_on_magnitude(size):
    assert hull(np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]) * size) == [0, 1, 2, 3]


def test_axes_may_have_different_magnitudes():
    points = [[1.7e9, 0], [1700000100, 0], [1700000050, 1e-6], [1700000050, 5e-7]]
    assert hull(points) == [0, 1, 2]


def test_a_flat_curve_keeps_its_vertices():
    x = np.linspace(0, 1, 2000)
    assert hull(np.column_stack([x, 1.78e-12 * x**2])) == list(range(2000))


def monotone_chain_in_fractions(points):
    """Return the hull of whole numbers, from the leftmost vertex on."""
    exact = [tuple(map(Fraction, map(float, p))) for p in points]
    ring = []
    for path in (sorted(set(exact)), sorted(set(exact), reverse=True)):
        chain = []
        for p in path:
            while len(chain) > 1 and turn(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        ring += chain[:-1]
    ring = ring or exact[:1]
    return [exact.index(p) for p in ring]


@pytest.mark.parametrize("kind", range(4))
def test_whole_numbers_of_any_size_are_exact(kind):
    rng = np.random.default_rng(kind)
    for _ in range(25):
        n = rng.integers(3, 40)
        steps = np.arange(n)[:, None] * [10**13, 3 * 10**13]
        points = [
            10**15 + rng.integers(0, 4, (n, 2)),
            rng.integers(-(2**53), 2**53, (n, 1)) // [1, 3] + rng.integers(-2, 3, (n, 2)),
            rng.integers(0, 6, (n, 2)) * 3,
            steps + rng.integers(-1, 2, (n, 2)),
        ][kind].astype(float)
        points[-1] = points[0]
        assert hull(points) == monotone_chain_in_fractions(points)


def test_points_that_scaling_would_make_equal_stay_different():
    points = [[1e300, 0.0], [1e-300, 0], [0, 0], [0, 1e-300], [0, 1e300]]
    assert hull(points) == [2, 0, 4]
    assert hull([[0, 0], [5e-324, 5e-324], [5e-324, 0], [0, 5e-324]]) == [0, 2, 1, 3]


def test_a_sliver_runs_counter_clockwise():
    """The area of the sliver is smaller than the rounding errors of its determinant's terms."""
    points = np.array([[0, 0], [2**52 + 1, 2**52], [2**52, 2**52 - 1]], float)
    task = tasks.get("hull")
    assert labellers.label(task, points[None])[0].tolist() == [0, 2, 1]


def test_the_far_end_of_a_sliver_is_a_vertex():
    """Three points are on one line up to rounding, but their order by x is not that on the line."""
    points = [[20.999999999999993, 21], [20.999999999999993, 18.000000000000004]]
    points += [[21, 18.000000000000004], [20, 19], [19, 20]]
    assert hull(points) == [4, 2, 0]


def test_points_of_a_column_are_not_vertices_if_rounding_moved_them():
    """0.1 * 3 and 0.3 are meant to be the same x."""
    x = 0.1 * 3
    assert x != 0.3
    points = [[x, 0], [0.3, 0.5], [x, 1], [1, 0], [1, 1], [0.3, 0.25]]
    assert hull(points) == [0, 3, 4, 2]


def test_whole_numbers_beyond_2_to_the_53_lose_no_vertex():
    points = np.array([[0, 0], [4, -2], [8, 0], [4, 8]]) * 2.0 + 2.0**54
    assert hull(points) == [0, 1, 2, 3]
