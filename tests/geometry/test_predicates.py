"""Signs of determinants against fractions, on points that floats get wrong."""

from fractions import Fraction

import numpy as np
import pytest

from ptrnet.geometry import predicates
from ptrnet.geometry.predicates import Predicates, area_signs
from ptrnet.labellers import compiled


def points_near_a_line(rng):
    along = rng.integers(0, 6, (12, 1)) / 7
    return along * [1.0, 3.0] + [0.1, 0.2] + 2.0**-53 * rng.integers(-2, 3, (12, 2))


def points_on_a_circle(rng):
    angles = 2 * np.pi * rng.integers(0, 12, 12) / 12
    return np.stack([np.cos(angles), np.sin(angles)], -1) * 10.0 ** rng.integers(-200, 200)


def whole_numbers(rng):
    return rng.integers(0, 4, (12, 2)).astype(float)


def far_from_the_origin(rng):
    return 1e6 + 1e-9 * rng.random((12, 2))


KINDS = [points_near_a_line, points_on_a_circle, whole_numbers, far_from_the_origin]


def fractions(points):
    return [tuple(map(Fraction, p)) for p in points.tolist()]


def sign(number):
    return int(number > 0) - int(number < 0)


@pytest.mark.parametrize("kind", KINDS)
def test_turns_and_circles_have_the_signs_of_fractions(kind):
    rng = np.random.default_rng(0)
    for _ in range(10):
        points = kind(rng)
        exact, at = fractions(points), Predicates(points)
        i, j, k, p = rng.integers(0, 12, (4, 200))
        turns = [
            sign(predicates.turn(exact[a], exact[b], exact[c]))
            for a, b, c in zip(i, j, k, strict=True)
        ]
        assert at.turn(i, j, k).tolist() == turns
        # The oracle is the 3 by 3 determinant of the lifted points relative to p, expanded by rows.
        for a, b, c, d, actual in zip(i, j, k, p, at.in_circle(i, j, k, p), strict=True):
            rows = [(exact[m][0] - exact[d][0], exact[m][1] - exact[d][1]) for m in (a, b, c)]
            (ax, ay, al), (bx, by, bl), (cx, cy, cl) = ((x, y, x * x + y * y) for x, y in rows)
            det = ax * (by * cl - bl * cy) - ay * (bx * cl - bl * cx) + al * (bx * cy - by * cx)
            assert actual == sign(det)


@pytest.mark.parametrize("kind", KINDS)
def test_signs_beyond_rounding_are_those_of_the_slack_in_fractions(kind):
    rng = np.random.default_rng(1)
    for _ in range(10):
        points = kind(rng)
        exact, at = fractions(points), Predicates(points)
        rounded = predicates.is_rounded(points).astype(int).tolist()
        i, j, k, p = rng.integers(0, 12, (4, 100))
        turns, circles = at.turn_beyond_rounding(i, j, k), at.in_circle_beyond_rounding(i, j, k, p)
        for m, (a, b, c, d) in enumerate(zip(i, j, k, p, strict=True)):
            triple, flags = [exact[x] for x in (a, b, c)], [rounded[x] for x in (a, b, c)]
            det = predicates.turn(*triple)
            slack = predicates.turn_slack(triple, flags) * Fraction(predicates.ROUNDING)
            assert turns[m] == (sign(det) if abs(det) > slack else 0)
            four, flags = (*triple, exact[d]), (*flags, rounded[d])
            det = predicates.in_circle(*four)
            slack = predicates.in_circle_slack(four, flags) * Fraction(predicates.ROUNDING)
            assert circles[m] == (sign(det) if abs(det) > slack else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_area_signs_are_those_of_fractions(kind):
    rng = np.random.default_rng(2)
    points = np.stack([kind(rng) for _ in range(50)])
    rings, lengths = np.stack([rng.permutation(12) for _ in points]), rng.integers(1, 13, 50)
    for instance, ring, length, actual in zip(
        points, rings, lengths, area_signs(points, rings, lengths), strict=True
    ):
        path = [fractions(instance)[i] for i in ring[:length]]
        area = sum(
            a[0] * b[1] - b[0] * a[1] for a, b in zip(path, path[1:] + path[:1], strict=True)
        )
        assert actual == sign(area)


def test_compiled_formulas_equal_the_plain_ones_bit_for_bit():
    rng = np.random.default_rng(3)
    for _ in range(100):
        a, b, c, p, r, s, t = (tuple(pair) for pair in rng.standard_normal((7, 2)).tolist())
        for name, arguments in (
            ("turn", (a, b, c)),
            ("turn_terms", (a, b, c)),
            ("turn_slack", ((a, b, c), (r, s, t))),
            ("is_between", (a, b, c)),
            ("in_circle", (a, b, c, p)),
            ("in_circle_terms", (a, b, c, p)),
        ):
            assert getattr(compiled, name)(*arguments) == getattr(predicates, name)(*arguments)
