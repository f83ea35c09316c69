"""A tour as an array, with the position of each city in it: neighbours and reversals.

The operations that 2-opt and Or-opt need (Fredman, Johnson, McGeoch, Ostheimer 1995).
"""

from typing import NamedTuple

import numpy as np

from ptrnet.jit import jit
from ptrnet.types import Indices


class ArrayTour(NamedTuple):
    """A closed tour of n cities."""

    cities: Indices  # (n,) in the order of the tour
    position: Indices  # (n,) of each city in `cities`


@jit
def new_array_tour(cities: Indices) -> ArrayTour:
    """The tour of these cities, which changes `cities` where it is changed."""
    position = np.empty(len(cities), np.int64)
    for k in range(len(cities)):
        position[cities[k]] = k
    return ArrayTour(cities=cities, position=position)


@jit
def neighbour(cities: Indices, position: Indices, city: int, forward: bool) -> int:
    """The city after this one in the tour, or the one before it."""
    k = position[city]
    if forward:
        return cities[k + 1] if k + 1 < len(cities) else cities[0]
    return cities[k - 1] if k > 0 else cities[-1]


@jit
def reverse(cities: Indices, position: Indices, start: int, end: int, mirrored: bool) -> bool:
    """Reverses the path from city `start` to city `end`, in at most n/2 steps.

    Where the rest of the tour is shorter, that is reversed instead: it gives the same closed tour,
    but mirrored, so that every path runs the other way through `cities`.

    Args:
        cities: of the tour, changed in place.
        position: of each city, changed in place.
        start: of the path.
        end: of the path.
        mirrored: whether the path from start to end runs backwards through `cities`.

    Returns:
        Whether paths that ran forwards before all reversals run backwards now: the `mirrored` of
        the next reversal.
    """
    n = len(cities)
    first, last = (position[end], position[start]) if mirrored else (position[start], position[end])
    size = last - first + 1
    if size <= 0:
        size += n
    rest_is_shorter = 2 * size > n
    if rest_is_shorter:
        first, last = last + 1, first - 1
        size = n - size
        if first >= n:
            first = 0
        if last < 0:
            last = n - 1
    for _ in range(size // 2):
        cities[first], cities[last] = cities[last], cities[first]
        position[cities[first]], position[cities[last]] = first, last
        first = first + 1 if first + 1 < n else 0
        last = last - 1 if last > 0 else n - 1
    return mirrored != rest_is_shorter
