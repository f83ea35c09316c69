"""Delaunay triangulations in whole numbers: slower than any other way, and always right."""

import numpy as np

from ptrnet.geometry.exact import Pair, as_integers, in_circle, turn
from ptrnet.geometry.orders import first_equal, hilbert_order
from ptrnet.types import Floats, Indices

_GHOST = -1  # the vertex that every edge of the hull has on its other side

# The third vertex of the triangle on the left of each edge.
Apexes = dict[tuple[int, int], int]


def triangulate(points: Floats) -> Indices:
    """`(t, 3)` triangles of `(n, 2)` points; none where all are on one line.

    Points come in one by one along Hilbert's curve (Bowyer 1981, Watson 1981). Of equal points
    the first is a vertex.
    """
    pairs: list[Pair] = [tuple(p) for p in as_integers(points).tolist()]
    distinct = np.unique(first_equal(points))
    order = distinct[hilbert_order(points[distinct])].tolist()
    third = next((k for k in order[2:] if turn(pairs[order[0]], pairs[order[1]], pairs[k])), None)
    if third is None:
        return np.empty((0, 3), np.int64)
    i, j = order[:2]
    if turn(pairs[i], pairs[j], pairs[third]) < 0:
        i, j = j, i
    apexes: Apexes = {}
    _add(apexes, i, j, third)
    for a, b in ((j, i), (third, j), (i, third)):
        _add(apexes, a, b, _GHOST)
    edge = i, j
    for p in order:
        if p not in (i, j, third):
            edge = _insert(apexes, pairs, p, _locate(apexes, pairs, p, edge))
    return _triangles(apexes)


def flip(points: Floats, triangles: Indices, edges: Indices) -> Indices:
    """The Delaunay triangulation that flips of edges make of another one (Lawson 1977).

    Args:
        points: `(n, 2)`.
        triangles: `(t, 3)` a triangulation of the points.
        edges: `(E, 2)` all those that may not be Delaunay.
    """
    pairs: list[Pair] = [tuple(p) for p in as_integers(points).tolist()]
    apexes: Apexes = {}
    for i, j, k in triangles.tolist():
        _add(apexes, i, j, k)
    stack = [tuple(edge) for edge in edges.tolist()]
    while stack:
        i, j = stack.pop()
        k, p = apexes.get((i, j), _GHOST), apexes.get((j, i), _GHOST)
        if _GHOST in (k, p) or in_circle(*(pairs[m] for m in (i, j, k, p))) <= 0:
            continue
        _remove(apexes, i, j)
        _remove(apexes, j, i)
        _add(apexes, i, p, k)
        _add(apexes, p, j, k)
        stack += [(i, p), (p, j), (j, k), (k, i)]
    return _triangles(apexes)


def _triangles(apexes: Apexes) -> Indices:
    """`(t, 3)`: each once, from its smallest index on."""
    triangles = [(i, j, k) for (i, j), k in apexes.items() if _GHOST < i < min(j, k)]
    return np.array([t for t in triangles if _GHOST not in t], np.int64).reshape(-1, 3)


def _add(apexes: Apexes, i: int, j: int, k: int) -> None:
    apexes[i, j], apexes[j, k], apexes[k, i] = k, i, j


def _remove(apexes: Apexes, i: int, j: int) -> int:
    """Removes the triangle at an edge, and gives its third vertex."""
    k = apexes.pop((i, j))
    del apexes[j, k], apexes[k, i]
    return k


def _locate(apexes: Apexes, pairs: list[Pair], p: int, edge: tuple[int, int]) -> tuple[int, int]:
    """An edge of the triangle that holds a point; of a ghost's where it is outside the hull.

    Walks from the triangle at `edge`, always through an edge that has the point beyond it.
    """
    i, j = edge
    while (k := apexes[i, j]) != _GHOST:
        for a, b in ((i, j), (j, k), (k, i)):
            if turn(pairs[a], pairs[b], pairs[p]) < 0:
                i, j = b, a
                break
        else:
            break
    return i, j


def _insert(apexes: Apexes, pairs: list[Pair], p: int, edge: tuple[int, int]) -> tuple[int, int]:
    """Puts a point into the hole that all triangles leave whose circles it is in.

    Returns an edge that has a triangle, not a ghost's, on its left.
    """
    i, j = edge
    k = _remove(apexes, i, j)
    stack, rim = [(i, j), (j, k), (k, i)], []
    while stack:
        i, j = stack.pop()
        if (j, i) not in apexes:  # the triangle there is removed, too
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
    """Whether p is inside the circle of a triangle; of a ghost's: beyond its edge, or on it."""
    if _GHOST not in (i, j, k):
        return bool(in_circle(pairs[i], pairs[j], pairs[k], pairs[p]) > 0)
    a, b = {i: (j, k), j: (k, i), k: (i, j)}[_GHOST]
    side = turn(pairs[a], pairs[b], pairs[p])
    return bool(
        side > 0 or (side == 0 and min(pairs[a], pairs[b]) < pairs[p] < max(pairs[a], pairs[b]))
    )
