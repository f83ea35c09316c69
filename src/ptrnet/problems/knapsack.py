"""The knapsack problem: choose items with the largest total value within a capacity."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from ptrnet.geometry.sampling import MIXED, sample_points
from ptrnet.geometry.tolerance import with_tolerance
from ptrnet.problems.base import Problem, State, at, columns, is_at, mean
from ptrnet.settings import setting
from ptrnet.tasks.base import Drawing
from ptrnet.types import Floats, Indices

SMALLEST = 0.01  # weight and value of random items with `points` "mixed"


@dataclass(frozen=True)
class Knapsack(Problem):
    """The problem `knapsack`: an answer lists the items to take. The cost is minus the value.

    Fields of an instance: `weight` and `value` of each item, both 0 or more, and the `capacity`. A
    knapsack may exceed the capacity by a billionth (at most 0.5), so that 0.1 and 0.2 fit into 0.3.
    In random instances, weights and values are uniform in [0, 1], and the capacity is a quarter of
    `n` by default (Kwon et al. 2020).

    With `points` "mixed", the pairs of weight and value are points of many kinds (correlated, in
    clusters, with ties), and each capacity is a random share of the total weight.
    """

    name: ClassVar[str] = "knapsack"
    element_fields: ClassVar[dict[str, int]] = {"weight": 1, "value": 1}
    shared_fields: ClassVar[dict[str, int]] = {"capacity": 1}
    array_api: ClassVar[bool] = True
    mixes: ClassVar[bool] = True
    stats: ClassVar[tuple[str, ...]] = ("weight",)
    labellers: ClassVar[tuple[str, ...]] = ("dynamic-programming",)

    fill: float = setting(0.25, "capacity of random instances, as a share of n", gt=0, le=1)

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        if self.points == MIXED:
            weight, value = np.moveaxis(sample_points(MIXED, rng, (count, n, 2)), 2, 0) + SMALLEST
            capacity = rng.uniform(0.05, 0.9, count) * weight.sum(1)
            capacity = np.maximum(capacity, weight.min(1))  # so that an item fits
        else:
            weight, value = rng.random((2, count, n))
            capacity = np.full(count, self.fill * n)
        return self.pack(weight=weight, value=value, capacity=capacity)

    def start(self, instance: Floats) -> State:
        state = self.unpack(instance)
        xp = array_namespace(instance)
        left = with_tolerance(state.pop("capacity"))
        return {**state, "left": left, "taken": xp.zeros_like(state["weight"], dtype=xp.bool)}

    def allowed(self, state: State) -> NDArray[np.bool_]:
        allowed: NDArray[np.bool_] = ~state["taken"] & (state["weight"] <= state["left"][:, None])
        return allowed

    def remaining(self, state: State) -> NDArray[np.bool_]:
        return self.allowed(state)

    def values_by_rule(self, state: State) -> Floats:
        """Return for each item the value `(B, n)` gained if we take this item, then follow a rule.

        The rule goes through the items by value per weight, highest first, and takes each item that
        still fits. For items that do not fit into the capacity that is left, the result is 0.
        """
        from ptrnet.problems import rollouts  # needs numba, so import it only here

        weight, value = state["weight"], state["value"]
        weight = array_namespace(weight).where(state["taken"], np.inf, weight)
        gained: Floats = rollouts.values(weight, value, _density(weight, value), state["left"])
        return gained

    def features(self, state: State) -> tuple[Floats, Floats]:
        weight, value, left = (state[name] for name in ("weight", "value", "left"))
        xp = array_namespace(weight)
        fits = self.allowed(state)
        largest = xp.max(xp.where(fits, value, 0.0), axis=1, keepdims=True)
        largest = xp.where(largest > 0, largest, 1.0)
        worth = xp.where(fits, value / largest, 0.0)
        by_rule = self.values_by_rule(state)
        most = xp.max(by_rule, axis=1, keepdims=True)
        lost = xp.where(fits, (most - by_rule) / largest, 1.0)
        share = xp.where(fits, weight / xp.where(left > 0, left, 1.0)[:, None], 1.0)
        density = xp.log((worth + 1e-6) / (share + 1e-6))
        total = xp.log(xp.sum(xp.where(fits, share, 0.0), axis=1) + 1e-2)
        of_items = [share, worth, density, lost, -xp.log(lost + 1e-3)]
        return columns(of_items), columns([total, mean(fits)])

    def step(self, state: State, choice: Indices) -> State:
        taken = state["taken"] | is_at(choice, state["taken"].shape[1])
        return {**state, "taken": taken, "left": state["left"] - at(state["weight"], choice)}

    def instance_error(self, inputs: Floats) -> str | None:
        if (inputs < 0).any():
            return "weights, values and capacity must be 0 or more"
        return None

    def canonicalize(self, inputs: Floats, answers: Sequence[Indices]) -> Sequence[Indices]:
        """Sort the items of each answer by value per weight, highest first.

        A network that learns from sorted answers first takes items that are nearly always right.
        The network decides last which items fill the rest of the knapsack.
        """
        density = _density(inputs[..., 0], inputs[..., 1])
        pairs = zip(density, answers, strict=True)
        return [items[np.argsort(-of_one[items], kind="stable")] for of_one, items in pairs]

    def cost(self, instance: Floats, answers: Indices) -> Floats:
        return -np.take_along_axis(self.unpack(instance)["value"], answers, 1).sum(1)

    def weight(self, inputs: Floats, outputs: Indices) -> float:
        """Return the weight of the items in an answer."""
        return float(inputs[outputs, 0].sum())

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """Draw all items by weight and value, without lines. Chosen items have another color."""
        return Drawing(inputs[:, :2], [], equal_axes=False, axes=("weight", "value"))


def _density(weight: Any, value: Any) -> Any:
    """Return the value per weight, which may be infinite for items without a weight."""
    with np.errstate(over="ignore"):
        return value / array_namespace(weight).clip(weight, min=1e-300)


TASK = Knapsack
