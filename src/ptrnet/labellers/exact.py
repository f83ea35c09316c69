"""Shortest tours, proved: branch and bound with 1-tree bounds (Held and Karp 1971).

It starts from a tour of iterated local search, which is nearly always the shortest, and proves it.
Cities drawn uniformly take a quarter of a millisecond (20 cities) or about ten milliseconds (50).
If the search cannot prove a tour soon, it starts again with the penalties of a linear program.

The file reads from the labeller down: proofs of hard instances, the 1-tree bound, branch and bound,
the linear program.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import assign, jit
from ptrnet.labellers import local_search
from ptrnet.labellers.held_karp import shortest_tour
from ptrnet.labellers.local_search import MIN_CITIES, iterated_local_search
from ptrnet.labellers.rules import Problem, doubled, halved, undirected
from ptrnet.labellers.tours import (
    add_edge,
    distance_matrices,
    is_plain,
    label_by_rules,
    tour_length,
    walk,
)
from ptrnet.types import CLOSED, Answers, Floats, Indices, TourRules

MAX_ELEMENTS = 80
TAKES_RULES = True
WORK = 10**9  # of one search, in nodes times its n^2 distances: about a minute
EASY = 2 * 10**7  # of the first search, and of any call of compiled code: then Ctrl-C is seen
UNPROVED = (
    "no tour was proved to be the shortest in about a minute; labeller local-search would serve"
)


def label(inputs: Floats, distance: str = EUCLIDEAN, rules: TourRules = CLOSED) -> Answers:
    """The shortest tours of `(B, n, d)` cities, n of 1 to 80; see `label_with_proof`."""
    return label_with_proof(inputs, distance, rules)[0]


def label_with_proof(
    inputs: Floats, distance: str = EUCLIDEAN, rules: TourRules = CLOSED
) -> tuple[Answers, NDArray[np.bool_]]:
    """Tours, and `(B,)` whether each is proved to be the shortest.

    If a proof would need more than `WORK`, the tour is the best that was found.
    """
    if is_plain(inputs, distance, rules):
        answers, bounds = label_with_bounds(inputs, distance)
        return answers, ~np.isneginf(bounds)
    proved: list[bool] = []
    answers = label_by_rules(inputs, distance, rules, lambda problem: _solve(problem, proved))
    return answers, np.array(proved, bool)


def label_with_bounds(inputs: Floats, distance: str = EUCLIDEAN) -> tuple[Answers, Floats]:
    """Tours, and a lower bound `(B,)` of the tours of each; -inf where the tour is not proved.

    Lengths are in the units of `ptrnet.labellers.tours`.
    """
    batch, n, _ = inputs.shape
    tours, bounds = np.empty((batch, n), np.int64), np.empty(batch)
    for rows, dist in distance_matrices(inputs, distance):
        if n < MIN_CITIES:
            _write_shortest(dist, tours[rows], bounds[rows])
            continue
        done, whole_numbers = 0, are_whole(dist)
        while done < len(dist):  # in parts: an interrupt waits for the end of a compiled function
            done = _write_proved(
                dist, tours[rows], bounds[rows], whole_numbers, done, min(EASY, WORK)
            )
        for b in np.flatnonzero(np.isneginf(bounds[rows])):
            bounds[rows][b] = prove_with_relaxation(
                dist[b], tours[rows][b], whole_numbers, WORK, EASY
            )
    return Answers(tours, np.full(batch, n, np.int64)), bounds


def are_whole(dist: Floats) -> bool:
    """Whether all distances are whole numbers."""
    return bool((dist == np.rint(dist)).all())


def _solve(problem: Problem, proved: list[bool]) -> Indices:
    """A tour `(n,)` that has the problem's fixed edges, and whether it is proved, in `proved`."""
    n = len(problem.dist)
    tour = local_search.solve(problem, 2)
    if n < MIN_CITIES:
        proved.append(True)
        return tour
    slack = slack_of(tour_length(problem.dist, tour), are_whole(problem.dist))
    directed = problem.directed
    if directed:
        problem, tour = undirected(problem), doubled(tour)
    is_excluded = np.isinf(problem.dist)
    dist = np.where(is_excluded, 0, problem.dist)
    cost = undecided(dist)
    cost[is_excluded] = EXCLUDED
    for i, j in problem.fixed:
        cost[i, j] = cost[j, i] = REQUIRED
    bound = resume(search_of(dist, cost), tour, slack, EASY // n**2)
    if bound == -np.inf:
        bound = search_from_relaxation(dist, cost, tour, slack, WORK, EASY)
    proved.append(bound > -np.inf)
    return halved(tour) if directed else tour


@jit
def _write_shortest(dist: Floats, tours: Indices, bounds: Floats) -> None:
    for b in range(len(dist)):
        assign(tours[b], shortest_tour(dist[b]))
        bounds[b] = tour_length(dist[b], tours[b])


@jit
def _write_proved(
    dist: Floats, tours: Indices, bounds: Floats, whole_numbers: bool, first: int, work: int
) -> int:
    """Tours of local search, proved or replaced by a shorter one.

    Args:
        dist: `(B, n, n)`.
        tours: `(B, n)` written from `first` on.
        bounds: `(B,)` written from `first` on.
        whole_numbers: all distances are; so a shorter tour is shorter by 1.
        first: the first instance that is searched.
        work: the most of a search; and once all together have taken as much, the rest is left.

    Returns:
        The first instance that is left.
    """
    n = dist.shape[1]
    total = 0
    for b in range(first, len(dist)):
        assign(tours[b], np.arange(n))
        length = iterated_local_search(dist[b], tours[b], 2 * n)
        bounds[b], nodes = prove(dist[b], tours[b], slack_of(length, whole_numbers), work // n**2)
        total += (nodes + 2 * n) * n**2
        if total >= work:
            return b + 1
    return len(dist)


# Proofs that branch and bound alone does not find soon: of cities on a line, equal cities, grids.
# Equal cities are merged, a line has a bound of its own, and every other instance is searched from
# the penalties of the linear program.
ROUNDING = 1e-10  # relative to a tour's length: what is shorter by less counts as equally short


@jit
def slack_of(length: float, whole_numbers: bool) -> float:
    """The slack of `prove` for a tour of that length.

    If all distances are whole numbers, a shorter tour is shorter by at least 1.
    """
    return 1 - 1e-6 if whole_numbers else ROUNDING * length


def prove_with_relaxation(
    dist: Floats, tour: Indices, whole_numbers: bool, max_work: int, work_per_call: int
) -> float:
    """Find the shortest tour, or prove that a tour is the shortest.

    Args:
        dist: `(n, n)`, n of `MIN_CITIES` or more.
        tour: `(n,)` a good tour; replaced by a shorter one where there is one.
        whole_numbers: all distances are.
        max_work: of the search, in nodes times the `n^2` distances.
        work_per_call: of a call of compiled code, between which Ctrl-C is seen.

    Returns:
        A lower bound of all tours; -inf where none was proved.
    """
    slack = slack_of(tour_length(dist, tour), whole_numbers)
    if _obeys_triangles(dist):
        # Cities at distance 0 are equally far from any other.
        first = np.argmax(dist == 0, axis=1)  # of each city the first at distance 0, maybe itself
        if (first != np.arange(len(dist))).any():
            return _prove_merged(dist, tour, first, whole_numbers, max_work, work_per_call)
        # No tour is shorter than to the farthest city and back, which is the length of a tour of
        # cities on a line.
        line = np.argsort(dist[np.argmax(dist[0])], kind="stable")
        if tour_length(dist, line) - slack <= 2 * dist.max():
            tour[:] = line
            return tour_length(dist, line) - slack
    return search_from_relaxation(dist, undecided(dist), tour, slack, max_work, work_per_call)


def search_from_relaxation(
    dist: Floats, cost: Floats, tour: Indices, slack: float, max_work: int, work_per_call: int
) -> float:
    """`resume` a search that begins with the penalties of the linear program; its bound.

    Args:
        dist: this and `cost` as in `search_of`.
        cost: see `dist`.
        tour: this and `slack` as in `prove`.
        slack: see `tour`.
        max_work: this and `work_per_call` as in `prove_with_relaxation`.
        work_per_call: see `max_work`.
    """
    search = search_of(dist, cost)
    search.node.penalty[:] = best_penalties(dist, cost)
    max_nodes, step = max_work // len(dist) ** 2, max(1, work_per_call // len(dist) ** 2)
    bound = -np.inf
    for nodes in range(step, max_nodes + step, step):
        bound = resume(search, tour, slack, min(nodes, max_nodes))
        if bound > -np.inf:
            break
    return bound


def _obeys_triangles(dist: Floats) -> bool:
    """Whether no way round by a third city is shorter, except by rounding.

    TSPLIB's distances do not obey that where they are rounded to the nearest, nor do all matrices.
    """
    shortest = np.array([(dist + dist[k]).min(1) for k in range(len(dist))])  # of two steps
    return bool((shortest >= dist - ROUNDING / 100 * dist.max()).all())


def _prove_merged(
    dist: Floats,
    tour: Indices,
    first: Indices,
    whole_numbers: bool,
    max_work: int,
    work_per_call: int,
) -> float:
    """`prove_with_relaxation` where some cities are equal: the tour of the distinct ones is proved.

    `first` `(n,)` is the first city that is equal to each.
    """
    distinct = np.unique(first)
    small = np.ascontiguousarray(dist[np.ix_(distinct, distinct)])
    n = len(distinct)
    if n < MIN_CITIES:
        short = shortest_tour(small)
        bound = tour_length(small, short)
    else:
        short = np.arange(n)
        iterated_local_search(small, short, 2 * n)
        bound = prove_with_relaxation(small, short, whole_numbers, max_work, work_per_call)
    merged = np.concatenate([np.flatnonzero(first == city) for city in distinct[short]])
    if bound > -np.inf or tour_length(dist, merged) < tour_length(dist, tour):
        tour[:] = merged
    return bound


# The 1-tree bound of Held and Karp (1970, 1971). A 1-tree is a spanning tree of all cities but 0,
# with two edges of city 0. Every tour is a 1-tree, so the cheapest 1-tree is at most as long as the
# shortest tour. A penalty of each city is added to the cost of its edges. That makes all tours
# longer by the same amount, and 1-trees by different amounts. We choose the penalties that bring
# the cheapest 1-tree near the shortest tour.

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

    Penalties are included. If an edge i-j outside the 1-tree has to be in, it replaces the most
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


# Branch and bound (Held and Karp 1971; Volgenant and Jonker 1982). A node of the search is a set of
# decided edges: required or excluded ones. The search is depth first. At each node an edge is first
# required, then excluded. The decided edges are on a trail, and are taken back when the search
# leaves the node that decided them.
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
def undecided(dist: Floats) -> Floats:
    """`(n, n)` costs of the edges where none is decided yet, except that no city has itself."""
    cost = dist.copy()
    for i in range(len(dist)):
        cost[i, i] = EXCLUDED
    return cost


@jit
def new_search(dist: Floats) -> Search:
    """The search of `(n, n)` distances, n of 5 or more, at its root."""
    return search_of(dist, undecided(dist))


@jit
def search_of(dist: Floats, cost: Floats) -> Search:
    """The search of distances where some edges are decided in advance, at its root.

    Args:
        dist: `(n, n)` distances, n of 5 or more.
        cost: `(n, n)` the same, but REQUIRED or EXCLUDED where an edge is decided.
    """
    return Search(
        node=_root(dist, cost.copy()),
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
            if not _has_required(node):
                bound = np.inf  # the required edges close a circle
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
def _root(dist: Floats, cost: Floats) -> Node:
    """The node where the search has decided no edge."""
    n = len(dist)
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
def _has_required(node: Node) -> bool:
    """Whether the node's 1-tree has all required edges. If it has not, no 1-tree has."""
    for j in range(1, len(node.cost)):
        for i in range(j):
            if node.cost[i, j] < -DECIDED and not is_tree_edge(node.tree, i, j):
                return False
    return True


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
        The best bound, or the length of a 1-tree that is a tour; infinite if there is no 1-tree.
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


# The linear relaxation of the shortest tour (Dantzig, Fulkerson, Johnson 1954). Each edge has a
# value from 0 to 1. The values at a city add up to 2, and those inside a set of cities to at most
# one less than the set has cities (subtour elimination). Constraints of sets are added while some
# are violated. The optimum is the best 1-tree bound, and the dual variables of the cities are the
# penalties that give it (Held and Karp 1970). Subgradient steps converge too slowly to these if
# many tours are equally short, or if distances are of different magnitudes.
_MAX_ROUNDS = 60  # linear programs, each with the sets that the solution before violates
_TOLERANCE = 1e-6  # of a set's constraint: less is not a violation
# The solver's tolerances are absolute: the longest distance is scaled to _MAX_DIST.
_MAX_DIST = 1e3
_OPTIONS = {"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-9}


def best_penalties(dist: Floats, cost: Floats) -> Floats:
    """`(n,)` penalties of cities for the 1-tree bound; `dist` and `cost` as in `search_of`."""
    n = len(dist)
    i, j = np.nonzero(np.triu(cost < DECIDED, 1))
    edges, scale = np.arange(len(i)), _MAX_DIST / (dist.max() or 1.0)
    incidence = csr_array(  # (n, num_edges): 1 for the two cities of an edge
        (np.ones(2 * len(i)), (np.concatenate([i, j]), np.concatenate([edges, edges])))
    )
    sets: dict[bytes, Indices] = {}  # of cities, as rows of zeros and ones
    penalties = np.zeros(n)
    for _ in range(_MAX_ROUNDS):
        # (num_sets, num_edges): 1 for the edges inside a set; and how many of them a tour can have.
        inside = np.array([s[i] & s[j] for s in sets.values()]).reshape(-1, len(i))
        max_inside = np.array([s.sum() - 1.0 for s in sets.values()])
        solution = linprog(
            dist[i, j] * scale,
            A_ub=csr_array(inside.astype(float)) if sets else None,
            b_ub=max_inside if sets else None,
            A_eq=incidence,
            b_eq=np.full(n, 2.0),
            bounds=np.stack([cost[i, j] < -DECIDED, np.ones(len(i))], 1),  # 1 if it is required
            method="highs",
            options=_OPTIONS,
        )
        if solution.x is None:
            break
        penalties = -np.asarray(solution.eqlin.marginals) / scale
        values = np.zeros((n, n))
        values[i, j] = values[j, i] = solution.x
        num_sets = len(sets)
        for members in _violated_sets(values):
            sets[members.tobytes()] = members
        if len(sets) == num_sets:
            break
    return penalties


def _violated_sets(values: Floats) -> list[Indices]:
    """Sets without city 0, rows of zeros and ones, whose edges to the others add up to less than 2.

    They are the cuts of the phases of Stoer and Wagner's algorithm (1997), which finds a minimum
    cut: where none of them is violated no set is.
    """
    n = len(values)
    weights = values.copy()
    members = np.eye(n, dtype=np.int64)  # the cities that were merged into each, zeros and ones
    rest = list(range(n))
    cuts = []
    while len(rest) > 1:
        attached, outside, last, before = weights[rest[0]].copy(), rest[1:], rest[0], rest[0]
        while outside:
            before, last = last, max(outside, key=attached.__getitem__)
            cut = attached[last]
            outside.remove(last)
            attached += weights[last]
        if cut < 2 - _TOLERANCE:
            side = members[last]
            cuts.append(1 - side if side[0] else side)
        weights[before] += weights[last]
        weights[:, before] += weights[:, last]
        weights[before, before] = 0
        members[before] += members[last]
        rest.remove(last)
    return cuts
