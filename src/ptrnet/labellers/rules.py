"""Reduce a problem of tours with rules to a problem of closed tours with fixed edges.

The searches know only closed tours through all cities. So if a tour is open, and its first or last
city is free, we add a city that closes the tour: the way back, at distance 0 from every city. A
required first or last city becomes an edge that the tour must have, unless the tour is closed and
only one of the two is required. `exact` knows only symmetric distances, so it replaces each city of
a directed problem by two cities.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ptrnet.errors import InputError
from ptrnet.types import Floats, Indices, TourRules

Edges = Sequence[tuple[int, int]]


class Problem(NamedTuple):
    """The problem of finding a shortest closed tour that has all fixed edges."""

    dist: Floats  # (n, n), 0 or more; n includes the way back, if there is one
    fixed: list[tuple[int, int]]  # if directed, each edge leads from its first city to its second
    directed: bool  # whether some distance depends on the direction
    order: Indices  # (n,) some tour that has the fixed edges


def reduce(dist: Floats, rules: TourRules, directed: bool, names: Sequence[object] = ()) -> Problem:
    """Return the problem whose closed tours correspond to the tours that obey the rules.

    Distances `(n, n)` are 0 or more. If `directed`, some depend on the direction. Error messages
    have the names of the cities, or their indices if there are no names. Raises InputError if no
    tour obeys the rules.
    """
    n, start, end = len(dist), rules.start, rules.end
    edges = list(rules.fixed)
    if has_way_back(n, rules):
        dist = np.pad(dist, (0, 1))
        edges += [] if start is None else [(n, start)]
        edges += [] if end is None else [(end, n)]
    elif start is not None and end is not None and n > 2:
        edges.append((end, start))
    names = [*(names or range(n)), "the way back"]
    return Problem(dist, edges, directed, chain(len(dist), edges, directed, names))


def restore(tour: Indices, n: int, rules: TourRules, directed: bool) -> Indices:
    """Return the tour `(n,)` that obeys the rules, given a closed tour of the reduced problem.

    If the rules name the first or the last city, the returned tour begins or ends there. If they
    name neither for an open tour with symmetric distances, both directions are right. The tour then
    begins at its end city with the smaller index.
    """
    start, end = rules.start, rules.end
    if has_way_back(n, rules):
        tour = np.roll(tour, -int(np.argmax(tour)))[1:]
        first, last = tour[0], tour[-1]
        is_backwards = last == start if start is not None else first == end
        if start is None and end is None:
            is_backwards = last < first
    else:
        if start is not None:
            tour = np.roll(tour, -int(np.argmax(tour == start)))
        elif end is not None:
            tour = np.roll(tour, -int(np.argmax(tour == end)) - 1)
        is_backwards = start is not None and end is not None and tour[-1] != end
        if is_backwards and not directed:
            tour = np.roll(tour, -1)  # the reversal below then keeps the first city
    return tour[::-1] if is_backwards and not directed else tour


def has_way_back(n: int, rules: TourRules) -> bool:
    """Whether the problem needs the way back: an open tour whose first or last city is free."""
    return rules.is_open and n > 1 and (rules.start is None or rules.end is None)


def chain(n: int, edges: Edges, directed: bool, names: Sequence[object]) -> Indices:
    """Return an order `(n,)` of the cities in which the two cities of each edge are neighbours.

    If `directed`, the second city of an edge comes directly after the first city. Raises InputError
    if no tour has these edges.
    """
    paths = {city: [city] for city in range(n)}  # for each city, the path that contains it
    for i, j in edges:
        one, other = paths[i], paths[j]
        if not directed:
            one = one if one[-1] == i else one[::-1]
            other = other if other[0] == j else other[::-1]
        if one[-1] != i or other[0] != j:
            kind = "two edges in one direction" if directed else "more than two edges"
            raise InputError(f"{kind} at {names[i if one[-1] != i else j]}")
        if paths[i] is paths[j]:
            if len(one) < n:
                closing = f"{names[i]} and {names[j]}"
                raise InputError(f"a circle that leaves out cities, closed by {closing}")
            continue
        joined = one + other
        paths.update(dict.fromkeys(joined, joined))
    return np.array([city for path in {id(p): p for p in paths.values()}.values() for city in path])


def with_fixed_edges(problem: Problem) -> Floats:
    """Return distances `(n, n)` for which every shortest tour has all fixed edges."""
    dist = problem.dist.copy()
    gain = (len(dist) + 1) * (dist.max() or 1.0)  # more than the length of any tour
    for i, j in problem.fixed:
        for edge in [(i, j)] if problem.directed else {(i, j), (j, i)}:
            dist[edge] = problem.dist[edge] - gain
    return dist


def undirected(problem: Problem) -> Problem:
    """Turn a directed problem of n cities into a symmetric problem of 2 n (Jonker, Volgenant 1983).

    City i becomes two cities with a fixed edge between them: the entry i and the exit n + i. Edges
    between two entries, or between two exits, are infinitely long.
    """
    n = len(problem.dist)
    dist = np.full((2 * n, 2 * n), np.inf)
    dist[n:, :n], dist[:n, n:] = problem.dist, problem.dist.T
    entries = np.arange(n)
    dist[entries, n + entries] = dist[n + entries, entries] = 0
    fixed = [(int(i), n + int(i)) for i in entries] + [(n + i, j) for i, j in problem.fixed]
    return Problem(dist, fixed, False, doubled(problem.order))


def doubled(tour: Indices) -> Indices:
    """Return the tour `(2 n,)` of the cities of `undirected`, given a directed tour `(n,)`."""
    return np.stack([tour, len(tour) + tour], 1).ravel()


def halved(tour: Indices) -> Indices:
    """Return the directed tour `(n,)` given a tour `(2 n,)` of the cities of `undirected`."""
    n = len(tour) // 2
    tour = np.roll(tour, -int(np.argmin(tour)))  # from the entry of city 0 on, in either direction
    entries = tour[tour < n]
    return entries if tour[1] == n else np.roll(entries[::-1], 1)
