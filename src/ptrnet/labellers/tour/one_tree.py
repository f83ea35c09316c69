"""The 1-tree bound of Held and Karp (1970, 1971).

A 1-tree is a spanning tree of all cities but 0, and two edges of city 0. Every tour is a 1-tree, so
the cheapest 1-tree is at most as long as the shortest tour. A penalty of each city is added to the
cost of its edges: all tours become longer by the same amount, 1-trees by different ones.
The penalties are chosen so that the cheapest 1-tree comes near the shortest tour.
"""

from typing import NamedTuple

import numpy as np

from ptrnet.jit import jit
from ptrnet.labellers.tour.edges import add_edge, walk
from ptrnet.types import Floats, Indices

# The cost of an edge is its distance, or one of these two once the edge is required or excluded.
REQUIRED, EXCLUDED = -1e100, 1e100
DECIDED = 1e90  # below -DECIDED a cost is REQUIRED, above DECIDED it is EXCLUDED


class OneTree(NamedTuple):
    """A spanning tree of the cities but 0, rooted at city 1, and two edges of city 0."""

    tree_parent: Indices  # (n,) of each city in the spanning tree; -1 for cities 0 and 1: none
    neighbours_of_0: Indices  # (2,) the cities at the other ends of its edges
    degree: Indices  # (n,) how many edges of the 1-tree each city has
    cheapest: Floats  # (n,) scratch of `_span`: the cost of an edge from each city to the tree
    outside: Indices  # (n,) scratch of `_span`: the cities that are not yet in the tree


@jit
def new_one_tree(n: int) -> OneTree:
    """Room for the 1-tree of n cities."""
    return OneTree(
        tree_parent=np.full(n, -1, np.int64),
        neighbours_of_0=np.empty(2, np.int64),
        degree=np.empty(n, np.int64),
        cheapest=np.empty(n),
        outside=np.empty(n, np.int64),
    )


@jit
def is_tree_edge(tree: OneTree, i: int, j: int) -> bool:
    """Whether the edge between two different cities is in the 1-tree."""
    if i == 0 or j == 0:
        other = max(i, j)
        return tree.neighbours_of_0[0] == other or tree.neighbours_of_0[1] == other
    return tree.tree_parent[i] == j or tree.tree_parent[j] == i


@jit
def is_tour(tree: OneTree) -> bool:
    """Whether the 1-tree is a tour: two edges at every city."""
    for degree in tree.degree:  # noqa: SIM110 (numba compiles no generators)
        if degree != 2:
            return False
    return True


@jit
def tour_of(tree: OneTree) -> Indices:
    """`(n,)`: the cities in the order of a 1-tree that is a tour."""
    n = len(tree.degree)
    neighbours = np.full((n, 2), -1, np.int64)
    for j in tree.neighbours_of_0:
        add_edge(neighbours, 0, j)
    for j in range(2, n):
        add_edge(neighbours, j, tree.tree_parent[j])
    return walk(neighbours, 0)


@jit
def cheapest_one_tree(dist: Floats, cost: Floats, penalty: Floats, tree: OneTree) -> float:
    """Writes the cheapest 1-tree into `tree`; returns a lower bound of all tours.

    Args:
        dist: `(n, n)` distances.
        cost: `(n, n)` the same, but REQUIRED or EXCLUDED where an edge is decided.
        penalty: `(n,)` of the cities.
        tree: written.

    Returns:
        The length of the 1-tree with the penalties, less what these add to every tour. No tour that
        has all required edges and no excluded one is shorter. Infinite where excluded edges leave
        no 1-tree.
    """
    tree.degree[:] = 0
    total = _span(dist, cost, penalty, tree)
    if total == np.inf or not _choose_neighbours_of_0(cost, penalty, tree):
        return np.inf
    for j in tree.neighbours_of_0:
        total += dist[0, j] + penalty[0] + penalty[j]
        tree.degree[j] += 1
        tree.degree[0] += 1
    return total - 2 * penalty.sum()


@jit
def _span(dist: Floats, cost: Floats, penalty: Floats, tree: OneTree) -> float:
    """Writes the minimum spanning tree of all cities but 0 (Prim 1957), and adds its degrees.

    Returns its length with the penalties; infinity where excluded edges leave no spanning tree.
    """
    parent, degree, cheapest, outside = tree.tree_parent, tree.degree, tree.cheapest, tree.outside
    # `last` came into the tree last; `size` cities are outside.
    total, last, size = 0.0, 1, len(dist) - 2
    for k in range(size):
        outside[k] = k + 2
        cheapest[k + 2] = np.inf
    while size:
        best, best_k = np.inf, 0
        for k in range(size):
            j = outside[k]
            edge = cost[last, j] + (penalty[last] + penalty[j])
            if edge < cheapest[j]:
                cheapest[j] = edge
                parent[j] = last
            if cheapest[j] < best:
                best, best_k = cheapest[j], k
        if best > DECIDED:
            return np.inf
        last = outside[best_k]
        total += dist[last, parent[last]] + penalty[last] + penalty[parent[last]]
        degree[last] += 1
        degree[parent[last]] += 1
        size -= 1
        outside[best_k] = outside[size]
    return total


@jit
def _choose_neighbours_of_0(cost: Floats, penalty: Floats, tree: OneTree) -> bool:
    """Writes the two cheapest edges of city 0, the cheaper first; False where there are no two."""
    neighbours_of_0 = tree.neighbours_of_0
    first, second = np.inf, np.inf
    for j in range(1, len(cost)):
        edge = cost[0, j] + penalty[j]
        if edge < first:
            second, neighbours_of_0[1] = first, neighbours_of_0[0]
            first, neighbours_of_0[0] = edge, j
        elif edge < second:
            second, neighbours_of_0[1] = edge, j
    return second <= DECIDED


@jit
def max_path_edges(cost: Floats, penalty: Floats, tree: OneTree) -> Floats:
    """`(n, n)`: the cost of the most expensive edge on the spanning tree's path from i to j.

    Penalties are included. Where an edge i-j outside the 1-tree has to be in, it replaces the most
    expensive one. Row and column 0 are arbitrary: city 0 is not in the spanning tree.

    Args:
        cost: `(n, n)` as in `cheapest_one_tree`.
        penalty: `(n,)` of the cities.
        tree: the 1-tree.
    """
    n = len(penalty)
    max_path_edge = np.empty((n, n))
    max_path_edge[1, 1] = -np.inf
    visited, order, size = np.zeros(n, np.bool_), np.empty(n, np.int64), 1
    visited[1], order[0] = True, 1
    # Parents come before their children. That takes few sweeps: trees of these sizes are shallow.
    while size < n - 1:
        for j in range(2, n):
            p = tree.tree_parent[j]
            if visited[j] or not visited[p]:
                continue
            edge = cost[j, p] + (penalty[j] + penalty[p])
            for k in range(size):
                i = order[k]
                max_path_edge[i, j] = max_path_edge[j, i] = max(max_path_edge[i, p], edge)
            max_path_edge[j, j] = -np.inf
            visited[j] = True
            order[size] = j
            size += 1
    return max_path_edge
