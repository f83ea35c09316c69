"""Numbers with the range that they may well be in."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Z = 1.959963984540054  # of the 95% interval


@dataclass(frozen=True)
class Measure:
    """A mean over `count` instances with its 95% interval.

    The value is None where nothing could be measured, or, with `fail`, where the paper's rule
    reports FAIL; the interval is None where one instance alone gives none.
    """

    value: float | None
    low: float | None
    high: float | None
    count: int
    fail: bool = False

    def table(self) -> dict[str, Any]:
        """As the command line's JSON shows it."""
        found = {"value": self.value, "low": self.low, "high": self.high, "count": self.count}
        return {**found, "fail": True} if self.fail else found


def share(right: ArrayLike) -> Measure:
    """The share of True, with Wilson's interval (1927), which is sound near 0 and 1 too."""
    values = np.asarray(right, bool)
    n = len(values)
    if not n:
        return Measure(None, None, None, 0)
    p = float(values.mean())
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return Measure(p, max(0.0, min(p, middle - half)), min(1.0, max(p, middle + half)), n)


def mean(values: ArrayLike) -> Measure:
    """The mean, with the interval of the normal distribution."""
    array = np.asarray(values, np.float64)
    n = len(array)
    if not n:
        return Measure(None, None, None, 0)
    value = float(array.mean())
    if n == 1:
        return Measure(value, None, None, 1)
    half = Z * float(array.std(ddof=1)) / math.sqrt(n)
    return Measure(value, value - half, value + half, n)
