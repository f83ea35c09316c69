"""Descent by 2-opt (Croes 1958) and Or-opt (Or 1976) moves between near neighbours.

Cities wait in a queue and are taken up again when an edge at them changes (Bentley 1992).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptrnet.jit import jit
from ptrnet.labellers.tour.array_tour import ArrayTour, neighbour, reverse
from ptrnet.types import Floats, Indices

MAX_SEGMENT = 3  # cities that an Or-opt move carries
# Times the longest distance: a smaller gain may be an error of rounding, and such moves may go in
# circles.
ROUNDING = 1e-12


class Moves(NamedTuple):
    """The moves that are tried, and when one is taken; n cities."""

    dist: Floats  # (n, n)
    nearest: Indices  # (n, max_nearest or n - 1) of each city: only edges to these are put in
    min_gain: float  # a move is taken where it shortens the tour by more than this


class Queue(NamedTuple):
    """The cities whose moves are still to be tried: a ring buffer."""

    cities: Indices  # (n,)
    queued: NDArray[np.bool_]  # (n,) whether a city waits


@jit
def new_moves(dist: Floats, max_nearest: int) -> Moves:
    """The moves under `(n, n)` distances: new edges lead to the `max_nearest` nearest cities."""
    nearest = nearest_neighbours(dist, min(max_nearest, len(dist) - 1))
    return Moves(dist=dist, nearest=nearest, min_gain=ROUNDING * dist.max())


@jit
def nearest_neighbours(dist: Floats, count: int) -> Indices:
    """`(n, count)`: the nearest cities of each, the nearest first, by `(n, n)` distances."""
    n = len(dist)
    nearest = np.empty((n, count), np.int64)
    for i in range(n):
        size = 0
        for j in range(n):
            if j == i or (size == count and dist[i, j] >= dist[i, nearest[i, size - 1]]):
                continue
            k = size if size < count else count - 1
            while k > 0 and dist[i, nearest[i, k - 1]] > dist[i, j]:
                nearest[i, k] = nearest[i, k - 1]
                k -= 1
            nearest[i, k] = j
            size = min(size + 1, count)
    return nearest


@jit
def descend(moves: Moves, tour: ArrayTour, queue: Queue, size: int) -> float:
    """Improves `tour` in place, until no city that waits has a move that shortens it.

    Args:
        moves: of 5 cities or more.
        tour: of the same cities.
        queue: the first `size` of its cities wait; none waits afterwards.
        size: how many cities wait.

    Returns:
        The gain: by how much the tour has become shorter.
    """
    dist, nearest, min_gain = moves  # arrays, not tuples of them, to the functions below: faster
    cities, position = tour
    waiting, queued = queue
    n, head, total = len(cities), 0, 0.0
    touched = np.empty(6, np.int64)  # the cities whose edges a move changed
    while size:
        a = waiting[head]
        head = head + 1 if head + 1 < n else 0
        size -= 1
        queued[a] = False
        while True:
            gain, num_touched = _two_opt(dist, nearest, min_gain, cities, position, a, touched)
            if num_touched == 0:
                gain, num_touched = _or_opt(dist, nearest, min_gain, cities, position, a, touched)
            if num_touched == 0:
                break
            total += gain
            for i in range(num_touched):
                city = touched[i]
                if not queued[city]:
                    queued[city] = True
                    k = head + size
                    waiting[k if k < n else k - n] = city
                    size += 1
    return total


@jit
def _two_opt(
    dist: Floats,
    nearest: Indices,
    min_gain: float,
    cities: Indices,
    position: Indices,
    a: int,
    touched: Indices,
) -> tuple[float, int]:
    """Replaces edges a-b and c-d by a-c and b-d, where that shortens the tour.

    Returns the gain, and how many cities were written into `touched`; both are 0 without a move.
    """
    for forward in (True, False):
        b = neighbour(cities, position, a, forward)
        for c in nearest[a]:
            gain_so_far = dist[a, b] - dist[a, c]
            if gain_so_far <= min_gain:
                break
            d = neighbour(cities, position, c, forward)
            gain = gain_so_far + dist[c, d] - dist[b, d]
            if gain > min_gain:
                if forward:
                    reverse(cities, position, b, c, False)
                else:
                    reverse(cities, position, c, b, False)
                touched[0], touched[1], touched[2], touched[3] = a, b, c, d
                return gain, 4
    return 0.0, 0


@jit
def _or_opt(
    dist: Floats,
    nearest: Indices,
    min_gain: float,
    cities: Indices,
    position: Indices,
    a: int,
    touched: Indices,
) -> tuple[float, int]:
    """Moves a segment of 1 to 3 cities, one end of which is `a`, next to a near neighbour of `a`.

    The order b a..tail e becomes b e, and c d becomes c a..tail d. Returns as `_two_opt` does.
    """
    n = len(cities)
    for forward in (True, False):
        b = neighbour(cities, position, a, not forward)
        tail = a
        for size in range(1, min(MAX_SEGMENT, n - 3) + 1):
            if size > 1:
                tail = neighbour(cities, position, tail, forward)
            e = neighbour(cities, position, tail, forward)
            removed = dist[b, a] + dist[tail, e] - dist[b, e]
            for c in nearest[a]:
                if removed - dist[a, c] <= min_gain:
                    break
                if _steps(cities, position, a, c, forward) < size:
                    continue  # c is in the segment
                for d_after_c in (True, False):
                    d = neighbour(cities, position, c, d_after_c)
                    if (c == b and d == a) or (c == e and d == tail):
                        continue
                    gain = removed + dist[c, d] - dist[a, c] - dist[tail, d]
                    if gain > min_gain:
                        first, last = (a, tail) if forward else (tail, a)
                        before = c if d_after_c else d
                        keeps_direction = d_after_c == (first == a)  # of a..tail
                        _move_segment(cities, position, first, last, before, keeps_direction)
                        touched[0], touched[1], touched[2] = a, tail, b
                        touched[3], touched[4], touched[5] = e, c, d
                        return gain, 6
    return 0.0, 0


@jit
def _steps(cities: Indices, position: Indices, start: int, end: int, forward: bool) -> int:
    """How many edges of the tour lead from city `start` to city `end`, in one direction."""
    steps = position[end] - position[start]
    if not forward:
        steps = -steps
    return steps + len(cities) if steps < 0 else steps


@jit
def _move_segment(
    cities: Indices,
    position: Indices,
    first: int,
    last: int,
    before: int,
    keeps_direction: bool,
) -> None:
    """Moves the segment first..last to after the city `before`; all in the order of `cities`.

    Three reversals at most. The whole path first..last next..before becomes before..next
    last..first; its first part is reversed again, which gives next..before last..first; and so is
    the segment, if it keeps its direction.
    """
    next_city = neighbour(cities, position, last, True)
    mirrored = reverse(cities, position, first, before, False)
    mirrored = reverse(cities, position, before, next_city, mirrored)
    if keeps_direction:
        reverse(cities, position, last, first, mirrored)
