"""Geometric predicates, always right or right up to the resolution of models.

Turns, circles and the direction of rings are always right.

Each formula is written once, on points that are pairs `(x, y)`. The coordinates may be

- Python's integers: the results are exact, and serve as the reference;
- arrays of floats: `Predicates` and `area_signs` decide nearly all signs in floats, with Shewchuk's
  (1997) bounds of the error, and compute the other signs again in integers;
- floats in compiled code: labellers compile the same formulas (`labellers/compiled.py`).

Some predicates allow for the rounding of the points' own coordinates. A whole number counts as
exact. Any other coordinate, such as 0.1, may be off by an error. A determinant is computed from
three or four points. We assume that the error of each x is at most `ROUNDING` times the sum of |x|
over these points. The same holds for y. The `slack` of a determinant is how much these errors may
change the determinant.

The other predicates are right up to the resolution of models, for instances in the unit square.
Models compute in float32, and their training points are rarely very close to each other. So models
cannot make decisions that depend on differences below `RESOLUTION`:

- which of two nearly equal points is a vertex
- on which side of an edge a point lies
- which diagonal belongs to the triangulation of four points nearly on one circle

If an answer is right except for such decisions, `Facts.settle` replaces it by the exact answer.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.geometry import scale_by_power_of_two
from ptrnet.types import Floats, Indices, real

ROUNDING = 2.0**-52  # twice the relative rounding error of float64
LARGEST_WHOLE = 2.0**64  # integer types end here, so larger floats were probably rounded
# Bounds of the rounding errors of `turn` and `in_circle`, relative to `turn_terms` and
# `in_circle_terms`. These are Shewchuk's bounds, rounded up.
TURN_ERROR, CIRCLE_ERROR = 2.0**-51, 2.0**-49
# Bound of the error that underflow causes, if the largest coordinate is at least 1/2. Determinants
# up to this bound are computed again exactly.
UNDERFLOW = 1e-290

Pair = Any  # (x, y): numbers or arrays


def pair(points: Floats, i: int) -> Pair:
    """Return point i of points `(n, 2)`."""
    return points[i, 0], points[i, 1]


def turn(a: Pair, b: Pair, c: Pair) -> Any:
    """Return twice the area of the triangle: positive if the path from a over b to c turns left.

    Examples:
        >>> turn((0, 0), (1, 0), (1, 1))
        1
    """
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def turn_terms(a: Pair, b: Pair, c: Pair) -> Any:
    """Return the sum of the absolute terms of `turn`, from which we compute an error bound."""
    return abs((b[0] - a[0]) * (c[1] - a[1])) + abs((b[1] - a[1]) * (c[0] - a[0]))


def turn_slack(points: tuple[Pair, ...], rounded: tuple[Pair, ...]) -> Any:
    """Return how much rounding may change `turn` of three points, in units of `ROUNDING`.

    `rounded` is 1 for each coordinate that may be off by rounding, else 0.
    """
    a, b, c = points
    rounded_a, rounded_b, rounded_c = rounded
    in_x = (
        rounded_a[0] * abs(b[1] - c[1])
        + rounded_b[0] * abs(c[1] - a[1])
        + rounded_c[0] * abs(a[1] - b[1])
    )
    in_y = (
        rounded_a[1] * abs(b[0] - c[0])
        + rounded_b[1] * abs(c[0] - a[0])
        + rounded_c[1] * abs(a[0] - b[0])
    )
    size_x, size_y = abs(a[0]) + abs(b[0]) + abs(c[0]), abs(a[1]) + abs(b[1]) + abs(c[1])
    return size_x * in_x + size_y * in_y


def is_between(a: Pair, b: Pair, c: Pair) -> Any:
    """Whether b is between a and c. Assumes that b is on the line of a and c, up to rounding."""
    return (b[0] - a[0]) * (c[0] - b[0]) + (b[1] - a[1]) * (c[1] - b[1]) > 0


def in_circle(a: Pair, b: Pair, c: Pair, p: Pair) -> Any:
    """Return a number that is positive if p is inside the circle through a, b and c.

    Assumes that the path from a over b to c turns left. The number is the determinant of the points
    lifted to a paraboloid.

    Examples:
        >>> in_circle((0, 0), (2, 0), (0, 2), (1, 1))
        8
    """
    ax, ay, bx, by = a[0] - p[0], a[1] - p[1], b[0] - p[0], b[1] - p[1]
    cx, cy = c[0] - p[0], c[1] - p[1]
    return (
        (ax * ax + ay * ay) * (bx * cy - by * cx)
        + (bx * bx + by * by) * (cx * ay - cy * ax)
        + (cx * cx + cy * cy) * (ax * by - ay * bx)
    )


def in_circle_terms(a: Pair, b: Pair, c: Pair, p: Pair) -> Any:
    """Return the sum of the absolute terms of `in_circle`, from which we compute an error bound."""
    ax, ay, bx, by = a[0] - p[0], a[1] - p[1], b[0] - p[0], b[1] - p[1]
    cx, cy = c[0] - p[0], c[1] - p[1]
    return (
        (ax * ax + ay * ay) * (abs(bx * cy) + abs(by * cx))
        + (bx * bx + by * by) * (abs(cx * ay) + abs(cy * ax))
        + (cx * cx + cy * cy) * (abs(ax * by) + abs(ay * bx))
    )


def in_circle_slack(points: tuple[Pair, ...], rounded: tuple[Pair, ...]) -> Any:
    """Return how much rounding may change `in_circle`, to first order; else as `turn_slack`."""
    gradients = in_circle_gradients(*points)
    slack: Any = 0
    for axis in (0, 1):
        size = sum(abs(q[axis]) for q in points)
        for gradient, weight in zip(gradients, rounded, strict=True):
            slack = slack + weight[axis] * size * abs(gradient[axis])
    return slack


def in_circle_gradients(a: Pair, b: Pair, c: Pair, p: Pair) -> list[Pair]:
    """Return the derivatives of `in_circle` with respect to the coordinates of each argument."""
    corners = [(q[0] - p[0], q[1] - p[1]) for q in (a, b, c)]
    gradients = [_lifted_gradient(*(corners[(k + m) % 3] for m in range(3))) for k in range(3)]
    return [*gradients, (-sum(g[0] for g in gradients), -sum(g[1] for g in gradients))]


def _lifted_gradient(a: Pair, b: Pair, c: Pair) -> Pair:
    """Return the derivatives of `in_circle` with respect to a; a, b and c are relative to p."""
    cross = 2 * (b[0] * c[1] - b[1] * c[0])
    lift_b, lift_c = b[0] * b[0] + b[1] * b[1], c[0] * c[0] + c[1] * c[1]
    by_x = a[0] * cross - lift_b * c[1] + lift_c * b[1]
    by_y = a[1] * cross + lift_b * c[0] - lift_c * b[0]
    return by_x, by_y


def as_integers(points: Floats) -> NDArray[np.object_]:
    """Return finite floats `(n, d)` as Python's integers, all multiplied by one power of two."""
    mantissas, exponents = np.frexp(points)
    digits = np.ldexp(mantissas, 53).astype(np.int64).astype(object)
    shifts = np.where(points == 0, 0, exponents - exponents[points != 0].min(initial=2**15))
    shifted: NDArray[np.object_] = digits << shifts.astype(object)
    return shifted


