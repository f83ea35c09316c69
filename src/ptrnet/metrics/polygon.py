"""Convex hulls as polygons: accuracy, simple and area (V 4.2, W)."""

from collections.abc import Iterable, Sequence

import numpy as np
import shapely
from numpy.typing import NDArray

from ptrnet.geometry import scale_by_power_of_two
from ptrnet.metrics.interval import Measure, mean, share
from ptrnet.types import Example, Floats, Indices

FAILS_ABOVE = 0.01  # V: the area is FAIL where more of the answers are not simple


def measure(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Measure]:
    """`accuracy`, `simple` and `area` of answers against the examples' own.

    - accuracy: the same polygon; start, direction and a closing repeat do not matter.
    - simple: at least three vertices, none twice, no edge through another. Where the true hull
      has no area, the right answer counts as simple, and no other.
    - area: the covered share of the true hull, mean over the simple answers whose hull has an
      area; FAIL where more than 1% are not simple.
    """
    points = [scale_by_power_of_two(e.inputs) for e in examples]
    truths = [p[e.outputs] for p, e in zip(points, examples, strict=True)]
    found = [p[a] for p, a in zip(points, answers, strict=True)]
    right = np.array([same(f, t) for f, t in zip(found, truths, strict=True)], bool)
    areas = _areas(truths)
    good = np.where(areas == 0, right, simple(found))
    counted = good & (areas > 0)
    chosen = [ring for ring, c in zip(found, counted, strict=True) if c]
    covered = _areas(chosen) / areas[counted]
    area = mean(covered)
    if (~good).sum() > FAILS_ABOVE * len(good):
        area = Measure(None, None, None, len(covered), fail=True)
    return {"accuracy": share(right), "simple": share(good), "area": area}


def same(a: Floats, b: Floats) -> bool:
    """Whether two `(k, 2)` rings of vertices are one polygon."""
    first, second = _canonical(a), _canonical(b)
    return first.shape == second.shape and bool((first == second).all())


def simple(rings: Sequence[Floats]) -> NDArray[np.bool_]:
    """`(len(rings),)`: whether each `(k, 2)` ring of vertices is a simple polygon."""
    opened = [_open(ring) for ring in rings]
    good = np.array([len(r) >= 3 and len(np.unique(r, axis=0)) == len(r) for r in opened], bool)
    good[good] = shapely.is_valid(_polygons([r for r, g in zip(opened, good, strict=True) if g]))
    return good


def _areas(rings: Sequence[Floats]) -> Floats:
    areas = np.zeros(len(rings))
    solid = [k for k, ring in enumerate(rings) if len(ring) >= 3]
    areas[solid] = shapely.area(_polygons([rings[k] for k in solid]))
    return areas


def _polygons(rings: Sequence[Floats]) -> NDArray[np.object_]:
    if not rings:
        return np.empty(0, object)
    owners = np.repeat(np.arange(len(rings)), [len(r) for r in rings])
    return np.asarray(shapely.polygons(shapely.linearrings(np.concatenate(rings), indices=owners)))


def _open(ring: Floats) -> Floats:
    """Without the closing repeat."""
    closed = len(ring) > 1 and (ring[0] == ring[-1]).all()
    return ring[:-1] if closed else ring


def _canonical(ring: Floats) -> Floats:
    """Counter-clockwise from the leftmost (of these, lowest) vertex."""
    ring = _open(ring)
    if not len(ring):
        return ring
    x, y = (ring - ring[0]).T
    if (x * np.roll(y, -1) - np.roll(x, -1) * y).sum() < 0:
        ring = ring[::-1]
    return np.roll(ring, -np.lexsort((ring[:, 1], ring[:, 0]))[0], axis=0)
