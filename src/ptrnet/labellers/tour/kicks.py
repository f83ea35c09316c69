"""Iterated local search: descend, kick, descend again, keep what is no longer (Martin et al. 1991).

The kick exchanges two short neighbouring paths of the tour: a double bridge, which 2-opt and
Or-opt seldom undo.
"""

import numba
import numpy as np

from ptrnet.labellers.tour.descent import ROUNDING, descend, length, neighbours
from ptrnet.types import Floats, Indices

NEIGHBOURS = 10
LEAST = 8  # cities: below this a double bridge is no kick; the dynamic programme is at once there
_LONGEST_PATH = 50
_SEED = 0x9E3779B97F4A7C15


@numba.njit(nogil=True, cache=True)
def iterate(far: Floats, tour: Indices, kicks: int) -> float:
    """Improves `tour` in place by `kicks` kicks; its length. The same tour for the same distances.

    Args:
        far: `(n, n)` distances, n of `LEAST` or more.
        tour: `(n,)` where to start.
        kicks: how many are tried.
    """
    n = len(tour)
    near = neighbours(far, min(NEIGHBOURS, n - 1))
    where, queue = np.empty(n, np.int64), tour.copy()
    queued = np.ones(n, np.bool_)
    for k in range(n):
        where[tour[k]] = k
    least = ROUNDING * far.max()
    descend(far, near, tour, where, queue, n, queued, least)
    kept, kept_where = tour.copy(), where.copy()
    draw = np.uint64(_SEED)
    path = np.empty(2 * _LONGEST_PATH, np.int64)
    most = min(_LONGEST_PATH, n // 3)
    for _ in range(kicks):
        draw = _next(draw)
        start = _below(draw, n)
        one, two = 1 + _below(draw >> np.uint64(20), most), 1 + _below(draw >> np.uint64(40), most)
        gain = _kick(far, tour, where, start, one, two, path)
        waiting = 0
        middle, last = start + two, start + one + two
        for place in (start, start + 1, middle, middle + 1, last, last + 1):
            city = tour[place % n]
            if not queued[city]:
                queued[city] = True
                queue[waiting] = city
                waiting += 1
        gain += descend(far, near, tour, where, queue, waiting, queued, least)
        if gain >= 0:
            kept[:], kept_where[:] = tour, where
        else:
            tour[:], where[:] = kept, kept_where
    return length(far, tour)


@numba.njit(nogil=True, cache=True)
def _kick(far, tour, where, start, one, two, path):  # type: ignore[no-untyped-def]
    """Exchanges the `one` cities behind place `start` with the `two` behind those; the gain."""
    n = len(tour)
    a, b = tour[start], tour[(start + 1) % n]
    c, d = tour[(start + one) % n], tour[(start + one + 1) % n]
    e, f = tour[(start + one + two) % n], tour[(start + one + two + 1) % n]
    size = one + two
    for k in range(size):
        path[k] = tour[(start + 1 + (k + one) % size) % n]
    for k in range(size):
        place = (start + 1 + k) % n
        tour[place] = path[k]
        where[path[k]] = place
    return far[a, b] + far[c, d] + far[e, f] - far[a, d] - far[e, b] - far[c, f]


@numba.njit(nogil=True, cache=True)
def _below(draw, limit):  # type: ignore[no-untyped-def]
    return np.int64(draw % np.uint64(limit))


@numba.njit(nogil=True, cache=True)
def _next(draw):  # type: ignore[no-untyped-def]
    """Xorshift (Marsaglia 2003): enough for kicks, and the same on every machine."""
    draw ^= draw << np.uint64(13)
    draw ^= draw >> np.uint64(7)
    draw ^= draw << np.uint64(17)
    return draw
