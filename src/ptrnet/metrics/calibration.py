"""Calibration: of the answers to which a model gives a probability of 0.8, are 8 in 10 right?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ptrnet.metrics.interval import Measure, Moments, Scores
from ptrnet.types import Floats, Indices

BINS = 10  # of equal width, 0 to 1
GAPS = tuple(f"gap {b}" for b in range(BINS))


def bin_of(probabilities: Floats) -> Indices:
    """Return the bin of each probability. Bins include their lower edge, the last one both."""
    return np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)


def gaps_by_bin(confidence: Floats, right: NDArray[np.bool_]) -> dict[str, Scores]:
    """Return a column `(B,)` for each bin: confidence - right if the claim is in the bin, else NaN.

    The calibration error follows from the moments of these columns. So an evaluation in chunks adds
    up moments, and keeps no columns.
    """
    bins, gaps = bin_of(confidence), confidence - right
    return {name: np.where(bins == b, gaps, np.nan) for b, name in enumerate(GAPS)}


def error_of(moments: Mapping[str, Moments]) -> Measure:
    """Return the expected calibration error (Guo et al. 2017) from the moments of `gaps_by_bin`.

    In each bin, take the absolute difference between the mean confidence and the share that is
    right. The error is the mean of these differences, weighted by the number of instances in the
    bin. The interval assumes that the signs of the differences are known.
    """
    total = Moments(False)
    for gaps in moments.values():
        # If all gaps change their sign, so does their total. The squared deviations stay the same.
        total += replace(gaps, total=abs(gaps.total))
    measure = total.measure()
    return measure if measure.low is None else replace(measure, low=max(0.0, measure.low))


def first_claims(
    grades: Sequence[Floats], probabilities: Sequence[Floats]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the probability of each instance's most likely first element, and whether it is right.

    Args:
        grades: the grades `(n,)` of each instance's elements. An element with the highest grade of
            its instance is right.
        probabilities: for each instance the probabilities `(n,)` that an element comes first.
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
        grades: the grades `(n,)` of each instance's elements; members have a grade above 0.
        probabilities: for each instance the probabilities `(n,)` that an element is a member.
    """
    return np.concatenate([*probabilities, []]), np.concatenate([*grades, []]) > 0
