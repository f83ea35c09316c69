"""Calibration: if a model gives answers a probability of 0.8, are about 8 in 10 of them right?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ptrnet.metrics import Measure, Moments, Scores
from ptrnet.types import Floats, Indices

BINS = 10  # bins of equal width from 0 to 1
GAPS = tuple(f"gap {b}" for b in range(BINS))


def bin_of(probabilities: Floats) -> Indices:
    """Return the bin of each probability.

    A bin includes its lower edge. The last bin also includes 1.
    """
    return np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)


def gaps_by_bin(confidence: Floats, right: NDArray[np.bool_]) -> dict[str, Scores]:
    """Return a column `(B,)` for each bin: `confidence - right` for claims in the bin, else NaN.

    A claim is a statement to which the model gives a probability, the confidence. The calibration
    error follows from the moments of these columns. An evaluation in chunks can therefore add up
    moments, and need not keep the columns.
    """
    bins, gaps = bin_of(confidence), confidence - right
    return {name: np.where(bins == b, gaps, np.nan) for b, name in enumerate(GAPS)}


def error_of(moments: Mapping[str, Moments]) -> Measure:
    """Return the expected calibration error (Guo et al. 2017) from the moments of `gaps_by_bin`.

    In each bin, take the absolute difference between the mean confidence and the share of claims
    that are right. The error is the mean of these differences, weighted by the number of claims in
    the bin. The interval assumes that we know in which bins the mean confidence is too high.
    """
    total = Moments(False)
    for gaps in moments.values():
        # If the total is negative, change the sign of all gaps of the bin. This makes the total
        # positive, and does not change the squared deviations of the gaps from their mean.
        total += -gaps if gaps.total < 0 else gaps
    measure = total.measure()
    return measure if measure.low is None else replace(measure, low=max(0.0, measure.low))


def first_claims(
    grades: Sequence[Floats], probabilities: Sequence[Floats]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return each instance's highest probability, and whether the element that has it is right.

    Args:
        grades: for each instance the grades `(n,)` of its elements. An element is right if it has
            the highest grade of the instance.
        probabilities: for each instance the probabilities `(n,)` that each element comes first.
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
        grades: for each instance the grades `(n,)` of its elements. Members have a grade above 0.
        probabilities: for each instance the probabilities `(n,)` that each element is a member.
    """
    return np.concatenate([*probabilities, []]), np.concatenate([*grades, []]) > 0
