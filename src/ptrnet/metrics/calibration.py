"""Calibration: whether what a model gives a probability of 0.8 is right in 8 of 10 cases."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ptrnet.metrics.interval import Measure, Moments, Scores
from ptrnet.types import Floats, Indices

BINS = 10  # of equal width, 0 to 1
GAPS = tuple(f"gap {b}" for b in range(BINS))


def bin_of(probabilities: Floats) -> Indices:
    """Return the bin of each probability; a bin includes its lower edge, the last both."""
    return np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)


def gaps_by_bin(confidence: Floats, right: NDArray[np.bool_]) -> dict[str, Scores]:
    """Return by bin `(B,)` confidence minus right (1 or 0), NaN outside of the bin.

    The calibration error follows from the moments of these columns, so evaluations in chunks can
    add them up.
    """
    bins, gaps = bin_of(confidence), confidence - right
    return {name: np.where(bins == b, gaps, np.nan) for b, name in enumerate(GAPS)}


def error_of(moments: Mapping[str, Moments]) -> Measure:
    """Return the expected calibration error (Guo et al. 2017) from the moments of `gaps_by_bin`.

    It is the mean over B instances of the absolute difference, in the bin of the instance, between
    the mean confidence and the share that is right. The interval takes the signs of these
    differences as known.
    """
    total = Moments(False)
    for gaps in moments.values():
        total += replace(gaps, total=abs(gaps.total))  # gaps of the other sign: the same squares
    measure = total.measure()
    return measure if measure.low is None else replace(measure, low=max(0.0, measure.low))


def first_claims(
    grades: Sequence[Floats], probabilities: Sequence[Floats]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the probability of each instance's likeliest first element, and whether it is right.

    Args:
        grades: `(n,)` of each instance's elements; an element of the highest one is right.
        probabilities: `(n,)` that the element stands first.
    """
    likeliest = [int(p.argmax()) for p in probabilities]
    right = [g[k] == g.max() for g, k in zip(grades, likeliest, strict=True)]
    claimed = [p[k] for p, k in zip(probabilities, likeliest, strict=True)]
    return np.array(claimed, float), np.array(right, bool)


def member_claims(
    grades: Sequence[Floats], probabilities: Sequence[Floats]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the probability of each element of all instances, and whether it is a member.

    Args:
        grades: `(n,)` of each instance's elements, above 0 for members.
        probabilities: `(n,)` that the element is a member.
    """
    return np.concatenate([*probabilities, []]), np.concatenate([*grades, []]) > 0
