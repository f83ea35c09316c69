"""Short routes by PyVRP's hybrid genetic search (Wouda, Lan and Kool 2024), without a proof.

The search stops after a number of iterations, not after a time, so that the same instances get the
same answers on any machine.
"""

import math
from typing import Any

import numpy as np

from ptrnet.geometry import distances
from ptrnet.types import Floats, Indices

HEURISTIC = True
NEEDS = "pyvrp"
FAILURE = "there is no customer, only a depot"
ITERATIONS = 1000
# PyVRP computes with whole numbers. Unless distances are rounded, we scale them so that the longest
# distance is LONGEST. PyVRP's penalties for overloaded vehicles are too small for distances much
# longer than this. We multiply demands and the capacity by the same factor, which makes the
# capacity at least FULL / 2.
LONGEST, FULL = 10**4, 10**6
MOST = 1e15  # larger demands and capacities are scaled, too
SLACK = 1e-6  # how far rounding may move a product from a whole number


def label(inputs: Floats, iterations: int = ITERATIONS) -> list[Indices]:
    """Return the routes from the depot, which is element 0, with a 0 between two routes.

    Args:
        inputs: `(B, n, 5)`: two coordinates, a demand, the capacity, and whether distances are
            rounded.
        iterations: the number of iterations of the search. Fewer iterations give longer routes.
    """
    return [np.array(_routes(instance, iterations), np.int64) for instance in inputs]


def _routes(instance: Floats, iterations: int) -> list[int]:
    import pyvrp
    from pyvrp.stop import MaxIterations

    position, demand = instance[:, :2], instance[:, 2]
    capacity = min(instance[0, 3], 2 * demand.sum())  # a larger capacity would overflow
    dist = distances.matrix(position, "EUC_2D" if instance[0, 4] else distances.EUCLIDEAN)
    if not instance[0, 4]:
        dist = np.round(dist * (LONGEST / max(dist.max(), 1e-300)))
    whole: Any = dist.astype(np.int64)
    unit = _unit(np.append(demand, capacity))
    loads = np.ceil(demand * unit - SLACK).astype(np.int64).tolist()
    room = int(np.floor(capacity * unit + SLACK))
    n = len(instance)
    data = pyvrp.ProblemData(
        locations=[pyvrp.Location(x, y) for x, y in position],
        clients=[pyvrp.Client(location=k, delivery=[loads[k]]) for k in range(1, n)],
        depots=[pyvrp.Depot(location=0)],
        vehicle_types=[pyvrp.VehicleType(max(n - 1, 1), [room])],
        distance_matrices=[whole],
        duration_matrices=[np.zeros((n, n), np.int64)],
    )
    result = pyvrp.solve(data, MaxIterations(iterations), seed=0)
    answer: list[int] = []
    for route in result.best.routes():
        left = -1  # so that the first customer begins a new route
        for customer in (visit.idx + 1 for visit in route if visit.is_client()):
            if loads[customer] > left:  # split a route that PyVRP overloads
                answer += [0] * bool(answer)
                left = room
            answer.append(customer)
            left -= loads[customer]
    return answer


def _unit(demands_and_capacity: Floats) -> float:
    """Return the factor by which `_routes` multiplies demands and the capacity.

    We try seven powers of ten. The first is the smallest power that is at least 1 and makes the
    capacity at least 1. If a power makes all numbers whole, the factor is a multiple of this power.
    Otherwise the factor makes the capacity `FULL`, and `_routes` rounds scaled demands up, so that
    no vehicle is overloaded. Powers of ten matter: with other factors, three demands of 0.1 could
    be rounded up to more than a capacity of 0.3. The scaled capacity is at least `FULL` / 2,
    because PyVRP limits the penalty for a unit of overload. If the capacity were small, PyVRP would
    overload a vehicle to save a long way.
    """
    capacity = float(demands_and_capacity[-1])
    smallest = 10.0 ** max(0, math.ceil(-math.log10(max(capacity, 1e-300))))
    for unit in (smallest * 10.0**k for k in range(7)):
        scaled = demands_and_capacity * unit
        if (np.abs(scaled - np.rint(scaled)) <= SLACK).all() and scaled[-1] < MOST:
            return unit * float(max(1, FULL // max(scaled[-1], 1)))
    return FULL / capacity
