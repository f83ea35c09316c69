"""Tours with the largest sum of prizes within a length limit, by dynamic programming over sets.

We use the recursion of Held and Karp (1962), and skip sets of places that no tour within the limit
can visit. Time grows with the number of sets that are not skipped. Instances may have at most 21
places, including the depot. Instances of Kool et al. (2019), with 20 places besides the depot and a
limit of 2, take about 7 milliseconds each.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ptrnet.geometry import distances
from ptrnet.geometry.tolerance import with_tolerance
from ptrnet.jit import jit
from ptrnet.types import Floats, Indices

MAX_ELEMENTS = 21
FAILURE = "no place can be visited within the limit"


def label(inputs: Floats) -> list[Indices]:
    """Return for each instance a shortest tour among all tours with the largest sum of prizes.

    An answer may end only if no place can follow. So while the tour can reach another place within
    the limit, we append this place. It has no prize, or else another tour would have a larger sum.

    Args:
        inputs: `(B, n, 5)`: two coordinates, a prize, the limit of the length, and whether
            distances are rounded. Element 0 is the depot.
    """
    n = inputs.shape[1]
    lengths = np.empty((2 ** (n - 1), n - 1))  # sparse: most of its memory is never touched
    return [_best_tour(instance, lengths) for instance in inputs]


def _best_tour(instance: Floats, lengths: Floats) -> Indices:
    position = instance[:, :2]
    dist = distances.matrix(position, "EUC_2D" if instance[0, 4] else distances.EUCLIDEAN)
    limit = with_tolerance(instance[0, 3])
    prize = np.ascontiguousarray(instance[:, 2])
    tour = best_tour(dist, prize, limit, lengths)
    return np.array(lengthened([0, *tour.tolist()], dist, prize, limit)[1:], np.int64)


def lengthened(path: Sequence[int], dist: Floats, prize: Floats, limit: float) -> list[int]:
    """Return a longer path: append the place in reach with the largest prize, while there is one.

    The path begins at the depot, 0. The limit of the length includes the way back to the depot.
    """
    path, length = list(path), path_length(dist, path)
    unvisited = np.ones(len(dist), np.bool_)
    while True:
        unvisited[path] = False
        there = length + dist[path[-1]]
        may_follow = unvisited & (there + ways_home(dist, unvisited) <= limit)
        if not may_follow.any():
            return path
        path.append(int(np.argmax(np.where(may_follow, prize, -1))))
        length = float(there[path[-1]])


def path_length(dist: Floats, path: Sequence[int]) -> float:
    """Return the length of a path, without a way back."""
    return float(sum(dist[pair] for pair in pairwise(path)))


@jit
def ways_home(dist: Floats, via: NDArray[np.bool_]) -> Floats:
    """Return the lengths `(n,)` of the shortest ways from all places to the depot (Dijkstra 1959).

    If distances are rounded, a way over other places may be shorter than the direct way, because
    rounded distances may violate the triangle inequality. A way may visit the places `via` `(n,)`.
    """
    home, waits = dist[0].copy(), via.copy()
    while True:
        nearest = -1
        for j in range(len(home)):
            if waits[j] and (nearest < 0 or home[j] < home[nearest]):
                nearest = j
        if nearest < 0:
            return home
        waits[nearest] = False
        for j in range(len(home)):
            home[j] = min(home[j], dist[j, nearest] + home[nearest])


@jit
def best_tour(dist: Floats, prize: Floats, limit: float, lengths: Floats) -> Indices:
    """Return a shortest tour with the largest sum of prizes, without the depot, which is place 0.

    Args:
        dist: `(n, n)` distances.
        prize: `(n,)`.
        limit: the maximum length of the tour.
        lengths: `(2^(n - 1), n - 1)`, memory that is overwritten. A set s of places is an
            integer, whose bit j stands for place j + 1. `lengths[s, j]` becomes the length of a
            shortest path from the depot through all places of s that ends at place j + 1.
    """
    m = len(prize) - 1
    home = ways_home(dist, np.ones(m + 1, np.bool_))
    reached = np.zeros(1 << m, np.bool_)
    for j in range(m):
        if dist[0, j + 1] + home[j + 1] <= limit:
            reached[1 << j] = True
            lengths[1 << j] = np.inf
            lengths[1 << j, j] = dist[0, j + 1]
    most, shortest, best_set, best_last = 0.0, 0.0, 0, 0
    for s in range(1, 1 << m):
        if not reached[s]:
            continue
        prizes = 0.0
        for j in range(m):
            if s >> j & 1:
                prizes += prize[j + 1]
        for last in range(m):
            length = lengths[s, last]
            if length == np.inf:
                continue
            whole = length + dist[last + 1, 0]
            if whole <= limit and (prizes > most or (prizes == most and whole < shortest)):
                most, shortest, best_set, best_last = prizes, whole, s, last
            for j in range(m):
                longer = length + dist[last + 1, j + 1]
                if s >> j & 1 or longer + home[j + 1] > limit:
                    continue
                both = s | 1 << j
                if not reached[both]:
                    reached[both] = True
                    lengths[both] = np.inf
                if longer < lengths[both, j]:
                    lengths[both, j] = longer
    count = 0
    for j in range(m):
        count += best_set >> j & 1
    tour = np.zeros(count, np.int64)
    s, last = best_set, best_last
    for k in range(count - 1, -1, -1):  # back from the end of the tour
        tour[k] = last + 1
        s ^= 1 << last
        before, least = 0, np.inf
        for i in range(m):
            if s >> i & 1 and lengths[s, i] + dist[i + 1, last + 1] < least:
                before, least = i, lengths[s, i] + dist[i + 1, last + 1]
        last = before
    return tour
