"""The 1-tree bound of Held and Karp (1970, 1971).

A 1-tree is a spanning tree of the cities but 0, with the two cheapest edges of city 0. Each tour
is one, so the cheapest 1-tree is no longer than the shortest tour. Weights on the cities change
the length of every tour by the same amount, but not which 1-tree is cheapest: the best weights
are looked for by a subgradient.
"""

import numba
import numpy as np

from ptrnet.types import Floats, Indices

REQUIRED, EXCLUDED = -1e100, 1e100  # what stands for the distance of an edge that is decided
DECIDED = 1e90


@numba.njit(nogil=True, cache=True)
def one_tree(
    far: Floats,
    open_far: Floats,
    weight: Floats,
    parent: Indices,
    degree: Indices,
    key: Floats,
    rest: Indices,
) -> float:
    """The length of the cheapest 1-tree under the cities' weights; infinite where there is none.

    Args:
        far: `(n, n)` distances.
        open_far: the same, with REQUIRED and EXCLUDED edges.
        weight: `(n,)` of the cities.
        parent: `(n,)` written: the tree's edges j-parent[j] for j of 2 or more. The two edges of
            city 0 are 0-parent[0] and 0-parent[1].
        degree: `(n,)` written: of each city in the 1-tree.
        key: `(n,)` scratch.
        rest: `(n,)` scratch.
    """
    n = len(far)
    degree[:] = 0
    total = 0.0
    size = n - 2
    for k in range(size):
        rest[k] = k + 2
        key[k + 2] = np.inf
    last = 1
    while size:
        best, place = np.inf, 0
        for k in range(size):
            j = rest[k]
            cost = open_far[last, j] + (weight[last] + weight[j])
            if cost < key[j]:
                key[j] = cost
                parent[j] = last
            if key[j] < best:
                best, place = key[j], k
        if best > DECIDED:
            return np.inf
        last = rest[place]
        total += far[last, parent[last]] + weight[last] + weight[parent[last]]
        degree[last] += 1
        degree[parent[last]] += 1
        size -= 1
        rest[place] = rest[size]
    one, two = np.inf, np.inf
    for j in range(1, n):
        cost = open_far[0, j] + weight[j]
        if cost < one:
            two, parent[1] = one, parent[0]
            one, parent[0] = cost, j
        elif cost < two:
            two, parent[1] = cost, j
    if two > DECIDED:
        return np.inf
    for k in range(2):
        j = parent[k]
        total += far[0, j] + weight[0] + weight[j]
        degree[j] += 1
        degree[0] += 1
    return total - 2 * weight.sum()


@numba.njit(nogil=True, cache=True)
def replacements(
    open_far: Floats, weight: Floats, parent: Indices, order: Indices, dearest: Floats
) -> None:
    """Writes `dearest[i, j]`: the dearest edge on the tree's path from i to j, cities but 0.

    An edge outside the 1-tree costs its own length less that one if it has to be in.

    Args:
        open_far: as in `one_tree`.
        weight: of the cities.
        parent: of the 1-tree.
        order: `(n,)` scratch.
        dearest: `(n, n)` written.
    """
    n = len(weight)
    # Parents before children: repeated sweeps are short, for trees of these sizes are shallow.
    done = np.zeros(n, np.bool_)
    done[1] = True
    order[0] = 1
    size = 1
    dearest[1, 1] = -np.inf
    while size < n - 1:
        for j in range(2, n):
            p = parent[j]
            if done[j] or not done[p]:
                continue
            cost = open_far[j, p] + (weight[j] + weight[p])
            for k in range(size):
                i = order[k]
                through = max(dearest[i, p], cost)
                dearest[i, j] = through
                dearest[j, i] = through
            dearest[j, j] = -np.inf
            done[j] = True
            order[size] = j
            size += 1