def is_rounded(points: Floats) -> NDArray[np.bool_]:
    """Whether each coordinate may be off by rounding: all may, except whole numbers up to 2^64.

    Whole numbers are exact, because ptrnet does not read whole numbers that float64 would round
    (`ptrnet.data.arrays`).
    """
    return (points != np.rint(points)) | (np.abs(points) > LARGEST_WHOLE)


def doubled_area(ring: NDArray[Any]) -> Any:
    """Return twice the signed area of a closed path `(m, 2)` of integers or floats.

    The area is positive if the path runs counter-clockwise.
    """
    x, y = ring.T
    return (x * np.roll(y, -1) - np.roll(x, -1) * y).sum()


class Predicates:
    """Exact signs of `turn` and `in_circle` for points `(n, 2)`.

    Methods take indices of points, as arrays that broadcast with each other. Results are 1, 0 or
    -1, in the broadcast shape.

    Examples:
        >>> predicates = Predicates(np.array([[0, 0], [1, 0], [2, 0], [1, 1.0]]))
        >>> predicates.turn(np.array([0, 0]), np.array([1, 1]), np.array([2, 3]))
        array([0, 1])
    """

    def __init__(self, points: Floats) -> None:
        self._points = points
        self._scaled = scale_by_power_of_two(points)

    def turn(self, i: Indices, j: Indices, k: Indices) -> Indices:
        """Return 1 if point k is left of the line from i to j, 0 on the line, -1 right of it."""
        return self._signs(turn, lambda *points: TURN_ERROR * turn_terms(*points), (i, j, k))

    def turn_beyond_rounding(self, i: Indices, j: Indices, k: Indices) -> Indices:
        """Return `turn`, but 0 if the points may have been on one line before rounding."""

        # In `turn_slack`, `size_x` and `size_y` are at most 3, because scaled points are below 1.
        # All differences together are at most 8 times the largest difference from point i. So the
        # slack is at most 24 times this difference. The factor 32 also covers the error of `turn`.
        def error(*points: Pair) -> Floats:
            return 32 * ROUNDING * (turn_terms(*points) + _largest_difference(*points))

        return self._signs(turn, error, (i, j, k), turn_slack)

    def in_circle(self, i: Indices, j: Indices, k: Indices, p: Indices) -> Indices:
        """Return 1 if p is inside the circle through i, j, k, 0 on the circle, -1 outside.

        The path from i over j to k must turn left.
        """
        indices = (i, j, k, p)
        return self._signs(in_circle, lambda *q: CIRCLE_ERROR * in_circle_terms(*q), indices)

    def in_circle_beyond_rounding(self, i: Indices, j: Indices, k: Indices, p: Indices) -> Indices:
        """Return `in_circle`, but 0 if p may have been on the circle before rounding."""

        # In `in_circle_slack`, each size is at most 4, and the gradients add up to at most 96
        # difference^3. So the slack is at most 384 difference^3. The rest of the error covers the
        # rounding error of `in_circle`.
        def error(*points: Pair) -> Floats:
            difference = _largest_difference(*reversed(points))
            return ROUNDING * (16 * in_circle_terms(*points) + 512 * difference**3)

        return self._signs(in_circle, error, (i, j, k, p), in_circle_slack)

    def _signs(
        self,
        formula: Callable[..., Any],
        error: Callable[..., Floats],
        indices: tuple[Indices, ...],
        slack: Callable[..., Any] = lambda points, rounded: 0,
    ) -> Indices:
        """Return the signs of determinants, and 0 for a determinant within its slack.

        If the absolute value of a determinant is at most its error, we compute its sign exactly.
        """
        x, y = self._scaled.T
        points = tuple((x[i], y[i]) for i in indices)
        det = formula(*points)
        signs = np.sign(det).astype(np.int64)
        unsure = np.abs(det) <= error(*points) + UNDERFLOW
        if unsure.any():
            chosen = [np.broadcast_to(i, det.shape)[unsure] for i in indices]
            points = tuple(self._integers[i].T for i in chosen)
            allowed = slack(points, tuple(self._rounded[i].T for i in chosen))
            exact = formula(*points) * int(1 / ROUNDING)
            signs[unsure] = (exact > allowed).astype(int) - (exact < -allowed).astype(int)
        return signs

    @cached_property
    def _integers(self) -> NDArray[np.object_]:
        return as_integers(self._points)

    @cached_property
    def _rounded(self) -> NDArray[np.object_]:
        return is_rounded(self._points).astype(int).astype(object)


