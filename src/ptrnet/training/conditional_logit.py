"""Scores of elements that are linear in their features: the conditional logit (McFadden 1974).

We fit a conditional logit to choices, to mix it with a network (`ptrnet.training.mixture`). We also
fit one to orders, to see whether a linear score explains them.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, minimize

from ptrnet.data.checks import required_answer
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Example, Floats, Indices

# Factor of the penalty on squared weights. If the elements of a set never differ in a feature, the
# penalty makes the weight of this feature 0.
RIDGE = 1e-4
# The maximum number of pairs to read. A pair is two neighbours in an answer. More pairs would not
# tell more about the order.
MAX_PAIRS = 10_000
LINEAR = 0.99  # an order is linear if a linear score orders at least this share of pairs right


def fit_logit(examples: Sequence[Example], task: Task) -> Floats:
    """Return the weights `(d,)` of a conditional logit, fitted to choices by maximum likelihood.

    The probability of an element is `softmax(x b)` over the elements of its instance, where `x` are
    the normalized features and `b` the weights. See `fit_weights` for the penalty on the weights.

    Args:
        examples: instances with their weights. The answer of each instance is the element that was
            chosen.
        task: the task of the instances, which normalizes the features.
    """
    x = np.concatenate([task.normalize(example.inputs) for example in examples])
    sizes = np.array([len(example.inputs) for example in examples])
    chosen = np.concatenate([required_answer(example, task) for example in examples])
    counts = np.array([example.weight for example in examples])
    return fit_weights(x, sizes, chosen, counts, task.facts.signs)


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
    x = np.stack([fitted, np.zeros_like(fitted)], 1).reshape(-1, fitted.shape[1])
    weights = fit_weights(x, np.full(len(fitted), 2), np.zeros(len(fitted), np.int64))
    return bool((tested @ weights > 0).mean() >= LINEAR)


def fit_weights(
    x: Floats,
    sizes: Indices,
    chosen: Indices,
    counts: Floats | None = None,
    signs: Indices | None = None,
) -> Floats:
    """Return the weights `(d,)` of a conditional logit, fitted to choices by maximum likelihood.

    The probability of an element is `softmax(x b)` over the elements of its instance, where `b` are
    the weights. The loss is the sum of the negative log-likelihoods, plus RIDGE times the sum of
    the squared weights.

    Args:
        x: `(n, d)`, the features of all elements of B instances, one instance after another.
        sizes: `(B,)`, the number of elements of each instance.
        chosen: `(B,)`, the index of the chosen element in each instance.
        counts: `(B,)`, how often each instance counts. None if each counts once.
        signs: `(d,)`, the signs that weights must have if they are not 0; see `Schema.signs`.
    """
    counts = np.ones(len(sizes)) if counts is None else counts
    of_elements = np.repeat(counts, sizes)
    starts = np.cumsum(sizes) - sizes
    of_chosen = np.zeros(len(x))
    of_chosen[starts + chosen] = counts

    def loss(weights: Floats) -> tuple[float, Floats]:
        utilities = x @ weights
        utilities -= np.repeat(np.maximum.reduceat(utilities, starts), sizes)
        sums = np.add.reduceat(np.exp(utilities), starts)
        p = np.exp(utilities) / np.repeat(sums, sizes)
        value = (counts * np.log(sums)).sum() - utilities @ of_chosen + RIDGE * weights @ weights
        return value, x.T @ (of_elements * p - of_chosen) + 2 * RIDGE * weights

    start = np.zeros(x.shape[1])
    bounds = None if signs is None else bounds_of(signs)
    found: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return found


def bounds_of(signs: Indices) -> Bounds:
    """Return the bounds of weights with given signs; see `Schema.signs`."""
    return Bounds(np.where(signs > 0, 0, -np.inf), np.where(signs < 0, 0, np.inf))
