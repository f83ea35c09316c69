"""Good tours of any number of cities, by iterated local search (Martin, Otto and Felten 1991).

A descent makes small changes (2-opt and Or-opt moves) as long as they shorten the tour, as in
Bentley (1992). Then a kick makes a random larger change (a double bridge), another descent follows,
and so on. Six kicks per city give tours of 50 cities that are less than 0.1% too long. Kicks use a
fixed seed, so the same cities always get the same tour.

The parts of this file: the labeller, large tours piece by piece, kicks, reversals, descents.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError
from ptrnet.geometry import distances, hilbert_order, scale_by_power_of_two
from ptrnet.geometry.distances import EUCLIDEAN, EXPLICIT
from ptrnet.jit import assign, inlined, inner, jit
from ptrnet.labellers import is_plain
from ptrnet.labellers.held_karp import shortest_tour
from ptrnet.labellers.rules import Problem, with_fixed_edges
from ptrnet.labellers.tours import label_tours, tour_length
from ptrnet.types import CLOSED, Floats, Indices, TourRules

KICKS = 6  # per city
MATRIX_KICKS = 30  # per city, for tours with rules or directed distances, which are harder
HEURISTIC = True
TAKES_RULES = True
# For at most this many cities, we compute the matrix of all distances, at most 800 MB. We improve
# larger tours piece by piece.
MAX_MATRIX = 10_000
ALL_NEAR = 1000  # up to this many cities, `improved` tries the moves to all cities


def label(inputs: Floats, distance: str = EUCLIDEAN, rules: TourRules = CLOSED) -> list[Indices]:
    """Return good tours of cities `(B, n, d)` that obey the rules.

    Examples:
        >>> label(np.random.default_rng(1).random((4, 100, 2)))[0].shape
        (100,)
    """
    n, plain = inputs.shape[1], is_plain(inputs, distance, rules)
    if n > MAX_MATRIX and not plain:
        raise InputError(
            f"labeller local-search: expected at most {MAX_MATRIX} elements, got {n}; more are "
            "possible for closed tours without ends or fixed edges, by symmetric distances"
        )
    if n > MAX_MATRIX and distance != EXPLICIT:  # an EXPLICIT matrix is in memory already
        return [tour_by_pieces(points, distance, KICKS) for points in inputs]
    return label_tours(inputs, distance, _write_tours, rules, lambda p: solve(p, MATRIX_KICKS))


def _write_tours(dist: Floats, tours: Indices) -> None:
    for matrix, tour in zip(dist, tours, strict=True):
        tour[:] = np.arange(len(matrix))
        search_tour(matrix, tour, KICKS, False)


def solve(problem: Problem, kicks: int) -> Indices:
    """Return a good tour `(n,)` with the problem's fixed edges, after `kicks` kicks per city."""
    tour = problem.order.copy()
    search_tour(with_fixed_edges(problem), tour, kicks, problem.directed)
    return tour


def search_tour(dist: Floats, tour: Indices, kicks: int, directed: bool) -> None:
    """Improve a tour in place by `kicks` kicks per city, or by dynamic programming if n is small.

    `directed` is as in `iterated_local_search`.
    """
    if len(tour) < MIN_CITIES:
        tour[:] = shortest_tour(dist)
    else:
        iterated_local_search(dist, tour, kicks * len(tour), directed)


def improved(dist: Floats, tour: Indices) -> Indices:
    """Return a tour `(n,)` after 2-opt and Or-opt moves, until no move shortens it.

    In the plane, the returned tour does not cross itself. It does not depend on the first city and
    the direction of the given tour. If no move shortens the given tour, the function returns this
    tour itself. Distances `(n, n)` are symmetric, with n of at most `MAX_MATRIX`.
    """
    better = np.roll(tour, -int(np.argmin(tour)))
    if len(tour) > 2 and better[1] > better[-1]:
        better[1:] = better[:0:-1].copy()
    if len(tour) < MIN_CITIES:
        better = shortest_tour(dist)
    else:
        near = all_cities(dist) if len(better) <= ALL_NEAR else near_cities(dist)
        descend_from(dist, near, better)
    saved = tour_length(dist, tour) - tour_length(dist, better)
    return better if saved > ROUNDING * dist.max() else tour


@jit
def descend_from(dist: Floats, near: Indices, cities: Indices) -> None:
    """Improve a tour `(n,)` in place, by moves alone; `near` is as in `Search`."""
    descend(new_search(dist, near, cities), len(cities), False)


