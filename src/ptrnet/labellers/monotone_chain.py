"""Planar convex hull: the monotone chain of Andrew (1979), compiled, with exact turns.

Degenerate input:

- A point that lies on an edge of the hull, up to the rounding of float64 coordinates, is not a
  vertex. Whole numbers up to 2^64 count as not rounded (see `ptrnet.geometry.predicates`).
- If points are equal, only the first of them can be a vertex.
- If all points lie on one line, the hull is the two end points. If all points are equal, the
  hull is one point.

If floats cannot decide a turn, the whole instance is computed again in Python's exact integers.
"""

import numpy as np

from ptrnet.geometry import lexicographic_order, scale_by_power_of_two
from ptrnet.geometry import predicates as exact
from ptrnet.geometry.predicates import ROUNDING, TURN_ERROR, UNDERFLOW
from ptrnet.jit import assign, inner, jit
from ptrnet.labellers.compiled import (
    is_between,
    is_rounded,
    lost_digits,
    pair,
    turn,
    turn_slack,
    turn_terms,
)
from ptrnet.types import Floats, Indices, trim

# Determinants of whole numbers from -_SMALL to _SMALL are exact in floats: differences are at most
# 2^26, products of differences 2^52, and the difference of two products 2^53.
_SMALL = 2.0**25
_RIGHT, _UNSURE, _LEFT = -1, 0, 1  # turns; straight on counts as right


def label(inputs: Floats) -> list[Indices]:
    """Return hulls of points `(B, n, 2)`, counter-clockwise from the leftmost (then lowest) vertex.

    Examples:
        >>> label(np.array([[[0, 0], [1, 0], [0.2, 0.2], [0, 1.0]]]))
        [array([0, 1, 3])]
    """
    inputs = np.ascontiguousarray(inputs)
    order = lexicographic_order(inputs)
    hulls = np.zeros(order.shape, np.int64)
    lengths = _write_hulls(inputs, scale_by_power_of_two(inputs), order, hulls)
    for b in np.flatnonzero(lengths == 0):
        hull = _exact_hull(inputs[b], order[b].tolist())
        hulls[b], lengths[b] = 0, len(hull)
        hulls[b, : len(hull)] = hull
    return trim(hulls, lengths)


def _exact_hull(points: Floats, order: list[int]) -> list[int]:
    """Return the hull of points `(n, 2)`; `order` is lexicographic."""
    pairs = [tuple(p) for p in exact.as_integers(points).tolist()]
    rounded = [tuple(map(int, r)) for r in exact.is_rounded(points)]
    scale = int(1 / ROUNDING)

    def is_left_turn(i: int, j: int, k: int) -> bool:
        triple = pairs[i], pairs[j], pairs[k]
        det = exact.turn(*triple) * scale
        if det <= 0 or not exact.is_between(*triple):
            return bool(det > 0)
        return bool(det > exact.turn_slack(triple, (rounded[i], rounded[j], rounded[k])))

    path = [j for k, j in enumerate(order) if not k or pairs[j] != pairs[order[k - 1]]]
    if len(path) == 1:
        return path
    hull: list[int] = []
    for chain in (path, path[::-1]):
        base = len(hull)
        for j in chain:
            while len(hull) >= base + 2 and not is_left_turn(hull[-2], hull[-1], j):
                hull.pop()
            hull.append(j)
        hull.pop()  # the other chain begins with this point
    # Neither chain checks the turns at its ends, which may be straight up to rounding.
    k, seen = 0, 0
    while len(hull) >= 3 and seen < len(hull):
        if is_left_turn(hull[k - 1], hull[k], hull[(k + 1) % len(hull)]):
            k, seen = (k + 1) % len(hull), seen + 1
        else:
            del hull[k]
            k, seen = (k - 1) % len(hull), 0
    first = min(range(len(hull)), key=lambda k: pairs[hull[k]])
    return hull[first:] + hull[:first]


