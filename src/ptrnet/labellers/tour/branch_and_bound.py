"""Branch and bound with 1-tree bounds (Held and Karp 1971; Volgenant and Jonker 1982).

A node of the search is a set of edges that are required and excluded. Depth first; what a node
decides stands on a trail and is taken back when the search leaves it.
"""

from typing import NamedTuple

import numba
import numpy as np

from ptrnet.labellers.tour.descent import length
from ptrnet.labellers.tour.one_tree import DECIDED, EXCLUDED, REQUIRED, one_tree, replacements
from ptrnet.types import Floats, Indices

_ROOT_STEPS, _STEPS = 120, 20  # of the subgradient, at the root and at every other node
_PATIENCE = 5  # steps without a better bound before they are made shorter


class Search(NamedTuple):
    """The arrays that the search works on; n cities."""

    far: Floats  # (n, n)
    open_far: Floats  # (n, n), REQUIRED and EXCLUDED where that is decided
    trail: Indices  # (n * n, 2) edges in the order in which they were decided
    weight: Floats  # (n,) of the cities: those of the best bound of this node
    parent: Indices  # (n,) the 1-tree
    degree: Indices  # (n,)
    trial: Floats  # (n,) the rest are scratch
    before: Indices  # (n,)
    key: Floats  # (n,)
    rest: Indices  # (n,)
    dearest: Floats  # (n, n)


@numba.njit(nogil=True, cache=True)
def prove(far: Floats, tour: Indices, slack: float, most: int) -> tuple[float, int]:
    """Finds the shortest tour, or proves that the given one is it.

    Args:
        far: `(n, n)` distances, n of 5 or more.
        tour: `(n,)` a good tour; replaced by a shorter one where there is one.
        slack: what is shorter by no more than this is not looked for.
        most: nodes after which the search gives up.

    Returns:
        A length that no tour is below: that of the tour less `slack`; -inf where the search gave
        up. And the number of nodes.
    """
    n = len(far)
    search = _search(far)
    open_far, trail, weight = search.open_far, search.trail, search.weight
    marks, edges = np.empty(n * n, np.int64), np.empty((n * n, 2), np.int64)
    weights, turned = np.empty((n * n, n)), np.empty(n * n, np.bool_)
    upper = length(far, tour)
    decided, depth, nodes = 0, 0, 0
    while True:
        nodes += 1
        if nodes > most:
            return -np.inf, nodes
        decided, possible = _follow(search, decided)
        bound = np.inf
        if possible:
            bound = _ascend(search, upper, slack, _ROOT_STEPS if nodes == 1 else _STEPS)
            if bound < upper and (search.degree == 2).all():
                _read(search.parent, tour)
                upper = bound = length(far, tour)
        if bound < upper - slack:
            decided = _eliminate(search, decided, upper - slack - bound)
            marks[depth], turned[depth] = decided, False
            weights[depth] = weight
            i, j = _branch(search)
            edges[depth, 0], edges[depth, 1] = i, j
            depth += 1
            decided = _decide(search, decided, i, j, REQUIRED)
            continue
        while depth and turned[depth - 1]:
            depth -= 1
        if not depth:
            return upper - slack, nodes
        while decided > marks[depth - 1]:
            decided -= 1
            i, j = trail[decided]
            open_far[i, j] = open_far[j, i] = far[i, j]
        turned[depth - 1] = True
        weight[:] = weights[depth - 1]
        decided = _decide(search, decided, edges[depth - 1, 0], edges[depth - 1, 1], EXCLUDED)


@numba.njit(nogil=True, cache=True)
def _search(far: Floats) -> Search:
    n = len(far)
    open_far = far.copy()
    for i in range(n):
        open_far[i, i] = EXCLUDED
    return Search(
        far,
        open_far,
        np.empty((n * n, 2), np.int64),
        np.zeros(n),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty((n, n)),
    )


@numba.njit(nogil=True, cache=True)
def _decide(search: Search, decided: int, i: int, j: int, how: float) -> int:
    search.open_far[i, j] = search.open_far[j, i] = how
    search.trail[decided, 0], search.trail[decided, 1] = i, j
    return decided + 1


