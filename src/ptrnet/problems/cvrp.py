"""Capacitated vehicle routing: the shortest routes from a depot that serve all customers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from ptrnet.errors import InputError
from ptrnet.geometry.sampling import MIXED, sample_points
from ptrnet.geometry.tolerance import with_tolerance
from ptrnet.problems.base import Problem, State, at, columns, is_at, mean
from ptrnet.problems.routes import (
    coordinates,
    dist,
    dist_matrix,
    from_depot,
    path_length,
    route_lines,
)
from ptrnet.settings import setting
from ptrnet.tasks.base import Drawing
from ptrnet.types import Example, Floats, Indices

MAX_IMPROVED = 2000  # elements; larger instances are not improved, because that would take minutes
LARGEST_DEMAND = 9  # of random instances
# Values of n (with the depot) and the capacities that Kool et al. use for them. We interpolate the
# capacities for other values of n.
KNOWN_SIZES, CAPACITIES = (11, 21, 51, 101), (20, 30, 40, 50)


@dataclass(frozen=True)
class Cvrp(Problem):
    """The problem `cvrp`: an answer lists customers route by route, with a 0 between routes.

    Element 0 is the depot, where every route begins and ends. The depot counts in `n`. The cost is
    the length of all routes. An instance has these fields:

    - `position`, `(n, 2)`.
    - `demand`: the demand of each element, 0 for the depot.
    - `capacity`: the capacity of a vehicle.
    - `rounded`: 1 if distances are rounded to whole numbers, 0 by default.

    Random instances are drawn like those of Kool et al. (2019): positions are uniform, and demands
    are 1 to 9. With `points` "mixed", positions are of many kinds (in clusters, on lines, with
    ties), and half of the capacities fit 3 to 25 customers on average, as in the benchmark X of
    Uchoa et al. (2017).
    """

    name: ClassVar[str] = "cvrp"
    element_fields: ClassVar[dict[str, int]] = {"position": 2, "demand": 1}
    shared_fields: ClassVar[dict[str, int]] = {"capacity": 1, "rounded": 1}
    optional: ClassVar[dict[str, float]] = {"rounded": 0}
    array_api: ClassVar[bool] = True
    mixes: ClassVar[bool] = True
    ways: ClassVar[int] = 2
    fixed: ClassVar[int] = 1
    labellers: ClassVar[tuple[str, ...]] = ("pyvrp", "pyvrp-quick")
    symmetric: ClassVar[bool] = True
    recipe: ClassVar[dict[str, Any]] = {**Problem.recipe, "n": "21"}

    capacity: float = setting(
        0.0,
        "capacity of random instances, whose demands are 1 to 9; 0: as in Kool et al., 30 for 20 "
        "customers, 40 for 50",
        ge=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.capacity < LARGEST_DEMAND:
            raise InputError(
                f"capacity: expected 0, or at least the largest demand, {LARGEST_DEMAND}, "
                f"got {self.capacity:g}"
            )

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        position = sample_points(self.points, rng, (count, n, 2))
        demand = rng.integers(1, LARGEST_DEMAND + 1, (count, n)).astype(float)
        demand[:, 0] = 0
        known = self.capacity or np.floor(np.interp(n, KNOWN_SIZES, CAPACITIES))
        capacity = np.full(count, known)
        if self.points == MIXED:
            customers = rng.triangular(3, 6, 25, count)
            drawn = np.maximum(np.ceil(customers * demand[:, 1:].mean(1)), LARGEST_DEMAND)
            capacity = np.where(rng.random(count) < 0.5, drawn, capacity)
        return self.pack(
            position=position, demand=demand, capacity=capacity, rounded=np.zeros(count)
        )

    def instance_error(self, inputs: Floats) -> str | None:
        demand, capacity = inputs[:, 2], inputs[0, 3]
        if demand[0] != 0:
            return f"element 0 is the depot: expected a demand of 0, got {demand[0]:g}"
        if (demand < 0).any():
            return f"expected demands of 0 or more, got {demand.min():g}"
        if capacity < 0:
            return f"expected a capacity of 0 or more, got {capacity:g}"
        if (demand > capacity).any():
            k = int(np.argmax(demand > capacity))
            return f"element {k}: its demand {demand[k]:g} is more than the capacity {capacity:g}"
        return None

    def rounded_points(self, inputs: Floats) -> Floats | None:
        return inputs[:, :2] if inputs[0, -1] else None  # the last number is `rounded`

    def start(self, instance: Floats) -> State:
        state = self.unpack(instance)
        demand, capacity = state["demand"], state["capacity"]
        xp = array_namespace(demand)
        last = xp.zeros_like(capacity, dtype=xp.int64)
        return {
            "position": from_depot(state["position"]),
            "demand": demand,
            "capacity": capacity,
            "left": with_tolerance(capacity),
            "unserved": ~is_at(last, demand.shape[1]),
            "last": last,
        }

    def allowed(self, state: State) -> NDArray[np.bool_]:
        unserved = state["unserved"]
        direct = unserved & (state["demand"] <= state["left"][:, None])
        by_depot = unserved & (state["last"] > 0)[:, None]  # at the depot, both ways are equal
        allowed: NDArray[np.bool_] = array_namespace(direct).stack([direct, by_depot], axis=-1)
        return allowed

    def remaining(self, state: State) -> NDArray[np.bool_]:
        unserved: NDArray[np.bool_] = state["unserved"]
        return unserved

    def features(self, state: State) -> tuple[Floats, Floats]:
        position, capacity = state["position"], state["capacity"][:, None]
        xp = array_namespace(position)
        capacity = xp.where(capacity > 0, capacity, 1.0)  # 0 if no customer has a demand
        here, depot = at(position, state["last"]), position[:, :1]
        to_last, to_depot = dist(position, here[:, None]), dist(position, depot)
        home = dist(here[:, None], depot)
        demand, left = state["demand"] / capacity, state["left"][:, None] / capacity
        of_customers = [
            *coordinates(position),
            *coordinates(position - here[:, None]),
            to_last,
            to_depot,
            home + to_depot - to_last,  # the length that a detour by the depot adds
            demand,
            left - demand,
            demand <= left,
        ]
        unserved = xp.sum(xp.where(state["unserved"], demand, 0.0), axis=1)
        of_whole = [
            left[:, 0],
            xp.log1p(unserved),
            *coordinates(here),
            home[:, 0],
            state["last"] == 0,
            mean(state["unserved"]),
        ]
        return columns(of_customers), columns(of_whole)

    def step(self, state: State, choice: Indices) -> State:
        customer, by_depot = choice // 2, choice % 2
        full = with_tolerance(state["capacity"])
        left = array_namespace(choice).where(by_depot != 0, full, state["left"])
        unserved = state["unserved"] & ~is_at(customer, state["unserved"].shape[1])
        left = left - at(state["demand"], customer)
        return {**state, "left": left, "unserved": unserved, "last": customer}

    def cost(self, instance: Floats, answers: Indices) -> Floats:
        return path_length(self.unpack(instance), answers)

    def canonicalize(self, inputs: Floats, answers: Sequence[Indices]) -> Sequence[Indices]:
        """Sort the routes: the route that goes farthest from the depot comes first.

        Each route is directed so that its first customer is at least as far from the depot as its
        last customer.
        """
        # Networks learn this form best. We trained on three forms, with 20 customers. This is how
        # much more the greedy answers cost than PyVRP's quick answers:
        # - 6.5% with this form, after 150 s of training
        # - 8.5% with the fullest route first, after 200 s
        # - 10% to 11% with the fullest route first and each route begun near the depot, after 200 s
        return [_canonical(*pair) for pair in zip(inputs, answers, strict=True)]

    def improve(self, example: Example, outputs: Indices) -> Indices:
        """Return the routes after moves of customers within and between routes."""
        from ptrnet.problems.moves import improve_routes  # needs numba, so import it only here

        inputs = example.inputs
        if len(inputs) > MAX_IMPROVED or not len(outputs):
            return outputs
        distances, demand = dist_matrix(inputs), np.ascontiguousarray(inputs[:, 2])
        capacity = with_tolerance(float(inputs[0, 3]))
        while True:
            tour = np.insert(outputs, 0, 0)
            improve_routes(distances, demand, capacity, tour)
            if (tour[1:] == outputs).all():
                return outputs
            # Moves between routes depend on their order and direction, so try those of this form.
            outputs = _canonical(inputs, tour[1:])

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        return Drawing(inputs[:, :2], route_lines(inputs, outputs), has_colors=True)


def _canonical(inputs: Floats, answer: Indices) -> Indices:
    routes = [route for route in np.split(answer, np.flatnonzero(answer == 0)) if route.any()]
    to_depot = dist(inputs[:, :2], inputs[0, :2])
    directed = []
    for route in routes:
        route = route[route > 0]
        first, last = to_depot[route[[0, -1]]]
        directed.append(route if first >= last else route[::-1])
    directed.sort(key=lambda route: -to_depot[route].max())
    parts = [part for route in directed for part in (np.zeros(1, np.int64), route)]
    return np.concatenate(parts[1:]) if parts else answer[:0]


TASK = Cvrp
