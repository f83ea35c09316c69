"""Shortest tours, proved: branch and bound with 1-tree bounds (Held and Karp 1971).

A tour of iterated local search is where it starts; it is nearly always the shortest, and the
search proves it. On cities drawn uniformly 20 take a quarter of a millisecond, 50 about
ten.
"""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import jit
from ptrnet.labellers.tour.batches import matrices
from ptrnet.labellers.tour.branch_and_bound import prove
from ptrnet.labellers.tour.dynamic_programming import shortest_tour
from ptrnet.labellers.tour.edges import tour_length
from ptrnet.labellers.tour.kicks import MIN_CITIES, iterate
from ptrnet.types import Answers, Floats, Indices

MAX_ELEMENTS = 80
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
    for rows, dist in matrices(inputs, distance):
        if n < MIN_CITIES:
            _write_shortest(dist, tours[rows], bounds[rows])
        else:
            _write_proved(dist, tours[rows], bounds[rows], distance != EUCLIDEAN, WORK // n**2)
    return Answers(tours, np.full(batch, n, np.int64)), bounds


@jit
def _write_shortest(dist: Floats, tours: Indices, bounds: Floats) -> None:
    for b in range(len(dist)):
        tours[b] = shortest_tour(dist[b])
        bounds[b] = tour_length(dist[b], tours[b])


@jit
def _write_proved(
    dist: Floats, tours: Indices, bounds: Floats, whole_numbers: bool, max_nodes: int
) -> None:
    """Tours of local search, proved or replaced by a shorter one.

    Args:
        dist: `(b, n, n)`.
        tours: `(b, n)` written.
        bounds: `(b,)` written.
        whole_numbers: all distances are; so a shorter tour is shorter by 1.
        max_nodes: of a search.
    """
    n = dist.shape[1]
    for b in range(len(dist)):
        tours[b] = np.arange(n)
        length = iterate(dist[b], tours[b], 2 * n)
        slack = 1 - 1e-6 if whole_numbers else ROUNDING * length
        bounds[b], _ = prove(dist[b], tours[b], slack, max_nodes)
