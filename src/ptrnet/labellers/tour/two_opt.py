"""2-opt (Croes 1958) over all pairs of edges, pass by pass."""

import numba

from ptrnet.types import Floats, Indices

_GAIN = 1e-12  # relative to the edges: what is less is rounding


@numba.njit(nogil=True, cache=True)
def two_opt(far: Floats, tour: Indices) -> None:
    """Takes, in place, every exchange of two edges that shortens the closed tour, until none does.

    Args:
        far: `(n, n)` distances.
        tour: `(n,)` cities.
    """
    while closed_pass(far, tour):
        pass


@numba.njit(nogil=True, cache=True)
def closed_pass(far: Floats, tour: Indices) -> bool:
    """Looks at each pair of edges of the closed tour once; whether an exchange was made."""
    n = len(tour)
    improved = False
    for i in range(n - 2):
        for j in range(i + 2, n - (i == 0)):
            improved |= exchange(far, tour, i, j)
    return improved


@numba.njit(nogil=True, cache=True)
def open_pass(far: Floats, tour: Indices) -> bool:
    """Looks at each pair of edges of the open path once; whether an exchange was made."""
    n = len(tour)
    improved = False
    for i in range(n - 3):
        for j in range(i + 2, n - 1):
            improved |= exchange(far, tour, i, j)
    return improved


@numba.njit(nogil=True, cache=True)
def exchange(far: Floats, tour: Indices, i: int, j: int) -> bool:
    """Turns the places i+1..j round where that replaces two edges by shorter ones."""
    a, b, c, d = tour[i], tour[i + 1], tour[j], tour[(j + 1) % len(tour)]
    now = far[a, b] + far[c, d]
    if far[a, c] + far[b, d] >= now * (1 - _GAIN):
        return False
    first, last = i + 1, j
    while first < last:
        tour[first], tour[last] = tour[last], tour[first]
        first, last = first + 1, last - 1
    return True
