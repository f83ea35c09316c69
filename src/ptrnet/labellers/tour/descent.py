"""Descent by 2-opt (Croes 1958) and Or-opt (Or 1976) moves between near neighbours.

Cities wait in a queue and are taken up again when an edge at them changes (Bentley 1992).
"""

import numba
import numpy as np

from ptrnet.types import Floats, Indices

LONGEST_SEGMENT = 3  # of cities that an Or-opt move carries
ROUNDING = 1e-12  # of the longest distance: a gain of less may be none, and moves may go round


@numba.njit(nogil=True, cache=True)
def neighbours(far: Floats, count: int) -> Indices:
    """`(n, count)`: the nearest cities of each, the nearest first, by `(n, n)` distances."""
    n = len(far)
    near = np.empty((n, count), np.int64)
    for i in range(n):
        size = 0
        for j in range(n):
            if j == i or (size == count and far[i, j] >= far[i, near[i, size - 1]]):
                continue
            place = size if size < count else count - 1
            while place > 0 and far[i, near[i, place - 1]] > far[i, j]:
                near[i, place] = near[i, place - 1]
                place -= 1
            near[i, place] = j
            size = min(size + 1, count)
    return near


@numba.njit(nogil=True, cache=True)
def length(far: Floats, tour: Indices) -> float:
    """Of a closed tour."""
    total = far[tour[-1], tour[0]]
    for k in range(len(tour) - 1):
        total += far[tour[k], tour[k + 1]]
    return total


@numba.njit(nogil=True, cache=True)
def descend(
    far: Floats,
    near: Indices,
    tour: Indices,
    where: Indices,
    queue: Indices,
    waiting: int,
    queued: np.ndarray,
    least: float,
) -> float:
    """Improves `tour` in place until no queued city has a move that shortens it; the gain.

    Args:
        far: `(n, n)` distances, n of 5 or more.
        near: `(n, k)` neighbours.
        tour: `(n,)` cities.
        where: `(n,)` the place of each city in the tour.
        queue: `(n,)` ring whose first `waiting` cities are to be looked at.
        waiting: how many.
        queued: `(n,)` whether a city is in the queue.
        least: a gain of no more than this is none: `ROUNDING` of the longest distance.
    """
    n = len(tour)
    head, gained = 0, 0.0
    ends = np.empty(6, np.int64)
    while waiting:
        a = queue[head]
        head = head + 1 if head + 1 < n else 0
        waiting -= 1
        queued[a] = False
        while True:
            gain, touched = _two_opt(far, near, tour, where, a, least, ends)
            if touched == 0:
                gain, touched = _or_opt(far, near, tour, where, a, least, ends)
            if touched == 0:
                break
            gained += gain
            for k in range(touched):
                city = ends[k]
                if not queued[city]:
                    queued[city] = True
                    place = head + waiting
                    queue[place if place < n else place - n] = city
                    waiting += 1
    return gained


@numba.njit(nogil=True, cache=True)
def _two_opt(far, near, tour, where, a, least, ends):  # type: ignore[no-untyped-def]
    """Replaces the edges a-b and c-d by a-c and b-d; the gain, and how many cities it touched."""
    for ahead in (True, False):
        b = _beside(tour, where, a, ahead)
        for c in near[a]:
            opened = far[a, b] - far[a, c]
            if opened <= least:
                break
            d = _beside(tour, where, c, ahead)
            gain = opened + far[c, d] - far[b, d]
            if gain > least:
                if ahead:
                    _turn(tour, where, b, c, False)
                else:
                    _turn(tour, where, c, b, False)
                ends[0], ends[1], ends[2], ends[3] = a, b, c, d
                return gain, 4
    return 0.0, 0


@numba.njit(nogil=True, cache=True)
def _or_opt(far, near, tour, where, a, least, ends):  # type: ignore[no-untyped-def]
    """Moves a segment of 1 to 3 cities, whose one end is `a`, to where `a` has a near neighbour.

    The order b a..tail e becomes b e, and c d becomes c a..tail d.
    """
    n = len(tour)
    for ahead in (True, False):
        b = _beside(tour, where, a, not ahead)
        tail = a
        for size in range(1, min(LONGEST_SEGMENT, n - 3) + 1):
            if size > 1:
                tail = _beside(tour, where, tail, ahead)
            e = _beside(tour, where, tail, ahead)
            freed = far[b, a] + far[tail, e] - far[b, e]
            for c in near[a]:
                if freed - far[a, c] <= least:
                    break
                steps = where[c] - where[a] if ahead else where[a] - where[c]
                if (steps + n if steps < 0 else steps) < size:
                    continue  # c is in the segment
                for beyond in (True, False):
                    d = _beside(tour, where, c, beyond)
                    if (c == b and d == a) or (c == e and d == tail):
                        continue
                    gain = freed + far[c, d] - far[a, c] - far[tail, d]
                    if gain > least:
                        _carry(tour, where, a, tail, c, d, ahead, beyond)
                        ends[0], ends[1], ends[2] = a, tail, b
                        ends[3], ends[4], ends[5] = e, c, d
                        return gain, 6
    return 0.0, 0


@numba.njit(nogil=True, cache=True)
def _carry(tour, where, a, tail, c, d, ahead, beyond):  # type: ignore[no-untyped-def]
    """Moves the segment a..tail between c and d by turning three paths round."""
    first, last = (a, tail) if ahead else (tail, a)
    before = c if beyond else d
    onward = _beside(tour, where, last, True)
    # first..last onward..before, as the tour is read; mirrored: as it is read backwards.
    mirrored = _turn(tour, where, first, before, False)
    mirrored = _turn(tour, where, before, onward, mirrored)
    if (before == c) == (first == a):
        _turn(tour, where, last, first, mirrored)


@numba.njit(nogil=True, cache=True)
def _beside(tour, where, city, ahead):  # type: ignore[no-untyped-def]
    n = len(tour)
    place = where[city]
    if ahead:
        return tour[place + 1] if place + 1 < n else tour[0]
    return tour[place - 1] if place > 0 else tour[n - 1]


@numba.njit(nogil=True, cache=True)
def _turn(tour, where, x, y, mirrored):  # type: ignore[no-untyped-def]
    """Turns the path from x to y round; or the rest, where that is shorter: the same tour mirrored.

    Args:
        mirrored: whether the path runs backwards through `tour`.

    Returns:
        Whether the tour now stands mirrored.
    """
    n = len(tour)
    first, last = (where[y], where[x]) if mirrored else (where[x], where[y])
    size = last - first + 1
    if size <= 0:
        size += n
    rest = 2 * size > n
    if rest:
        first, last = last + 1, first - 1
        size = n - size
        if first >= n:
            first = 0
        if last < 0:
            last = n - 1
    for _ in range(size // 2):
        tour[first], tour[last] = tour[last], tour[first]
        where[tour[first]], where[tour[last]] = first, last
        first = first + 1 if first + 1 < n else 0
        last = last - 1 if last > 0 else n - 1
    return mirrored != rest
