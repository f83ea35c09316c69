"""Delaunay triangulations: accuracy and triangle coverage (V 4.3)."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from ptrnet.geometry import comparable
from ptrnet.metrics.interval import Measure, mean, share
from ptrnet.types import Example, Floats, Indices

# Of the in-circle determinant, relative to its largest possible value (Shewchuk 1997).
_ROUNDING = 16 * 2.0**-53


def measure(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Measure]:
    """`accuracy` and `triangle_coverage` of answers against the examples' own.

    - accuracy: the same set of triangles; or, where points lie on one circle and several answers
      are right, any triangulation whose circumcircles are empty.
    - triangle_coverage: the share of the true triangles that were predicted, 1 for a right answer.
    """
    right, covered = [], []
    for example, answer in zip(examples, answers, strict=True):
        assert example.outputs is not None
        truth, found = triangles(example.outputs), triangles(answer)
        whole = found == truth or (
            len(found) == len(truth) and is_delaunay(example.inputs, np.array(sorted(found)))
        )
        right.append(whole)
        covered.append(1.0 if whole else len(truth & found) / len(truth))
    return {"accuracy": share(right), "triangle_coverage": mean(covered)}


def triangles(outputs: Indices) -> set[tuple[int, ...]]:
    """`(t, 3)` indices as a set: neither the order of triangles matters, nor that of corners."""
    return set(map(tuple, np.sort(outputs, 1).tolist()))


def is_delaunay(points: Floats, outputs: Indices) -> bool:
    """Whether `(t, 3)` triangles are a Delaunay triangulation of `(n, 2)` points, exactly.

    No point lies inside a circumcircle, two triangles at an edge lie on its two sides, and an
    edge of one triangle alone has no point beyond it. Then every part of the hull is covered
    once. Decided in floating point where that is certain, in fractions where it is not.
    """
    points = comparable(points)
    first = np.unique(points, axis=0, return_index=True, return_inverse=True)
    corners = first[1][first[2].ravel()[outputs]]  # equal points are one vertex
    beyond: dict[tuple[int, int], list[int]] = {}
    for k, (a, b, c) in enumerate(corners.tolist()):
        side = _side(points, a, b, c)
        if side == 0:
            return False
        if side < 0:
            corners[k] = a, c, b
        for i, j, apex in ((a, b, c), (b, c, a), (a, c, b)):
            beyond.setdefault((min(i, j), max(i, j)), []).append(apex)
    for (i, j), apexes in beyond.items():
        sides = [_side(points, i, j, k) for k in apexes]
        if len(apexes) == 1:
            if any(_side(points, i, j, int(k)) == -sides[0] for k in first[1]):
                return False
        elif len(apexes) > 2 or sides[0] == sides[1]:
            return False
    return bool(len(corners)) and _empty(points, corners)


def _empty(points: Floats, corners: Indices) -> bool:
    """Whether no point lies inside a circumcircle of `(t, 3)` counter-clockwise corners."""
    a, b, c = (points[corners[:, k]][:, None] - points for k in range(3))  # (t, n, 2)
    lifts = [(v**2).sum(-1) for v in (a, b, c)]
    pairs = [(b, c), (c, a), (a, b)]
    value = np.zeros(lifts[0].shape)
    size = np.zeros_like(value)
    for lift, (u, v) in zip(lifts, pairs, strict=True):
        one, two = u[..., 0] * v[..., 1], u[..., 1] * v[..., 0]
        value += lift * (one - two)
        size += lift * (abs(one) + abs(two))
    if (value > _ROUNDING * size).any():
        return False
    unsure = np.argwhere(abs(value) <= _ROUNDING * size)
    return all(_in_circle(points, corners[t], k) <= 0 for t, k in unsure if k not in corners[t])


def _in_circle(points: Floats, corners: Indices, k: int) -> int:
    """1 where point k is inside the circle of counter-clockwise corners, 0 on it, -1 outside."""
    x, y = _exactly(points[k])
    rows = [(px - x, py - y) for px, py in map(_exactly, points[corners])]
    (ax, ay), (bx, by), (cx, cy) = rows
    a2, b2, c2 = (u * u + v * v for u, v in rows)
    value = a2 * (bx * cy - by * cx) + b2 * (cx * ay - cy * ax) + c2 * (ax * by - ay * bx)
    return (value > 0) - (value < 0)


def _side(points: Floats, i: int, j: int, k: int) -> int:
    """1 where point k is left of the line from i to j, 0 on it, -1 right of it."""
    (ux, uy), (vx, vy) = points[j] - points[i], points[k] - points[i]
    value, size = ux * vy - uy * vx, abs(ux * vy) + abs(uy * vx)
    if abs(value) > _ROUNDING * size:
        return 1 if value > 0 else -1
    (x, y), (jx, jy), (kx, ky) = (_exactly(points[p]) for p in (i, j, k))
    exact = (jx - x) * (ky - y) - (jy - y) * (kx - x)
    return (exact > 0) - (exact < 0)


def _exactly(point: Floats) -> tuple[Fraction, Fraction]:
    return Fraction(float(point[0])), Fraction(float(point[1]))
