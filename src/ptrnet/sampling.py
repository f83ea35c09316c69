"""How the elements of drawn instances are spread. All lie in the unit cube.

One kind is drawn for a whole call, so that instances of one call are about as hard as each other.
"""

from collections.abc import Callable

import numpy as np

from ptrnet.types import Floats

UNIFORM, MIXED = "uniform", "mixed"


def draw(kind: str, rng: np.random.Generator, count: int, n: int, features: int) -> Floats:
    """`(count, n, features)` elements of a kind; of `mixed`, half are uniform, half of another."""
    if kind == MIXED:
        kind = UNIFORM if rng.random() < 0.5 else str(rng.choice(list(_KINDS)[1:]))
    return _KINDS[kind](rng, (count, n, features))


def _uniform(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    return rng.random(shape)


def _gaussian(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    return _placed(rng, rng.standard_normal(shape))


def _clustered(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Around 1 to 8 centres, each as wide as a hundredth to a fifth of the square."""
    count, n, features = shape
    centres = rng.random((count, 8, features))
    widths = 10 ** rng.uniform(-2, -0.7, (count, 8, 1))
    of = (rng.integers(0, 8, (count, n)) % rng.integers(1, 9, (count, 1)))[..., None]
    points = np.take_along_axis(centres, of, 1)
    return _placed(rng, points + rng.standard_normal(shape) * np.take_along_axis(widths, of, 1))


def _curves(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Along an arc of a closed curve of three waves in each coordinate, off it by up to a tenth."""
    count, n, features = shape
    along = rng.random((count, n, 1)) * rng.uniform(0.1, 1, (count, 1, 1)) * 2 * np.pi
    points = np.zeros(shape)
    for wave in (1, 2, 3):
        shift = rng.uniform(0, 2 * np.pi, (count, 1, features))
        points += np.sin(wave * along + shift) * rng.standard_normal((count, 1, features)) / wave**2
    width = 10 ** rng.uniform(-4, -1, (count, 1, 1))
    return _placed(rng, points + width * rng.standard_normal(shape))


def _stretched(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Uniform, then up to a hundred times as long as wide, and turned."""
    return _placed(rng, _turned(rng, rng.random(shape) - 0.5))


def _grid(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """On the crossings of a grid of 3 to 1,000 lines: ties, points on one line, duplicates.

    Every other instance is off them by a little, and every other is turned.
    """
    count, _, features = shape
    lines = np.round(10 ** rng.uniform(0.5, 3, (count, 1, features)))
    points = np.floor(rng.random(shape) * lines) / lines
    off = 10 ** rng.uniform(-4, -2, (count, 1, 1)) * (rng.random((count, 1, 1)) < 0.5)
    points += off * rng.standard_normal(shape)
    turned = rng.random((count, 1, 1)) < 0.5
    return _placed(rng, np.where(turned, _turned(rng, points - 0.5), points))


def _duplicates(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Uniform, of which a tenth to nine tenths repeat another."""
    count, n, _ = shape
    points = rng.random(shape)
    places = rng.integers(0, n, (count, n))
    repeats = rng.random((count, n)) < rng.uniform(0.1, 0.9, (count, 1))
    places = np.where(repeats, places, np.arange(n))
    return np.take_along_axis(points, places[..., None], 1)


def _turned(rng: np.random.Generator, points: Floats) -> Floats:
    """Each instance scaled along its axes by up to a hundred, then turned about the origin."""
    count, _, features = points.shape
    scales = 10 ** rng.uniform(-2, 0, (count, 1, features))
    turns, _ = np.linalg.qr(rng.standard_normal((count, features, features)))
    return (points * scales) @ turns


def _placed(rng: np.random.Generator, points: Floats) -> Floats:
    """Each instance in the unit cube: half of them fill it, half are smaller, at any place."""
    low = points.min(1, keepdims=True)
    span = (points.max(1, keepdims=True) - low).max(2, keepdims=True)
    points = (points - low) / np.where(span > 0, span, 1)
    count, _, features = points.shape
    size = np.where(rng.random((count, 1, 1)) < 0.5, 1, 10 ** rng.uniform(-1, 0, (count, 1, 1)))
    room = 1 - size * points.max(1, keepdims=True)
    return np.clip(points * size + room * rng.random((count, 1, features)), 0, 1)


_KINDS: dict[str, Callable[[np.random.Generator, tuple[int, int, int]], Floats]] = {
    UNIFORM: _uniform,
    "gaussian": _gaussian,
    "clustered": _clustered,
    "curves": _curves,
    "stretched": _stretched,
    "grid": _grid,
    "duplicates": _duplicates,
}
