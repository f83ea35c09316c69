"""Delaunay triangulations by SciPy's Qhull (Barber, Dobkin, Huhdanpaa 1996), each with a proof.

We prove each triangulation of Qhull in floats. Exact integers decide the few conditions that floats
cannot decide. If points are very near to each other or to a line, Qhull's triangulation may be
wrong. We then compute a right triangulation in exact integers.

Degenerate input:

- If points are equal, only the first of them is a vertex. All distinct points are vertices.
- If more than three points lie on one empty circle, Qhull chooses one of the right answers.
- Points that are all on one line have no triangulation. Their answer is empty.

The file has these parts: the labeller, the proof in floats, triangulations in exact integers.
"""

import numpy as np
from scipy.spatial import Delaunay, QhullError

from ptrnet.geometry import first_equal, hilbert_order, scale_by_power_of_two
from ptrnet.geometry import predicates as exact
from ptrnet.geometry.predicates import (
    CIRCLE_ERROR,
    TURN_ERROR,
    UNDERFLOW,
    Pair,
    Predicates,
    as_integers,
)
from ptrnet.jit import assign, inner, jit
from ptrnet.labellers.compiled import (
    in_circle,
    in_circle_terms,
    lost_digits,
    pair,
    turn,
    turn_terms,
)
from ptrnet.types import Floats, Indices

FAILURE = "all points lie on one line: they have no triangulation"


def label(inputs: Floats) -> list[Indices]:
    """Return triangles `(t, 3)` of points `(B, n, 2)`, in no particular order."""
    corner = inputs.min(axis=1, keepdims=True)
    # Move the points to the origin: Qhull lifts them to a paraboloid, and squares of large
    # coordinates would lose the digits that differ.
    shifted = scale_by_power_of_two(inputs / 2 - corner / 2)  # halved to avoid overflow
    scaled = scale_by_power_of_two(inputs)
    return [_triangles(instance, scaled[b], shifted[b]) for b, instance in enumerate(inputs)]


def _triangles(inputs: Floats, scaled: Floats, shifted: Floats) -> Indices:
    """Return triangles `(t, 3)` of points `(n, 2)`; none if all points are on one line.

    `scaled` are the points scaled by a power of two, without rounding, and `shifted` the points as
    Qhull takes them, moved to the origin and rounded.
    """
    if lost_digits(inputs, scaled):
        return triangulate(inputs)
    try:
        delaunay = Delaunay(shifted)
    except QhullError:  # also raised for fewer than three points
        return triangulate(inputs)
    triangles, count = delaunay.simplices.astype(np.int64), len(inputs)
    if len(delaunay.coplanar):  # points that Qhull left out, mostly equal to other points
        first = first_equal(inputs)
        triangles, count = first[triangles], len(np.unique(first))
    glued, flat, corners, edges = unresolved(scaled, triangles, delaunay.neighbors, count)
    if glued and not (len(flat) or len(corners) or len(edges)):
        return triangles
    predicates = Predicates(inputs)
    if (
        not glued
        or (predicates.turn(*flat.T) <= 0).any()
        or (predicates.turn(*corners.T) < 0).any()
    ):
        return triangulate(inputs)
    wrong = edges[predicates.in_circle(*edges.T) > 0]
    return flip(inputs, triangles, wrong[:, :2]) if len(wrong) else triangles


# The proof in floats, compiled. Triangles cover the hull once if three conditions are true:
#
# - All triangles turn left.
# - They are glued edge to edge: neighbors have their common edge in opposite directions.
# - The edges with only one triangle are one closed convex path.
#
# They are Delaunay if no triangle's circle contains the third vertex of a neighbor (Delaunay 1934).


