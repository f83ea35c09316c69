"""Tours by the algorithm A2 of Vinyals et al. 2015, Table 2: nearest neighbour, then 2-opt.

Start a tour at each of ten cities, or at each city if there are fewer than ten. Always go on to the
nearest city that is not yet visited (Flood 1956). Shorten each of these tours by 2-opt (Croes
1958), and return the shortest tour.
"""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import assign, jit
from ptrnet.labellers.tours import label_tours, tour_length
from ptrnet.types import Floats, Indices
from ptrnet_lab.labellers.two_opt import two_opt

STARTS = 10

HEURISTIC = True
MAX_ELEMENTS = 5000  # memory grows as n^2; the distances of this many cities take 200 MB


def label(inputs: Floats, distance: str = EUCLIDEAN) -> list[Indices]:
    """Return tours of cities `(B, n, 2)`."""
    return label_tours(inputs, distance, _write_tours)


@jit
def _write_tours(dist: Floats, tours: Indices) -> None:
    n = dist.shape[1]
    for b in range(len(dist)):
        shortest = np.inf
        starts = min(n, STARTS)
        for k in range(starts):
            tour = _nearest_neighbour_tour(dist[b], k * n // starts)
            two_opt(dist[b], tour)
            length = tour_length(dist[b], tour)
            if length < shortest:
                shortest = length
                assign(tours[b], tour)


@jit
def _nearest_neighbour_tour(dist: Floats, start: int) -> Indices:
    """Return the tour from `start` that always goes on to the nearest city not yet visited."""
    n = len(dist)
    tour = np.arange(n)
    tour[0], tour[start] = start, 0
    for k in range(1, n - 1):  # tour[k:] are not yet visited
        best, best_i = np.inf, k
        for i in range(k, n):
            if dist[tour[k - 1], tour[i]] < best:
                best, best_i = dist[tour[k - 1], tour[i]], i
        tour[k], tour[best_i] = tour[best_i], tour[k]
    return tour
