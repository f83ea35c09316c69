"""Convex hulls as polygons: accuracy, simple and area (V 4.2, W)."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import shapely
from numpy.typing import NDArray

from ptrnet.geometry.points import scale_axes_by_powers_of_two
from ptrnet.geometry.predicates import as_integers, doubled_area
from ptrnet.metrics.interval import Measure, Moments, Scores
from ptrnet.metrics.interval import summarize as summarize_each
from ptrnet.types import Example, Floats, Indices

# Of a polygon whose coordinates are at most 1. Of slivers, and of points far from the origin,
# floats lose the area: it is computed in whole numbers.
_SMALL_AREA = 1e-5
FAILS_ABOVE = 0.01  # V: the area is FAIL where more of the answers are not simple


def score(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """`accuracy`, `simple` and `area` of `(B,)` answers, by the hulls of the examples.

    - accuracy: the same polygon; start, direction and a closing repeat do not matter.
    - simple: at least three vertices, none twice, no edge through another. Where the true hull
      has no area, the right answer counts as simple, and no other.
    - area: the covered share of the true hull, for simple answers whose hull has an area.
    """
    answers = list(answers)
    right = np.array(
        [same(e.inputs[a], e.inputs[e.outputs]) for e, a in zip(examples, answers, strict=True)],
        bool,
    )
    points = [scale_axes_by_powers_of_two(e.inputs) for e in examples]
    truths = [p[e.outputs] for p, e in zip(points, examples, strict=True)]
    rings = [p[answer] for p, answer in zip(points, answers, strict=True)]
    has_area = _has_area(truths)
    is_simple = np.where(has_area, simple(rings), right)
    counted = np.flatnonzero(is_simple & has_area)
    covered = np.full(len(rings), np.nan)
    covered[counted] = _shares([rings[k] for k in counted], [truths[k] for k in counted])
    return {"accuracy": right, "simple": is_simple, "area": covered}


def summarize(moments: Mapping[str, Moments]) -> dict[str, Measure]:
    """Shares and the mean area; that is FAIL where more than 1% of the answers are not simple."""
    measures, is_simple = summarize_each(moments), moments["simple"]
    if is_simple.count - is_simple.total > FAILS_ABOVE * is_simple.count:
        measures["area"] = Measure(None, None, None, measures["area"].count, fail=True)
    return measures


def same(a: Floats, b: Floats) -> bool:
    """Whether two `(num_vertices, 2)` rings of vertices are one polygon."""
    first, second = _canonical(a), _canonical(b)
    return first.shape == second.shape and bool((first == second).all())


def simple(rings: Sequence[Floats]) -> NDArray[np.bool_]:
    """`(len(rings),)`: whether each `(num_vertices, 2)` ring of vertices is a simple polygon."""
    rings = [_without_closing_repeat(ring) for ring in rings]
    is_simple = np.array([len(r) >= 3 and len(np.unique(r, axis=0)) == len(r) for r in rings], bool)
    polygons = _polygons([rings[k] for k in np.flatnonzero(is_simple)])
    is_simple[is_simple] = shapely.is_valid(polygons)
    return is_simple


def _has_area(rings: Sequence[Floats]) -> NDArray[np.bool_]:
    """`(len(rings),)`: not where all vertices are on one line."""
    has_area = np.array([len(ring) >= 3 for ring in rings], bool)
    polygons = np.flatnonzero(has_area).tolist()
    for k, area in zip(polygons, _areas([rings[k] for k in polygons]), strict=True):
        has_area[k] = area >= _SMALL_AREA or doubled_area(as_integers(rings[k])) != 0
    return has_area


def _shares(rings: Sequence[Floats], truths: Sequence[Floats]) -> Floats:
    """`(len(rings),)`: the area of each simple ring as a share of its truth's, which has one."""
    wholes = _areas(truths)
    shares = _areas(rings) / np.where(wholes > 0, wholes, 1)
    for k in np.flatnonzero(wholes < _SMALL_AREA).tolist():
        both = as_integers(np.concatenate([rings[k], truths[k]]))
        ring, truth = both[: len(rings[k])], both[len(rings[k]) :]
        shares[k] = Fraction(abs(doubled_area(ring)), abs(doubled_area(truth)))
    return shares


def _areas(rings: Sequence[Floats]) -> Floats:
    """`(len(rings),)`: of rings of three vertices or more."""
    return np.asarray(shapely.area(_polygons(rings)), np.float64)


def _polygons(rings: Sequence[Floats]) -> NDArray[np.object_]:
    """Shapely's, of rings of three vertices or more."""
    if not rings:
        return np.empty(0, object)
    ring_of_vertex = np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])
    closed = shapely.linearrings(np.concatenate(rings), indices=ring_of_vertex)
    return np.asarray(shapely.polygons(closed))


def _without_closing_repeat(ring: Floats) -> Floats:
    closed = len(ring) > 1 and (ring[0] == ring[-1]).all()
    return ring[:-1] if closed else ring


def _canonical(ring: Floats) -> Floats:
    """From the leftmost (of these, lowest) vertex on, to the neighbour of it that comes first."""
    ring = _without_closing_repeat(ring)
    if not len(ring):
        return ring
    ring = np.roll(ring, -np.lexsort((ring[:, 1], ring[:, 0]))[0], axis=0)
    if ring[-1].tolist() < ring[1 % len(ring)].tolist():
        ring = np.roll(ring[::-1], 1, axis=0)
    return ring
