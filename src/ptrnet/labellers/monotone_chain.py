"""Planar convex hull: the monotone chain of Andrew (1979), compiled, in float64.

What degenerate input gets:

- a point on an edge of the hull, up to the rounding of its float64 coordinates, is no vertex;
- of equal points only the first index can be a vertex;
- points that are all on one line have their two ends as hull, one distinct point has itself.
"""

import numba
import numpy as np

from ptrnet.geometry import scale_by_power_of_two
from ptrnet.types import Answers, Floats, Indices

# A turn is measured by a determinant of differences. Each coordinate carries a relative error of
# 2^-53 from its own rounding (0.1, 0.2 and 0.3 are not exact), so turns below this are straight.
ROUNDING = 2.0**-51


def label(inputs: Floats) -> Answers:
    """Hulls of `(B, n, 2)` points: counter-clockwise, from the leftmost (then lowest) vertex."""
    order = np.lexsort((inputs[:, :, 1], inputs[:, :, 0]), axis=-1)
    hulls = np.zeros(order.shape, np.int64)
    lengths = _chains(scale_by_power_of_two(np.ascontiguousarray(inputs)), order, hulls)
    return Answers(hulls[:, : lengths.max(initial=0)], lengths)


@numba.njit(nogil=True, cache=True)
def _chains(points: Floats, order: Indices, hulls: Indices) -> Indices:
    batch, n = order.shape
    lengths = np.empty(batch, np.int64)
    stack = np.empty(2 * n + 2, np.int64)
    distinct = np.empty(n, np.int64)
    for b in range(batch):
        p = points[b]
        k = 0
        for j in order[b]:  # equal points stand together, the first index first
            last = distinct[k - 1]
            if k == 0 or p[j, 0] != p[last, 0] or p[j, 1] != p[last, 1]:
                distinct[k] = j
                k += 1
        if k == 1:
            hulls[b, 0] = distinct[0]
            lengths[b] = 1
            continue
        size = _extend(p, distinct[:k], stack, 0)
        size = _extend(p, distinct[:k][::-1], stack, size - 1) - 1
        hulls[b, :size] = stack[:size]
        lengths[b] = size
    return lengths


@numba.njit(nogil=True, cache=True)
def _extend(p: Floats, path: Indices, stack: Indices, base: int) -> int:
    """Walks `path` left to right or back and keeps its left turns, on the stack from `base` up."""
    size = base
    for j in path:
        while size >= base + 2 and not _left(p, stack[size - 2], stack[size - 1], j):
            size -= 1
        stack[size] = j
        size += 1
    return size


@numba.njit(nogil=True, cache=True)
def _left(p: Floats, i: int, j: int, k: int) -> bool:
    ux, uy = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1]
    vx, vy = p[k, 0] - p[i, 0], p[k, 1] - p[i, 1]
    x = max(abs(p[i, 0]), abs(p[j, 0]), abs(p[k, 0]))
    y = max(abs(p[i, 1]), abs(p[j, 1]), abs(p[k, 1]))
    slack = ROUNDING * (x * (abs(uy) + abs(vy)) + y * (abs(ux) + abs(vx)))
    return ux * vy - uy * vx > slack
