"""The dynamic programme over subsets (Held and Karp 1962; Bellman 1962)."""

import numba
import numpy as np

from ptrnet.types import Floats, Indices


@numba.njit(nogil=True, cache=True)
def shortest(far: Floats) -> Indices:
    """The shortest tour by `(n, n)` distances, from city 0; `O(2^n n^2)` time, `O(2^n n)` memory.

    `cost[s, j]` is the shortest path from city 0 through the cities of the set s to j in s; the
    sets are of the cities but 0.
    """
    n = len(far)
    tour = np.zeros(n, np.int64)
    if n == 1:
        return tour
    m = n - 1
    cost = np.full((1 << m, m), np.inf)
    for j in range(m):
        cost[1 << j, j] = far[0, j + 1]
    for s in range(1, 1 << m):
        for j in range(m):
            if not s >> j & 1 or s == 1 << j:
                continue
            before, best = s ^ (1 << j), np.inf
            for i in range(m):
                if before >> i & 1:
                    best = min(best, cost[before, i] + far[i + 1, j + 1])
            cost[s, j] = best
    s, onward = (1 << m) - 1, 0
    for k in range(m, 0, -1):
        best, last = np.inf, 0
        for j in range(m):
            if s >> j & 1 and cost[s, j] + far[j + 1, onward] < best:
                best, last = cost[s, j] + far[j + 1, onward], j
        tour[k] = onward = last + 1
        s ^= 1 << last
    return tour
