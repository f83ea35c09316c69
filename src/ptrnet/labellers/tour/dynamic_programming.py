"""Dynamic programming over sets of cities (Held and Karp 1962; Bellman 1962)."""

import numpy as np

from ptrnet.jit import jit
from ptrnet.types import Floats, Indices


@jit
def shortest_tour(dist: Floats) -> Indices:
    """The shortest tour by `(n, n)` distances, from city 0; `O(2^n n^2)` time, `O(2^n n)` memory.

    Sets of the cities but 0 are bits: bit j of a set stands for city j + 1. `cost[s, j]` is the
    length of the shortest path from city 0 through all cities of the set s that ends at city j + 1,
    one of s.
    """
    n = len(dist)
    tour = np.zeros(n, np.int64)
    if n == 1:
        return tour
    m = n - 1
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
    for k in range(m, 0, -1):  # back from the end of the tour
        best, last = np.inf, 0
        for j in range(m):
            if s >> j & 1 and cost[s, j] + dist[j + 1, next_city] < best:
                best, last = cost[s, j] + dist[j + 1, next_city], j
        tour[k] = next_city = last + 1
        s ^= 1 << last
    return tour
