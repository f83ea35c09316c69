"""Shortest tours by dynamic programming (Held and Karp 1962; Bellman 1962), for up to 20 cities.

Time grows as `2^n n^2`: 20 cities take about half a second and 80 MB.
"""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import jit
from ptrnet.labellers.rules import with_fixed_edges
from ptrnet.labellers.tours import label_tours
from ptrnet.types import CLOSED, Floats, Indices, TourRules

MAX_ELEMENTS = 20
TAKES_RULES = True


def label(inputs: Floats, distance: str = EUCLIDEAN, rules: TourRules = CLOSED) -> list[Indices]:
    """Return the shortest tours of cities `(B, n, d)` that obey the rules, for n from 1 to 20.

    Examples:
        >>> label(np.array([[[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]]))
        [array([0, 3, 1, 2])]
    """
    return label_tours(
        inputs, distance, _write_tours, rules, lambda p: shortest_tour(with_fixed_edges(p))
    )


def _write_tours(dist: Floats, tours: Indices) -> None:
    for matrix, tour in zip(dist, tours, strict=True):
        tour[:] = shortest_tour(matrix)


@jit
def shortest_tour(dist: Floats) -> Indices:
    """Return the shortest tour `(n,)` from city 0. Distances `(n, n)` need not be symmetric.

    This takes `O(2^n n^2)` time and `O(2^n n)` memory. A set of cities without city 0 is an
    integer: bit j is set if city j + 1 is in the set. `cost[s, j]` is the length of the shortest
    path from city 0 through all cities of the set s that ends at city j + 1.
    """
    n = len(dist)
    tour = np.zeros(n, np.int64)
    if n == 1:
        return tour
    m = n - 1  # number of bits of a set
    cost = np.full((1 << m, m), np.inf)
    for j in range(m):
        cost[1 << j, j] = dist[0, j + 1]
    for s in range(1, 1 << m):
        for j in range(m):
            if not s >> j & 1 or s == 1 << j:
                continue
            before, best = s ^ (1 << j), np.inf
            for i in range(m):
                if before >> i & 1:
                    best = min(best, cost[before, i] + dist[i + 1, j + 1])
            cost[s, j] = best
    s, next_city = (1 << m) - 1, 0
    for k in range(m, 0, -1):  # trace the tour back from its end
        best, last = np.inf, 0
        for j in range(m):
            if s >> j & 1 and cost[s, j] + dist[j + 1, next_city] < best:
                best, last = cost[s, j] + dist[j + 1, next_city], j
        tour[k] = next_city = last + 1
        s ^= 1 << last
    return tour
