"""Proofs where branch and bound alone takes too long: cities on a line, equal ones, on grids.

Equal cities are merged, a line has a bound of its own, and all else is searched from the penalties
of the linear relaxation.
"""

import numpy as np

from ptrnet.geometry.distances import ATT, CEIL_2D, EUC_2D, EUCLIDEAN
from ptrnet.jit import jit
from ptrnet.labellers.tour.branch_and_bound import new_search, resume
from ptrnet.labellers.tour.dynamic_programming import shortest_tour
from ptrnet.labellers.tour.edges import tour_length
from ptrnet.labellers.tour.kicks import MIN_CITIES, iterated_local_search
from ptrnet.labellers.tour.relaxation import best_penalties
from ptrnet.types import Floats, Indices

ROUNDING = 1e-10  # relative to a tour's length: what is shorter by less counts as equally short
# Cities at distance 0 are equally far from any other, by the triangle inequality. EUC_2D, which is
# rounded to the nearest, does not obey it; in GEO two cities are at least 1 apart.
_MERGEABLE = (EUCLIDEAN, CEIL_2D, ATT)


@jit
def slack_of(length: float, whole_numbers: bool) -> float:
    """The slack of `branch_and_bound.prove` for a tour of that length.

    Where all distances are whole numbers a shorter tour is shorter by 1 at least.
    """
    return 1 - 1e-6 if whole_numbers else ROUNDING * length


def prove_with_relaxation(
    dist: Floats, tour: Indices, distance: str, max_work: int, work_per_call: int
) -> float:
    """Finds the shortest tour, or proves that a tour is the shortest.

    Args:
        dist: `(n, n)`, n of `MIN_CITIES` or more.
        tour: `(n,)` a good tour; replaced by a shorter one where there is one.
        distance: the metric, one of `ptrnet.geometry.distances.NAMES`.
        max_work: of the search, in nodes times the `n^2` distances.
        work_per_call: of a call of compiled code, between which Ctrl-C is seen.

    Returns:
        A lower bound of all tours; -inf where none was proved.
    """
    if distance in _MERGEABLE:
        first = np.argmax(dist == 0, axis=1)  # of each city the first at distance 0, maybe itself
        if (first != np.arange(len(dist))).any():
            return _prove_merged(dist, tour, first, distance, max_work, work_per_call)
    slack = slack_of(tour_length(dist, tour), distance != EUCLIDEAN)
    if distance != EUC_2D:  # the one without the triangle inequality
        # By it no tour is shorter than to the farthest city and back, which is the length of a tour
        # of cities on a line.
        line = np.argsort(dist[np.argmax(dist[0])], kind="stable")
        if tour_length(dist, line) - slack <= 2 * dist.max():
            tour[:] = line
            return tour_length(dist, line) - slack
    search = new_search(dist)
    search.node.penalty[:] = best_penalties(dist)
    max_nodes, step = max_work // len(dist) ** 2, max(1, work_per_call // len(dist) ** 2)
    bound = -np.inf
    for nodes in range(step, max_nodes + step, step):
        bound = resume(search, tour, slack, min(nodes, max_nodes))
        if bound > -np.inf:
            break
    return bound


def _prove_merged(
    dist: Floats, tour: Indices, first: Indices, distance: str, max_work: int, work_per_call: int
) -> float:
    """`prove_with_relaxation` where some cities are equal: the tour of the distinct ones is proved.

    `first` `(n,)` is the first city that is equal to each.
    """
    distinct = np.unique(first)
    small = np.ascontiguousarray(dist[np.ix_(distinct, distinct)])
    n = len(distinct)
    if n < MIN_CITIES:
        short = shortest_tour(small)
        bound = tour_length(small, short)
    else:
        short = np.arange(n)
        iterated_local_search(small, short, 2 * n)
        bound = prove_with_relaxation(small, short, distance, max_work, work_per_call)
    merged = np.concatenate([np.flatnonzero(first == city) for city in distinct[short]])
    if bound > -np.inf or tour_length(dist, merged) < tour_length(dist, tour):
        tour[:] = merged
    return bound