@jit
def unresolved(
    points: Floats, triangles: Indices, neighbors: Indices, count: int
) -> tuple[bool, Indices, Indices, Indices]:
    """Return whether triangles are glued edge to edge, and the conditions that remain to prove.

    Args:
        points: `(n, 2)`, scaled so that the largest coordinate is at least 1/2 and below 1.
        triangles: `(t, 3)` indices of points.
        neighbors: `(t, 3)` the triangles beyond the edges opposite to the vertices; -1 for none.
        count: number of points that have to be vertices.

    Returns:
        Whether triangles are glued, have `count` vertices, and their outer path goes round once. We
        can count rounds only of a path that turns left everywhere, so this result needs the other
        conditions. Then the conditions that floats could not decide, as indices of points:

        - `(a, 3)` triangles that have to turn left
        - `(b, 3)` three vertices along the hull, which must not turn right
        - `(c, 4)` i, j, k, p: p must not be in the circle of the triangle i, j, k
    """
    num_triangles, num_corners, num_edges = 0, 0, 0
    flat = np.empty((len(triangles), 3), np.int64)
    corners = np.empty((len(points), 3), np.int64)
    edges = np.empty((3 * len(triangles), 4), np.int64)
    following = np.full(len(points), -1)  # the next vertex along the hull
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
    # A closed path that turns left everywhere goes round once if it has one lexicographic maximum.
    maxima = 0
    for i in range(len(points)):
        j = following[i]
        if j < 0:
            continue
        k = following[j]
        if k < 0:
            glued = False
            break
        here = pair(points, j)
        maxima += pair(points, i) < here and pair(points, k) < here
        if not _turns_left(points, i, j, k):
            corner = corners[num_corners]
            corner[0], corner[1], corner[2] = i, j, k
            num_corners += 1
    glued &= maxima == 1 and seen.sum() == count
    return glued, flat[:num_triangles], corners[:num_corners], edges[:num_edges]


@inner
def _apex(triangles: Indices, neighbors: Indices, other: int, triangle: int, i: int, j: int) -> int:
    """Return the vertex of the triangle `other` that is opposite to the edge from j to i.

    Return -1 if `other` has no edge from j to i, or if its neighbor at this edge is not `triangle`.
    """
    for m in range(3):
        is_edge = triangles[other, m] == j and triangles[other, (m + 1) % 3] == i
        if is_edge and neighbors[other, (m + 2) % 3] == triangle:
            return triangles[other, (m + 2) % 3]
    return -1


@inner
def _turns_left(points: Floats, i: int, j: int, k: int) -> bool:
    """Whether floats are sure that the path from i over j to k turns left."""
    a, b, c = pair(points, i), pair(points, j), pair(points, k)
    return turn(a, b, c) > TURN_ERROR * turn_terms(a, b, c) + UNDERFLOW


@inner
def _is_outside(points: Floats, i: int, j: int, k: int, p: int) -> bool:
    """Whether floats are sure that p is outside the circle of i, j, k, which turn left."""
    a, b, c, d = pair(points, i), pair(points, j), pair(points, k), pair(points, p)
    return in_circle(a, b, c, d) < -(CIRCLE_ERROR * in_circle_terms(a, b, c, d) + UNDERFLOW)


# Triangulations in exact integers: slow, but always right.
#
# The ghost is a vertex outside of the hull. Each edge of the hull forms a ghost triangle with the
# ghost, on the outer side of the edge. So every edge has one triangle on each side.
_GHOST = -1

# The third vertex of the triangle on the left of each edge.
Apexes = dict[tuple[int, int], int]


def triangulate(points: Floats) -> Indices:
    """Return triangles `(t, 3)` of points `(n, 2)`; none if all points are on one line.

    Insert the points one by one (Bowyer 1981, Watson 1981), in the order of Hilbert's curve, so
    that each point is near the point before it. If points are equal, only the first of them is a
    vertex.
    """
    pairs: list[Pair] = [tuple(p) for p in as_integers(points).tolist()]
    distinct = np.unique(first_equal(points))
    order = distinct[hilbert_order(points[distinct])].tolist()
    third = next(
        (k for k in order[2:] if exact.turn(pairs[order[0]], pairs[order[1]], pairs[k])), None
    )
    if third is None:
        return np.empty((0, 3), np.int64)
    i, j = order[:2]
    if exact.turn(pairs[i], pairs[j], pairs[third]) < 0:
        i, j = j, i
    apexes: Apexes = {}
    _add(apexes, i, j, third)
    for tail, head in ((j, i), (third, j), (i, third)):
        _add(apexes, tail, head, _GHOST)
    edge = i, j
    for p in order:
        if p not in (i, j, third):
            edge = _insert(apexes, pairs, p, _locate(apexes, pairs, p, edge))
    return _to_triangles(apexes)


