"""Shortest tours with a proof: branch and bound with 1-tree bounds (Held and Karp 1971).

Iterated local search finds a tour that is nearly always the shortest, and branch and bound proves
that no tour is shorter. Both steps together take a quarter of a millisecond for 20 uniformly drawn
cities, and about ten milliseconds for 50. If branch and bound cannot prove a tour soon, it starts
again with better bounds, which come from a linear program.

The file begins with the labeller. Below are proofs of hard instances, the 1-tree bound, branch and
bound, and the linear program.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.jit import assign, cached, inlined, inner, jit
from ptrnet.labellers import local_search
from ptrnet.labellers.local_search import MIN_CITIES, search_tour
from ptrnet.labellers.rules import Problem, doubled, halved, undirected
from ptrnet.labellers.tours import add_edge, label_tours, tour_length, walk
from ptrnet.types import CLOSED, Floats, Indices, TourRules

MAX_ELEMENTS = 80
TAKES_RULES = True
# Limits of work. A node of a search counts n^2 units, one for each distance of the instance. A
# whole search takes at most `WORK` units, about a minute. Ctrl-C takes effect only between calls of
# compiled code. So the search before the linear program takes at most `EASY` units, and so does
# each later call of compiled code.
WORK = 10**9
EASY = 2 * 10**7
UNPROVED = (
    "no tour was proved to be the shortest in about a minute; labeller local-search gives good "
    "tours without a proof"
)
KICKS = 2  # per city, in the local search before branch and bound
ROUNDING = 1e-10  # smaller differences, relative to a tour's length, count as rounding errors


def label(inputs: Floats, distance: str = EUCLIDEAN, rules: TourRules = CLOSED) -> list[Indices]:
    """Return the tours of `label_with_proof`."""
    return label_with_proof(inputs, distance, rules)[0]


def label_with_proof(
    inputs: Floats, distance: str = EUCLIDEAN, rules: TourRules = CLOSED
) -> tuple[list[Indices], NDArray[np.bool_]]:
    """Return tours of cities `(B, n, d)`, and `(B,)`, whether each is proved to be the shortest.

    If a proof would need more than `WORK`, the tour is the best that was found.

    Examples:
        >>> answers, proved = label_with_proof(np.random.default_rng(1).random((4, 20, 2)))
        >>> proved.tolist()
        [True, True, True, True]
    """
    proved: list[bool] = []

    def write_tours(dist: Floats, tours: Indices) -> None:
        proved.extend(_write_proved(dist, tours))

    def search(problem: Problem) -> Indices:
        tour, is_proved = _solve(problem)
        proved.append(is_proved)
        return tour

    answers = label_tours(inputs, distance, write_tours, rules, search)
    return answers, np.array(proved, bool)


def _write_proved(dist: Floats, tours: Indices) -> NDArray[np.bool_]:
    """Write tours of instances with distances `(B, n, n)`, and return `(B,)`: which are proved."""
    proved, whole_numbers, n = np.zeros(len(dist), np.bool_), are_whole(dist), dist.shape[1]
    # A compiled loop would save a microsecond for each instance. But compiling it would take four
    # seconds, because a function is optimised again with each function that calls it.
    for b, (matrix, tour) in enumerate(zip(dist, tours, strict=True)):
        tour[:] = np.arange(n)
        search_tour(matrix, tour, KICKS, False)
        proved[b] = n < MIN_CITIES or _prove(matrix, tour, whole_numbers, min(EASY, WORK) // n**2)
    for b in np.flatnonzero(~proved).tolist():
        proved[b] = _prove_hard(dist[b], tours[b], whole_numbers)
    return proved


@jit
def _prove(dist: Floats, tour: Indices, whole_numbers: bool, max_nodes: int) -> bool:
    """Do a new search, and return whether the tour is proved; see `resume`."""
    slack = slack_of(tour_length(dist, tour), whole_numbers)
    return resume(search_of(dist, undecided(dist)), tour, slack, max_nodes)  # type: ignore[no-any-return]


def _solve(problem: Problem) -> tuple[Indices, bool]:
    """Return a tour `(n,)` with the problem's fixed edges, and whether it is proved."""
    tour = local_search.solve(problem, KICKS)
    if len(problem.dist) < MIN_CITIES:
        return tour, True
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
    proved = resume(search_of(dist, cost), tour, slack, EASY // len(dist) ** 2)
    proved = proved or _search_from_relaxation(dist, cost, tour, slack)
    return (halved(tour) if directed else tour), proved


def are_whole(dist: Floats) -> bool:
    """Whether all distances are whole numbers."""
    return bool((dist == np.rint(dist)).all())


@jit
def slack_of(length: float, whole_numbers: bool) -> float:
    """Return the `slack` of searches for tours shorter than a tour of the given length.

    A search ignores tours that are shorter by the slack or less, because of rounding errors. If all
    distances are whole numbers, a shorter tour is shorter by at least 1, so the slack is nearly 1.
    """
    return 1 - 1e-6 if whole_numbers else ROUNDING * length


# Branch and bound alone takes long to prove tours of cities on a line, equal cities or grids. We
# merge equal cities. For cities on a line, the shortest tour is twice as long as the longest
# distance. The search of any other unproved instance starts again from the penalties of the linear
# program.


def _prove_hard(dist: Floats, tour: Indices, whole_numbers: bool) -> bool:
    """Return whether a tour `(n,)` is proved to be the shortest, for n of `MIN_CITIES` or more.

    If the search finds a shorter tour, that tour is written into `tour`.
    """
    slack = slack_of(tour_length(dist, tour), whole_numbers)
    if _obeys_triangles(dist):
        # Cities at distance 0 from each other have the same distances to all other cities.
        first = np.argmax(dist == 0, axis=1)  # for each city, the first city at distance 0
        if (first != np.arange(len(dist))).any():
            return _prove_merged(dist, tour, first, whole_numbers)
        # No tour is shorter than twice the longest distance. For cities on a line, a tour of this
        # length exists.
        line = np.argsort(dist[np.argmax(dist[0])], kind="stable")
        if tour_length(dist, line) - slack <= 2 * dist.max():
            tour[:] = line
            return True
    return _search_from_relaxation(dist, undecided(dist), tour, slack)


def _obeys_triangles(dist: Floats) -> bool:
    """Whether distances obey the triangle inequality, except for rounding errors.

    Some matrices violate the inequality, and so do some of TSPLIB's rounded distances.
    """
    # The shortest way from each city to each other city over any third city.
    shortest = np.array([(dist + dist[k]).min(1) for k in range(len(dist))])
    return bool((shortest >= dist - ROUNDING / 100 * dist.max()).all())


def _prove_merged(dist: Floats, tour: Indices, first: Indices, whole_numbers: bool) -> bool:
    """Do what `_prove_hard` does, for an instance in which some cities are equal.

    Keep only the first of equal cities, prove a tour of the kept cities, and insert the other
    cities next to their equals. `first` is `(n,)`: for each city, the first city equal to it.
    """
    distinct = np.unique(first)
    small = np.ascontiguousarray(dist[np.ix_(distinct, distinct)])
    short = np.arange(len(distinct))
    search_tour(small, short, KICKS, False)
    proved = len(distinct) < MIN_CITIES or _prove_hard(small, short, whole_numbers)
    merged = np.concatenate([np.flatnonzero(first == city) for city in distinct[short]])
    if proved or tour_length(dist, merged) < tour_length(dist, tour):
        tour[:] = merged
    return proved


def _search_from_relaxation(dist: Floats, cost: Floats, tour: Indices, slack: float) -> bool:
    """Search from the penalties of the linear program, and return whether the tour is proved.

    See `search_of` and `resume` for the arguments.
    """
    search = search_of(dist, cost)
    search.penalty[:] = best_penalties(dist, cost)
    max_nodes, step = WORK // len(dist) ** 2, max(1, EASY // len(dist) ** 2)
    return any(
        resume(search, tour, slack, min(nodes, max_nodes))
        for nodes in range(step, max_nodes + step, step)
    )


# The 1-tree bound of Held and Karp (1970, 1971). A 1-tree is a spanning tree of all cities except
# 0, and two edges of city 0. Every tour is a 1-tree, so the cheapest 1-tree is at most as long as
# the shortest tour. Each city has a penalty, which is added to the cost of its edges. Penalties
# make all tours longer by the same amount, and 1-trees by different amounts. We choose penalties
# for which the cheapest 1-tree is nearly as long as the shortest tour.

# The cost of an edge is its distance. The cost of a decided edge is one of these two values.
REQUIRED, EXCLUDED = -1e100, 1e100
DECIDED = 1e90  # a cost below -DECIDED means REQUIRED, and a cost above DECIDED means EXCLUDED


class Search(NamedTuple):
    """A search over n cities, at one of its nodes, with the cheapest 1-tree. It can be resumed.

    Numbers are in arrays `(1,)`, so that compiled code can set them.
    """

    dist: Floats  # (n, n)
    cost: Floats  # (n, n) distances, or REQUIRED or EXCLUDED for decided edges
    penalty: Floats  # (n,) the penalties that give the best bound
    # The 1-tree: a spanning tree of all cities except 0, rooted at city 1, and two edges of city 0.
    parent: Indices  # (n,) the parent of each city in the tree; -1 for cities 0 and 1
    neighbours_of_0: Indices  # (2,) the cities at the other ends of city 0's edges
    degree: Indices  # (n,) the number of edges of each city in the 1-tree
    cheapest: Floats  # (n,) scratch: the lowest cost of an edge from a city to the growing tree
    outside: Indices  # (n,) scratch: the cities that are not yet in the tree
    trail: Indices  # (n * n, 2) the decided edges in the order in which they were decided
    num_decided: Indices  # the trail's length
    num_nodes: Indices  # the number of nodes that were searched
    # The edges on which the nodes above this node branched, from the root down.
    depth: Indices  # their number
    branch_edge: Indices  # (n * n, 2)
    branch_decided: Indices  # (n * n,) the length of the trail before this edge
    branch_penalty: Floats  # (n * n, n) the penalties of the node that branched
    branch_excluded: NDArray[np.bool_]  # (n * n,) whether the edge is excluded now, else required


@jit
def undecided(dist: Floats) -> Floats:
    """Return the costs `(n, n)` of edges before any edge is decided. Exclude edges i-i."""
    cost = dist.copy()
    for i in range(len(dist)):
        cost[i, i] = EXCLUDED
    return cost


@jit
def search_of(dist: Floats, cost: Floats) -> Search:
    """Return a new search over distances `(n, n)`, n of 5 or more.

    The costs `(n, n)` of edges are distances, or REQUIRED or EXCLUDED for edges decided in advance.
    """
    n = len(dist)
    return Search(
        dist=dist,
        cost=cost.copy(),
        penalty=np.zeros(n),
        parent=np.full(n, -1, np.int64),
        neighbours_of_0=np.empty(2, np.int64),
        degree=np.empty(n, np.int64),
        cheapest=np.empty(n),
        outside=np.empty(n, np.int64),
        trail=np.empty((n * n, 2), np.int64),
        num_decided=np.zeros(1, np.int64),
        num_nodes=np.zeros(1, np.int64),
        depth=np.zeros(1, np.int64),
        branch_edge=np.empty((n * n, 2), np.int64),
        branch_decided=np.empty(n * n, np.int64),
        branch_penalty=np.empty((n * n, n)),
        branch_excluded=np.empty(n * n, np.bool_),
    )


@inlined
def is_tree_edge(search: Search, i: int, j: int) -> bool:
    """Whether the edge between two different cities is in the 1-tree."""
    if i == 0 or j == 0:
        other = max(i, j)
        return search.neighbours_of_0[0] == other or search.neighbours_of_0[1] == other
    return search.parent[i] == j or search.parent[j] == i


@inlined
def is_tour(search: Search) -> bool:
    """Whether the 1-tree is a tour, that is, every city has two edges."""
    for degree in search.degree:  # noqa: SIM110 (numba cannot compile generators)
        if degree != 2:
            return False
    return True


@inner
def tour_of(search: Search) -> Indices:
    """Return the cities `(n,)` in the order of a 1-tree that is a tour."""
    n = len(search.degree)
    neighbours = np.full((n, 2), -1, np.int64)
    for j in search.neighbours_of_0:
        add_edge(neighbours, 0, j)
    for j in range(2, n):
        add_edge(neighbours, j, search.parent[j])
    return walk(neighbours, 0)


@cached(nogil=True, forceinline=True)  # tests call it from Python
def cheapest_one_tree(search: Search, penalty: Floats) -> float:
    """Write the cheapest 1-tree into `search`, and return its lower bound of the lengths of tours.

    The bound is the length of the 1-tree with penalties `(n,)`, minus the penalties that every tour
    pays. No tour with all required edges and no excluded edges is shorter. If no 1-tree is possible
    without excluded edges, the bound is infinite.
    """
    dist, cost, parent, degree = search.dist, search.cost, search.parent, search.degree
    cheapest, outside, ends = search.cheapest, search.outside, search.neighbours_of_0
    degree[:] = 0
    # The minimum spanning tree of all cities except 0 (Prim 1957). `last` is the city that joined
    # the tree last; `size` cities are outside.
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
    # The two cheapest edges of city 0, cheapest first.
    first, second = np.inf, np.inf
    for j in range(1, len(cost)):
        edge = cost[0, j] + penalty[j]
        if edge < first:
            second, ends[1] = first, ends[0]
            first, ends[0] = edge, j
        elif edge < second:
            second, ends[1] = edge, j
    if second > DECIDED:
        return np.inf
    for j in ends:
        total += dist[0, j] + penalty[0] + penalty[j]
        degree[j] += 1
        degree[0] += 1
    return total - 2 * penalty.sum()


@inner
def max_path_edges(search: Search) -> Floats:
    """Return `(n, n)`: the cost of the most expensive edge on the tree's path from i to j.

    Costs include penalties. If an edge i-j is added to the 1-tree, the most expensive edge of this
    path can be removed. Row and column 0 are arbitrary, because city 0 is not in the spanning tree.
    """
    n, cost, penalty, parent = len(search.dist), search.cost, search.penalty, search.parent
    max_path_edge = np.empty((n, n))
    max_path_edge[1, 1] = -np.inf
    visited, order, size = np.zeros(n, np.bool_), np.empty(n, np.int64), 1
    visited[1], order[0] = True, 1
    # Visit parents before their children. Trees of these sizes are shallow, so few sweeps suffice.
    while size < n - 1:
        for j in range(2, n):
            p = parent[j]
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
# decided edges: required or excluded edges. The search is depth first. At each node it requires an
# edge, and later comes back to exclude this edge instead. The decided edges are in a list, the
# trail. When the search leaves a node, it takes back the decisions of this node.
_ROOT_STEPS, _STEPS = 120, 20  # subgradient steps at the root, and at every other node
_PATIENCE = 5  # after this many steps without a better bound, steps become shorter


@jit
def resume(search: Search, tour: Indices, slack: float, max_nodes: int) -> bool:
    """Find the shortest tour, or prove that a tour is the shortest.

    Args:
        search: a new search, or a search that stopped at its `max_nodes`.
        tour: a good tour `(n,)`. If the search finds a shorter tour, that tour is written here. To
            resume a search, pass the array of the previous call again.
        slack: ignore a tour if it is shorter than `tour` by at most this much. The same in every
            call of a search.
        max_nodes: the number of nodes, former calls included, after which the search stops.

    Returns:
        Whether it is proved that no tour is shorter than `tour` by more than `slack`.
    """
    shortest = tour_length(search.dist, tour)
    depth, excluded = search.depth, search.branch_excluded
    while search.num_nodes[0] < max_nodes:
        search.num_nodes[0] += 1
        bound = np.inf
        if _propagate(search):
            steps = _ROOT_STEPS if search.num_nodes[0] == 1 else _STEPS
            bound = _ascend(search, shortest - slack, shortest, steps)
            if not _has_required(search):
                bound = np.inf  # the required edges form a cycle that is not a tour
            if bound < shortest and is_tour(search):
                assign(tour, tour_of(search))
                shortest = bound = tour_length(search.dist, tour)
        if bound < shortest - slack:
            _exclude_expensive(search, shortest - slack - bound)
            _branch(search)
        else:
            while depth[0] and excluded[depth[0] - 1]:
                depth[0] -= 1
            if not depth[0]:
                return True
            _try_without(search)
    return False


@inner
def _decide(search: Search, i: int, j: int, decision: float) -> None:
    """Require or exclude an edge: `decision` is REQUIRED or EXCLUDED."""
    search.cost[i, j] = search.cost[j, i] = decision
    k = search.num_decided[0]
    search.trail[k, 0], search.trail[k, 1] = i, j
    search.num_decided[0] = k + 1


@inner
def _propagate(search: Search) -> bool:
    """Decide the edges that follow from the decided edges, because each city needs exactly two.

    If two edges of a city are required, exclude its other edges. If all but two are excluded,
    require these two. Return whether each city can still have two edges.
    """
    n, cost = len(search.dist), search.cost
    changed = True
    while changed:
        changed = False
        for i in range(n):
            required = available = 0
            for j in range(n):
                required += cost[i, j] < -DECIDED
                available += cost[i, j] < DECIDED
            if required > 2 or available < 2:
                return False
            if (available > 2 and required == 2) or (available == 2 and required < 2):
                decision = EXCLUDED if required == 2 else REQUIRED
                for j in range(n):
                    if abs(cost[i, j]) < DECIDED:
                        _decide(search, i, j, decision)
                changed = True
    return True


@inner
def _has_required(search: Search) -> bool:
    """Whether the node's 1-tree has all required edges. If not, no 1-tree has all of them."""
    for j in range(1, len(search.cost)):
        for i in range(j):
            if search.cost[i, j] < -DECIDED and not is_tree_edge(search, i, j):
                return False
    return True


@inner
def _ascend(search: Search, enough: float, shortest: float, max_steps: int) -> float:
    """Raise the node's bound by subgradient steps with Polyak's step length.

    Args:
        search: the steps begin at its penalties. Afterwards it has the penalties of the best bound,
            and the 1-tree of the returned bound.
        enough: stop at a bound of this or more, because the search can then skip the node.
        shortest: the length of the best tour so far.
        max_steps: the number of steps to try.

    Returns:
        The best bound, or the length of a 1-tree that is a tour. Infinite if there is no 1-tree.
    """
    n, degree, penalty = len(search.dist), search.degree, search.penalty
    trial, last_degree = penalty.copy(), np.empty(n, np.int64)
    best, scale, waited = -np.inf, 1.0, 0  # waited: number of steps since the last better bound
    for step in range(max_steps):
        bound = cheapest_one_tree(search, trial)
        if bound > best:
            best, waited = bound, 0
            assign(penalty, trial)
        else:
            waited += 1
        if bound >= enough or is_tour(search):
            return bound
        if waited == _PATIENCE:
            scale, waited = scale / 2, 0
        if step == 0:
            assign(last_degree, degree)
        norm = 0
        for i in range(n):
            norm += (degree[i] - 2) ** 2
        length = scale * (shortest - bound) / norm
        # Cities with more than two edges become more expensive, cities with one edge cheaper. A
        # weighted mean with the previous step (Volgenant and Jonker 1982) avoids oscillation.
        for i in range(n):
            trial[i] += length * (0.7 * (degree[i] - 2) + 0.3 * (last_degree[i] - 2))
        assign(last_degree, degree)
    return cheapest_one_tree(search, penalty)


@inner
def _exclude_expensive(search: Search, gap: float) -> None:
    """Exclude every edge that would raise the bound by `gap` or more if we required it."""
    cost, penalty = search.cost, search.penalty
    max_path_edge = max_path_edges(search)
    first, second = search.neighbours_of_0
    longer_edge_of_0 = max(cost[0, first] + penalty[first], cost[0, second] + penalty[second])
    for j in range(1, len(cost)):
        raised = cost[0, j] + penalty[j] - longer_edge_of_0
        if cost[0, j] < DECIDED and raised >= gap and not is_tree_edge(search, 0, j):
            _decide(search, 0, j, EXCLUDED)
        for i in range(1, j):
            raised = cost[i, j] + (penalty[i] + penalty[j]) - max_path_edge[i, j]
            if cost[i, j] < DECIDED and raised >= gap and not is_tree_edge(search, i, j):
                _decide(search, i, j, EXCLUDED)


@inner
def _branch(search: Search) -> None:
    """Go down to the node where one more edge is required.

    Take an undecided edge of the 1-tree at the city with the most edges. If there are several such
    edges, take the most expensive. Costs include the penalties.
    """
    cost, penalty, depth = search.cost, search.penalty, search.depth[0]
    i = int(np.argmax(search.degree))
    best, j = -np.inf, -1
    for k in range(len(cost)):
        edge = cost[i, k] + penalty[k]
        if abs(cost[i, k]) < DECIDED and edge > best and is_tree_edge(search, i, k):
            best, j = edge, k
    search.branch_edge[depth, 0], search.branch_edge[depth, 1] = i, j
    search.branch_decided[depth] = search.num_decided[0]
    assign(search.branch_penalty[depth], penalty)
    search.branch_excluded[depth] = False
    search.depth[0] += 1
    _decide(search, i, j, REQUIRED)


@inner
def _try_without(search: Search) -> None:
    """Go back to the node that branched last, and exclude its edge instead."""
    last = search.depth[0] - 1
    while search.num_decided[0] > search.branch_decided[last]:
        search.num_decided[0] -= 1
        i, j = search.trail[search.num_decided[0]]
        search.cost[i, j] = search.cost[j, i] = search.dist[i, j]
    assign(search.penalty, search.branch_penalty[last])
    search.branch_excluded[last] = True
    i, j = search.branch_edge[last]
    _decide(search, i, j, EXCLUDED)


# The linear relaxation of the shortest tour (Dantzig, Fulkerson, Johnson 1954). Each edge has a
# value from 0 to 1. The values of a city's edges add up to 2. The values of the edges inside a set
# of k cities add up to at most k - 1 (subtour elimination). We add such constraints as long as some
# are violated. The optimum is the best 1-tree bound. The dual variables of the cities are the
# penalties that give this bound (Held and Karp 1970). If many tours are equally short, or if
# distances have very different magnitudes, subgradient steps converge to these penalties too
# slowly.
_MAX_ROUNDS = 60  # maximum number of linear programs, each with more constraints
_TOLERANCE = 1e-6  # constraints of sets may be off by this much
# Scale the longest distance to _MAX_DIST, because the solver's tolerances are absolute.
_MAX_DIST = 1e3
_OPTIONS = {"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-9}


def best_penalties(dist: Floats, cost: Floats) -> Floats:
    """Return the best penalties `(n,)` for the 1-tree bound. Arguments as in `search_of`."""
    n = len(dist)
    i, j = np.nonzero(np.triu(cost < DECIDED, 1))
    edges, scale = np.arange(len(i)), _MAX_DIST / (dist.max() or 1.0)
    incidence = csr_array(  # (n, num_edges): 1 for the two cities of an edge
        (np.ones(2 * len(i)), (np.concatenate([i, j]), np.concatenate([edges, edges])))
    )
    sets: dict[bytes, Indices] = {}  # sets of cities, as rows of zeros and ones
    penalties = np.zeros(n)
    for _ in range(_MAX_ROUNDS):
        # `inside` (num_sets, num_edges) has a 1 for each edge inside a set. A tour can have at most
        # `max_inside` of these edges.
        inside = np.array([s[i] & s[j] for s in sets.values()]).reshape(-1, len(i))
        max_inside = np.array([s.sum() - 1.0 for s in sets.values()])
        solution = linprog(
            dist[i, j] * scale,
            A_ub=csr_array(inside.astype(float)) if sets else None,
            b_ub=max_inside if sets else None,
            A_eq=incidence,
            b_eq=np.full(n, 2.0),
            bounds=np.stack([cost[i, j] < -DECIDED, np.ones(len(i))], 1),  # 1 for required edges
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
    """Return sets of cities whose edges to other cities have values that add up to less than 2.

    Sets are rows of zeros and ones, and do not contain city 0. We check the cut of each phase of
    Stoer and Wagner's algorithm (1997). One of these cuts is a minimum cut. So if all cuts add up
    to 2 or more, no constraint is violated.
    """
    n = len(values)
    weights = values.copy()
    members = np.eye(n, dtype=np.int64)  # row k: the cities that were merged into city k
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
