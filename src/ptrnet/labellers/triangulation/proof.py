"""The conditions under which triangles are a Delaunay triangulation, compiled.

Triangles that turn left, glued edge to edge, whose other edges are one closed convex path, cover
the hull once; they are Delaunay if no edge has the apex of one of its triangles inside the circle
of the other (Delaunay 1934).
"""

from typing import NamedTuple

import numpy as np

from ptrnet.geometry.predicates import CIRCLE_ERROR, TURN_ERROR, UNDERFLOW
from ptrnet.jit import assign, jit
from ptrnet.types import Floats, Indices


class Doubts(NamedTuple):
    """Conditions that floats could not decide, as indices of points; if all hold, it is proved."""

    triangles: Indices  # (a, 3) that have to turn left
    turns: Indices  # (b, 3) along the hull, that must not turn right
    edges: Indices  # (c, 4) triangles i, j, k and j, i, p: p must not be inside the circle


@jit
def unresolved(
    points: Floats, triangles: Indices, neighbors: Indices, count: int
) -> tuple[bool, Doubts]:
    """Whether triangles are glued as they have to be, and what is left to prove.

    Args:
        points: `(n, 2)`, scaled: their largest coordinate is 1/2 or more, less than 1.
        triangles: `(t, 3)` indices of points.
        neighbors: `(t, 3)` the triangles at the edges opposite to the vertices; -1 for none.
        count: how many of the points have to be vertices.
    """
    num_triangles, num_corners, num_edges = 0, 0, 0
    flat = np.empty((len(triangles), 3), np.int64)
    corners = np.empty((len(points), 3), np.int64)
    edges = np.empty((3 * len(triangles), 4), np.int64)
    following = np.full(len(points), -1)  # along the hull
    seen = np.zeros(len(points), np.bool_)
    glued = True
    for t in range(len(triangles)):
        i, j, k = triangles[t]
        seen[i] = seen[j] = seen[k] = True
        if not _turns_left(points, i, j, k):
            assign(flat[num_triangles], triangles[t])
            num_triangles += 1
        for m in range(3):
            i, j, k = triangles[t, m], triangles[t, (m + 1) % 3], triangles[t, (m + 2) % 3]
            other = neighbors[t, (m + 2) % 3]
            if other < 0:
                glued &= following[i] < 0
                following[i] = j
                continue
            p = _apex(triangles, neighbors, other, t, i, j)
            glued &= p >= 0
            if t < other and p >= 0 and not _is_outside(points, i, j, k, p):
                edge = edges[num_edges]
                edge[0], edge[1], edge[2], edge[3] = i, j, k, p
                num_edges += 1
    maxima = 0
    for i in range(len(points)):
        j = following[i]
        if j < 0:
            continue
        k = following[j]
        if k < 0:
            glued = False
            break
        maxima += _is_before(points, i, j) and _is_before(points, k, j)
        if not _turns_left(points, i, j, k):
            corner = corners[num_corners]
            corner[0], corner[1], corner[2] = i, j, k
            num_corners += 1
    glued &= maxima == 1 and seen.sum() == count
    return glued, Doubts(flat[:num_triangles], corners[:num_corners], edges[:num_edges])


@jit
def _apex(triangles: Indices, neighbors: Indices, other: int, triangle: int, i: int, j: int) -> int:
    """The third vertex of a neighbour that has the edge from j to i; -1 where it has not."""
    for m in range(3):
        is_edge = triangles[other, m] == j and triangles[other, (m + 1) % 3] == i
        if is_edge and neighbors[other, (m + 2) % 3] == triangle:
            return triangles[other, (m + 2) % 3]
    return -1


@jit
def _is_before(points: Floats, i: int, j: int) -> bool:
    """Whether i stands before j by x, then by y."""
    if points[i, 0] != points[j, 0]:
        return points[i, 0] < points[j, 0]
    return points[i, 1] < points[j, 1]


@jit
def _turns_left(points: Floats, i: int, j: int, k: int) -> bool:
    """Whether floats are sure of it."""
    ux, uy = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
    vx, vy = points[k, 0] - points[i, 0], points[k, 1] - points[i, 1]
    terms = abs(ux * vy) + abs(uy * vx)
    return ux * vy - uy * vx > TURN_ERROR * terms + UNDERFLOW


@jit
def _is_outside(points: Floats, i: int, j: int, k: int, p: int) -> bool:
    """Whether floats are sure that p is outside the circle of i, j, k, which turn left."""
    ax, ay = points[i, 0] - points[p, 0], points[i, 1] - points[p, 1]
    bx, by = points[j, 0] - points[p, 0], points[j, 1] - points[p, 1]
    cx, cy = points[k, 0] - points[p, 0], points[k, 1] - points[p, 1]
    lift_a, lift_b, lift_c = ax * ax + ay * ay, bx * bx + by * by, cx * cx + cy * cy
    det = lift_a * (bx * cy - by * cx) + lift_b * (cx * ay - cy * ax) + lift_c * (ax * by - ay * bx)
    terms = (
        lift_a * (abs(bx * cy) + abs(by * cx))
        + lift_b * (abs(cx * ay) + abs(cy * ax))
        + lift_c * (abs(ax * by) + abs(ay * bx))
    )
    return det < -(CIRCLE_ERROR * terms + UNDERFLOW)
