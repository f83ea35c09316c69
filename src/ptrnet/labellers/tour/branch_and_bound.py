"""Branch and bound with 1-tree bounds (Held and Karp 1971; Volgenant and Jonker 1982).

A node of the search is a set of required and of excluded edges: the decided ones. The search is
depth first. At each node an edge is first required, then excluded. The decided edges stand on a
trail, and are taken back when the search leaves the node that decided them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptrnet.jit import assign, jit
from ptrnet.labellers.tour.edges import tour_length
from ptrnet.labellers.tour.one_tree import (
    DECIDED,
    EXCLUDED,
    REQUIRED,
    OneTree,
    cheapest_one_tree,
    is_tour,
    is_tree_edge,
    max_path_edges,
    new_one_tree,
    tour_of,
)
from ptrnet.types import Floats, Indices

_ROOT_STEPS, _STEPS = 120, 20  # of the subgradient, at the root and at every other node
_PATIENCE = 5  # steps without a better bound before steps are made shorter


class Node(NamedTuple):
    """The node that the search is at; n cities."""

    dist: Floats  # (n, n)
    cost: Floats  # (n, n) the same, but REQUIRED or EXCLUDED where an edge is decided
    trail: Indices  # (n * n, 2) the decided edges in the order in which they were decided
    penalty: Floats  # (n,) of each city, those that give the best bound
    tree: OneTree  # the cheapest 1-tree under these penalties


class Branches(NamedTuple):
    """The edges at which the nodes above the current one branched, the root's first."""

    edge: Indices  # (n * n, 2)
    num_decided: Indices  # (n * n,) how many edges were on the trail before this one
    penalty: Floats  # (n * n, n) of the node that branched
    excluded: NDArray[np.bool_]  # (n * n,) whether the edge is excluded now; else it is required


class Search(NamedTuple):
    """A search that can be resumed. Arrays of one number are what compiled code can write to."""

    node: Node
    branches: Branches
    num_nodes: Indices  # (1,) how many were searched
    num_decided: Indices  # (1,) how many edges are decided: the used rows of the trail
    depth: Indices  # (1,) of the node: the used rows of the branches


@jit
def new_search(dist: Floats) -> Search:
    """The search of `(n, n)` distances, n of 5 or more, at its root."""
    return Search(
        node=_root(dist),
        branches=_no_branches(len(dist)),
        num_nodes=np.zeros(1, np.int64),
        num_decided=np.zeros(1, np.int64),
        depth=np.zeros(1, np.int64),
    )


@jit
def prove(dist: Floats, tour: Indices, slack: float, max_nodes: int) -> tuple[float, int]:
    """Finds the shortest tour, or proves that a tour is the shortest.

    Args:
        dist: `(n, n)` distances, n of 5 or more.
        tour: `(n,)` a good tour; replaced by a shorter one where there is one.
        slack: a tour that is shorter by this or less is not looked for.
        max_nodes: how many are searched before the search gives up.

    Returns:
        A lower bound of all tours: the length of the tour less `slack`, or -inf where the search
        gave up. And the number of nodes that were searched.
    """
    search = new_search(dist)
    return resume(search, tour, slack, max_nodes), search.num_nodes[0]


@jit
def resume(search: Search, tour: Indices, slack: float, max_nodes: int) -> float:
    """Searches until the tour is proved, or `max_nodes` nodes in all; the bound as in `prove`.

    Args:
        search: a new one, or one that stopped at its `max_nodes`.
        tour: as in `prove`; of a search that stopped, the one that it left.
        slack: as in `prove`, the same in every call.
        max_nodes: as in `prove`, those of former calls included.
    """
    node, branches = search.node, search.branches
    shortest = tour_length(node.dist, tour)
    num_decided, depth = search.num_decided[0], search.depth[0]
    for nodes in range(search.num_nodes[0] + 1, max_nodes + 1):
        search.num_nodes[0] = nodes
        num_decided, possible = _propagate(node, num_decided)
        bound = np.inf
        if possible:
            bound = _ascend(node, shortest - slack, shortest, _ROOT_STEPS if nodes == 1 else _STEPS)
            if bound < shortest and is_tour(node.tree):
                assign(tour, tour_of(node.tree))
                shortest = bound = tour_length(node.dist, tour)
        if bound < shortest - slack:
            num_decided = _exclude_expensive(node, num_decided, shortest - slack - bound)
            num_decided = _branch(node, num_decided, branches, depth)
            depth += 1
        else:
            while depth and branches.excluded[depth - 1]:
                depth -= 1
            if not depth:
                return shortest - slack
            num_decided = _try_without(node, num_decided, branches, depth - 1)
        search.num_decided[0], search.depth[0] = num_decided, depth
    return -np.inf


@jit
def _root(dist: Floats) -> Node:
    """The node where no edge is decided."""
    n = len(dist)
    cost = dist.copy()
    for i in range(n):
        cost[i, i] = EXCLUDED
    return Node(
        dist=dist,
        cost=cost,
        trail=np.empty((n * n, 2), np.int64),
        penalty=np.zeros(n),
        tree=new_one_tree(n),
    )


@jit
def _no_branches(n: int) -> Branches:
    """Room for the branches of n cities."""
    return Branches(
        edge=np.empty((n * n, 2), np.int64),
        num_decided=np.empty(n * n, np.int64),
        penalty=np.empty((n * n, n)),
        excluded=np.empty(n * n, np.bool_),
    )


