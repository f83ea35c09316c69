"""Orienteering: the tour from a depot with the largest sum of prizes within a length limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from ptrnet.geometry.sampling import MIXED, sample_points
from ptrnet.geometry.tolerance import with_tolerance
from ptrnet.problems.base import Problem, State, at, columns, is_at, mean
from ptrnet.problems.routes import (
    coordinates,
    dist,
    dist_matrix,
    dist_or_rounded,
    path_length,
    route_lines,
)
from ptrnet.settings import setting
from ptrnet.tasks.base import Drawing
from ptrnet.types import Example, Floats, Indices

# Values of n (with the depot) and the length limits that Kool et al. use for them. We interpolate
# the limits for other values of n.
KNOWN_SIZES, LIMITS = (21, 51, 101), (2, 3, 4)


@dataclass(frozen=True)
class Orienteering(Problem):
    """The problem `orienteering`: an answer lists the places of a tour, without the depot.

    Element 0 is the depot, where the tour begins and ends. The depot counts in `n`. The cost is
    minus the sum of the prizes. An instance has these fields:

    - `position`, `(n, 2)`.
    - `prize`: the prize of each element. Every tour collects the prize of the depot, usually 0.
    - `limit`: the largest length of the tour.
    - `rounded`: 1 if distances are rounded to whole numbers, 0 by default.

    Random instances are drawn like those of Kool et al. (2019): positions are uniform, and prizes
    grow with the distance from the depot. With `points` "mixed", positions are of many kinds (in
    clusters, on lines, with ties), a third of the instances has equal prizes and a third uniform
    ones, and half of the limits are a half to twice as large.
    """

    name: ClassVar[str] = "orienteering"
    element_fields: ClassVar[dict[str, int]] = {"position": 2, "prize": 1}
    shared_fields: ClassVar[dict[str, int]] = {"limit": 1, "rounded": 1}
    optional: ClassVar[dict[str, float]] = {"rounded": 0}
    fixed: ClassVar[int] = 1
    array_api: ClassVar[bool] = True
    mixes: ClassVar[bool] = True
    stats: ClassVar[tuple[str, ...]] = ("length",)
    symmetric: ClassVar[bool] = True
    labellers: ClassVar[tuple[str, ...]] = ("best-tour", "circuit", "pyvrp-prizes")
    may_be_unproved: ClassVar[bool] = True
    recipe: ClassVar[dict[str, Any]] = {**Problem.recipe, "n": "21"}

    limit: float = setting(
        0.0,
        "length limit of random instances; 0: as in Kool et al., 2 for 20 places, 3 for 50",
        ge=0,
    )

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        position = sample_points(self.points, rng, (count, n, 2))
        to_depot = dist(position, position[:, :1])
        farthest = np.maximum(to_depot.max(1, keepdims=True), 1e-12)
        prize = (1 + np.floor(99 * to_depot / farthest)) / 100
        limit = np.full(count, self.limit or np.interp(n, KNOWN_SIZES, LIMITS))
        if self.points == MIXED:
            kind = rng.integers(3, size=(count, 1))
            drawn = np.where(kind == 1, 1.0, rng.integers(1, 101, (count, n)) / 100)
            prize = np.where(kind == 0, prize, drawn)
            limit *= np.where(rng.random(count) < 0.5, 2 ** rng.uniform(-1, 1, count), 1)
            nearest = to_depot[:, 1:].min(1, initial=np.inf)
            limit = np.where(n > 1, np.maximum(limit, 2 * nearest), limit)  # a place is in reach
        prize[:, 0] = 0
        return self.pack(position=position, prize=prize, limit=limit, rounded=np.zeros(count))

    def instance_error(self, inputs: Floats) -> str | None:
        if (inputs[:, 2] < 0).any():
            return f"expected prizes of 0 or more, got {inputs[:, 2].min():g}"
        if inputs[0, 3] < 0:
            return f"expected a limit of 0 or more, got {inputs[0, 3]:g}"
        return None

    def rounded_points(self, inputs: Floats) -> Floats | None:
        return inputs[:, :2] if inputs[0, -1] else None  # the last number is `rounded`

    def start(self, instance: Floats) -> State:
        state = self.unpack(instance)
        xp = array_namespace(instance)
        last = xp.zeros_like(state["limit"], dtype=xp.int64)
        left = with_tolerance(state["limit"])
        unvisited = ~is_at(last, instance.shape[1])
        return {**state, "left": left, "unvisited": unvisited, "last": last}

    def _distances(self, state: State) -> tuple[Floats, Floats]:
        """Return two arrays `(B, n)`: distances from the current place, and distances to the depot.

        If distances are rounded, the direct way from a place to the depot may be longer than a way
        through unvisited places. We then return the length of the shortest way.
        """
        from ptrnet.problems import rollouts  # needs numba, so import it only here

        position, rounded = state["position"], state["rounded"]
        here = at(position, state["last"])[:, None]
        there = dist_or_rounded(position, here, rounded[:, None])
        return there, rollouts.ways_back(position, rounded, state["unvisited"])

    def allowed(self, state: State) -> NDArray[np.bool_]:
        there, back = self._distances(state)
        allowed: NDArray[np.bool_] = state["unvisited"] & (there + back <= state["left"][:, None])
        return allowed

    def remaining(self, state: State) -> NDArray[np.bool_]:
        return self.allowed(state)

    def prizes_by_rule(self, state: State) -> Floats:
        """Return for each place the sum of prizes `(B, n)` if we go there, and then follow a rule.

        The rule goes to the place with the largest ratio of prize to distance. The sum is 0 for
        places that are not allowed.
        """
        from ptrnet.problems import rollouts  # needs numba, so import it only here

        names = ("position", "prize", "rounded", "unvisited", "last", "left")
        prizes: Floats = rollouts.prizes(*(state[name] for name in names), self.allowed(state))
        return prizes

    def features(self, state: State) -> tuple[Floats, Floats]:
        xp = array_namespace(state["limit"])
        limit = xp.where(state["limit"] > 0, state["limit"], 1.0)[:, None]
        there, back = (part / limit for part in self._distances(state))
        left = state["left"][:, None] / limit
        relative = (state["position"] - state["position"][:, :1]) / limit[..., None]
        here = at(relative, state["last"])
        home = dist(here[:, None], relative[:, :1])
        is_allowed = self.allowed(state)
        prize = xp.where(is_allowed, state["prize"], 0.0)
        prize = prize / xp.clip(xp.max(prize, axis=1, keepdims=True), min=1e-12)
        by_rule = self.prizes_by_rule(state)
        most = xp.clip(xp.max(by_rule, axis=1, keepdims=True), min=1e-12)
        lost = (most - by_rule) / most
        of_places = [
            *coordinates(relative),
            *coordinates(relative - here[:, None]),
            there,
            back,
            there + back - home,
            xp.clip(left - there - back, min=0.0),
            prize,
            lost,
            xp.log(lost + 1e-3) / 3,
        ]
        # The network does not encode places out of reach. Set their features to 0, because they may
        # be too large.
        of_places = [xp.where(is_allowed, part, 0.0) for part in of_places]
        of_whole = [
            left[:, 0],
            home[:, 0],
            left[:, 0] - home[:, 0],
            *coordinates(here),
            mean(is_allowed),
        ]
        return columns(of_places), columns(of_whole)

    def step(self, state: State, choice: Indices) -> State:
        there, _ = self._distances(state)
        unvisited = state["unvisited"] & ~is_at(choice, there.shape[1])
        return {
            **state,
            "left": state["left"] - at(there, choice),
            "unvisited": unvisited,
            "last": choice,
        }

    def canonicalize(self, inputs: Floats, answers: Sequence[Indices]) -> Sequence[Indices]:
        """Begin each tour at the end that is nearer to the depot.

        An answer may end only if no place is allowed next. So a tour is not reversed if another
        place could follow its new end.
        """
        rows, turned = list(answers), {}
        for k, (instance, answer) in enumerate(zip(inputs, rows, strict=True)):
            ends = dist(instance[answer[[0, -1]], :2], instance[0, :2]) if len(answer) else (0, 0)
            if ends[0] > ends[1]:
                turned[k] = answer[::-1]
        errors = self.answer_errors(inputs[list(turned)], list(turned.values()))
        for (k, answer), error in zip(turned.items(), errors, strict=True):
            if error is None:
                rows[k] = answer
        return rows

    def improve(self, example: Example, outputs: Indices) -> Indices:
        """Return the tour after moves that shorten it and places that then fit into it."""
        from ptrnet.labellers import local_search
        from ptrnet.labellers.best_tour import lengthened

        inputs = example.inputs
        if len(inputs) > local_search.ALL_NEAR or not len(outputs):
            return outputs
        matrix, prize = dist_matrix(inputs), np.ascontiguousarray(inputs[:, 2])
        limit = with_tolerance(float(inputs[0, 3]))
        tour = np.insert(outputs, 0, 0)
        while True:
            tour = tour[local_search.improved(matrix[np.ix_(tour, tour)], np.arange(len(tour)))]
            tour = np.roll(tour, -int(np.argmax(tour == 0)))
            after = np.roll(tour, -1)
            legs = matrix[tour, after]
            # The length that each place adds between each place of the tour and the next one.
            added = matrix[tour] + matrix[after] - legs[:, None]
            least = added.min(0)
            fits = (least <= limit - legs.sum()) & (prize > 0)
            fits[tour] = False
            if not fits.any():
                break
            worth = np.where(fits, prize / np.maximum(least, 1e-300), -1)
            chosen = int(np.argmax(worth))
            tour = np.insert(tour, int(added[:, chosen].argmin()) + 1, chosen)
        better = np.array(lengthened(tour.tolist(), matrix, prize, limit)[1:], np.int64)
        worse = prize[better].sum() < prize[outputs].sum()
        is_valid = self.answer_errors(inputs, [better]) == [None]
        return outputs if worse or not is_valid else better

    def cost(self, instance: Floats, answers: Indices) -> Floats:
        prize = self.unpack(instance)["prize"]
        return -(prize[:, 0] + np.take_along_axis(prize, answers, 1).sum(1))

    def length(self, inputs: Floats, outputs: Indices) -> float:
        """Return the length of the tour of an answer."""
        return float(path_length(self.unpack(inputs[None]), outputs[None])[0])

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        return Drawing(inputs[:, :2], route_lines(inputs, outputs))


TASK = Orienteering
