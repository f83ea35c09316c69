"""Good tours of any number of cities: 2-opt and Or-opt descents with double-bridge kicks.

Iterated local search as in Martin, Otto and Felten (1991), descents as in Bentley (1992); six
kicks a city, which leaves a gap of less than 0.1% at 50 cities. Nothing is drawn at random: the
same cities get the same tour.
"""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import assign, jit
from ptrnet.labellers.tour.batches import label_tours
from ptrnet.labellers.tour.dynamic_programming import shortest_tour
from ptrnet.labellers.tour.kicks import MIN_CITIES, iterated_local_search
from ptrnet.labellers.tour.pieces import tour_by_pieces
from ptrnet.types import Answers, Floats, Indices

KICKS = 6  # for each city
MAX_MATRIX = 10_000  # cities, whose distances take 800 MB; more are improved piece by piece


def label(inputs: Floats, distance: str = EUCLIDEAN) -> Answers:
    """Tours of `(B, n, 2)` cities."""
    batch, n, _ = inputs.shape
    if n <= MAX_MATRIX:
        return label_tours(inputs, distance, _write_tours)
    tours = np.stack([tour_by_pieces(points, distance, KICKS) for points in inputs])
    return Answers(tours, np.full(batch, n, np.int64))


@jit
def _write_tours(dist: Floats, tours: Indices) -> None:
    n = dist.shape[1]
    for b in range(len(dist)):
        if n < MIN_CITIES:
            assign(tours[b], shortest_tour(dist[b]))
        else:
            assign(tours[b], np.arange(n))
            iterated_local_search(dist[b], tours[b], KICKS * n)
