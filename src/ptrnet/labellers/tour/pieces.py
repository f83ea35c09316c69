"""Tours of so many cities that the distances of all pairs do not fit into memory: piece by piece.

A tour along Hilbert's curve is cut into paths of `PIECE` cities, and each path is improved while
its ends stay where they are; then again with cuts in the middle of the former paths, and so on (in
the spirit of Karp 1977).
"""

import numpy as np

from ptrnet.geometry import distances
from ptrnet.geometry.orders import hilbert_order
from ptrnet.geometry.scaling import scale_by_power_of_two
from ptrnet.labellers.tour.kicks import MIN_CITIES, iterated_local_search
from ptrnet.types import Floats, Indices

PIECE = 2000  # cities: 32 MB of distances
ROUNDS = 4


def tour_by_pieces(points: Floats, distance: str, kicks: int) -> Indices:
    """A tour `(n,)` of many cities.

    Args:
        points: `(n, 2)` the cities, n of `PIECE` or more.
        distance: a name of `ptrnet.geometry.distances`.
        kicks: for each city, in all rounds together: the next larger multiple of `ROUNDS` is tried.
    """
    n = len(points)
    if distance == distances.EUCLIDEAN:
        points = scale_by_power_of_two(points)
    tour = hilbert_order(points)
    for _ in range(ROUNDS):
        for first in range(0, n, PIECE):
            piece = tour[first : first + PIECE]
            if len(piece) > 3:
                piece[:] = _improve(points, distance, piece, kicks // ROUNDS + 1)
        tour = np.roll(tour, -PIECE // 2)
    return tour


def _improve(points: Floats, distance: str, path: Indices, kicks: int) -> Indices:
    """The cities of a path `(n,)` in an order that is at most as long, between the same ends."""
    n = len(path)
    dist = distances.matrix(points[path], distance)
    # The path is closed to a tour by an edge so short that no exchange removes it.
    dist[0, -1] = dist[-1, 0] = -n * (dist.max() or 1.0)
    order = np.arange(n)
    if n >= MIN_CITIES:
        iterated_local_search(dist, order, kicks * n)
    order = np.roll(order, -int(np.argmin(order)))  # from the first city on, in either direction
    return path[order if order[-1] == n - 1 else np.roll(order[::-1], 1)]
