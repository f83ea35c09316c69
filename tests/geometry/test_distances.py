"""Distances against exact arithmetic, and against the expressions of TSPLIB's report."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ptrnet.geometry import distances

RNG = np.random.default_rng(0)
WHOLE = RNG.integers(-2000, 2000, (200, 2, 3))


def nearest_root(square):
    """Return the root of a fraction, rounded half up to an integer: floor(root + 1/2)."""
    return (math.isqrt(math.floor(4 * square)) + 1) // 2


def root_up(square):
    return 0 if square == 0 else math.isqrt(math.ceil(square) - 1) + 1


EXACT = {
    "EUC_2D": lambda *x: nearest_root(Fraction(sum(c * c for c in x))),
    "EUC_3D": lambda *x: nearest_root(Fraction(sum(c * c for c in x))),
    "CEIL_2D": lambda *x: root_up(Fraction(sum(c * c for c in x))),
    "ATT": lambda *x: root_up(Fraction(sum(c * c for c in x), 10)),
    "MAN_2D": lambda *x: sum(map(abs, x)),
    "MAN_3D": lambda *x: sum(map(abs, x)),
    "MAX_2D": lambda *x: max(map(abs, x)),
    "MAX_3D": lambda *x: max(map(abs, x)),
}


@pytest.mark.parametrize("name", EXACT)
def test_whole_coordinates_have_exact_distances(name):
    pairs = WHOLE if name.endswith("3D") else WHOLE[..., :2]
    expected = [EXACT[name](*(a - b)) for a, b in pairs.astype(object)]
    assert distances.between(*np.moveaxis(pairs.astype(float), 1, 0), name).tolist() == expected


@pytest.mark.parametrize("name", ["MAN_2D", "MAN_3D", "MAX_2D", "MAX_3D", "EUC_3D"])
def test_quarters_are_rounded_to_the_nearest(name):
    """Differences of quarters are exact in floats, so halves are exact, and are rounded up."""
    pairs = (RNG.integers(0, 40, (200, 2, 3)) / 4)[..., : 3 if name.endswith("3D") else 2]
    rules = {
        "MAN": lambda x: math.floor(sum(map(abs, x)) + Fraction(1, 2)),
        "MAX": lambda x: max(math.floor(abs(c) + Fraction(1, 2)) for c in x),
        "EUC": lambda x: nearest_root(sum(c * c for c in x)),
    }
    expected = [
        rules[name[:3]]([Fraction(x) - Fraction(y) for x, y in zip(a, b, strict=True)])
        for a, b in pairs.tolist()
    ]
    assert distances.between(*np.moveaxis(pairs, 1, 0), name).tolist() == expected


def test_halves_of_decimals_are_rounded_as_the_report_writes_it():
    """(347.42, 278.65) and (461.42, 193.15) are 142.5 apart, but hypot gives less."""
    a, b = np.array([[347.42, 278.65]]), np.array([[461.42, 193.15]])
    assert distances.between(a, b, "EUC_2D").tolist() == [143]
    assert distances.between(a, b, "CEIL_2D").tolist() == [143]
    legs = np.array([(3.0, 4.0), (5.0, 12.0), (8.0, 15.0), (28.0, 96.0)])[
        RNG.integers(4, size=5000)
    ]
    starts = RNG.integers(0, 10**5, (5000, 2)) / 100
    ends = np.round(starts + legs / 2 * RNG.integers(1, 40, (5000, 1)), 2)
    for name, rule in {
        "EUC_2D": lambda x, y: int(math.sqrt(x * x + y * y) + 0.5),
        "CEIL_2D": lambda x, y: math.ceil(math.sqrt(x * x + y * y)),
        "ATT": lambda x, y: math.ceil(math.sqrt((x * x + y * y) / 10.0)),
    }.items():
        expected = [rule(*pair) for pair in (starts - ends).tolist()]
        assert distances.between(starts, ends, name).tolist() == expected


def test_geo_distance_between_the_poles_is_half_the_circumference():
    """Half a great circle, by the report's radius and its 3.141592. Equal places are 1 km apart."""
    poles = np.array([[90.0, 0.0], [-90.0, 0.0], [-90.0, 0.0]])
    assert distances.matrix(poles, "GEO")[0, 1] == math.floor(6378.388 * 3.141592 + 1)
    assert distances.matrix(poles, "GEO")[1, 2] == 1


@pytest.mark.parametrize("name", ["XRAY1", "XRAY2"])
def test_motors_turn_at_once_and_the_first_the_shorter_way_round(name):
    """The oracle uses exact fractions. No time here is a half, so rounding is unambiguous."""
    speeds = [Fraction(s) for s in (("1", "1", "1") if name == "XRAY1" else ("5/4", "3/2", "1.15"))]
    angles = RNG.integers(0, 360_000, (300, 2, 3))  # thousandths of a degree
    expected = []
    for a, b in angles.tolist():
        turns = [Fraction(abs(x - y), 1000) for x, y in zip(a, b, strict=True)]
        turns[0] = min(turns[0], 360 - turns[0])
        time = 100 * max(turn / speed for turn, speed in zip(turns, speeds, strict=True))
        is_half = (2 * time).denominator == 1 and time.denominator != 1
        expected.append(None if is_half else round(time))
    found = distances.between(angles[:, 0] / 1000, angles[:, 1] / 1000, name).tolist()
    assert len(set(expected)) > 200
    assert [e for e in expected if e is not None] == [
        f for f, e in zip(found, expected, strict=True) if e is not None
    ]


def test_explicit_distances_are_the_matrix_with_a_zero_diagonal():
    given = RNG.random((5, 5))
    dist = distances.matrix(given, "EXPLICIT")
    assert (dist == np.where(np.eye(5), 0, given)).all() and given[0, 0] > 0
    path = np.array([3, 0, 4])
    assert distances.along(given, path, "EXPLICIT").tolist() == [given[3, 0], given[0, 4]]


def test_many_points_have_the_distances_of_few():
    points = RNG.random((300, 2)) * 100
    dist = distances.matrix(points, "EUC_2D")
    assert (dist[:200, :200] == distances.matrix(points[:200], "EUC_2D")).all()
