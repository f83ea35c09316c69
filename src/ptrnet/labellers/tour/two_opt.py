"""2-opt (Croes 1958) over all pairs of edges, pass by pass."""

from ptrnet.jit import jit
from ptrnet.types import Floats, Indices

_ROUNDING = 1e-12  # relative to the edges: a smaller gain may be an error of rounding


@jit
def two_opt(dist: Floats, tour: Indices) -> None:
    """Exchanges pairs of edges of the closed tour, in place, until no exchange shortens it.

    Args:
        dist: `(n, n)` distances.
        tour: `(n,)` cities.
    """
    while closed_pass(dist, tour):
        pass


@jit
def closed_pass(dist: Floats, tour: Indices) -> bool:
    """Tries each pair of edges of the closed tour `(n,)` once; whether any was exchanged."""
    n = len(tour)
    improved = False
    for i in range(n - 2):
        for j in range(i + 2, n - (i == 0)):  # the first edge and the last share a city
            improved |= exchange(dist, tour, i, j)
    return improved


@jit
def open_pass(dist: Floats, path: Indices) -> bool:
    """Tries each pair of edges of the open path `(n,)` once; whether any was exchanged."""
    n = len(path)
    improved = False
    for i in range(n - 3):
        for j in range(i + 2, n - 1):
            improved |= exchange(dist, path, i, j)
    return improved


@jit
def exchange(dist: Floats, tour: Indices, i: int, j: int) -> bool:
    """Reverses positions i + 1 to j if that replaces two edges by shorter ones; whether it did.

    The edges are those after the positions i and j; the one after the last leads to the first.
    """
    a, b, c, d = tour[i], tour[i + 1], tour[j], tour[(j + 1) % len(tour)]
    before, after = dist[a, b] + dist[c, d], dist[a, c] + dist[b, d]
    if after >= before * (1 - _ROUNDING):
        return False
    first, last = i + 1, j
    while first < last:
        tour[first], tour[last] = tour[last], tour[first]
        first, last = first + 1, last - 1
    return True
