"""The linear relaxation of the shortest tour (Dantzig, Fulkerson, Johnson 1954).

Each edge is in the tour by a share of 0 to 1, each city has two edges, and no set of cities has
more edges inside it than a path through it. Its optimum is the best bound that 1-trees have (Held
and Karp 1970), and its dual has the penalties that give it: also where many tours are equally
short, or distances are of different magnitudes, and penalties cuts step by step come too slowly.
"""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ptrnet.types import Floats, Indices

_ROUNDS = 60  # of sets that are looked for
_VIOLATED = 1e-6  # a set's edges to the others, of 2: by how much less there have to be
# Distances are scaled to at most _SIZE: the solver's tolerances are absolute.
_SIZE, _OPTIONS = 1e3, {"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-9}


def best_penalties(dist: Floats) -> Floats:
    """`(n,)` penalties of cities for the 1-tree bound of `(n, n)` distances; n of 5 or more."""
    n = len(dist)
    i, j = np.triu_indices(n, 1)
    edges, scale = np.arange(len(i)), _SIZE / (dist.max() or 1.0)
    degree = csr_array(
        (np.ones(2 * len(i)), (np.concatenate([i, j]), np.concatenate([edges, edges])))
    )
    sets: dict[bytes, Indices] = {}  # of cities, as rows of zeros and ones
    penalties = np.zeros(n)
    for _ in range(_ROUNDS):
        inside = np.array([s[i] & s[j] for s in sets.values()]).reshape(-1, len(i))
        sizes = np.array([s.sum() - 1.0 for s in sets.values()])
        solution = linprog(
            dist[i, j] * scale,
            A_ub=csr_array(inside.astype(float)) if len(sizes) else None,
            b_ub=sizes if len(sizes) else None,
            A_eq=degree,
            b_eq=np.full(n, 2.0),
            bounds=(0, 1),
            method="highs",
            options=_OPTIONS,
        )
        if solution.x is None:
            break
        penalties = -np.asarray(solution.eqlin.marginals) / scale
        shares = np.zeros((n, n))
        shares[i, j] = shares[j, i] = solution.x
        before = len(sets)
        for members in _violated_sets(shares):
            sets[members.tobytes()] = members
        if len(sets) == before:
            break
    return penalties


def _violated_sets(shares: Floats) -> list[Indices]:
    """Sets without city 0, rows of zeros and ones, that have fewer than two edges to the others.

    The cuts of the algorithm of Stoer and Wagner (1997), the smallest of all among them.
    """
    n = len(shares)
    weights = shares.copy()
    members = np.eye(n, dtype=np.int64)  # of the cities that were merged into each
    rest = list(range(n))
    cuts = []
    while len(rest) > 1:
        attached, outside, last, before = weights[rest[0]].copy(), rest[1:], rest[0], rest[0]
        while outside:
            before, last = last, max(outside, key=attached.__getitem__)
            cut = attached[last]
            outside.remove(last)
            attached += weights[last]
        if cut < 2 - _VIOLATED:
            side = members[last]
            cuts.append(1 - side if side[0] else side)
        weights[before] += weights[last]
        weights[:, before] += weights[:, last]
        weights[before, before] = 0
        members[before] += members[last]
        rest.remove(last)
    return cuts