@numba.njit(nogil=True, cache=True)
def _follow(search: Search, decided: int) -> tuple[int, bool]:
    """Decides what follows from two edges at each city; False where that cannot be."""
    n, open_far = len(search.far), search.open_far
    again = True
    while again:
        again = False
        for i in range(n):
            required = available = 0
            for j in range(n):
                required += open_far[i, j] < -DECIDED
                available += open_far[i, j] < DECIDED
            if required > 2 or available < 2:
                return decided, False
            if (available > 2 and required == 2) or (available == 2 and required < 2):
                how = EXCLUDED if required == 2 else REQUIRED
                for j in range(n):
                    if abs(open_far[i, j]) < DECIDED:
                        decided = _decide(search, decided, i, j, how)
                again = True
    return decided, True


@numba.njit(nogil=True, cache=True)
def _ascend(search: Search, upper: float, slack: float, steps: int) -> float:
    """The best bound that `steps` subgradients (Polyak's steps) find; leaves weights and 1-tree."""
    n = len(search.far)
    weight, trial, degree, before = search.weight, search.trial, search.degree, search.before
    trial[:] = weight
    best, scale, waited = -np.inf, 1.0, 0
    for step in range(steps):
        bound = one_tree(
            search.far, search.open_far, trial, search.parent, degree, search.key, search.rest
        )
        if bound > best:
            best, waited = bound, 0
            weight[:] = trial
        else:
            waited += 1
        if bound >= upper - slack:  # infinite where there is no 1-tree
            return bound
        norm = 0.0
        for i in range(n):
            if step == 0:
                before[i] = degree[i]
            norm += (degree[i] - 2) ** 2
        if norm == 0:
            return bound
        if waited == _PATIENCE:
            scale, waited = scale / 2, 0
        size = scale * (upper - bound) / norm
        for i in range(n):
            trial[i] += size * (0.7 * (degree[i] - 2) + 0.3 * (before[i] - 2))
            before[i] = degree[i]
    return one_tree(
        search.far, search.open_far, weight, search.parent, degree, search.key, search.rest
    )


@numba.njit(nogil=True, cache=True)
def _eliminate(search: Search, decided: int, gap: float) -> int:
    """Excludes every edge that would lift the bound of this node by `gap` or more."""
    n = len(search.far)
    open_far, weight, parent, dearest = (
        search.open_far,
        search.weight,
        search.parent,
        search.dearest,
    )
    replacements(open_far, weight, parent, search.rest, dearest)
    second = max(
        open_far[0, parent[0]] + weight[parent[0]], open_far[0, parent[1]] + weight[parent[1]]
    )
    for j in range(1, n):
        in_tree = j == parent[0] or j == parent[1]
        if not in_tree and open_far[0, j] + weight[j] - second >= gap and open_far[0, j] < DECIDED:
            decided = _decide(search, decided, 0, j, EXCLUDED)
        for i in range(1, j):
            if parent[j] == i or (i > 1 and parent[i] == j) or open_far[i, j] > DECIDED:
                continue
            if open_far[i, j] + (weight[i] + weight[j]) - dearest[i, j] >= gap:
                decided = _decide(search, decided, i, j, EXCLUDED)
    return decided


@numba.njit(nogil=True, cache=True)
def _branch(search: Search) -> tuple[int, int]:
    """The longest free edge of the 1-tree at a city where it has most edges."""
    open_far, weight, parent = search.open_far, search.weight, search.parent
    n = len(weight)
    city = np.argmax(search.degree)
    best, other = -np.inf, -1
    for j in range(n):
        if j == city:
            continue
        i = city
        in_tree = (
            (i == 0 and (parent[0] == j or parent[1] == j))
            or (j == 0 and (parent[0] == i or parent[1] == i))
            or (i > 1 and parent[i] == j)
            or (j > 1 and parent[j] == i)
        )
        if in_tree and abs(open_far[i, j]) < DECIDED:
            cost = open_far[i, j] + weight[j]
            if cost > best:
                best, other = cost, j
    return int(city), other


@numba.njit(nogil=True, cache=True)
def _read(parent: Indices, tour: Indices) -> None:
    """Writes the tour that a 1-tree with two edges at every city is."""
    n = len(parent)
    beside = np.full((n, 2), -1, np.int64)
    for j in range(n):
        i, k = (0, parent[j]) if j < 2 else (j, parent[j])
        beside[i, 0 if beside[i, 0] < 0 else 1] = k
        beside[k, 0 if beside[k, 0] < 0 else 1] = i
    previous, city = -1, 0
    for k in range(n):
        tour[k] = city
        onward = beside[city, 0] if beside[city, 0] != previous else beside[city, 1]
        previous, city = city, onward
