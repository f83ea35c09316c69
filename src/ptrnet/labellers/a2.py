"""Tours by the algorithm A2 of V's Table 2: nearest neighbour, then 2-opt.

The way to the nearest city not yet seen (Flood 1956) is walked from ten cities, or from all where
there are fewer; 2-opt (Croes 1958) shortens each of these tours, and the shortest is taken.
"""

import numba
import numpy as np

from ptrnet.distances import EUCLIDEAN
from ptrnet.labellers.tour.batches import tours
from ptrnet.labellers.tour.descent import length
from ptrnet.labellers.tour.two_opt import two_opt
from ptrnet.types import Answers, Floats, Indices

STARTS = 10

LARGEST = 5000  # cities: memory grows as n^2, to half a GB and more here


def label(inputs: Floats, distance: str = EUCLIDEAN) -> Answers:
    """Tours of `(B, n, 2)` cities."""
    return tours(inputs, distance, _each)


@numba.njit(nogil=True, cache=True)
def _each(far: Floats, found: Indices) -> None:
    n = far.shape[1]
    for b in range(len(far)):
        best = np.inf
        starts = min(n, STARTS)
        for k in range(starts):
            tour = _nearest(far[b], k * n // starts)
            two_opt(far[b], tour)
            long = length(far[b], tour)
            if long < best:
                best, found[b] = long, tour


@numba.njit(nogil=True, cache=True)
def _nearest(far: Floats, start: int) -> Indices:
    """The tour from `start` on that always goes to the nearest city not yet seen."""
    n = len(far)
    tour = np.arange(n)
    tour[0], tour[start] = start, 0
    for k in range(1, n - 1):
        best, place = np.inf, k
        for i in range(k, n):
            if far[tour[k - 1], tour[i]] < best:
                best, place = far[tour[k - 1], tour[i]], i
        tour[k], tour[place] = tour[place], tour[k]
    return tour
