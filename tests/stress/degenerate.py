"""Draw sets of points for which geometry in floats gives wrong answers."""

import numpy as np

from ptrnet.types import Floats


def degenerate_points(rng: np.random.Generator, n: int) -> tuple[str, Floats]:
    """Draw points `(n, 2)`, and return them with the name of their kind."""
    name = list(KINDS)[rng.integers(len(KINDS))]
    points = KINDS[name](rng, n)
    return name, rng.permutation(points, axis=0)


def _clusters(rng: np.random.Generator, n: int) -> Floats:
    centres = rng.random((3, 2))
    return centres[rng.integers(3, size=n)] + rng.normal(size=(n, 2)) * 10.0 ** rng.integers(
        -17, -2
    )


def _collinear(rng: np.random.Generator, n: int) -> Floats:
    """Draw points on a line, in floats or in integers; move some to the next float."""
    if rng.random() < 0.5:
        step = rng.integers(-50, 50, 2) * 10 ** rng.integers(0, 12)
        return (rng.integers(-9, 9, (n, 1)) * step + rng.integers(-50, 50, 2)).astype(float)
    points = rng.random(2) + rng.random((n, 1)) * rng.normal(size=2)
    return np.where(rng.random((n, 2)) < 0.2, np.nextafter(points, 9), points)


def _cocircular(rng: np.random.Generator, n: int) -> Floats:
    """Draw integers on one circle, or the floats that are nearest to a circle."""
    if rng.random() < 0.5:
        ring = [(x, y) for x in range(-65, 66) for y in range(-65, 66) if x * x + y * y == 65**2]
        return np.array(ring, float)[rng.integers(len(ring), size=n)] * 2.0 ** rng.integers(0, 40)
    angles = rng.random(n) * 2 * np.pi
    return np.column_stack([np.cos(angles), np.sin(angles)]) * 10.0 ** rng.integers(-9, 9)


def _duplicates(rng: np.random.Generator, n: int) -> Floats:
    few = rng.random((max(1, n // 2), 2)) if rng.random() < 0.5 else _grid(rng, n)
    return few[rng.integers(len(few), size=n)]


def _denormal(rng: np.random.Generator, n: int) -> Floats:
    points = rng.integers(-6, 7, (n, 2)) * 5e-324
    return np.where(rng.random((n, 2)) < 0.1, rng.random((n, 2)) * 1e-300, points)


def _huge_whole(rng: np.random.Generator, n: int) -> Floats:
    """Draw integers. Floats cannot represent some of them exactly."""
    corner = 2.0 ** rng.integers(40, 62)
    return corner * rng.integers(1, 3, 2) + rng.integers(-4, 5, (n, 2)) * max(1, corner / 2**52)


def _grid(rng: np.random.Generator, n: int) -> Floats:
    return rng.integers(0, 4, (n, 2)).astype(float)


def _near_grid(rng: np.random.Generator, n: int) -> Floats:
    points = _grid(rng, n) + rng.integers(1, 1000)
    steps = rng.integers(-2, 3, (n, 2))
    return points + steps * np.spacing(points)


def _sliver(rng: np.random.Generator, n: int) -> Floats:
    """Draw points that extend many magnitudes further along one axis than along the other."""
    return rng.random((n, 2)) * [10.0 ** rng.integers(0, 300), 10.0 ** rng.integers(-300, 0)]


def _far_from_origin(rng: np.random.Generator, n: int) -> Floats:
    return rng.random((n, 2)) + 10.0 ** rng.integers(5, 16)


KINDS = {
    "clusters": _clusters,
    "collinear": _collinear,
    "cocircular": _cocircular,
    "duplicates": _duplicates,
    "denormal": _denormal,
    "huge whole numbers": _huge_whole,
    "grid": _grid,
    "near grid": _near_grid,
    "sliver": _sliver,
    "far": _far_from_origin,
}
