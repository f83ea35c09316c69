"""Tours by the algorithm A3 of Vinyals et al. 2015, Table 2: Christofides (1976), then 2-opt.

Take a minimum spanning tree, and add a minimum-weight perfect matching of the cities that have an
odd number of edges in the tree. A closed walk can take each edge of the tree and the matching once.
The cities in the order in which the walk first visits them are a tour. If distances obey the
triangle inequality, this tour is at most 1.5 times as long as the shortest tour. The walk may begin
anywhere: we try ten to nineteen beginnings, or all beginnings if there are fewer than ten. We
shorten each tour by 2-opt, and return the shortest tour. rustworkx (the extra "labels") computes
the matching.
"""

from itertools import combinations

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import assign, jit
from ptrnet.labellers.tours import label_tours, tour_length
from ptrnet.types import Floats, Indices
from ptrnet_lab.labellers.two_opt import two_opt

NEEDS = "rustworkx"
STARTS = 10
# The matching needs integer weights, so we scale them to 0 to _MAX_WEIGHT. A matching has at most
# MAX_ELEMENTS / 2 edges, so the sum of its weights stays far below 2^63.
_MAX_WEIGHT = 2**40

HEURISTIC = True
MAX_ELEMENTS = 5000  # memory grows as n^2; this many cities take more than half a GB


def label(inputs: Floats, distance: str = EUCLIDEAN) -> list[Indices]:
    """Return tours of cities `(B, n, 2)`."""
    return label_tours(inputs, distance, _write_tours)


def _write_tours(dist: Floats, tours: Indices) -> None:
    for b in range(len(dist)):
        parent = _spanning_tree(dist[b])
        degree = np.bincount(np.append(parent[1:], np.arange(1, len(parent))))
        pairs = _matching(dist[b], np.flatnonzero(degree % 2))
        tours[b] = _shortest_tour(dist[b], _closed_walk(parent, pairs))


def _matching(dist: Floats, odd: Indices) -> Indices:
    """Pair the `odd` cities with the smallest total length. Return the pairs `(E, 2)`."""
    import rustworkx

    edges = list(combinations(range(len(odd)), 2))
    if not edges:
        return np.empty((0, 2), np.int64)
    lengths = dist[odd[:, None], odd]
    # All perfect matchings have the same number of edges, so the matching with the largest sum of
    # (longest - length) is the shortest.
    scale = _MAX_WEIGHT / (lengths.max() or 1.0)
    weights = ((lengths.max() - lengths) * scale).astype(np.int64).tolist()
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(len(odd)))
    graph.add_edges_from([(i, j, weights[i][j]) for i, j in edges])
    pairs = rustworkx.max_weight_matching(graph, max_cardinality=True, weight_fn=int)
    return odd[np.array(sorted(pairs), np.int64)]


@jit
def _spanning_tree(dist: Floats) -> Indices:
    """Return `(n,)`: each city's parent in the minimum spanning tree (Prim 1957) from city 0."""
    n = len(dist)
    parent, cheapest, inside = np.zeros(n, np.int64), dist[0].copy(), np.zeros(n, np.bool_)
    inside[0] = True
    for _ in range(n - 1):
        best, last = np.inf, 0
        for j in range(n):
            if not inside[j] and cheapest[j] < best:
                best, last = cheapest[j], j
        inside[last] = True
        for j in range(n):
            if not inside[j] and dist[last, j] < cheapest[j]:
                cheapest[j], parent[j] = dist[last, j], last
    return parent


@jit
def _closed_walk(parent: Indices, pairs: Indices) -> Indices:
    """Return the cities on a closed walk that takes every edge once (Hierholzer 1873).

    The edges are those to each city's parent `(n,)` in the spanning tree, which city 0 has not, and
    those of the matching, `(E, 2)`.
    """
    n = len(parent)
    edges = np.empty((n - 1 + len(pairs), 2), np.int64)
    for j in range(1, n):
        edges[j - 1, 0], edges[j - 1, 1] = j, parent[j]
    for k in range(len(pairs)):
        assign(edges[n - 1 + k], pairs[k])
    incident, first = _incident_edges(n, edges)
    following = first[:-1].copy()  # for each city, the position of its next edge in `incident`
    used = np.zeros(len(edges), np.bool_)
    walk, size = np.empty(len(edges) + 1, np.int64), 0
    stack, depth = np.empty(len(edges) + 1, np.int64), 1
    stack[0] = 0
    while depth:
        city = stack[depth - 1]
        while following[city] < first[city + 1] and used[incident[following[city]]]:
            following[city] += 1
        if following[city] == first[city + 1]:
            walk[size] = city
            size, depth = size + 1, depth - 1
        else:
            k = incident[following[city]]
            used[k] = True
            stack[depth] = edges[k, 0] + edges[k, 1] - city
            depth += 1
    return walk


@jit
def _incident_edges(n: int, edges: Indices) -> tuple[Indices, Indices]:
    """Return `incident` and `first`: city i has edges `incident[first[i] : first[i + 1]]`."""
    degree = np.zeros(n + 1, np.int64)
    for i, j in edges:
        degree[i + 1] += 1
        degree[j + 1] += 1
    first = np.cumsum(degree)
    incident, end = np.empty(2 * len(edges), np.int64), first[:-1].copy()
    for k in range(len(edges)):
        for city in edges[k]:
            incident[end[city]] = k
            end[city] += 1
    return incident, first


@jit
def _shortest_tour(dist: Floats, walk: Indices) -> Indices:
    """Return the shortest of several tours, which begin at different positions of the walk.

    There are at least `STARTS` beginnings, or all if the walk has fewer positions.
    """
    n, size = len(dist), len(walk)
    shortest, best = np.inf, np.zeros(n, np.int64)
    for start in range(0, size, max(1, size // STARTS)):
        tour, visited, count = np.empty(n, np.int64), np.zeros(n, np.bool_), 0
        for k in range(size):
            city = walk[(start + k) % size]
            if not visited[city]:
                visited[city] = True
                tour[count] = city
                count += 1
        two_opt(dist, tour)
        length = tour_length(dist, tour)
        if length < shortest:
            shortest, best = length, tour
    return best
