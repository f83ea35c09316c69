"""Good tours of any number of cities: 2-opt and Or-opt descents with double-bridge kicks.

Iterated local search as in Martin, Otto and Felten (1991), descents as in Bentley (1992); six
kicks a city, which leaves a gap of less than 0.1% at 50 cities. Nothing is drawn at random: the
same cities get the same tour.
"""

import numba
import numpy as np

from ptrnet.distances import EUCLIDEAN
from ptrnet.labellers.tour.batches import tours
from ptrnet.labellers.tour.kicks import LEAST, iterate
from ptrnet.labellers.tour.pieces import by_pieces
from ptrnet.labellers.tour.programme import shortest
from ptrnet.types import Answers, Floats, Indices

KICKS = 6  # for each city
WHOLE = 10_000  # cities, whose distances take 800 MB; more are improved piece by piece


def label(inputs: Floats, distance: str = EUCLIDEAN) -> Answers:
    """Tours of `(B, n, 2)` cities."""
    batch, n, _ = inputs.shape
    if n <= WHOLE:
        return tours(inputs, distance, _each)
    found = np.stack([by_pieces(points, distance, KICKS) for points in inputs])
    return Answers(found, np.full(batch, n, np.int64))


@numba.njit(nogil=True, cache=True)
def _each(far: Floats, found: Indices) -> None:
    n = far.shape[1]
    for b in range(len(far)):
        if n < LEAST:
            found[b] = shortest(far[b])
        else:
            found[b] = np.arange(n)
            iterate(far[b], found[b], KICKS * n)