@jit
def _write_hulls(inputs: Floats, points: Floats, order: Indices, hulls: Indices) -> Indices:
    """Write the hulls of points `(B, n, 2)` in lexicographic `order` into `hulls`, both `(B, n)`.

    The largest absolute coordinate of the scaled points is at least 1/2 and below 1. Return `(B,)`,
    the number of vertices of each hull; 0 if floats could not decide the hull.
    """
    batch, n = order.shape
    lengths = np.zeros(batch, np.int64)
    stack = np.empty(2 * n + 2, np.int64)
    for b in range(batch):
        if lost_digits(inputs[b], points[b]):
            continue
        path = _distinct(points[b], order[b])
        if len(path) == 1:
            hulls[b, 0] = path[0]
            lengths[b] = 1
            continue
        right = _extend(inputs[b], points[b], path, stack, 0) - 1
        size = 0
        if right > 0:
            size = _extend(inputs[b], points[b], path[::-1], stack, right) - 1
        if size >= 3:  # neither chain checks the turns at its ends
            for k in (0, right):
                before, after = stack[k - 1 if k else size - 1], stack[(k + 1) % size]
                if _turn(inputs[b], points[b], before, stack[k], after) != _LEFT:
                    size = 0
                    break
        lengths[b] = max(size, 0)
        assign(hulls[b], stack[: lengths[b]])
    return lengths


@inner
def _distinct(points: Floats, order: Indices) -> Indices:
    """Return `order` without the points that equal the point before them."""
    distinct, size = np.empty(len(order), np.int64), 0
    for j in order:  # equal points follow each other, the first index first
        last = distinct[size - 1]
        if size == 0 or points[j, 0] != points[last, 0] or points[j, 1] != points[last, 1]:
            distinct[size] = j
            size += 1
    return distinct[:size]


@inner
def _extend(inputs: Floats, points: Floats, path: Indices, stack: Indices, base: int) -> int:
    """Walk along `path` and keep on the stack the points where the chain turns left.

    `path` is in lexicographic order or reversed. The first `base` entries of the stack are kept.
    Return the size of the stack, 0 if floats could not decide a turn.
    """
    size = base
    for j in path:
        while size >= base + 2:
            direction = _turn(inputs, points, stack[size - 2], stack[size - 1], j)
            if direction == _UNSURE:
                return 0
            if direction == _LEFT:
                break
            size -= 1
        stack[size] = j
        size += 1
    return size


@inner
def _turn(inputs: Floats, points: Floats, i: int, j: int, k: int) -> int:
    """Return _LEFT if the path from i over j to k turns left by more than rounding, else _RIGHT.

    Return _UNSURE if floats cannot decide.
    """
    a, b, c = pair(points, i), pair(points, j), pair(points, k)
    det = turn(a, b, c)
    # Absolute coordinates are below 1, so slack and error together are less than the bound in the
    # next condition.
    differences = abs(b[0] - a[0]) + abs(b[1] - a[1]) + abs(c[0] - a[0]) + abs(c[1] - a[1])
    if abs(det) > 2.0**-48 * differences + UNDERFLOW:
        return _LEFT if det > 0 else _RIGHT
    if _is_small(inputs, i) and _is_small(inputs, j) and _is_small(inputs, k):
        return _LEFT if det > 0 else _RIGHT  # the determinant has no error
    slack = 0.0
    if is_between(a, b, c):  # else j is beyond i or k, where rounding cannot put it on i-k
        rounded = _rounded(inputs, i), _rounded(inputs, j), _rounded(inputs, k)
        slack = ROUNDING * turn_slack((a, b, c), rounded)
    beyond = det - slack
    if abs(beyond) <= TURN_ERROR * turn_terms(a, b, c) + 2.0**-49 * slack + UNDERFLOW:
        return _UNSURE
    return _LEFT if beyond > 0 else _RIGHT


@inner
def _is_small(inputs: Floats, i: int) -> bool:
    """Whether a point's coordinates are whole numbers whose determinants are exact in floats."""
    x, y = pair(inputs, i)
    return x == np.rint(x) and y == np.rint(y) and abs(x) <= _SMALL and abs(y) <= _SMALL


@inner
def _rounded(inputs: Floats, i: int) -> tuple[bool, bool]:
    """Return for each coordinate of a point whether it may be off by rounding."""
    x, y = pair(inputs, i)
    return is_rounded(x), is_rounded(y)