@jit
def _decide(node: Node, num_decided: int, i: int, j: int, decision: float) -> int:
    """Requires or excludes an edge; `decision` is REQUIRED or EXCLUDED.

    Returns how many edges are decided then.
    """
    node.cost[i, j] = node.cost[j, i] = decision
    node.trail[num_decided, 0], node.trail[num_decided, 1] = i, j
    return num_decided + 1


@jit
def _propagate(node: Node, num_decided: int) -> tuple[int, bool]:
    """Decides the edges that follow from the decided ones, as each city has two edges in a tour.

    Returns how many edges are decided then, and False where some city cannot have two.
    """
    n, cost = len(node.dist), node.cost
    changed = True
    while changed:
        changed = False
        for i in range(n):
            required = available = 0
            for j in range(n):
                required += cost[i, j] < -DECIDED
                available += cost[i, j] < DECIDED
            if required > 2 or available < 2:
                return num_decided, False
            if (available > 2 and required == 2) or (available == 2 and required < 2):
                decision = EXCLUDED if required == 2 else REQUIRED
                for j in range(n):
                    if abs(cost[i, j]) < DECIDED:
                        num_decided = _decide(node, num_decided, i, j, decision)
                changed = True
    return num_decided, True


@jit
def _ascend(node: Node, enough: float, shortest: float, max_steps: int) -> float:
    """Raises the node's bound by subgradient steps of Polyak's length.

    Args:
        node: the steps begin at its penalties; afterwards it has those of the best bound, and the
            1-tree of the bound that is returned.
        enough: a bound of this or more ends the steps: the node can be pruned.
        shortest: the length of the best tour so far.
        max_steps: how many are tried.

    Returns:
        The best bound, or the length of a 1-tree that is a tour; infinite where there is no 1-tree.
    """
    n, tree, penalty = len(node.dist), node.tree, node.penalty
    trial, last_degree = penalty.copy(), np.empty(n, np.int64)
    best, scale, waited = -np.inf, 1.0, 0
    for step in range(max_steps):  # `waited` of them, the last, gave no better bound
        bound = cheapest_one_tree(node.dist, node.cost, trial, tree)
        if bound > best:
            best, waited = bound, 0
            assign(penalty, trial)
        else:
            waited += 1
        if bound >= enough or is_tour(tree):
            return bound
        if waited == _PATIENCE:
            scale, waited = scale / 2, 0
        if step == 0:
            assign(last_degree, tree.degree)
        norm = 0
        for i in range(n):
            norm += (tree.degree[i] - 2) ** 2
        length = scale * (shortest - bound) / norm
        # Cities of many edges become more expensive, those of one cheaper. The mean with the step
        # before (Volgenant and Jonker 1982) keeps the penalties from going back and forth.
        for i in range(n):
            trial[i] += length * (0.7 * (tree.degree[i] - 2) + 0.3 * (last_degree[i] - 2))
        assign(last_degree, tree.degree)
    return cheapest_one_tree(node.dist, node.cost, penalty, tree)


@jit
def _exclude_expensive(node: Node, num_decided: int, gap: float) -> int:
    """Excludes every edge that would raise the bound by `gap` or more if it had to be in."""
    cost, penalty, tree = node.cost, node.penalty, node.tree
    max_path_edge = max_path_edges(cost, penalty, tree)
    first, second = tree.neighbours_of_0
    longer_edge_of_0 = max(cost[0, first] + penalty[first], cost[0, second] + penalty[second])
    for j in range(1, len(cost)):
        raised = cost[0, j] + penalty[j] - longer_edge_of_0
        if cost[0, j] < DECIDED and raised >= gap and not is_tree_edge(tree, 0, j):
            num_decided = _decide(node, num_decided, 0, j, EXCLUDED)
        for i in range(1, j):
            raised = cost[i, j] + (penalty[i] + penalty[j]) - max_path_edge[i, j]
            if cost[i, j] < DECIDED and raised >= gap and not is_tree_edge(tree, i, j):
                num_decided = _decide(node, num_decided, i, j, EXCLUDED)
    return num_decided


@jit
def _branch(node: Node, num_decided: int, branches: Branches, depth: int) -> int:
    """Goes down to the node where one more edge is required; how many edges are decided there."""
    i, j = _edge_to_branch_at(node)
    branches.edge[depth, 0], branches.edge[depth, 1] = i, j
    branches.num_decided[depth] = num_decided
    assign(branches.penalty[depth], node.penalty)
    branches.excluded[depth] = False
    return _decide(node, num_decided, i, j, REQUIRED)


@jit
def _try_without(node: Node, num_decided: int, branches: Branches, depth: int) -> int:
    """Goes back to the node that branched at `depth`, and down to where its edge is excluded.

    Returns how many edges are decided there.
    """
    while num_decided > branches.num_decided[depth]:
        num_decided -= 1
        i, j = node.trail[num_decided]
        node.cost[i, j] = node.cost[j, i] = node.dist[i, j]
    assign(node.penalty, branches.penalty[depth])
    branches.excluded[depth] = True
    i, j = branches.edge[depth]
    return _decide(node, num_decided, i, j, EXCLUDED)


@jit
def _edge_to_branch_at(node: Node) -> tuple[int, int]:
    """The longest undecided edge of the 1-tree at the city that has the most edges in it."""
    city = int(np.argmax(node.tree.degree))
    best, other = -np.inf, -1
    for j in range(len(node.cost)):
        edge = node.cost[city, j] + node.penalty[j]
        undecided = abs(node.cost[city, j]) < DECIDED
        if undecided and edge > best and is_tree_edge(node.tree, city, j):
            best, other = edge, j
    return city, other
