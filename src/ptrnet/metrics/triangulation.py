"""Delaunay triangulations: accuracy and triangle coverage (V 4.3)."""

from collections.abc import Iterable, Sequence

import numpy as np

from ptrnet.geometry import scale_by_power_of_two
from ptrnet.metrics.interval import Measure, mean, share
from ptrnet.types import Example, Floats, Indices

# The coordinates of an instance carry a relative error of 2^-53 from their own rounding (0.1, 0.2
# and 0.3 are not exact); this is how far a point of `scale_by_power_of_two`
# may be off, and a little.
OFF = 2.0**-52


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
    """Whether `(t, 3)` triangles are a Delaunay triangulation of `(n, 2)` points.

    No point lies inside a circumcircle, two triangles at an edge lie on its two sides, and an
    edge of one triangle alone has no point beyond it. Then every part of the hull is covered
    once. What is on a circle or on a line up to the rounding of the points' own coordinates
    counts as on it.
    """
    points = scale_by_power_of_two(points)
    _, first, which = np.unique(points, axis=0, return_index=True, return_inverse=True)
    corners = first[which.ravel()[outputs]]  # equal points are one vertex
    turned = _sides(points, corners[:, 0], corners[:, 1], corners[:, 2])
    if not len(corners) or (turned == 0).any():
        return False
    corners[turned < 0] = corners[turned < 0][:, [0, 2, 1]]
    return _joined(points, corners, first) and _empty(points, corners)


def _joined(points: Floats, corners: Indices, distinct: Indices) -> bool:
    """Whether triangles fill the hull: each edge has one on either side, or nothing beyond it."""
    edges: dict[tuple[int, int], list[int]] = {}
    for a, b, c in corners.tolist():
        for i, j, apex in ((a, b, c), (b, c, a), (c, a, b)):
            edges.setdefault((min(i, j), max(i, j)), []).append(apex)
    for (i, j), apexes in edges.items():
        sides = _sides(points, i, j, np.array(apexes))
        if len(apexes) == 1:
            if (_sides(points, i, j, distinct) == -sides[0]).any():
                return False
        elif len(apexes) > 2 or sides[0] == sides[1]:
            return False
    return True


def _empty(points: Floats, corners: Indices) -> bool:
    """Whether no point lies inside a circumcircle of `(t, 3)` counter-clockwise corners."""
    a, b, c = (points[corners[:, k]][:, None] - points for k in range(3))  # (t, n, 2)
    value = np.zeros(a.shape[:2])
    size = np.zeros_like(value)
    for lifted, u, v in ((a, b, c), (b, c, a), (c, a, b)):
        lift = (lifted**2).sum(-1)
        one, two = u[..., 0] * v[..., 1], u[..., 1] * v[..., 0]
        value += lift * (one - two)
        size += lift * (abs(one) + abs(two))
    far = np.abs(np.stack([a, b, c])).max((0, -1))
    return not (value > 16 * OFF * (size + far**3)).any()


def _sides(points: Floats, i: Indices | int, j: Indices | int, k: Indices) -> Indices:
    """1 where points k are left of the lines from i to j, 0 on them, -1 right of them."""
    u, v = points[j] - points[i], points[k] - points[i]
    one, two = u[..., 0] * v[..., 1], u[..., 1] * v[..., 0]
    far = np.maximum(np.abs(u).max(-1), np.abs(v).max(-1))
    slack = 4 * OFF * (abs(one) + abs(two) + far)
    return np.where(abs(one - two) > slack, np.sign(one - two), 0).astype(np.int64)