# Many cities, piece by piece, in the spirit of Karp (1977). The distances of all pairs do not fit
# into memory. So we take the tour that follows Hilbert's curve, cut it into paths of `PIECE`
# cities, and improve each path without moving its ends. There are `ROUNDS` rounds. Each round cuts
# the tour in the middle of the paths of the round before.
PIECE = 2000  # cities: 32 MB of distances
ROUNDS = 4


def tour_by_pieces(points: Floats, distance: str, kicks: int) -> Indices:
    """Return a tour `(n,)` of many cities `(n, d)`, with n >= `PIECE` and d of 2 or 3.

    The distance is not EXPLICIT. `kicks` is the number of kicks per city in all rounds together,
    raised to the next larger multiple of `ROUNDS`.
    """
    n = len(points)
    if distance == distances.EUCLIDEAN:
        points = scale_by_power_of_two(points)
    tour = hilbert_order(points)
    for _ in range(ROUNDS):
        for first in range(0, n, PIECE):
            piece = tour[first : first + PIECE]
            if len(piece) > 3:
                piece[:] = _improve(points, distance, piece, kicks // ROUNDS + 1)
        tour = np.roll(tour, -PIECE // 2)
    return tour


def _improve(points: Floats, distance: str, path: Indices, kicks: int) -> Indices:
    """Return the cities of a path `(n,)` in a better or equal order, with the same ends."""
    n = len(path)
    dist = distances.matrix(points[path], distance)
    # Close the path to a tour by an edge that is so short that no exchange removes it.
    dist[0, -1] = dist[-1, 0] = -n * (dist.max() or 1.0)
    order = np.arange(n)
    if n >= MIN_CITIES:
        iterated_local_search(dist, order, kicks * n, False)
    order = np.roll(order, -int(np.argmin(order)))  # start with the first city, in any direction
    return path[order if order[-1] == n - 1 else np.roll(order[::-1], 1)]


# Kicks. A kick is a double bridge: it exchanges two short neighbouring paths of the tour. 2-opt and
# Or-opt seldom undo this exchange. If a kick and the next descent together made the tour longer, we
# undo both.
MIN_CITIES = 8  # smaller tours are solved by dynamic programming, which is fast for few cities
_MAX_PATH = 50  # the longest path that a kick exchanges, in cities
_SEED = 0x9E3779B97F4A7C15


class Search(NamedTuple):
    """A closed tour of n cities, the moves to try, and memory."""

    dist: Floats  # (n, n)
    near: Indices  # (n, num_near) near cities, nearest first; each move adds an edge to one
    min_gain: float  # a move is made if it shortens the tour by more than this
    cities: Indices  # (n,) the tour
    position: Indices  # (n,) the index of each city in `cities`
    waiting: (
        Indices  # (n,) a ring buffer: the queue of the cities whose moves are still to be tried
    )
    queued: NDArray[np.bool_]  # (n,) whether a city is in the queue
    scratch: Indices  # room for the cities that a double bridge moves
    touched: Indices  # (6,) the cities whose edges the last move changed


@inner
def new_search(dist: Floats, near: Indices, cities: Indices) -> Search:
    """Return a search with all cities in its queue. Moves change the array `cities` in place."""
    n = len(cities)
    position = np.empty(n, np.int64)
    for k in range(n):
        position[cities[k]] = k
    return Search(
        dist=dist,
        near=near,
        min_gain=ROUNDING * dist.max(),
        cities=cities,
        position=position,
        waiting=cities.copy(),
        queued=np.ones(n, np.bool_),
        scratch=np.empty(max(2 * _MAX_PATH, n), np.int64),
        touched=np.empty(6, np.int64),
    )


@jit
def iterated_local_search(dist: Floats, cities: Indices, kicks: int, directed: bool) -> None:
    """Improve a tour in place. The kicks are the same in every call.

    Args:
        dist: distances `(n, n)`, n of `MIN_CITIES` or more.
        cities: the tour `(n,)`.
        kicks: the number of kicks to try.
        directed: whether distances depend on the direction. If so, no move reverses a path. A kick
            is then two double bridges, because a descent would undo a single double bridge.
    """
    n = len(cities)
    search = new_search(dist, near_cities(dist), cities)
    position, waiting, queued = search.position, search.waiting, search.queued
    descend(search, n, directed)
    best, best_position = cities.copy(), position.copy()
    random = np.uint64(_SEED)
    max_path = min(_MAX_PATH, n // 3)
    for _ in range(kicks):
        gain, size = 0.0, 0  # size: number of cities in the queue
        for _ in range(2 if directed else 1):
            random = _xorshift(random)
            start = _below(random, n)
            size_1 = 1 + _below(random >> np.uint64(20), max_path)
            size_2 = 1 + _below(random >> np.uint64(40), max_path)
            gain += _double_bridge(search, start, size_1, size_2)
            for end in (start, start + size_2, start + size_1 + size_2):
                for k in (end, end + 1):  # the cities at the edges that the kick added
                    city = cities[k % n]
                    if not queued[city]:
                        queued[city] = True
                        waiting[size] = city
                        size += 1
        gain += descend(search, size, directed)
        if gain >= 0:
            assign(best, cities)
            assign(best_position, position)
        else:
            assign(cities, best)
            assign(position, best_position)


@inner
def _double_bridge(search: Search, start: int, size_1: int, size_2: int) -> float:
    """Exchange the `size_1` cities after position `start` with the next `size_2` cities.

    The order a b..c d..e f becomes a d..e b..c f. Return the gain, which is negative if the tour
    became longer.
    """
    dist, cities, position, scratch = search.dist, search.cities, search.position, search.scratch
    n = len(cities)
    a, b = cities[start], cities[(start + 1) % n]
    c, d = cities[(start + size_1) % n], cities[(start + size_1 + 1) % n]
    e, f = cities[(start + size_1 + size_2) % n], cities[(start + size_1 + size_2 + 1) % n]
    size = size_1 + size_2
    for k in range(size):
        scratch[k] = cities[(start + 1 + (k + size_1) % size) % n]
    for k in range(size):
        i = (start + 1 + k) % n
        cities[i] = scratch[k]
        position[scratch[k]] = i
    return dist[a, b] + dist[c, d] + dist[e, f] - dist[a, d] - dist[e, b] - dist[c, f]


@inner
def _below(random: np.uint64, limit: int) -> int:
    """Return a number from 0 to `limit` - 1, made of random bits."""
    return np.int64(random % np.uint64(limit))  # type: ignore[return-value]


@inner
def _xorshift(random: np.uint64) -> np.uint64:
    """Return the next random number (Marsaglia 2003), which is the same on every machine."""
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    return random


# A tour is an array of cities with the position of each city in it (Fredman, Johnson, McGeoch,
# Ostheimer 1995).


@inner
def neighbour(cities: Indices, position: Indices, city: int, forward: bool) -> int:
    """Return the city after `city` in the tour if `forward`, else the city before `city`."""
    k = position[city]
    if forward:
        return cities[k + 1] if k + 1 < len(cities) else cities[0]
    return cities[k - 1] if k > 0 else cities[-1]


@inner
def reverse(cities: Indices, position: Indices, start: int, end: int, mirrored: bool) -> bool:
    """Reverse the path from city `start` to city `end`, in at most n/2 steps.

    If the rest of the tour is shorter, reverse the rest instead. This gives the same closed tour,
    but mirrored: every path runs the other way through `cities`. The cities `(n,)` of the tour, and
    the position `(n,)` of each city in it, change in place. `mirrored` says whether the path from
    start to end runs backwards through `cities`.

    Returns:
        Whether the tour is mirrored now. Pass this result to the next reversal as `mirrored`.
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


# Descents by 2-opt (Croes 1958) and Or-opt (Or 1976) moves between near cities. Cities wait in a
# queue, and are queued again when an edge at them changes (Bentley 1992).
#
# In a map of columns or clusters, the nearest cities of a city may all be in its own column. Then
# no move would lead to another column. So a city's near cities include some in each of the four
# directions (quadrant neighbours: Johnson and McGeoch 1997).
NEAR = 12  # each move adds an edge from a city to one of this many near cities
PER_QUADRANT = 2  # how many near cities are the nearest ones of each quadrant around the city
TURN = 0.4  # tangent of an angle: columns along the map's diagonal are inside of a quadrant, too
MAX_SEGMENT = 3  # the most cities that an Or-opt move carries
# The smallest gain of a move, relative to the longest distance. Smaller gains may be rounding
# errors, and the search could repeat moves with these gains forever.
ROUNDING = 1e-12


def all_cities(dist: Floats) -> Indices:
    """Return all other cities `(n, n - 1)` of each city, nearest first."""
    n = len(dist)
    near = np.argsort(dist, axis=1, kind="stable")
    others: Indices = near[near != np.arange(n)[:, None]].reshape(n, n - 1)
    return others


@jit
def near_cities(dist: Floats) -> Indices:
    """Return the near cities `(n, NEAR or n - 1)` of each city, nearest first."""
    n = len(dist)
    count = min(NEAR, n - 1)
    near = np.empty((n, count), np.int64)
    x, y = _plane(dist)
    # Rows 0 to 3: the nearest cities of each quadrant; row 4: of all cities; row 5: the result.
    cities, lengths = np.zeros((6, count), np.int64), np.empty((6, count))
    taken_by = np.full(n, -1)  # the last city whose near cities include this city
    for i in range(n):
        lengths.fill(np.inf)
        for j in range(n):
            if j != i:
                quadrant = (2 if x[j] > x[i] else 0) + (1 if y[j] > y[i] else 0)
                if dist[i, j] < lengths[quadrant, PER_QUADRANT - 1]:
                    _insert(cities, lengths, quadrant, PER_QUADRANT, j, dist[i, j])
                if dist[i, j] < lengths[4, count - 1]:
                    _insert(cities, lengths, 4, count, j, dist[i, j])
        size = 0
        for row in range(5):
            for k in range(count):
                j = cities[row, k]
                if size < count and lengths[row, k] < np.inf and taken_by[j] != i:
                    taken_by[j] = i
                    size += 1
                    _insert(cities, lengths, 5, count, j, lengths[row, k])
        assign(near[i], cities[5])
    return near


@inner
def _insert(
    cities: Indices, lengths: Floats, row: int, count: int, city: int, length: float
) -> None:
    """Insert a city into the first `count` cities of a row, in place of the last of them."""
    k = count - 1
    while k > 0 and lengths[row, k - 1] > length:
        cities[row, k], lengths[row, k] = cities[row, k - 1], lengths[row, k - 1]
        k -= 1
    cities[row, k], lengths[row, k] = city, length


@inner
def _plane(dist: Floats) -> tuple[Floats, Floats]:
    """Lay the cities in a plane by their distances alone (FastMap, Faloutsos and Lin 1995).

    If the distances are those of points in a plane, the plane is the same except for its position.
    An axis leads from a city to the city farthest from it. The second axis is at a right angle to
    the first. Distances below 0 belong to fixed edges, and count as 0.
    """
    x, y = np.zeros(len(dist)), np.zeros(len(dist))
    for axis in (x, y):
        start = np.argmax(_squares(dist, x, 0))
        from_start = _squares(dist, x, start)
        end = np.argmax(from_start)
        if from_start[end] > 0:
            from_end = _squares(dist, x, end)
            assign(axis, (from_start - from_end) / (2 * np.sqrt(from_start[end])))
    return x + TURN * y, y - TURN * x


@inner
def _squares(dist: Floats, x: Floats, city: int) -> Floats:
    """Return the squared distances `(n,)` from a city, without the parts along `x`."""
    lengths = np.maximum(dist[city], 0)
    return lengths * lengths - (x - x[city]) ** 2  # type: ignore[no-any-return]


@inner
def descend(search: Search, size: int, directed: bool) -> float:
    """Improve the tour of n >= 5 cities, until no queued city has a move that shortens it.

    The first `size` cities of the search's array `waiting` are queued. The queue is empty
    afterwards. Return the gain: by how much the tour became shorter.
    """
    waiting, queued, n = search.waiting, search.queued, len(search.cities)
    head, total = 0, 0.0
    while size:
        a = waiting[head]
        head = head + 1 if head + 1 < n else 0
        size -= 1
        queued[a] = False
        while True:
            if directed:
                gain, num_touched = _exchange_paths(search, a)
            else:
                gain, num_touched = _two_opt(search, a)
            if num_touched == 0 and not directed:
                gain, num_touched = _or_opt(search, a)
            if num_touched == 0:
                break
            total += gain
            for i in range(num_touched):
                city = search.touched[i]
                if not queued[city]:
                    queued[city] = True
                    k = head + size
                    waiting[k if k < n else k - n] = city
                    size += 1
    return total


@inlined
def _two_opt(search: Search, a: int) -> tuple[float, int]:
    """Replace edges a-b and c-d by a-c and b-d, for a near city c, if the tour gets shorter.

    Return the gain, and the number of cities that were written into `touched`. If no exchange
    shortens the tour, both numbers are 0.
    """
    dist, near, min_gain, touched = search.dist, search.near, search.min_gain, search.touched
    cities, position = search.cities, search.position
    for forward in (True, False):
        b = neighbour(cities, position, a, forward)
        for k in range(near.shape[1]):
            c = near[a, k]
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


@inlined
def _or_opt(search: Search, a: int) -> tuple[float, int]:
    """Move 1 to 3 successive cities, with `a` at one end, so that `a` comes next to a near city.

    The order b a..tail e becomes b e, and c d becomes c a..tail d. The result is as in `_two_opt`.
    """
    dist, near, min_gain, touched = search.dist, search.near, search.min_gain, search.touched
    cities, position = search.cities, search.position
    n = len(cities)
    for forward in (True, False):
        b = neighbour(cities, position, a, not forward)
        tail = a
        for size in range(1, min(MAX_SEGMENT, n - 3) + 1):
            if size > 1:
                tail = neighbour(cities, position, tail, forward)
            e = neighbour(cities, position, tail, forward)
            removed = dist[b, a] + dist[tail, e] - dist[b, e]
            for k in range(near.shape[1]):
                c = near[a, k]
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
                        keeps_direction = d_after_c == (first == a)  # direction of a..tail
                        _move_segment(cities, position, first, last, before, keeps_direction)
                        touched[0], touched[1], touched[2] = a, tail, b
                        touched[3], touched[4], touched[5] = e, c, d
                        return gain, 6
    return 0.0, 0


@inlined
def _exchange_paths(search: Search, a: int) -> tuple[float, int]:
    """Exchange the path after `a` with the next path, which begins at a city near `a`.

    The order a b..d c..e f becomes a c..e b..d f. This exchange of three edges reverses no path, so
    the exchange suits directed distances. c..e has up to `_MAX_PATH` cities, and b..d any number.
    The result is as in `_two_opt`.
    """
    dist, near, min_gain, touched = search.dist, search.near, search.min_gain, search.touched
    cities, position = search.cities, search.position
    n, start = len(cities), position[a]
    b = neighbour(cities, position, a, True)
    for k in range(near.shape[1]):
        c = near[a, k]
        gain_so_far = dist[a, b] - dist[a, c]
        if gain_so_far <= min_gain:
            break
        d = neighbour(cities, position, c, False)
        size_1 = _steps(cities, position, a, c, True) - 1
        gain, size_2 = min_gain, 0
        for size in range(1, min(_MAX_PATH, n - 1 - size_1) + 1):
            e = cities[(start + size_1 + size) % n]
            f = cities[(start + size_1 + size + 1) % n]
            longer_gain = gain_so_far + dist[d, c] + dist[e, f] - dist[e, b] - dist[d, f]
            if longer_gain > gain:
                gain, size_2 = longer_gain, size
        if size_2:
            touched[0], touched[1], touched[2], touched[3] = a, b, c, d
            touched[4] = cities[(start + size_1 + size_2) % n]
            touched[5] = cities[(start + size_1 + size_2 + 1) % n]
            _double_bridge(search, start, size_1, size_2)
            return gain, 6
    return 0.0, 0


@inner
def _steps(cities: Indices, position: Indices, start: int, end: int, forward: bool) -> int:
    """Return the number of edges from city `start` to city `end`, in one direction of the tour."""
    steps = position[end] - position[start]
    if not forward:
        steps = -steps
    return steps + len(cities) if steps < 0 else steps


@inner
def _move_segment(
    cities: Indices, position: Indices, first: int, last: int, before: int, keeps_direction: bool
) -> None:
    """Move the segment first..last to the place after city `before`.

    In the order of `cities`, the path from first to before is first..last next..before. We reverse
    this path, which gives before..next last..first. We reverse before..next, which gives
    next..before last..first. If the segment keeps its direction, we also reverse last..first, which
    gives next..before first..last.
    """
    next_city = neighbour(cities, position, last, True)
    mirrored = reverse(cities, position, first, before, False)
    mirrored = reverse(cities, position, before, next_city, mirrored)
    if keeps_direction:
        reverse(cities, position, last, first, mirrored)
