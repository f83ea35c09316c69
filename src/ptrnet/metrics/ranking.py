"""Rankings against grades: NDCG, reciprocal rank, average precision, Kendall's tau with ties.

Each function measures one order of the n elements of an instance, best first, against their
grades `(n,)`. An element is relevant if its grade is above 0. If every order is right, the value
is 1: all grades are equal, or, for the reciprocal rank and the average precision, no element is
relevant. LightGBM counts such queries in the same way.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from ptrnet.metrics.interval import Scores
from ptrnet.types import Floats, Indices

CUTOFFS = (1, 5, 10)  # of NDCG


def ndcg(grades: Floats, order: Indices, k: int) -> float:
    """Normalised discounted cumulative gain of the first k elements, with gains `2^grade - 1`.

    That is the definition of Burges et al. (2005). scikit-learn's gains are the grades themselves.
    """
    positive = np.maximum(grades, 0)
    # Divided by 2^max, because 2^grade may be infinite: a common factor of all gains cancels.
    gains = np.exp2(positive - positive.max()) - np.exp2(-positive.max())
    discounts = 1 / np.log2(np.arange(2, min(k, len(gains)) + 2))
    ideal = np.sort(gains)[::-1][: len(discounts)] @ discounts
    return float(gains[order[:k]] @ discounts / ideal) if ideal > 0 else 1.0


def reciprocal_rank(grades: Floats, order: Indices) -> float:
    """1 / the place of the first relevant element, counted from 1."""
    relevant = grades[order] > 0
    return float(1 / (1 + relevant.argmax())) if relevant.any() else 1.0


def average_precision(grades: Floats, order: Indices) -> float:
    """The mean, over the relevant elements, of the share of relevant ones up to their place."""
    places = np.flatnonzero(grades[order] > 0)
    return float((np.arange(1, len(places) + 1) / (places + 1)).mean()) if len(places) else 1.0


def kendall_tau(grades: Floats, order: Indices) -> float:
    """Kendall's rank correlation (1938), 1 to -1; with ties in the grades his tau-b (1945)."""
    in_order = grades[order]
    first, second = np.triu_indices(len(in_order), 1)
    signs = np.sign(in_order[first] - in_order[second])
    num_untied = np.count_nonzero(signs)
    return float(signs.sum() / np.sqrt(len(signs) * num_untied)) if num_untied else 1.0


def score_orders(grades: Sequence[Floats], orders: Iterable[Indices]) -> dict[str, Scores]:
    """`ndcg@k`, `mrr`, `map` and `kendall_tau` of the orders of B instances.

    An answer that is not an order of all elements has the worst values: 0, and tau -1.
    """
    names = (*(f"ndcg@{k}" for k in CUTOFFS), "mrr", "map", "kendall_tau")
    rows = []
    for of_elements, order in zip(grades, orders, strict=True):
        if np.array_equal(np.sort(order), np.arange(len(of_elements))):
            rows.append(
                [
                    *(ndcg(of_elements, order, k) for k in CUTOFFS),
                    reciprocal_rank(of_elements, order),
                    average_precision(of_elements, order),
                    kendall_tau(of_elements, order),
                ]
            )
        else:
            rows.append([0.0] * (len(names) - 1) + [-1.0])
    columns = np.array(rows, float).reshape(-1, len(names)).T
    return dict(zip(names, columns, strict=True))
