"""The reliability diagram: how often a model is right, by the probability that it gives."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.metrics import Moments
from ptrnet.metrics.calibration import BINS, bin_of
from ptrnet.plots.answer import ANSWER_COLOR, QUIET_COLOR, quieten
from ptrnet.types import Floats, Indices


def draw_reliability(
    ax: Any,
    probabilities: Floats,
    right: NDArray[np.bool_],
    subject: str,
    groups: Indices | None = None,
    weights: Floats | None = None,
) -> None:
    """Draw the share of right claims in each bin of probabilities, with its interval.

    A claim is a statement to which the model gives a probability. The number at each mark is the
    number of claims in the bin.

    Args:
        probabilities: `(num_claims,)` the model's probability of each claim.
        right: `(num_claims,)` whether each claim is right.
        subject: what the claims say, for the axes' names, such as "the answer is right".
        groups: `(num_claims,)` the codes of groups of claims, which intervals take as observations.
        weights: `(num_claims,)`, what each claim counts. One of weight 0 is left out.
    """
    bins = bin_of(probabilities)
    ax.plot([0, 1], [0, 1], "--", color=QUIET_COLOR, lw=1, label="perfectly calibrated")
    for b in range(BINS):
        inside = bins == b
        of_groups, of_claims = (
            None if part is None else part[inside] for part in (groups, weights)
        )
        measure = Moments.of(right[inside], of_groups, of_claims).measure()
        if measure.value is None or measure.low is None or measure.high is None:
            continue
        x, y = float(np.average(probabilities[inside], weights=of_claims)), measure.value
        errors = [[y - measure.low], [measure.high - y]]
        ax.errorbar(x, y, yerr=errors, fmt="o", color=ANSWER_COLOR, ms=4.5, capsize=2.5, lw=1.2)
        ax.annotate(
            f"{measure.count:,}",
            (x, measure.low),
            xytext=(0, -4),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=7,
            color=QUIET_COLOR,
        )
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.06, 1.02), aspect="equal")
    ax.set_xlabel(f"probability that {subject}", fontsize=9)
    ax.set_ylabel("share that was right, with its count", fontsize=9)
    quieten(ax)
    ax.legend(loc="upper left", frameon=False, fontsize=9)
