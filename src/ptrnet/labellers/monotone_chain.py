"""Planar convex hull: the monotone chain of Andrew (1979), compiled, with turns that are right.

What degenerate input gets:

- a point on an edge of the hull, up to the rounding of its float64 coordinates, is no vertex;
  whole numbers up to 2^64 are not rounded (`ptrnet.geometry.exact` has the rule);
- of equal points only the first index can be a vertex;
- points that are all on one line have their two ends as hull, one distinct point has itself.

Where floats cannot decide a turn, the whole instance is computed again in whole numbers.
"""

import numpy as np

from ptrnet.geometry import exact
from ptrnet.geometry.orders import lexicographic_order
from ptrnet.geometry.predicates import TURN_ERROR, UNDERFLOW
from ptrnet.geometry.scaling import scale_by_power_of_two
from ptrnet.jit import assign, jit
from ptrnet.types import Answers, Floats, Indices

ROUNDING, LARGEST_WHOLE = exact.ROUNDING, exact.LARGEST_WHOLE  # as numba takes them
_SMALL = 2.0**25  # determinants of whole numbers up to here are exact in floats
_RIGHT, _UNSURE, _LEFT = -1, 0, 1  # turns; a straight one is a right one here


def label(inputs: Floats) -> Answers:
    """Hulls of `(B, n, 2)` points: counter-clockwise, from the leftmost (then lowest) vertex."""
    inputs = np.ascontiguousarray(inputs)
    order = lexicographic_order(inputs)
    hulls = np.zeros(order.shape, np.int64)
    lengths = _write_hulls(inputs, scale_by_power_of_two(inputs), order, hulls)
    for b in np.flatnonzero(lengths == 0):
        hull = _exact_hull(inputs[b], order[b].tolist())
        hulls[b], lengths[b] = 0, len(hull)
        hulls[b, : len(hull)] = hull
    return Answers(hulls[:, : lengths.max(initial=0)], lengths)


def _exact_hull(points: Floats, order: list[int]) -> list[int]:
    """The hull of `(n, 2)` points in their order."""
    pairs = [tuple(p) for p in exact.as_integers(points).tolist()]
    rounded = [tuple(map(int, r)) for r in exact.is_rounded(points)]
    scale = int(1 / ROUNDING)

    def is_left_turn(i: int, j: int, k: int) -> bool:
        triple = pairs[i], pairs[j], pairs[k]
        turn = exact.turn(*triple) * scale
        if turn <= 0 or not exact.is_between(*triple):
            return bool(turn > 0)
        return bool(turn > exact.turn_slack(triple, (rounded[i], rounded[j], rounded[k])))

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
        hull.pop()  # the other chain begins with it
    # The turns at the ends of the chains belong to no chain, and may be straight up to rounding.
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
    """Writes the hulls of `(B, n, 2)` points in their order.

    Args:
        inputs: the points.
        points: the same, scaled: their largest coordinates are 1/2 or more, less than 1.
        order: `(B, n)` of the points.
        hulls: `(B, n)` written.

    Returns:
        `(B,)`: how many vertices each has; 0 where floats could not decide.
    """
    batch, n = order.shape
    lengths = np.zeros(batch, np.int64)
    stack = np.empty(2 * n + 2, np.int64)
    for b in range(batch):
        if _lost_digits(inputs[b], points[b]):
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
        if size >= 3 and not (
            _is_vertex(inputs[b], points[b], stack[:size], 0)
            and _is_vertex(inputs[b], points[b], stack[:size], right)
        ):
            size = 0
        lengths[b] = max(size, 0)
        assign(hulls[b], stack[: lengths[b]])
    return lengths


@jit
def _lost_digits(inputs: Floats, points: Floats) -> bool:
    """Whether scaling made a coordinate so small that it has lost digits, or may have."""
    for i in range(len(inputs)):
        for axis in range(2):
            if inputs[i, axis] != 0 and abs(points[i, axis]) < UNDERFLOW:
                return True
    return False


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
def _extend(inputs: Floats, points: Floats, path: Indices, stack: Indices, base: int) -> int:
    """Walks `path` left to right or back, and keeps its left turns.

    Args:
        inputs: `(n, 2)`.
        points: `(n, 2)` the same, scaled.
        path: indices of points, in their order.
        stack: written from `base` on: the vertices so far.
        base: what is below stays.

    Returns:
        The size of the stack, 0 where a turn could not be decided.
    """
    size = base
    for j in path:
        while size >= base + 2:
            turn = _turn(inputs, points, stack[size - 2], stack[size - 1], j)
            if turn == _UNSURE:
                return 0
            if turn == _LEFT:
                break
            size -= 1
        stack[size] = j
        size += 1
    return size


@jit
def _is_vertex(inputs: Floats, points: Floats, ring: Indices, k: int) -> bool:
    """Whether a vertex surely turns left by more than rounding, so that it is on no edge.

    It is asked at the ends of the chains, whose turns belong to no chain.
    """
    before, after = ring[k - 1], ring[(k + 1) % len(ring)]
    return _turn(inputs, points, before, ring[k], after) == _LEFT


@jit
def _turn(inputs: Floats, points: Floats, i: int, j: int, k: int) -> int:
    """Whether the way from i over j to k turns left by more than rounding, as floats see it."""
    ux, uy = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
    vx, vy = points[k, 0] - points[i, 0], points[k, 1] - points[i, 1]
    cross = ux * vy - uy * vx
    # All that rounding does: as coordinates are below 1, slack and error are less than this.
    most = 2.0**-48 * (abs(ux) + abs(uy) + abs(vx) + abs(vy)) + UNDERFLOW
    if abs(cross) <= most:
        return _close_turn(inputs, points, i, j, k)
    return _LEFT if cross > 0 else _RIGHT


@jit
def _close_turn(inputs: Floats, points: Floats, i: int, j: int, k: int) -> int:
    """As `_turn`, with the slack of each coordinate; of a j that is beyond i or k, without."""
    ux, uy = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
    vx, vy = points[k, 0] - points[i, 0], points[k, 1] - points[i, 1]
    cross, terms = ux * vy - uy * vx, abs(ux * vy) + abs(uy * vx)
    is_between = ux * (vx - ux) + uy * (vy - uy) > 0  # else j is the far end of a sliver
    slack, whole_and_small = 0.0, True
    for axis in range(2):
        size = abs(points[i, axis]) + abs(points[j, axis]) + abs(points[k, axis])
        u, v = (uy, vy) if axis == 0 else (ux, vx)
        for point, change in ((i, u - v), (j, v), (k, u)):
            value = inputs[point, axis]
            if is_between and (value != np.rint(value) or abs(value) > LARGEST_WHOLE):
                slack += ROUNDING * size * abs(change)
            whole_and_small &= value == np.rint(value) and abs(value) <= _SMALL
    if whole_and_small:  # the determinant has no error
        return _LEFT if cross > 0 else _RIGHT
    beyond = cross - slack
    if abs(beyond) <= TURN_ERROR * terms + 2.0**-49 * slack + UNDERFLOW:
        return _UNSURE
    return _LEFT if beyond > 0 else _RIGHT
