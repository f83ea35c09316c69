"""The linear relaxation of the shortest tour (Dantzig, Fulkerson, Johnson 1954).

Each edge has a value from 0 to 1, those at a city add up to 2, and those inside a set of cities to
one less than it has cities at most (subtour elimination). Constraints of sets are added while
some are violated. The optimum is the best 1-tree bound, and the dual variables of the cities are
the penalties that give it (Held and Karp 1970). Subgradient steps converge to these too slowly
where many tours are equally short, or distances are of different magnitudes.
"""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ptrnet.types import Floats, Indices

_MAX_ROUNDS = 60  # linear programs, each with the sets that the solution before violates
_TOLERANCE = 1e-6  # of a set's constraint: less is not a violation
# The solver's tolerances are absolute: the longest distance is scaled to _MAX_DIST.
_MAX_DIST = 1e3
_OPTIONS = {"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-9}


def best_penalties(dist: Floats) -> Floats:
    """`(n,)` penalties of cities for the 1-tree bound of `(n, n)` distances; n of 5 or more."""
    n = len(dist)
    i, j = np.triu_indices(n, 1)
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
            bounds=(0, 1),
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
