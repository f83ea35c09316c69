"""Tours by the algorithm A1 of V's Table 2: greedy edges, then a little 2-opt.

V names the solver of D. Mishin: an `O(n^2)`-class greedy. The shortest edge that neither closes a
cycle nor gives a city a third edge is taken again and again, until all cities are on one path
(Steiglitz and Weiner 1968); three passes exchange pairs of the path's edges; then the path is
closed, however long the closing edge is.
"""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import jit
from ptrnet.labellers.tour.batches import label_tours
from ptrnet.labellers.tour.edges import add_edge, walk
from ptrnet.labellers.tour.two_opt import open_pass
from ptrnet.types import Answers, Floats, Indices

PASSES = 3

MAX_ELEMENTS = 5000  # memory grows as n^2, to half a GB and more here


def label(inputs: Floats, distance: str = EUCLIDEAN) -> Answers:
    """Tours of `(B, n, 2)` cities."""
    return label_tours(inputs, distance, _write_tours)


@jit
def _write_tours(dist: Floats, tours: Indices) -> None:
    for b in range(len(dist)):
        tours[b] = _greedy_path(dist[b])
        for _ in range(PASSES):
            if not open_pass(dist[b], tours[b]):
                break


@jit
def _greedy_path(dist: Floats) -> Indices:
    n = len(dist)
    edges, lengths = _all_edges(dist)
    neighbours = np.full((n, 2), -1)  # on the paths so far
    other_end = np.arange(n)  # of the path that ends at a city
    for k in np.argsort(lengths, kind="mergesort"):
        i, j = edges[k]
        if neighbours[i, 1] >= 0 or neighbours[j, 1] >= 0 or other_end[i] == j:
            continue
        add_edge(neighbours, i, j)
        first, last = other_end[i], other_end[j]
        other_end[first], other_end[last] = last, first
    start = 0
    while neighbours[start, 1] >= 0:
        start += 1
    return walk(neighbours, start)


@jit
def _all_edges(dist: Floats) -> tuple[Indices, Floats]:
    """The cities at each edge and its length."""
    n = len(dist)
    count = n * (n - 1) // 2
    edges, lengths = np.empty((count, 2), np.int64), np.empty(count)
    k = 0
    for i in range(n):
        for j in range(i + 1, n):
            edges[k, 0], edges[k, 1], lengths[k] = i, j, dist[i, j]
            k += 1
    return edges, lengths
