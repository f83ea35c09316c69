"""Tours by the algorithm A1 of V's Table 2: greedy edges, then a little 2-opt.

V names the solver of D. Mishin: an `O(n^2)`-class greedy. The shortest edge that neither closes a
cycle nor gives a city a third edge is taken again and again, until all cities are on one path
(Steiglitz and Weiner 1968); three passes exchange pairs of the path's edges; then the path is
closed, however long the closing edge is.
"""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import assign, jit
from ptrnet.labellers.tours import add_edge, label_tours, open_pass, walk
from ptrnet.types import Answers, Floats, Indices

PASSES = 3

MAX_ELEMENTS = 5000  # memory grows as n^2, to half a GB and more here


def label(inputs: Floats, distance: str = EUCLIDEAN) -> Answers:
    """Tours of `(B, n, 2)` cities."""
    return label_tours(inputs, distance, _write_tours)


def _write_tours(dist: Floats, tours: Indices) -> None:
    first, second = np.triu_indices(dist.shape[1], 1)  # the cities of each edge
    for b in range(len(dist)):
        # Sorted here: numba takes two seconds to compile its own sorting, once on a machine.
        order = np.argsort(dist[b][first, second], kind="stable")
        _write_tour(dist[b], first[order], second[order], tours[b])


@jit
def _write_tour(dist: Floats, first: Indices, second: Indices, tour: Indices) -> None:
    assign(tour, _greedy_path(first, second, len(dist)))
    for _ in range(PASSES):
        if not open_pass(dist, tour):
            break


@jit
def _greedy_path(first: Indices, second: Indices, n: int) -> Indices:
    """The path `(n,)` of edges, the shortest first, each between `first[k]` and `second[k]`."""
    neighbours = np.full((n, 2), -1)  # on the paths so far
    other_end = np.arange(n)  # of the path that ends at a city
    for k in range(len(first)):
        i, j = first[k], second[k]
        if neighbours[i, 1] >= 0 or neighbours[j, 1] >= 0 or other_end[i] == j:
            continue
        add_edge(neighbours, i, j)
        head, last = other_end[i], other_end[j]
        other_end[head], other_end[last] = last, head
    start = 0
    while neighbours[start, 1] >= 0:
        start += 1
    return walk(neighbours, start)
