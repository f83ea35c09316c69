"""Random numbers, drawn in bulk: a grammar needs thousands, and single draws of NumPy are slow."""

import math
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Dice:
    """A source of random numbers that depends only on `rng`."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._numbers: list[float] = []

    def random(self) -> float:
        """Return a number from 0 to 1."""
        if not self._numbers:
            self._numbers = self.rng.random(256).tolist()
        return self._numbers.pop()

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random() < probability

    def between(self, low: float, high: float) -> float:
        """Return a number from `low` to `high`; `low` if `high` is smaller."""
        return low + max(high - low, 0.0) * self.random()

    def log_between(self, low: float, high: float) -> float:
        """Return a number from `low` to `high` whose logarithm is uniform."""
        return low * (high / low) ** self.random()

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        return low + int((high - low + 1) * self.random())

    def pick(self, *items: T) -> T:
        """Return one of the items."""
        return items[int(len(items) * self.random())]

    def geometric(self, mean: float) -> int:
        """Return an integer of at least 1 with a geometric distribution."""
        if mean <= 1.01:
            return 1
        return 1 + int(math.log(1 - self.random()) / math.log(1 - 1 / mean))