def _largest_difference(a: Pair, *others: Pair) -> Floats:
    """Return the largest absolute difference of a coordinate between `a` and another point."""
    largest: Floats = np.zeros(())
    for b in others:
        for axis in (0, 1):
            largest = np.maximum(largest, np.abs(b[axis] - a[axis]))
    return largest


def area_signs(inputs: Floats, rings: Indices, lengths: Indices) -> Indices:
    """Return `(B,)` signs of areas of rings: 1 counter-clockwise, -1 clockwise, 0 for no area.

    Rings `(B, M)` are closed paths through some of the points `(B, n, 2)`, padded to M indices.
    """
    steps = np.arange(rings.shape[1])
    mask = real(lengths, rings.shape[1])
    next_step = np.where(steps + 1 < lengths[:, None], steps + 1, 0)
    points = np.take_along_axis(scale_by_power_of_two(inputs), rings[..., None], axis=1)
    x, y = np.moveaxis(points, -1, 0)
    x, y = x - x[:, :1], y - y[:, :1]  # sums of large coordinates would lose digits
    plus = np.where(mask, x * np.take_along_axis(y, next_step, 1), 0)
    minus = np.where(mask, np.take_along_axis(x, next_step, 1) * y, 0)
    areas = (plus - minus).sum(1)
    terms = (np.abs(plus) + np.abs(minus)).sum(1)
    # Each term has the relative error of three roundings, and each addition adds another rounding.
    error = (2 * len(steps) + 8) * 2.0**-53 * terms + UNDERFLOW
    signs = np.sign(areas).astype(np.int64)
    for b in np.flatnonzero(np.abs(areas) <= error):
        ring = inputs[b, rings[b, : lengths[b]]]
        area = doubled_area(as_integers(ring)) if len(ring) > 2 else 0
        signs[b] = int(area > 0) - int(area < 0)
    return signs


