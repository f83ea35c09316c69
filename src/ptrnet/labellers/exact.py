"""Shortest tours, proved: branch and bound with 1-tree bounds (Held and Karp 1971).

A tour of iterated local search is where it starts; it is nearly always the shortest, and the
search proves it. On cities drawn uniformly 20 take a quarter of a millisecond, 50 about
ten.
"""

import numba
import numpy as np

from ptrnet.distances import EUCLIDEAN
from ptrnet.labellers.tour.batches import matrices
from ptrnet.labellers.tour.branch_and_bound import prove
from ptrnet.labellers.tour.descent import length
from ptrnet.labellers.tour.kicks import LEAST, iterate
from ptrnet.labellers.tour.programme import shortest
from ptrnet.types import Answers, Floats, Indices

LARGEST = 80
WORK = 10**9  # of one search, in nodes times distances: about a minute
FAILURE = (
    "no tour was proved to be the shortest in about a minute; labeller local-search would serve"
)
ROUNDING = 1e-10  # of a tour's length: no tour is looked for that is shorter by less


def label(inputs: Floats, distance: str = EUCLIDEAN) -> Answers:
    """The shortest tours of `(B, n, 2)` cities, n of 1 to 80.

    An answer is empty where its proof would need more than `WORK`, as cities on a grid may do.
    """
    (tours, lengths), bounds = certified(inputs, distance)
    return Answers(tours, np.where(np.isneginf(bounds), 0, lengths))


def certified(inputs: Floats, distance: str = EUCLIDEAN) -> tuple[Answers, Floats]:
    """Tours, and for each `(B,)` a length that no tour is below; -inf where it is not proved.

    Lengths are in the units of `ptrnet.labellers.tour.batches`.
    """
    batch, n, _ = inputs.shape
    tours, bounds = np.empty((batch, n), np.int64), np.empty(batch)
    for places, far in matrices(inputs, distance):
        _each(far, tours[places], bounds[places], distance != EUCLIDEAN)
    return Answers(tours, np.full(batch, n, np.int64)), bounds


@numba.njit(nogil=True, cache=True)
def _each(far: Floats, tours: Indices, bounds: Floats, whole: bool) -> None:
    n = far.shape[1]
    for b in range(len(far)):
        if n < LEAST:
            tours[b] = shortest(far[b])
            bounds[b] = length(far[b], tours[b])
        else:
            tours[b] = np.arange(n)
            upper = iterate(far[b], tours[b], 2 * n)
            slack = 1 - 1e-6 if whole else ROUNDING * upper
            bounds[b], _ = prove(far[b], tours[b], slack, WORK // n**2)
