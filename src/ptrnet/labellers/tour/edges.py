"""Tours as edges: the length of a tour, and the order of the cities on edges."""

import numpy as np

from ptrnet.jit import jit
from ptrnet.types import Floats, Indices


@jit
def tour_length(dist: Floats, tour: Indices) -> float:
    """The length of the closed tour `(n,)` by `(n, n)` distances."""
    total = dist[tour[-1], tour[0]]
    for k in range(len(tour) - 1):
        total += dist[tour[k], tour[k + 1]]
    return total


@jit
def add_edge(neighbours: Indices, i: int, j: int) -> None:
    """Writes the edge i-j into `neighbours`, `(n, 2)`, where -1 stands for no neighbour yet."""
    neighbours[i, 0 if neighbours[i, 0] < 0 else 1] = j
    neighbours[j, 0 if neighbours[j, 0] < 0 else 1] = i


@jit
def walk(neighbours: Indices, start: int) -> Indices:
    """`(n,)`: all cities in the order of their edges, from `start` to its first neighbour and on.

    Args:
        neighbours: `(n, 2)` of a tour, or of a path that begins at `start`.
        start: a city.
    """
    n = len(neighbours)
    tour = np.empty(n, np.int64)
    previous, city = -1, start
    for k in range(n):
        tour[k] = city
        first, second = neighbours[city]
        next_city = first if first != previous else second
        previous, city = city, next_city
    return tour
