"""2-opt (Croes 1958): exchange pairs of a tour's edges while that makes the tour shorter."""

from ptrnet.jit import jit
from ptrnet.types import Floats, Indices

# An exchange must shorten its two edges by more than this share of their length. A smaller gain may
# be a rounding error, and 2-opt could repeat such exchanges forever.
_ROUNDING = 1e-12


@jit
def two_opt(dist: Floats, tour: Indices) -> None:
    """Exchange pairs of edges of the closed tour `(n,)`, in place, until none shortens it."""
    while closed_pass(dist, tour):
        pass


@jit
def closed_pass(dist: Floats, tour: Indices) -> bool:
    """Try each pair of edges of the closed tour `(n,)` once. Return whether any pair changed."""
    n = len(tour)
    improved = False
    for i in range(n - 2):
        for j in range(i + 2, n - (i == 0)):  # the first edge and the last share a city
            improved |= exchange(dist, tour, i, j)
    return improved


@jit
def open_pass(dist: Floats, path: Indices) -> bool:
    """Try each pair of edges of the open path `(n,)` once. Return whether any pair changed."""
    n = len(path)
    improved = False
    for i in range(n - 3):
        for j in range(i + 2, n - 1):
            improved |= exchange(dist, path, i, j)
    return improved


@jit
def exchange(dist: Floats, tour: Indices, i: int, j: int) -> bool:
    """Reverse positions i + 1 to j if the tour gets shorter. Return whether this was done.

    This replaces the edge after position i and the edge after position j. The edge after the last
    position leads to the first city.
    """
    a, b, c, d = tour[i], tour[i + 1], tour[j], tour[(j + 1) % len(tour)]
    before, after = dist[a, b] + dist[c, d], dist[a, c] + dist[b, d]
    if after >= before - _ROUNDING * abs(before):
        return False
    first, last = i + 1, j
    while first < last:
        tour[first], tour[last] = tour[last], tour[first]
        first, last = first + 1, last - 1
    return True
