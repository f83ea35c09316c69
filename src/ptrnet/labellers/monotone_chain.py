"""Planar convex hull: the monotone chain of Andrew (1979), compiled, in float64.

What degenerate input gets:

- a point on an edge of the hull, up to the rounding of its float64 coordinates, is no vertex;
- of equal points only the first index can be a vertex;
- points that are all on one line have their two ends as hull, one distinct point has itself.
"""

import numpy as np

from ptrnet.geometry.orders import lexicographic_order
from ptrnet.geometry.scaling import scale_by_power_of_two
from ptrnet.jit import jit
from ptrnet.types import Answers, Floats, Indices

# A turn is measured by a determinant of differences. Each coordinate carries a relative error of
# 2^-53 from its own rounding (0.1, 0.2 and 0.3 are not exact), so turns below this are straight.
ROUNDING = 2.0**-51


def label(inputs: Floats) -> Answers:
    """Hulls of `(B, n, 2)` points: counter-clockwise, from the leftmost (then lowest) vertex."""
    order = lexicographic_order(inputs)
    hulls = np.zeros(order.shape, np.int64)
    lengths = _write_hulls(scale_by_power_of_two(np.ascontiguousarray(inputs)), order, hulls)
    return Answers(hulls[:, : lengths.max(initial=0)], lengths)


@jit
def _write_hulls(points: Floats, order: Indices, hulls: Indices) -> Indices:
    """Writes the hulls of `(B, n, 2)` points in their order; `(B,)`: how many vertices each has."""
    batch, n = order.shape
    lengths = np.empty(batch, np.int64)
    stack = np.empty(2 * n + 2, np.int64)
    for b in range(batch):
        path = _distinct(points[b], order[b])
        if len(path) == 1:
            hulls[b, 0] = path[0]
            lengths[b] = 1
            continue
        size = _extend(points[b], path, stack, 0)
        size = _extend(points[b], path[::-1], stack, size - 1) - 1
        hulls[b, :size] = stack[:size]
        lengths[b] = size
    return lengths


@jit
def _distinct(points: Floats, order: Indices) -> Indices:
    """The indices in `order` without those of points that are equal to the one before."""
    distinct, size = np.empty(len(order), np.int64), 0
    for j in order:  # equal points stand together, the first index first
        last = distinct[size - 1]
        if size == 0 or points[j, 0] != points[last, 0] or points[j, 1] != points[last, 1]:
            distinct[size] = j
            size += 1
    return distinct[:size]


@jit
def _extend(points: Floats, path: Indices, stack: Indices, base: int) -> int:
    """Walks `path` left to right or back, and keeps its left turns.

    Args:
        points: `(n, 2)`.
        path: indices of points, in their order.
        stack: written from `base` on: the vertices so far.
        base: what is below stays.

    Returns:
        The size of the stack.
    """
    size = base
    for j in path:
        while size >= base + 2 and not _is_left_turn(points, stack[size - 2], stack[size - 1], j):
            size -= 1
        stack[size] = j
        size += 1
    return size


@jit
def _is_left_turn(points: Floats, i: int, j: int, k: int) -> bool:
    """Whether the way from i over j to k turns left, by more than rounding."""
    ux, uy = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
    vx, vy = points[k, 0] - points[i, 0], points[k, 1] - points[i, 1]
    x = max(abs(points[i, 0]), abs(points[j, 0]), abs(points[k, 0]))
    y = max(abs(points[i, 1]), abs(points[j, 1]), abs(points[k, 1]))
    slack = ROUNDING * (x * (abs(uy) + abs(vy)) + y * (abs(ux) + abs(vx)))
    return ux * vy - uy * vx > slack
