"""The metrics of all tasks, as pure functions. This file has their means and 95% intervals.

Metrics accept valid and invalid answers, so the caller need not check the answers.

Instances of a group, such as the choices of one person, are alike. If the groups are known, a
standard error is computed from one sum for each group, because only groups are independent (Liang
and Zeger 1986). If instances have weights, means are weighted. An instance without a group is then
a group of its own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptrnet.types import Floats, Indices

# The values `(B,)` of a metric: booleans (right or wrong), or floats. NaN means not defined.
Scores = NDArray[np.bool_] | NDArray[np.float64]

Z = 1.959963984540054  # a 95% interval reaches this many standard errors to either side


@dataclass(frozen=True)
class Measure:
    """A mean of `count` scores (numbers, or flags for right and wrong) with its 95% interval.

    The value is None if there are no scores. It is also None if `fail` is True: in this case,
    Vinyals et al. (2015) print FAIL (see `ptrnet.metrics.polygon`). `low` and `high` are None if
    the value is None. They are also None if there is only one score, unless this score is a flag.
    """

    value: float | None
    low: float | None
    high: float | None
    count: int
    fail: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the measure as a JSON object. Numbers that are not finite become null."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        finite = {k: v if v is None or math.isfinite(v) else None for k, v in numbers.items()}
        row = {**finite, "count": self.count}
        return {**row, "fail": True} if self.fail else row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        """Return the measure that `to_dict` wrote. Other keys of the row are ignored."""
        return cls(row["value"], row["low"], row["high"], row["count"], row.get("fail", False))

    def value_and_interval(self, digits: int, scale: float = 1) -> tuple[str, str]:
        """Return the value and its interval as texts, `0.90` and `0.88 to 0.92`.

        If the value is None, its text is `FAIL` or `-`. If the interval is None, its text is empty.
        A number that rounds to zero has no sign.

        Args:
            digits: the number of digits after the decimal point.
            scale: a factor for the numbers, such as 100 for percent.
        """
        if self.value is None:
            return "FAIL" if self.fail else "-", ""
        value = f"{scale * self.value:z.{digits}f}"
        if self.low is None or self.high is None:
            return value, ""
        return value, f"{scale * self.low:z.{digits}f} to {scale * self.high:z.{digits}f}"

    def text(self, digits: int, scale: float = 1) -> str:
        """Return the value with its interval, `0.90 (0.88 to 0.92)`.

        The arguments are those of `value_and_interval`.
        """
        value, interval = self.value_and_interval(digits, scale)
        return f"{value} ({interval})" if interval else value


@dataclass(frozen=True)
class Moments:
    """The moments of a metric's scores: all that `measure` needs, so no scores need be kept."""

    # Whether the scores are booleans (right or wrong). Their mean is the share of True.
    is_flag: bool
    count: int = 0  # the number of scores that are not NaN
    total: float = 0.0  # the weighted sum of the scores
    # The weighted sum of the squared differences between scores and their mean.
    squares: float = 0.0
    # The sum of the weights and the weighted sum of the scores in each group, `(2, G)`. None if
    # there are no groups. Only add moments that have the same groups in the same order.
    groups: Floats | None = field(default=None, compare=False)
    weight: float = math.nan  # the sum of the weights of the scores, by default their count

    def __post_init__(self) -> None:
        if math.isnan(self.weight):
            object.__setattr__(self, "weight", float(self.count))

    @classmethod
    def of(
        cls, scores: Scores, groups: Indices | None = None, weights: Floats | None = None
    ) -> Self:
        """Return the moments of `(B,)` scores, with the codes of their groups and their weights.

        A score of weight 0 does not count.
        """
        known: NDArray[np.bool_] = ~np.isnan(scores)
        sums: Floats | None = None
        if weights is not None:
            known &= weights > 0
            groups = np.arange(len(scores)) if groups is None else groups
        values: Floats = scores[known].astype(np.float64)
        of_values = np.ones(len(values)) if weights is None else weights[known]
        with np.errstate(over="ignore", invalid="ignore"):  # scores may be infinite
            weight, total = float(of_values.sum()), float((of_values * values).sum())
            squares = np.square(values - total / (weight or 1))
            if groups is not None:
                codes, group = np.unique(groups, return_inverse=True)
                parts = (of_values, of_values * values)
                sums = np.array([np.bincount(group[known], w, len(codes)) for w in parts])
        spread = float((of_values * squares).sum())
        return cls(scores.dtype == bool, len(values), total, spread, sums, weight)

    def __neg__(self) -> "Moments":
        """Return the moments of the scores with the opposite sign."""
        groups = None if self.groups is None else self.groups * [[1], [-1]]
        return replace(self, total=-self.total, groups=groups)

    def __add__(self, other: Self) -> "Moments":
        """Return the moments of both sets of scores together (Chan, Golub and LeVeque 1979)."""
        if not (self.count and other.count):
            return self if self.count else other
        count, weight = self.count + other.count, self.weight + other.weight
        difference = other.total / other.weight - self.total / self.weight
        # ** would raise OverflowError if the square is infinite.
        between = difference * difference * (self.weight / weight) * other.weight
        total, squares = self.total + other.total, self.squares + other.squares + between
        has_groups = self.groups is not None and other.groups is not None
        groups = self.groups + other.groups if has_groups else None  # type: ignore[operator]
        return Moments(self.is_flag, count, total, squares, groups, weight)

    def measure(self) -> Measure:
        """Return the mean with its normal interval. For flags, use Wilson's interval (1927).

        Wilson's interval is sound even for shares near 0 and 1, unlike the normal interval. If
        there are groups, it is the interval of as many independent flags as have the same standard
        error.
        """
        if not self.count:
            return Measure(None, None, None, 0)
        mean = self.total / self.weight
        if self.is_flag:
            n = self._effective_count()
            center = (mean + Z**2 / (2 * n)) / (1 + Z**2 / n)
            half_width = Z / (1 + Z**2 / n) * math.sqrt(mean * (1 - mean) / n + Z**2 / (4 * n**2))
            low, high = max(0.0, min(mean, center - half_width)), center + half_width
            return Measure(mean, low, min(1.0, max(mean, high)), self.count)
        if self._num_independent() == 1:
            return Measure(mean, None, None, self.count)
        half_width = Z * self.standard_error()
        return Measure(mean, mean - half_width, mean + half_width, self.count)

    def _num_independent(self) -> int:
        return self.count if self.groups is None else int(np.count_nonzero(self.groups[0]))

    def standard_error(self) -> float:
        """Return the standard error of the mean; 0 for a single score or a single group."""
        n = self._num_independent()
        if n < 2:
            return 0.0
        if self.groups is None:
            return math.sqrt(self.squares / self.weight / (n - 1))
        weights, totals = self.groups
        with np.errstate(over="ignore", invalid="ignore"):
            squares = float(np.square(totals - self.total / self.weight * weights).sum())
        return math.sqrt(squares / (n - 1) * n) / self.weight

    def _effective_count(self) -> float:
        """Return the number of independent flags whose mean has the same standard error.

        The number is at most `count`. If all flags are equal, it is the number of groups.
        """
        n = self._num_independent()
        if self.groups is None or n == 1 or not self.squares:
            return n
        alone = replace(self, groups=None).standard_error()
        return self.count * (alone / max(self.standard_error(), alone)) ** 2


def moments_of(
    scores: Mapping[str, Scores], groups: Indices | None = None, weights: Floats | None = None
) -> dict[str, Moments]:
    """Return the moments of each metric's scores; see `Moments.of` for the other arguments."""
    return {name: Moments.of(values, groups, weights) for name, values in scores.items()}
