"""Tours of so many cities that the distances of all pairs fit no memory: piece by piece.

A tour along Hilbert's curve is improved in pieces of neighbouring cities, each a path whose ends
stay where they are; then in pieces that begin in the middle of these (in the spirit of Karp 1977).
"""

import numpy as np

from ptrnet import distances
from ptrnet.geometry import hilbert_order, scale_by_power_of_two
from ptrnet.labellers.tour.kicks import iterate
from ptrnet.types import Floats, Indices

PIECE = 2000  # cities: 32 MB of distances
ROUNDS = 4


def by_pieces(points: Floats, distance: str, kicks: int) -> Indices:
    """A tour of `(n, 2)` cities, n of `PIECE` or more; `kicks` are tried for each city."""
    n = len(points)
    if distance == distances.EUCLIDEAN:
        points = scale_by_power_of_two(points)
    tour = hilbert_order(points)
    for _ in range(ROUNDS):
        for first in range(0, n, PIECE):
            piece = tour[first : first + PIECE]
            if len(piece) > 3:
                tour[first : first + PIECE] = _path(points, distance, piece, kicks // ROUNDS + 1)
        tour = np.roll(tour, -PIECE // 2)
    return tour


def _path(points: Floats, distance: str, piece: Indices, kicks: int) -> Indices:
    """The cities of a piece on a path that is no longer, between the same two ends."""
    far = distances.matrix(points[piece], distance)
    # An edge that no exchange gives up closes the path to a tour.
    far[0, -1] = far[-1, 0] = -len(piece) * (far.max() or 1.0)
    order = np.arange(len(piece))
    if len(piece) >= 8:
        iterate(far, order, kicks * len(piece))
    order = np.roll(order, -int(np.argmin(order)))  # from the first city on
    return piece[order if order[-1] == len(piece) - 1 else np.roll(order[::-1], 1)]
