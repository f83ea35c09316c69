"""Compute the result of each allowed choice if a simple rule makes all later choices.

A network that sees these results does not need to foresee the consequences of a choice (rollout
algorithms, Bertsekas, Tsitsiklis and Wu 1997). The functions are compiled, because a rule makes its
choices one by one, in loops. No function checks its arguments.

Arguments are arrays of NumPy or tensors of torch. On a GPU, and if PyTorch records a graph, the
formulas of `ptrnet.problems.rollout_formulas` compute the same.
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from array_api_compat import is_numpy_array
from numpy.typing import NDArray

from ptrnet.jit import assign, jit
from ptrnet.labellers.best_tour import ways_home
from ptrnet.problems.routes import NEAR
from ptrnet.types import Floats, Indices


def for_tensors(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Let a compiled function of arrays also take tensors."""

    @wraps(kernel)
    def call(*arrays: Any) -> Any:
        if is_numpy_array(arrays[0]):
            return kernel(*arrays)
        import torch

        from ptrnet.kernels import is_eager

        if arrays[0].device.type == "cpu" and is_eager(*arrays):
            return torch.from_numpy(kernel(*(part.contiguous().numpy() for part in arrays)))
        from ptrnet.problems import rollout_formulas

        return getattr(rollout_formulas, kernel.__name__)(*arrays)

    return call


@for_tensors
@jit
def makespans(
    machine: Indices,
    duration: Floats,
    done: Indices,
    job_free: Floats,
    machine_free: Floats,
    allowed: NDArray[np.bool_],
) -> Floats:
    """Return for each job the makespan if this job is next, and a rule makes all later choices.

    The rule always starts the operation that can start first. Among operations that can start at
    the same time, the rule prefers the job with the most work left, then the machine with the
    lowest number, then the shortest duration. So the order of the jobs matters only if all these
    numbers are equal.

    Args:
        machine, duration: `(B, n, m)`, of each job's operations. Machine -1 means no operation.
        done: `(B, n)`, how many operations of each job have been started.
        job_free: `(B, n)`, the time at which the last started operation of each job ends.
        machine_free: `(B, machines)`, the time at which the last started operation on each machine
            ends.
        allowed: `(B, n)`, the jobs for which the makespan is computed. It is infinite for others.
    """
    batch, n, most = machine.shape
    found = np.full((batch, n), np.inf)
    for b in range(batch):
        work = np.zeros(n)
        for j in range(n):
            for k in range(done[b, j], most):
                work[j] += duration[b, j, k]
        for first in range(n):
            if not allowed[b, first]:
                continue
            next_of, ends, work_left = done[b].copy(), job_free[b].copy(), work.copy()
            free = machine_free[b].copy()
            job = first
            while job >= 0:
                k = next_of[job]
                m = machine[b, job, k]
                ends[job] = free[m] = max(ends[job], free[m]) + duration[b, job, k]
                work_left[job] -= duration[b, job, k]
                next_of[job] += 1
                job, chosen = -1, (np.inf, 0.0, 0, 0.0)
                for j in range(n):
                    k = next_of[j]
                    if k == most or machine[b, j, k] < 0:
                        continue
                    start = max(ends[j], free[machine[b, j, k]])
                    if start <= chosen[0]:
                        key = (start, -work_left[j], machine[b, j, k], duration[b, j, k])
                        if key < chosen:
                            job, chosen = j, key
            found[b, first] = ends.max()
    return found


@for_tensors
def values(weight: Floats, value: Floats, density: Floats, left: Floats) -> Floats:
    """Return for each item the value gained if we take this item, and a rule takes the others.

    The rule goes through the items by density, highest first, and takes each item that still fits.
    Of equally dense items, the rule takes the one with the lowest index first. The density is the
    value per weight. All are `(B, n)`, and the capacity that is left is `(B,)`. Items that cannot
    be taken have an infinite weight, and gain 0, as items that do not fit.
    """
    # NumPy sorts, because compiling numba's merge sort takes two seconds and a half.
    order = np.argsort(-density, axis=1, kind="stable")
    found: Floats = _values(weight, value, order, left)
    return found


