"""Scores of elements that are linear in their features: the conditional logit (McFadden 1974).

We fit a conditional logit to choices, to mix it with a network (`ptrnet.training.mixture`). We also
fit one to orders, to see whether a linear score explains them.
"""

import numpy as np
from scipy.optimize import Bounds, minimize

from ptrnet.tasks.base import Task
from ptrnet.training.sets import Sets
from ptrnet.types import Dataset, Floats, Indices

# Factor of the penalty on squared weights. If the elements of a set never differ in a feature, the
# penalty makes the weight of this feature 0.
RIDGE = 1e-4
# The maximum number of pairs to read. A pair is two neighbours in an answer. More pairs would not
# tell more about the order.
MAX_PAIRS = 10_000
LINEAR = 0.99  # an order is linear if a linear score orders at least this share of pairs right


def fit_logit(sets: Sets) -> Floats:
    """Return the weights `(d,)` of a conditional logit, fitted to choices by maximum likelihood.

    The probability of an element is `softmax(x b)` over the elements of its set, where `x` are the
    features and `b` the weights. The loss is the sum of the negative log-likelihoods, plus RIDGE
    times the sum of the squared weights. Weights have the signs of the sets, or are 0.
    """
    x, of_elements = sets.features.astype(float), np.repeat(sets.weights, sets.sizes)

    def loss(weights: Floats) -> tuple[float, Floats]:
        log_p = sets.log_probabilities(x @ weights)
        slopes = of_elements * (np.exp(log_p) - sets.targets)
        value = float(RIDGE * weights @ weights - (of_elements * sets.targets) @ log_p)
        return value, x.T @ slopes + 2 * RIDGE * weights

    start, bounds = np.zeros(x.shape[1]), bounds_of(sets.signs) if sets.signs.any() else None
    found: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return found


def has_linear_order(task: Task, examples: Dataset) -> bool:
    """Whether a score that is linear in features and log features explains the answers' order.

    We fit a linear score to half of the pairs of neighbours in the answers. The score explains the
    order if it puts at least LINEAR of the other half of the pairs in the right order.
    """
    spread, lowest = task.facts.relative_range
    differences: list[Floats] = []
    for example in examples:
        assert example.outputs is not None
        features = task.normalize(example.inputs[example.outputs])
        logs = np.log(np.maximum(1 + spread * features, lowest))
        differences += list(-np.diff(np.concatenate([features, logs], 1), axis=0))
        if len(differences) >= MAX_PAIRS:
            break
    pairs = np.array(differences[:MAX_PAIRS])
    fitted, tested = pairs[::2], pairs[1::2]
    if not len(tested):
        return False
    # Each pair is a choice between two elements. Only the difference of their features matters. So
    # the first element gets this difference as its features, and the second element gets 0.
    count = len(fitted)
    x = np.stack([fitted, np.zeros_like(fitted)], 1).reshape(2 * count, -1).astype(np.float32)
    choices = Sets(x, np.full(count, 2), np.tile([1.0, 0.0], count), np.ones(count))
    weights = fit_logit(choices)
    return bool((tested @ weights > 0).mean() >= LINEAR)


def bounds_of(signs: Indices) -> Bounds:
    """Return the bounds of weights with given signs; see `Schema.signs`."""
    return Bounds(np.where(signs > 0, 0, -np.inf), np.where(signs < 0, 0, np.inf))
