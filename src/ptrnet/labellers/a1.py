"""Tours by the algorithm A1 of V's Table 2: greedy edges, then a little 2-opt.

V names the solver of D. Mishin: an `O(n^2)`-class greedy. The shortest edge that neither closes a
cycle nor gives a city a third edge is taken again and again, until all cities are on one path
(Steiglitz and Weiner 1968); three passes exchange pairs of the path's edges; then the path is
closed, however long the closing edge is.
"""

import numba
import numpy as np

from ptrnet.distances import EUCLIDEAN
from ptrnet.labellers.tour.batches import tours
from ptrnet.labellers.tour.two_opt import open_pass
from ptrnet.types import Answers, Floats, Indices

PASSES = 3

LARGEST = 5000  # cities: memory grows as n^2, to half a GB and more here


def label(inputs: Floats, distance: str = EUCLIDEAN) -> Answers:
    """Tours of `(B, n, 2)` cities."""
    return tours(inputs, distance, _each)


@numba.njit(nogil=True, cache=True)
def _each(far: Floats, found: Indices) -> None:
    for b in range(len(far)):
        found[b] = _greedy_path(far[b])
        for _ in range(PASSES):
            if not open_pass(far[b], found[b]):
                break


@numba.njit(nogil=True, cache=True)
def _greedy_path(far: Floats) -> Indices:
    n = len(far)
    count = n * (n - 1) // 2
    ends, lengths = np.empty((count, 2), np.int64), np.empty(count)
    k = 0
    for i in range(n):
        for j in range(i + 1, n):
            ends[k, 0], ends[k, 1], lengths[k] = i, j, far[i, j]
            k += 1
    beside = np.full((n, 2), -1)  # neighbours on the path
    other = np.arange(n)  # of an end of a path: its other end
    for k in np.argsort(lengths, kind="mergesort"):
        i, j = ends[k]
        if beside[i, 1] >= 0 or beside[j, 1] >= 0 or other[i] == j:
            continue
        beside[i, int(beside[i, 0] >= 0)] = j
        beside[j, int(beside[j, 0] >= 0)] = i
        one, two = other[i], other[j]
        other[one], other[two] = two, one
    path = np.zeros(n, np.int64)
    city, previous = 0, -1
    for i in range(n):
        if beside[i, 1] < 0:
            city = i
            break
    for k in range(n):
        path[k] = city
        onward = beside[city, 0] if beside[city, 0] != previous else beside[city, 1]
        previous, city = city, onward
    return path
