"""Measured numbers with their 95% intervals."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A metric of `(B,)` answers: right or wrong, or a float, NaN where it does not speak of an answer.
Scores = NDArray[np.bool_] | NDArray[np.float64]

Z = 1.959963984540054  # standard errors on either side in a 95% interval


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
        """As JSON has it, where a number that is not finite is null."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        finite = {k: v if v is None or math.isfinite(v) else None for k, v in numbers.items()}
        row = {**finite, "count": self.count}
        return {**row, "fail": True} if self.fail else row

    @classmethod
    def from_table(cls, row: Mapping[str, Any]) -> Self:
        """The measure of which `table` made the row; other keys may stand beside its own."""
        return cls(row["value"], row["low"], row["high"], row["count"], row.get("fail", False))

    def value_and_interval(self, digits: int, scale: float = 1) -> tuple[str, str]:
        """The value and its interval as texts, `0.90` and `0.88 to 0.92`.

        Where the value is None, its text is `FAIL` or `-`; where there is no interval, its text is
        empty.

        Args:
            digits: after the point.
            scale: what the numbers are multiplied by: 100 for percent.
        """
        if self.value is None:
            return "FAIL" if self.fail else "-", ""
        value = f"{scale * self.value:.{digits}f}"
        if self.low is None or self.high is None:
            return value, ""
        return value, f"{scale * self.low:.{digits}f} to {scale * self.high:.{digits}f}"

    def text(self, digits: int, scale: float = 1) -> str:
        """The value with its interval: `0.90 (0.88 to 0.92)`; arguments as in the above."""
        value, interval = self.value_and_interval(digits, scale)
        return f"{value} ({interval})" if interval else value


def share(flags: ArrayLike) -> Measure:
    """The share of True, with Wilson's interval (1927), which is sound near 0 and 1 too."""
    values = np.asarray(flags, bool)
    n = len(values)
    if not n:
        return Measure(None, None, None, 0)
    p = float(values.mean())
    center = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half_width = Z / (1 + Z**2 / n) * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return Measure(
        p, max(0.0, min(p, center - half_width)), min(1.0, max(p, center + half_width)), n
    )


def mean(values: ArrayLike) -> Measure:
    """The mean, with the interval of the normal distribution."""
    array = np.asarray(values, np.float64)
    n = len(array)
    if not n:
        return Measure(None, None, None, 0)
    value = float(array.mean())
    if n == 1:
        return Measure(value, None, None, 1)
    half_width = Z * float(array.std(ddof=1)) / math.sqrt(n)
    return Measure(value, value - half_width, value + half_width, n)


def summarize(scores: Mapping[str, Scores]) -> dict[str, Measure]:
    """For each metric the share that is right, or the mean of the floats that are not NaN."""
    return {
        name: share(values) if values.dtype == bool else mean(values[~np.isnan(values)])
        for name, values in scores.items()
    }
