"""Answers that are right up to the resolution of models, for instances in the unit square.

Models compute in float32, and their training points are rarely very close to each other. So models
cannot make decisions that depend on differences below `RESOLUTION`:

- which of two nearly equal points is a vertex
- on which side of an edge a point lies
- which diagonal belongs to the triangulation of four points nearly on one circle

If an answer is right except for such decisions, `Facts.settle` replaces it by the exact answer.
"""

import numpy as np
from numpy.typing import NDArray

from ptrnet.geometry.predicates import doubled_area, in_circle, in_circle_gradients, turn
from ptrnet.types import Floats, Indices

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