@jit
def _values(weight: Floats, value: Floats, orders: Indices, left: Floats) -> Floats:
    """Return what `values` does, given the items `(B, n)` by density, highest first."""
    batch, n = weight.shape
    found = np.zeros((batch, n))
    for b in range(batch):
        order = orders[b]
        for first in range(n):
            room = left[b] - weight[b, first]
            if room < 0:
                continue
            found[b, first] = value[b, first]
            for item in order:
                if item != first and weight[b, item] <= room:
                    found[b, first] += value[b, item]
                    room -= weight[b, item]
    return found


@for_tensors
@jit
def prizes(
    position: Floats,
    prize: Floats,
    rounded: Floats,
    unvisited: NDArray[np.bool_],
    last: Indices,
    left: Floats,
    allowed: NDArray[np.bool_],
) -> Floats:
    """Return for each place the sum of prizes if we go there next, and a rule chooses the rest.

    The rule goes to the place with the largest ratio of its prize to its distance from the current
    place. The rule skips a place if the length that is left is too short to go there and then to
    the depot (element 0). If distances are rounded, the way to the depot may go through places that
    are still unvisited.

    Args:
        position: `(B, n, 2)`.
        prize: `(B, n)`.
        rounded: `(B,)`, not 0 if distances are rounded to whole numbers.
        unvisited: `(B, n)`, False for the depot.
        last: `(B,)`, the place that was visited last.
        left: `(B,)`, the length that is left.
        allowed: `(B, n)`, the places for which the prizes are computed. They are 0 for others.
    """
    batch, n = prize.shape
    found = np.zeros((batch, n))
    back = np.empty(n)
    for b in range(batch):
        for j in range(n):
            back[j] = distance(position[b], 0, j, rounded[b])
        least = back
        if rounded[b] != 0:
            least = ways_home(matrix(position[b], rounded[b]), unvisited[b])
        for first in range(n):
            if not allowed[b, first]:
                continue
            waits, here, rest, place = unvisited[b].copy(), last[b], left[b], first
            there = distance(position[b], here, place, rounded[b])
            while place >= 0:
                found[b, first] += prize[b, place]
                waits[place] = False
                here, rest = place, rest - there
                rule = position[b], prize[b], rounded[b], waits, here, rest
                place, there = next_by_rule(*rule, least)
                # `least` is outdated if a shortest way uses a place that this rollout has visited.
                if place >= 0 and there + back[place] > rest:
                    home = ways_home(matrix(position[b], rounded[b]), waits)
                    place, there = next_by_rule(*rule, home)
    return found


@jit
def next_by_rule(
    position: Floats,
    prize: Floats,
    rounded: float,
    waits: NDArray[np.bool_],
    here: int,
    rest: float,
    home: Floats,
) -> tuple[int, float]:
    """Return the place that the rule of `prizes` visits next, and the distance to this place.

    If the rule can visit no place, the result is -1 and 0.
    """
    place, most, there = -1, -1.0, 0.0
    for j in range(len(prize)):
        if waits[j]:
            length = distance(position, here, j, rounded)
            ratio = prize[j] / (length + NEAR)
            if ratio > most and length + home[j] <= rest:
                place, most, there = j, ratio, length
    return place, there


@for_tensors
@jit
def ways_back(position: Floats, rounded: Floats, unvisited: NDArray[np.bool_]) -> Floats:
    """Return for each place the length `(B, n)` of the shortest way to the depot.

    A way may go through other places if they are unvisited. The arguments are those of `prizes`.
    """
    found = np.empty(unvisited.shape)
    for b in range(len(found)):
        if rounded[b] != 0:
            assign(found[b], ways_home(matrix(position[b], rounded[b]), unvisited[b]))
        else:
            for j in range(len(found[b])):
                found[b, j] = distance(position[b], j, 0, rounded[b])
    return found


@jit
def matrix(position: Floats, rounded: float) -> Floats:
    """Return the distances `(n, n)` of all pairs of places."""
    n = len(position)
    found = np.empty((n, n))
    for a in range(n):
        for b in range(n):
            found[a, b] = distance(position, a, b, rounded)
    return found


@jit
def distance(position: Floats, a: int, b: int, rounded: float) -> float:
    """Return the distance between two places, rounded as in EUC_2D if `rounded` is not 0."""
    x, y = position[a, 0] - position[b, 0], position[a, 1] - position[b, 1]
    # Use the formulas of `ptrnet.geometry.distances`: other formulas may round x.5 differently.
    return math.floor(math.sqrt(x * x + y * y) + 0.5) if rounded != 0 else math.hypot(x, y)
