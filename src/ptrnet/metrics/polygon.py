"""Metrics of convex hulls as polygons: accuracy, simple and area."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import shapely
from numpy.typing import NDArray

from ptrnet.geometry import scale_by_power_of_two
from ptrnet.geometry.predicates import as_integers, doubled_area
from ptrnet.metrics import Scores
from ptrnet.types import Example, Floats, Indices

# With floats, areas of slivers and of polygons far from the origin are inexact. Such areas are
# small, because `score` scales coordinates to at most 1. So we compute areas below _SMALL_AREA
# again, exactly, with whole numbers.
_SMALL_AREA = 1e-5


def score(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """Return `accuracy`, `simple` and `area` of `(B,)` answers, measured on the examples' hulls.

    - accuracy: the answer is the same polygon as the hull. Start, direction and a repeat of the
      first vertex at the end do not matter.
    - simple: the answer has three vertices or more, no vertex twice, and no two edges cross. If the
      true hull has no area, only the right answer counts as simple.
    - area: the area of the answer divided by the area of the hull. If the answer is not simple or
      the hull has no area, the value is NaN.
    """
    answers = list(answers)
    right = np.array(
        [same(e.inputs[a], e.inputs[e.outputs]) for e, a in zip(examples, answers, strict=True)],
        bool,
    )
    points = [scale_by_power_of_two(e.inputs, axis=-2) for e in examples]
    truths = [p[e.outputs] for p, e in zip(points, examples, strict=True)]
    rings = [p[answer] for p, answer in zip(points, answers, strict=True)]
    has_area = _has_area(truths)
    is_simple = np.where(has_area, simple(rings), right)
    counted = np.flatnonzero(is_simple & has_area)
    covered = np.full(len(rings), np.nan)
    covered[counted] = _shares([rings[k] for k in counted], [truths[k] for k in counted])
    return {"accuracy": right, "simple": is_simple, "area": covered}


def same(a: Floats, b: Floats) -> bool:
    """Whether two rings of vertices `(num_vertices, 2)` are the same polygon."""
    return np.array_equal(_canonical(a), _canonical(b))


def simple(rings: Sequence[Floats]) -> NDArray[np.bool_]:
    """Return `(len(rings),)`, whether each ring `(num_vertices, 2)` is a simple polygon."""
    rings = [_without_closing_repeat(ring) for ring in rings]
    is_simple = np.array([len(r) >= 3 and len(np.unique(r, axis=0)) == len(r) for r in rings], bool)
    polygons = _polygons([rings[k] for k in np.flatnonzero(is_simple)])
    is_simple[is_simple] = shapely.is_valid(polygons)
    return is_simple


def _has_area(rings: Sequence[Floats]) -> NDArray[np.bool_]:
    """Return `(len(rings),)`, whether each ring has vertices that are not all on one line."""
    has_area = np.array([len(ring) >= 3 for ring in rings], bool)
    polygons = np.flatnonzero(has_area).tolist()
    for k, area in zip(polygons, _areas([rings[k] for k in polygons]), strict=True):
        has_area[k] = area >= _SMALL_AREA or doubled_area(as_integers(rings[k])) != 0
    return has_area


def _shares(rings: Sequence[Floats], truths: Sequence[Floats]) -> Floats:
    """Return `(len(rings),)`, the area of each simple ring divided by the area of its hull."""
    wholes = _areas(truths)
    shares = _areas(rings) / np.where(wholes > 0, wholes, 1)
    for k in np.flatnonzero(wholes < _SMALL_AREA).tolist():
        both = as_integers(np.concatenate([rings[k], truths[k]]))
        ring, truth = both[: len(rings[k])], both[len(rings[k]) :]
        shares[k] = Fraction(abs(doubled_area(ring)), abs(doubled_area(truth)))
    return shares


def _areas(rings: Sequence[Floats]) -> Floats:
    """Return `(len(rings),)`, the areas of rings of three vertices or more."""
    return np.asarray(shapely.area(_polygons(rings)), np.float64)


def _polygons(rings: Sequence[Floats]) -> NDArray[np.object_]:
    """Return Shapely's polygons of rings of three vertices or more."""
    if not rings:
        return np.empty(0, object)
    ring_of_vertex = np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])
    closed = shapely.linearrings(np.concatenate(rings), indices=ring_of_vertex)
    return np.asarray(shapely.polygons(closed))


def _without_closing_repeat(ring: Floats) -> Floats:
    closed = len(ring) > 1 and (ring[0] == ring[-1]).all()
    return ring[:-1] if closed else ring


def _canonical(ring: Floats) -> Floats:
    """Return the vertices in an order that is the same for all ways to write the polygon.

    The first vertex is the leftmost vertex. The second vertex is the neighbour of the first that is
    further left. If two vertices are equally far left, the lower vertex counts as further left.
    """
    ring = _without_closing_repeat(ring)
    if not len(ring):
        return ring
    ring = np.roll(ring, -np.lexsort((ring[:, 1], ring[:, 0]))[0], axis=0)
    if ring[-1].tolist() < ring[1 % len(ring)].tolist():
        ring = np.roll(ring[::-1], 1, axis=0)
    return ring
