"""Proofs of tours that the plain search lacks: cities on a line, equal ones, on grids."""

import numpy as np

from ptrnet.geometry.distances import ATT, CEIL_2D, EUC_2D, EUCLIDEAN
from ptrnet.jit import jit
from ptrnet.labellers.tour.branch_and_bound import new_search, resume
from ptrnet.labellers.tour.dynamic_programming import shortest_tour
from ptrnet.labellers.tour.edges import tour_length
from ptrnet.labellers.tour.kicks import MIN_CITIES, iterate
from ptrnet.labellers.tour.relaxation import best_penalties
from ptrnet.types import Floats, Indices

ROUNDING = 1e-10  # of a tour's length: no tour is looked for that is shorter by less
# Where a way round is never shorter, and equal cities have no distance: those can be one.
_MERGING = (EUCLIDEAN, CEIL_2D, ATT)


@jit
def slack_of(length: float, whole_numbers: bool) -> float:
    """By how much a tour has to be shorter than one of that length to be looked for."""
    return 1 - 1e-6 if whole_numbers else ROUNDING * length


def prove_hard(dist: Floats, tour: Indices, distance: str, work: int, slice_: int) -> float:
    """Finds the shortest tour, or proves that a tour is the shortest.

    Args:
        dist: `(n, n)`, n of `MIN_CITIES` or more.
        tour: `(n,)` a good tour; replaced by a shorter one where there is one.
        distance: the metric, one of `ptrnet.geometry.distances.NAMES`.
        work: of the search, in nodes times distances.
        slice_: of it, between two looks at the keyboard.

    Returns:
        A length that no tour is below; -inf where that is not proved.
    """
    if distance in _MERGING:
        first = np.argmax(dist == 0, axis=1)  # of the cities that are equal to each
        if (first != np.arange(len(dist))).any():
            return _prove_merged(dist, tour, first, distance, work, slice_)
    slack = slack_of(tour_length(dist, tour), distance != EUCLIDEAN)
    if distance != EUC_2D:  # there and back again: no tour is shorter
        line = np.argsort(dist[np.argmax(dist[0])], kind="stable")
        if tour_length(dist, line) - slack <= 2 * dist.max():
            tour[:] = line
            return tour_length(dist, line) - slack
    search = new_search(dist)
    search.node.penalty[:] = best_penalties(dist)
    max_nodes, step = work // len(dist) ** 2, max(1, slice_ // len(dist) ** 2)
    bound = -np.inf
    for nodes in range(step, max_nodes + step, step):
        bound = resume(search, tour, slack, min(nodes, max_nodes))
        if bound > -np.inf:
            break
    return bound


def _prove_merged(
    dist: Floats, tour: Indices, first: Indices, distance: str, work: int, slice_: int
) -> float:
    """As `prove_hard`, of cities some of which are equal; `first` `(n,)` of those equal to each."""
    distinct = np.unique(first)
    small = np.ascontiguousarray(dist[np.ix_(distinct, distinct)])
    n = len(distinct)
    if n < MIN_CITIES:
        short = shortest_tour(small)
        bound = tour_length(small, short)
    else:
        short = np.arange(n)
        iterate(small, short, 2 * n)
        bound = prove_hard(small, short, distance, work, slice_)
    merged = np.concatenate([np.flatnonzero(first == city) for city in distinct[short]])
    if bound > -np.inf or tour_length(dist, merged) < tour_length(dist, tour):
        tour[:] = merged
    return bound
