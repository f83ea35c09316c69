"""Random elements in the unit cube: uniform, or with clusters, curves, ties or duplicates.

All instances of a call are of one kind, so that the instances are about equally hard.
"""

from collections.abc import Callable

import numpy as np

from ptrnet.types import Floats

UNIFORM, MIXED = "uniform", "mixed"

Shape = tuple[int, int, int]  # (B, n, d)


def sample_points(kind: str, rng: np.random.Generator, shape: Shape) -> Floats:
    """Return random elements `(B, n, d)` of a kind.

    For "mixed", draw the kind: "uniform" with probability 1/2, else another kind.

    Examples:
        >>> sample_points("mixed", np.random.default_rng(0), (32, 50, 2)).shape
        (32, 50, 2)
    """
    if kind == MIXED:
        kind = UNIFORM if rng.random() < 0.5 else str(rng.choice(list(_KINDS)[1:]))
    return _KINDS[kind](rng, shape)


def _clustered(rng: np.random.Generator, shape: Shape) -> Floats:
    """Gaussian clusters around 1 to 8 centres, with standard deviations of 0.01 to 0.2."""
    batch, n, features = shape
    centres = rng.random((batch, 8, features))
    deviations = 10 ** rng.uniform(-2, -0.7, (batch, 8, 1))
    cluster = (rng.integers(0, 8, (batch, n)) % rng.integers(1, 9, (batch, 1)))[..., None]
    points = np.take_along_axis(centres, cluster, 1)
    noise = rng.standard_normal(shape) * np.take_along_axis(deviations, cluster, 1)
    return _place_in_cube(rng, points + noise)


def _curves(rng: np.random.Generator, shape: Shape) -> Floats:
    """Points along an arc of a closed curve, with some noise.

    Each coordinate of the curve is a sum of three sine waves.
    """
    batch, n, features = shape
    angles = rng.random((batch, n, 1)) * rng.uniform(0.1, 1, (batch, 1, 1)) * 2 * np.pi
    points = np.zeros(shape)
    for wave in (1, 2, 3):
        phase = rng.uniform(0, 2 * np.pi, (batch, 1, features))
        amplitude = rng.standard_normal((batch, 1, features))
        points += np.sin(wave * angles + phase) * amplitude / wave**2
    deviation = 10 ** rng.uniform(-4, -1, (batch, 1, 1))
    return _place_in_cube(rng, points + deviation * rng.standard_normal(shape))


def _stretched(rng: np.random.Generator, shape: Shape) -> Floats:
    """Uniform points, stretched to be up to a hundred times as long as wide, and rotated."""
    return _place_in_cube(rng, _stretch_and_rotate(rng, rng.random(shape) - 0.5))


def _grid(rng: np.random.Generator, shape: Shape) -> Floats:
    """Points of a grid, 3 to 1,000 lines per axis: with ties, points on one line, and duplicates.

    About half of the instances have a little noise. Independently of this, about half are
    stretched and rotated.
    """
    batch, _, features = shape
    lines = np.round(10 ** rng.uniform(0.5, 3, (batch, 1, features)))
    points = np.floor(rng.random(shape) * lines) / lines
    deviation = 10 ** rng.uniform(-4, -2, (batch, 1, 1)) * (rng.random((batch, 1, 1)) < 0.5)
    points += deviation * rng.standard_normal(shape)
    rotated = rng.random((batch, 1, 1)) < 0.5
    return _place_in_cube(rng, np.where(rotated, _stretch_and_rotate(rng, points - 0.5), points))


def _duplicates(rng: np.random.Generator, shape: Shape) -> Floats:
    """Draw uniform points, and replace a share of 0.1 to 0.9 by copies of other points."""
    batch, n, _ = shape
    points = rng.random(shape)
    indices = rng.integers(0, n, (batch, n))
    repeats = rng.random((batch, n)) < rng.uniform(0.1, 0.9, (batch, 1))
    indices = np.where(repeats, indices, np.arange(n))
    return np.take_along_axis(points, indices[..., None], 1)


def _stretch_and_rotate(rng: np.random.Generator, points: Floats) -> Floats:
    """Scale each instance along its axes by 0.01 to 1, then rotate it about the origin."""
    batch, _, features = points.shape
    scales = 10 ** rng.uniform(-2, 0, (batch, 1, features))
    rotations, _ = np.linalg.qr(rng.standard_normal((batch, features, features)))
    return (points * scales) @ rotations


def _place_in_cube(rng: np.random.Generator, points: Floats) -> Floats:
    """Move instances into the unit cube.

    About half of the instances fill the cube. The other instances are smaller, and lie at random
    places in the cube.
    """
    minimum = points.min(1, keepdims=True)
    span = (points.max(1, keepdims=True) - minimum).max(2, keepdims=True)
    points = (points - minimum) / np.where(span > 0, span, 1)
    batch, _, features = points.shape
    size = np.where(rng.random((batch, 1, 1)) < 0.5, 1, 10 ** rng.uniform(-1, 0, (batch, 1, 1)))
    room = 1 - size * points.max(1, keepdims=True)
    return np.clip(points * size + room * rng.random((batch, 1, features)), 0, 1)


_KINDS: dict[str, Callable[[np.random.Generator, Shape], Floats]] = {
    UNIFORM: lambda rng, shape: rng.random(shape),
    "gaussian": lambda rng, shape: _place_in_cube(rng, rng.standard_normal(shape)),
    "clustered": _clustered,
    "curves": _curves,
    "stretched": _stretched,
    "grid": _grid,
    "duplicates": _duplicates,
}
