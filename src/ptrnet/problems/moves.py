"""Improve routes of vehicles by small moves, until no move makes them shorter.

The moves are those of Croes (1958) and Or (1976), and an exchange of two customers. They work on
the giant tour of all routes, one after another, with a visit to the depot before each route. So one
move may change one route or two. Every move keeps the capacity.
"""

import numpy as np

from ptrnet.jit import assign, inner, jit
from ptrnet.types import Floats, Indices

MAX_SEGMENT = 3  # the most customers that a move carries to another place
# The smallest gain of a move, relative to the longest distance. Smaller gains may be rounding
# errors, and the search could repeat moves with these gains forever.
ROUNDING = 1e-12


@jit
def improve_routes(dist: Floats, demand: Floats, capacity: float, tour: Indices) -> None:
    """Improve a giant tour `(m,)` in place. It has the customers, and a 0 before each route.

    Distances `(n, n)` are symmetric; element 0 is the depot, whose demand is 0. The capacity is the
    largest sum of demands between two visits to the depot.
    """
    m, min_gain = len(tour), ROUNDING * dist.max()
    trial, improves = np.empty(m, np.int64), True
    while improves:
        improves = False
        for i in range(1, m):
            for j in range(m):
                while _improve_at(dist, demand, capacity, tour, i, j, min_gain, trial):
                    assign(tour, trial)
                    improves = True


@inner
def _improve_at(
    dist: Floats,
    demand: Floats,
    capacity: float,
    tour: Indices,
    i: int,
    j: int,
    min_gain: float,
    trial: Indices,
) -> bool:
    """Write the first move at positions i and j that shortens the tour into `trial`.

    Return whether there is one.
    """
    m = len(tour)
    before, first = tour[i - 1], tour[i]
    last, after = tour[j], tour[(j + 1) % m]
    if i < j:
        gain = dist[before, first] + dist[last, after] - dist[before, last] - dist[first, after]
        if gain > min_gain:
            _reverse(tour, i, j, trial)
            if _fits(demand, capacity, trial):
                return True
    if i + 1 < j and first != 0 and last != 0:
        next_first, previous_last = tour[i + 1], tour[j - 1]
        gain = dist[before, first] + dist[first, next_first] - dist[before, last]
        gain += dist[previous_last, last] + dist[last, after] - dist[previous_last, first]
        gain -= dist[last, next_first] + dist[first, after]
        if gain > min_gain:
            assign(trial, tour)
            trial[i], trial[j] = last, first
            if _fits(demand, capacity, trial):
                return True
    for size in range(1, min(MAX_SEGMENT, m - i) + 1):
        if i - 1 <= j < i + size:
            continue
        end, behind = tour[i + size - 1], tour[(i + size) % m]
        removed = dist[before, first] + dist[end, behind] - dist[before, behind] + dist[last, after]
        for flips in (False, True):
            left, right = (end, first) if flips else (first, end)
            if removed - dist[last, left] - dist[right, after] > min_gain:
                _move(tour, i, size, j, flips, trial)
                if _fits(demand, capacity, trial):
                    return True
    return False


@inner
def _reverse(tour: Indices, i: int, j: int, trial: Indices) -> None:
    assign(trial, tour)
    for k in range(i, j + 1):
        trial[k] = tour[i + j - k]


@inner
def _move(tour: Indices, i: int, size: int, j: int, flips: bool, trial: Indices) -> None:
    """Write the tour with the `size` elements at position i moved behind the one at position j."""
    place = 0
    for k in range(len(tour)):
        if not i <= k < i + size:
            trial[place] = tour[k]
            place += 1
        if k == j:
            for s in range(size):
                trial[place] = tour[i + size - 1 - s] if flips else tour[i + s]
                place += 1


@inner
def _fits(demand: Floats, capacity: float, tour: Indices) -> bool:
    load = 0.0
    for k in tour:
        load = load + demand[k] if k else 0.0
        if load > capacity:
            return False
    return True
