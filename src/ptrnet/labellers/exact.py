"""Shortest tours, proved: branch and bound with 1-tree bounds (Held and Karp 1971).

A tour of iterated local search is where it starts; it is nearly always the shortest, and the
search proves it. On cities drawn uniformly 20 take a quarter of a millisecond, 50 about
ten. What the search cannot prove soon is tried in other ways (`ptrnet.labellers.tour.proof`).
"""

import numpy as np
from numpy.typing import NDArray

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import assign, jit
from ptrnet.labellers.tour.batches import distance_matrices
from ptrnet.labellers.tour.branch_and_bound import prove
from ptrnet.labellers.tour.dynamic_programming import shortest_tour
from ptrnet.labellers.tour.edges import tour_length
from ptrnet.labellers.tour.kicks import MIN_CITIES, iterated_local_search
from ptrnet.labellers.tour.proof import prove_with_relaxation, slack_of
from ptrnet.types import Answers, Floats, Indices

MAX_ELEMENTS = 80
WORK = 10**9  # of one search, in nodes times its n^2 distances: about a minute
EASY = 2 * 10**7  # of the first search, and of any call of compiled code: then Ctrl-C is seen
UNPROVED = (
    "no tour was proved to be the shortest in about a minute; labeller local-search would serve"
)


def label(inputs: Floats, distance: str = EUCLIDEAN) -> Answers:
    """The shortest tours of `(B, n, 2)` cities, n of 1 to 80; see `label_with_proof`."""
    return label_with_proof(inputs, distance)[0]


def label_with_proof(
    inputs: Floats, distance: str = EUCLIDEAN
) -> tuple[Answers, NDArray[np.bool_]]:
    """Tours, and of each `(B,)` whether it is proved to be the shortest.

    Where the proof would need more than `WORK`, the tour is the best that was found.
    """
    answers, bounds = label_with_bounds(inputs, distance)
    return answers, ~np.isneginf(bounds)


def label_with_bounds(inputs: Floats, distance: str = EUCLIDEAN) -> tuple[Answers, Floats]:
    """Tours, and a lower bound `(B,)` of the tours of each; -inf where the tour is not proved.

    Lengths are in the units of `ptrnet.labellers.tour.batches`.
    """
    batch, n, _ = inputs.shape
    tours, bounds = np.empty((batch, n), np.int64), np.empty(batch)
    for rows, dist in distance_matrices(inputs, distance):
        if n < MIN_CITIES:
            _write_shortest(dist, tours[rows], bounds[rows])
            continue
        done, whole_numbers = 0, distance != EUCLIDEAN
        while done < len(dist):  # in parts: an interrupt waits for the end of a compiled function
            done = _write_proved(
                dist, tours[rows], bounds[rows], whole_numbers, done, min(EASY, WORK)
            )
        for b in np.flatnonzero(np.isneginf(bounds[rows])):
            bounds[rows][b] = prove_with_relaxation(dist[b], tours[rows][b], distance, WORK, EASY)
    return Answers(tours, np.full(batch, n, np.int64)), bounds


@jit
def _write_shortest(dist: Floats, tours: Indices, bounds: Floats) -> None:
    for b in range(len(dist)):
        assign(tours[b], shortest_tour(dist[b]))
        bounds[b] = tour_length(dist[b], tours[b])


@jit
def _write_proved(
    dist: Floats, tours: Indices, bounds: Floats, whole_numbers: bool, first: int, work: int
) -> int:
    """Tours of local search, proved or replaced by a shorter one.

    Args:
        dist: `(B, n, n)`.
        tours: `(B, n)` written from `first` on.
        bounds: `(B,)` written from `first` on.
        whole_numbers: all distances are; so a shorter tour is shorter by 1.
        first: the first instance that is searched.
        work: the most of a search; and once all together have taken as much, the rest is left.

    Returns:
        The first instance that is left.
    """
    n = dist.shape[1]
    total = 0
    for b in range(first, len(dist)):
        assign(tours[b], np.arange(n))
        length = iterated_local_search(dist[b], tours[b], 2 * n)
        bounds[b], nodes = prove(dist[b], tours[b], slack_of(length, whole_numbers), work // n**2)
        total += (nodes + 2 * n) * n**2
        if total >= work:
            return b + 1
    return len(dist)
