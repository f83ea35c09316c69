"""Tours by the algorithm A1 of Vinyals et al. 2015, Table 2: greedy edges, then three 2-opt passes.

The paper used a solver of D. Mishin, whose method we repeat (Steiglitz and Weiner 1968):

- Again and again, take the shortest edge that neither closes a cycle nor gives a city a third edge,
  until all cities are on one path.
- Make three passes that exchange pairs of the path's edges if the path gets shorter (2-opt).
- Join the ends of the path, however far apart they are.
"""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import assign, jit
from ptrnet.labellers.tours import add_edge, label_tours, walk
from ptrnet.types import Floats, Indices
from ptrnet_lab.labellers.two_opt import open_pass

PASSES = 3

HEURISTIC = True
MAX_ELEMENTS = 5000  # memory grows as n^2; this many cities take more than half a GB


def label(inputs: Floats, distance: str = EUCLIDEAN) -> list[Indices]:
    """Return tours of cities `(B, n, 2)`."""
    return label_tours(inputs, distance, _write_tours)


def _write_tours(dist: Floats, tours: Indices) -> None:
    first, second = np.triu_indices(dist.shape[1], 1)  # the cities of each edge
    for b in range(len(dist)):
        # Sort by NumPy, because numba takes two seconds to compile a sort.
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
    """Return the path `(n,)` that greedy edges make, the shortest first: `first` to `second`."""
    neighbours = np.full((n, 2), -1)  # the neighbours of each city on its path so far
    other_end = np.arange(n)  # for a city at one end of a path, the city at the other end
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
