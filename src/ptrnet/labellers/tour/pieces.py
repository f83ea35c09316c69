"""Tours of so many cities that the distances of all pairs fit no memory: piece by piece.

A tour along Hilbert's curve is improved in pieces of neighbouring cities, each a path whose ends
stay where they are; then in pieces that begin in the middle of these (in the spirit of Karp 1977).
"""

import numpy as np

from ptrnet.geometry import distances
from ptrnet.geometry.orders import hilbert_order
from ptrnet.geometry.scaling import scale_by_power_of_two
from ptrnet.labellers.tour.kicks import MIN_CITIES, iterate
from ptrnet.types import Floats, Indices

PIECE = 2000  # cities: 32 MB of distances
ROUNDS = 4


def tour_by_pieces(points: Floats, distance: str, kicks: int) -> Indices:
    """A tour of `(n, 2)` cities, n of `PIECE` or more; `kicks` are tried for each city."""
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
    """The cities of a path on a path that is no longer, between the same two ends."""
    n = len(path)
    dist = distances.matrix(points[path], distance)
    # An edge so short that no exchange removes it closes the path to a tour.
    dist[0, -1] = dist[-1, 0] = -n * (dist.max() or 1.0)
    order = np.arange(n)
    if n >= MIN_CITIES:
        iterate(dist, order, kicks * n)
    order = np.roll(order, -int(np.argmin(order)))  # from the first city on
    return path[order if order[-1] == n - 1 else np.roll(order[::-1], 1)]
