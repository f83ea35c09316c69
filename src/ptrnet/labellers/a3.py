"""Tours by the algorithm A3 of V's Table 2: Christofides (1976), then 2-opt.

A minimum spanning tree and a minimum-weight perfect matching of the cities where it has an odd
number of edges make a closed walk over all edges, whose cities in the order of their first visit
are a tour of at most 1.5 times the shortest. Where the walk begins is free: ten beginnings give
ten tours, 2-opt shortens each, and the shortest is taken. The matching is by rustworkx, the extra
"labels".
"""

from itertools import combinations

import numba
import numpy as np

from ptrnet.distances import EUCLIDEAN
from ptrnet.labellers.tour.batches import tours
from ptrnet.labellers.tour.descent import length
from ptrnet.labellers.tour.two_opt import two_opt
from ptrnet.types import Answers, Floats, Indices

NEEDS = "rustworkx"
STARTS = 10
_WHOLE = 2**40  # the matching wants whole weights: the longest edge gets this one

LARGEST = 5000  # cities: memory grows as n^2, to half a GB and more here


def label(inputs: Floats, distance: str = EUCLIDEAN) -> Answers:
    """Tours of `(B, n, 2)` cities."""

    def write(far: Floats, found: Indices) -> None:
        for one, tour in zip(far, found, strict=True):
            parent = _spanning_tree(one)
            odd = np.flatnonzero(np.bincount(np.append(parent[1:], np.arange(1, len(one)))) % 2)
            tour[:] = _shortest(one, _walk(parent, _matching(one, odd)))

    return tours(inputs, distance, write)


def _matching(far: Floats, odd: Indices) -> Indices:
    """`(k, 2)` pairs of the odd cities, of the least total length."""
    import rustworkx

    edges = list(combinations(range(len(odd)), 2))
    if not edges:
        return np.empty((0, 2), np.int64)
    lengths = far[odd[:, None], odd]
    # Any perfect matching has as many edges: the heaviest by (longest - length) is the shortest.
    scale = _WHOLE / (lengths.max() or 1.0)
    weights = ((lengths.max() - lengths) * scale).astype(np.int64).tolist()
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(len(odd)))
    graph.add_edges_from([(i, j, weights[i][j]) for i, j in edges])
    pairs = rustworkx.max_weight_matching(graph, max_cardinality=True, weight_fn=int)
    return odd[np.array(sorted(pairs), np.int64)]


@numba.njit(nogil=True, cache=True)
def _spanning_tree(far: Floats) -> Indices:
    """`(n,)`: the parent of each city in the minimum spanning tree (Prim 1957) from city 0."""
    n = len(far)
    parent, key, inside = np.zeros(n, np.int64), far[0].copy(), np.zeros(n, np.bool_)
    inside[0] = True
    for _ in range(n - 1):
        best, last = np.inf, 0
        for j in range(n):
            if not inside[j] and key[j] < best:
                best, last = key[j], j
        inside[last] = True
        for j in range(n):
            if not inside[j] and far[last, j] < key[j]:
                key[j], parent[j] = far[last, j], last
    return parent


@numba.njit(nogil=True, cache=True)
def _shortest(far: Floats, walk: Indices) -> Indices:
    """The best of the tours that the walk gives, begun at `STARTS` places and shortened."""
    n, size = len(far), len(walk)
    best, shortest = np.inf, np.zeros(n, np.int64)
    for start in range(0, size, max(1, size // STARTS)):
        tour, seen, count = np.empty(n, np.int64), np.zeros(n, np.bool_), 0
        for k in range(size):
            city = walk[(start + k) % size]
            if not seen[city]:
                seen[city] = True
                tour[count] = city
                count += 1
        two_opt(far, tour)
        found = length(far, tour)
        if found < best:
            best, shortest = found, tour
    return shortest


@numba.njit(nogil=True, cache=True)
def _walk(parent: Indices, pairs: Indices) -> Indices:
    """The cities on a closed walk that takes every edge once (Hierholzer 1873)."""
    n = len(parent)
    edges = np.empty((n - 1 + len(pairs), 2), np.int64)
    for j in range(1, n):
        edges[j - 1, 0], edges[j - 1, 1] = j, parent[j]
    edges[n - 1 :] = pairs
    degree = np.zeros(n + 1, np.int64)
    for i, j in edges:
        degree[i + 1] += 1
        degree[j + 1] += 1
    first = np.cumsum(degree)
    slots, fill = np.empty(2 * len(edges), np.int64), first[:-1].copy()
    for k in range(len(edges)):
        for end in range(2):
            city = edges[k, end]
            slots[fill[city]] = k
            fill[city] += 1
    used = np.zeros(len(edges), np.bool_)
    walk, size = np.empty(len(edges) + 1, np.int64), 0
    stack, depth = np.empty(len(edges) + 1, np.int64), 1
    stack[0] = 0
    following = first[:-1].copy()
    while depth:
        city = stack[depth - 1]
        while following[city] < first[city + 1] and used[slots[following[city]]]:
            following[city] += 1
        if following[city] == first[city + 1]:
            depth -= 1
            walk[size] = city
            size += 1
            continue
        k = slots[following[city]]
        used[k] = True
        stack[depth] = edges[k, 0] + edges[k, 1] - city
        depth += 1
    return walk