def flip(points: Floats, triangles: Indices, edges: Indices) -> Indices:
    """Turn a triangulation into the Delaunay triangulation by flips of edges (Lawson 1977).

    The triangles are `(t, 3)`. All edges that may violate the Delaunay condition are `(E, 2)`.
    """
    pairs: list[Pair] = [tuple(p) for p in as_integers(points).tolist()]
    apexes: Apexes = {}
    for i, j, k in triangles.tolist():
        _add(apexes, i, j, k)
    stack = [tuple(edge) for edge in edges.tolist()]
    while stack:
        i, j = stack.pop()
        k, p = apexes.get((i, j), _GHOST), apexes.get((j, i), _GHOST)
        if _GHOST in (k, p) or exact.in_circle(*(pairs[m] for m in (i, j, k, p))) <= 0:
            continue
        _remove(apexes, i, j)
        _remove(apexes, j, i)
        _add(apexes, i, p, k)
        _add(apexes, p, j, k)
        stack += [(i, p), (p, j), (j, k), (k, i)]
    return _to_triangles(apexes)


def _to_triangles(apexes: Apexes) -> Indices:
    """Return triangles `(t, 3)`, each once, smallest index first, without ghost triangles."""
    triangles = [(i, j, k) for (i, j), k in apexes.items() if _GHOST < i < min(j, k)]
    return np.array(triangles, np.int64).reshape(-1, 3)


def _add(apexes: Apexes, i: int, j: int, k: int) -> None:
    apexes[i, j], apexes[j, k], apexes[k, i] = k, i, j


def _remove(apexes: Apexes, i: int, j: int) -> int:
    """Remove the triangle at an edge, and return its third vertex."""
    k = apexes.pop((i, j))
    del apexes[j, k], apexes[k, i]
    return k


def _locate(apexes: Apexes, pairs: list[Pair], p: int, edge: tuple[int, int]) -> tuple[int, int]:
    """Return an edge of the triangle that contains a point.

    If the point is outside of the hull, the triangle is a ghost triangle. Walk from the triangle at
    `edge`, always through an edge that has the point on its other side.
    """
    i, j = edge
    while (k := apexes[i, j]) != _GHOST:
        for a, b in ((i, j), (j, k), (k, i)):
            if exact.turn(pairs[a], pairs[b], pairs[p]) < 0:
                i, j = b, a
                break
        else:
            break
    return i, j


def _insert(apexes: Apexes, pairs: list[Pair], p: int, edge: tuple[int, int]) -> tuple[int, int]:
    """Insert point p: remove all triangles whose circle contains p, and join p to their rim.

    Return an edge whose triangle on the left is not a ghost triangle.
    """
    i, j = edge
    k = _remove(apexes, i, j)
    stack, rim = [(i, j), (j, k), (k, i)], []
    while stack:
        i, j = stack.pop()
        if (j, i) not in apexes:  # the triangle there has been removed, too
            continue
        if _is_in_circle(pairs, j, i, apexes[j, i], p):
            k = _remove(apexes, j, i)
            stack += [(i, k), (k, j)]
        else:
            rim.append((i, j))
    for i, j in rim:
        _add(apexes, i, j, p)
    return next(e for e in rim if _GHOST not in e)


def _is_in_circle(pairs: list[Pair], i: int, j: int, k: int, p: int) -> bool:
    """Whether p is inside the circle of a triangle.

    For a ghost triangle: whether p is outside of its edge of the hull, or on this edge.
    """
    if _GHOST not in (i, j, k):
        return bool(exact.in_circle(pairs[i], pairs[j], pairs[k], pairs[p]) > 0)
    a, b = {i: (j, k), j: (k, i), k: (i, j)}[_GHOST]
    side = exact.turn(pairs[a], pairs[b], pairs[p])
    return bool(
        side > 0 or (side == 0 and min(pairs[a], pairs[b]) < pairs[p] < max(pairs[a], pairs[b]))
    )
