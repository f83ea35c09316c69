"""Shortest tours by the dynamic programme of Held and Karp (1962) and Bellman (1962).

It takes at most 20 cities. Time grows as `2^n n^2`: 20 cities take about half a second, and 80 MB.
"""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import assign, jit
from ptrnet.labellers.rules import with_fixed_edges
from ptrnet.labellers.tours import is_plain, label_by_rules, label_tours
from ptrnet.types import CLOSED, Answers, Floats, Indices, TourRules

MAX_ELEMENTS = 20
TAKES_RULES = True
_WORK = 2 * 10**8  # steps, half a second: an interrupt waits for the end of a compiled function


def label(inputs: Floats, distance: str = EUCLIDEAN, rules: TourRules = CLOSED) -> Answers:
    """The shortest tours of `(B, n, d)` cities that obey the rules, n of 1 to 20."""
    if not is_plain(inputs, distance, rules):
        return label_by_rules(inputs, distance, rules, lambda p: shortest_tour(with_fixed_edges(p)))
    return label_tours(inputs, distance, _write_in_parts)


def _write_in_parts(dist: Floats, tours: Indices) -> None:
    n = dist.shape[1]
    step = max(1, _WORK // (2**n * n**2))
    for first in range(0, len(dist), step):
        _write_tours(dist[first : first + step], tours[first : first + step])


@jit
def _write_tours(dist: Floats, tours: Indices) -> None:
    for b in range(len(dist)):
        assign(tours[b], shortest_tour(dist[b]))


@jit
def shortest_tour(dist: Floats) -> Indices:
    """The shortest tour `(n,)` by `(n, n)` distances, symmetric or not, from city 0.

    It takes `O(2^n n^2)` time and `O(2^n n)` memory. A set of cities other than 0 is an integer, of
    which bit j stands for city j + 1. `cost[s, j]` is the length of the shortest path from city 0
    through all cities of the set s to city j + 1, which is one of s.
    """
    n = len(dist)
    tour = np.zeros(n, np.int64)
    if n == 1:
        return tour
    m = n - 1  # bits of a set
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
