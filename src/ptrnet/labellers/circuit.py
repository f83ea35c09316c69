"""Tours with the largest sum of prizes within a length limit, by OR-Tools' solver CP-SAT.

A circuit constraint describes a tour. The solver has one worker and a limit in deterministic time,
so that the same instances get the same answers. The solver proves most answers for 21 elements in a
second, and some answers for 51 elements within its time limit.
"""

import numpy as np
from numpy.typing import NDArray

from ptrnet.geometry import distances
from ptrnet.geometry.tolerance import with_tolerance
from ptrnet.labellers.best_tour import lengthened, path_length, ways_home
from ptrnet.types import Floats, Indices

NEEDS = "ortools"
UNPROVED = "no proof was found within the time limit"
FAILURE = "no place can be visited within the limit"
LIMIT = 10.0  # units of CP-SAT's deterministic time; a unit is about a second
# CP-SAT computes with whole numbers. Unless distances are rounded, we scale them so that the length
# limit becomes DIGITS. Unless all prizes are whole numbers, we scale them so that the largest prize
# becomes PRIZES.
DIGITS = 10**7
PRIZES = 10**6
MOST = 2**53  # whole prizes with a larger sum are scaled, too


def label(inputs: Floats) -> list[Indices]:
    """Return the best tours that were found; see `label_with_proof`."""
    return label_with_proof(inputs)[0]


def label_with_proof(inputs: Floats) -> tuple[list[Indices], NDArray[np.bool_]]:
    """Return the places of tours, without the depot (element 0), and whether each tour is proved.

    The first place of the best tour is at most as far from the depot as the last place. To this
    tour we append places, including places without a prize, until no place can follow. Unless all
    prizes are whole numbers, we round them to millionths of the largest prize. A proved tour may
    then miss the largest sum of prizes by one such millionth for each place.

    Args:
        inputs: `(B, n, 5)`: two coordinates, a prize, the limit of the length, and whether
            distances are rounded.
    """
    tours = [_tour(instance) for instance in inputs]
    answers = [np.array(tour, np.int64) for tour, _ in tours]
    return answers, np.array([proved for _, proved in tours], bool)


def _tour(instance: Floats) -> tuple[list[int], bool]:
    """Return the tour through an instance `(n, 5)`, and whether the tour is proved."""
    is_rounded = bool(instance[0, 4])
    dist = distances.matrix(instance[:, :2], "EUC_2D" if is_rounded else distances.EUCLIDEAN)
    prize, limit = instance[:, 2].copy(), with_tolerance(instance[0, 3])
    prize[0] = 0  # every tour collects the prize of the depot
    limit = min(limit, 2 * float(dist.sum()))  # no tour is longer
    home = ways_home(dist, np.ones(len(dist), np.bool_))
    near = np.flatnonzero(2 * home <= limit)  # the depot, and the places in reach
    scale = 1.0 if is_rounded else DIGITS / max(limit, 1e-300)
    # First round distances down, so that no tour within the limit is left out. If the true length
    # of the best tour exceeds the limit, solve again with distances that are rounded up.
    for rounding in (np.floor, np.ceil):
        whole = rounding(dist[np.ix_(near, near)] * scale).astype(np.int64)
        tour, proved = _best_circuit(whole, round(np.floor(limit * scale)), prize[near])
        path = [0, *near[tour].tolist()]
        if path_length(dist, [*path, 0]) <= limit:
            break
    if len(path) > 1 and dist[0, path[-1]] < dist[0, path[1]]:
        path[1:] = path[:0:-1]
    proved = proved and rounding is np.floor
    return lengthened(path, dist, prize, limit)[1:], proved


def _best_circuit(dist: Indices, limit: int, prize: Floats) -> tuple[list[int], bool]:
    """Return the best tour `(m,)` from place 0, and whether it is proved. Distances are whole."""
    from ortools.sat.python import cp_model

    n = len(dist)
    if n == 1:
        return [], True
    is_whole = (prize == np.round(prize)).all() and prize.sum() < MOST
    prizes = np.round(prize * (1 if is_whole else PRIZES / max(prize.max(), 1e-300)))
    prizes = prizes.astype(np.int64)
    model = cp_model.CpModel()
    home = ways_home(dist.astype(float), np.ones(n, np.bool_))
    visited = [model.new_bool_var(f"visited {k}") for k in range(n)]
    legs = {
        (i, j): model.new_bool_var(f"leg {i} {j}")
        for i in range(n)
        for j in range(n)
        if i != j and home[i] + dist[i, j] + home[j] <= limit
    }
    model.add_circuit(
        [(k, k, is_visited.negated()) for k, is_visited in enumerate(visited)]
        + [(i, j, leg) for (i, j), leg in legs.items()]
    )
    model.add(visited[0] == 1)
    model.add(sum(int(dist[pair]) * leg for pair, leg in legs.items()) <= limit)
    model.maximize(sum(int(p) * is_visited for p, is_visited in zip(prizes, visited, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    # With its own handler, Ctrl-C would end the search, and later ones this process at once.
    solver.parameters.catch_sigint_signal = False
    solver.parameters.max_deterministic_time = LIMIT
    solver.parameters.linearization_level = 2  # makes proofs ten times as fast
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return [], False
    following = {i: j for (i, j), leg in legs.items() if solver.value(leg)}
    tour, place = [], following[0]
    while place != 0:
        tour.append(place)
        place = following[place]
    return tour, status == cp_model.OPTIMAL
