"""Iterated local search (Martin et al. 1991): descend, kick, descend again.

The result of a kick is kept unless it made the tour longer. A kick is a double bridge: it exchanges
two short neighbouring paths of the tour, which 2-opt and Or-opt seldom undo.
"""

import numpy as np

from ptrnet.jit import assign, jit
from ptrnet.labellers.tour.array_tour import new_array_tour
from ptrnet.labellers.tour.descent import Queue, descend, new_moves
from ptrnet.labellers.tour.edges import tour_length
from ptrnet.types import Floats, Indices

NEIGHBOURS = 10  # nearest cities of each to which new edges are tried
MIN_CITIES = 8  # fewer have hardly a double bridge; dynamic programming solves them at once
_MAX_PATH = 50  # cities of each path that a kick exchanges
_SEED = 0x9E3779B97F4A7C15


@jit
def iterated_local_search(dist: Floats, cities: Indices, kicks: int) -> float:
    """Improves a tour in place; its kicks are the same in every call.

    Args:
        dist: `(n, n)` distances, n of `MIN_CITIES` or more.
        cities: `(n,)` the tour.
        kicks: how many are tried.

    Returns:
        The length of the improved tour.
    """
    n = len(cities)
    moves = new_moves(dist, NEIGHBOURS)
    tour = new_array_tour(cities)
    queue = Queue(cities=cities.copy(), queued=np.ones(n, np.bool_))
    descend(moves, tour, queue, n)
    position = tour.position
    best, best_position = cities.copy(), position.copy()
    random = np.uint64(_SEED)
    scratch = np.empty(2 * _MAX_PATH, np.int64)
    max_path = min(_MAX_PATH, n // 3)
    for _ in range(kicks):
        random = _xorshift(random)
        start = _below(random, n)
        size_1 = 1 + _below(random >> np.uint64(20), max_path)
        size_2 = 1 + _below(random >> np.uint64(40), max_path)
        gain = _double_bridge(dist, cities, position, start, size_1, size_2, scratch)
        size = 0  # cities in the queue
        for end in (start, start + size_2, start + size_1 + size_2):
            for k in (end, end + 1):  # the edges that the kick put in
                city = cities[k % n]
                if not queue.queued[city]:
                    queue.queued[city] = True
                    queue.cities[size] = city
                    size += 1
        gain += descend(moves, tour, queue, size)
        if gain >= 0:
            assign(best, cities)
            assign(best_position, position)
        else:
            assign(cities, best)
            assign(position, best_position)
    return tour_length(dist, cities)


@jit
def _double_bridge(
    dist: Floats,
    cities: Indices,
    position: Indices,
    start: int,
    size_1: int,
    size_2: int,
    scratch: Indices,
) -> float:
    """Exchanges the `size_1` cities after position `start` with the `size_2` after those.

    The order a b..c d..e f becomes a d..e b..c f. `scratch` has room for the cities that move.
    Returns the gain, negative where the tour has become longer.
    """
    n = len(cities)
    a, b = cities[start], cities[(start + 1) % n]
    c, d = cities[(start + size_1) % n], cities[(start + size_1 + 1) % n]
    e, f = cities[(start + size_1 + size_2) % n], cities[(start + size_1 + size_2 + 1) % n]
    size = size_1 + size_2
    for k in range(size):
        scratch[k] = cities[(start + 1 + (k + size_1) % size) % n]
    for k in range(size):
        i = (start + 1 + k) % n
        cities[i] = scratch[k]
        position[scratch[k]] = i
    return dist[a, b] + dist[c, d] + dist[e, f] - dist[a, d] - dist[e, b] - dist[c, f]


@jit
def _below(random: np.uint64, limit: int) -> int:
    """A number from 0 to `limit` - 1 made of random bits."""
    return np.int64(random % np.uint64(limit))  # type: ignore[return-value]


@jit
def _xorshift(random: np.uint64) -> np.uint64:
    """The next random number (Marsaglia 2003): good enough for kicks, the same on every machine."""
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    return random