RESOLUTION = 1e-5
MERGED = RESOLUTION / 2  # half, so that the answer to merged points is right up to RESOLUTION
MAX_MERGED = 1024  # points of larger instances are not merged: there are too many pairs to compare
# A convex set in the unit square has a perimeter of at most 4. So if its rim moves by RESOLUTION,
# its area changes by about this much at most.
AREA_RESOLUTION = 4 * RESOLUTION


def merge_near_points(points: Floats) -> Floats:
    """Return instances `(..., n, 2)` in which each point is moved onto the first point near to it.

    Points are near if their coordinates differ by less than `MERGED`.

    Points that float32 can just distinguish confuse a model, because the direction from one point
    to the other is noise. Equal points do not, because models have seen equal points in training.
    """
    may_be_near = (np.diff(np.sort(points[..., 0])) < MERGED).any(-1)
    if points.shape[-2] > MAX_MERGED or not may_be_near.any():
        return points
    merged, compared = points.copy(), points[may_be_near]
    gaps = np.abs(compared[..., None, :] - compared[..., None, :, :]).max(-1)
    first = (gaps < MERGED).argmax(-1)
    merged[may_be_near] = np.take_along_axis(compared, first[..., None], -2)
    return merged


def rings_are_near(points: Floats, ring: Indices, other: Indices) -> bool:
    """Whether each vertex of two rings is within RESOLUTION of the other ring.

    Their signed areas must also be nearly equal. So the result is False for rings that run in
    opposite directions, unless their areas are nearly 0.
    """
    a, b = points[ring], points[other]
    gap = max(_segment_distances(a, b).max(), _segment_distances(b, a).max())
    areas = [doubled_area(path - path[0]) / 2 for path in (a, b)]
    return bool(gap < RESOLUTION and abs(areas[0] - areas[1]) < AREA_RESOLUTION)


def circles_are_nearly_empty(points: Floats, triangles: Indices) -> bool:
    """Whether the circumcircles of `(t, 3)` triangles are empty or nearly empty.

    A point inside a circle is tolerated if moving all points by RESOLUTION could put this point
    outside. Thin triangles (see `_corners`) are ignored.
    """
    corners, is_thin = _corners(points, triangles)
    a, b, c = ((x[:, None], y[:, None]) for x, y in corners)
    p = points.T
    slack = sum(abs(x) + abs(y) for x, y in in_circle_gradients(a, b, c, p))
    is_inside = in_circle(a, b, c, p) > RESOLUTION * slack
    return not is_inside[~is_thin].any()


def triangles_are_near(points: Floats, triangles: Indices, others: Indices) -> bool:
    """Whether triangles cover the centers of `others` and have nearly the same total area.

    The centers of thin triangles (see `_corners`) need not be covered.
    """
    areas = [abs(turn(*_corners(points, part)[0])).sum() / 2 for part in (triangles, others)]
    corners, is_thin = _corners(points, others)
    a, b, c = _corners(points, triangles)[0]
    p = np.mean(corners, axis=0)[:, ~is_thin, None]  # the centers of `others`
    is_covered = (turn(a, b, p) >= 0) & (turn(b, c, p) >= 0) & (turn(c, a, p) >= 0)
    return abs(areas[0] - areas[1]) < AREA_RESOLUTION and bool(is_covered.any(1).all())


def _corners(points: Floats, triangles: Indices) -> tuple[list[Floats], NDArray[np.bool_]]:
    """Return the corners `(2, t)` of triangles, counter-clockwise, and `(t,)`: which are thin.

    A triangle is thin if moving its corners by RESOLUTION could reduce its area to 0.
    """
    a, b, c = (points[triangles[:, k]].T for k in range(3))
    areas = turn(a, b, c)
    sides = sum(abs(p - q).sum(0) for p, q in ((a, b), (b, c), (c, a)))
    left = [a, np.where(areas > 0, b, c), np.where(areas > 0, c, b)]
    return left, abs(areas) <= RESOLUTION * sides


def _segment_distances(points: Floats, ring: Floats) -> Floats:
    """Return `(n,)` distances of points `(n, 2)` from the nearest edge of a ring `(m, 2)`."""
    along, offset = np.roll(ring, -1, 0) - ring, points[:, None] - ring
    squares = (along**2).sum(-1)
    share = np.clip((offset * along).sum(-1) / np.where(squares > 0, squares, 1), 0, 1)
    nearest: Floats = np.linalg.norm(offset - share[..., None] * along, axis=-1).min(1)
    return nearest
