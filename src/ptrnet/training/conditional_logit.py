"""Scores of elements that are linear in their features: the conditional logit (McFadden 1974).

We fit a conditional logit to choices, and mix a network's probabilities with those of the logit.
We also fit one to orders, to see whether a linear score explains them.

A network overfits a few hundred choices. A conditional logit is linear in the
features, so it does not overfit the choices. `docs/dev/own-data-defaults.md` has the measurements.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from ptrnet.data.checks import required_answer
from ptrnet.data.groups import codes_of
from ptrnet.data.streams import BatchStream, DatasetStream
from ptrnet.metrics import Moments
from ptrnet.models.base import PointerModel
from ptrnet.models.set_ptr_net import SetPtrNet
from ptrnet.solver.scoring import log_likelihoods_of
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Example, Floats, Indices

# Factor of the penalty on squared weights. If the elements of a set never differ in a feature, the
# penalty makes the weight of this feature 0.
RIDGE = 1e-4
# The maximum number of pairs to read. A pair is two neighbours in an answer. More pairs would not
# tell more about the order.
MAX_PAIRS = 10_000
LINEAR = 0.99  # an order is linear if a linear score orders at least this share of pairs right
SHARES = np.linspace(0, 1, 21)
MAX_EXAMPLES = 20_000  # more examples would not change the few weights of a logit


def mix_with_logits(
    model: PointerModel, task: Task, stream: BatchStream, parts: Sequence[Dataset]
) -> float:
    """Fit a conditional logit for each network of a model, and set the share of the logits.

    We mix the probabilities of each network with those of its logit. The share is the weight of the
    logit, the same in all mixtures. From SHARES, we choose the share that gives the validation
    examples the highest likelihood. We measure each mixture on examples that neither its network
    nor its logit learned from.

    Args:
        model: the model.
        task: the task of the choices.
        stream: the batches that the model learned from.
        parts: the validation examples; see `ptrnet.training.examples.open_valid`.

    Returns:
        The share. If the model has no logit, or there are no validation examples, the share is 0.
    """
    networks, is_shared = model.networks(), len(parts) == 1
    if not (parts and isinstance(stream, DatasetStream)):
        return 0.0
    groups = codes_of(example for part in parts for example in part)
    parts = [*parts] * len(networks) if is_shared else parts
    measured: list[Floats] = []  # (shares, examples) log-likelihoods for each network
    for k, (network, part) in enumerate(zip(networks, parts, strict=True)):
        if not (isinstance(network, SetPtrNet) and network.answer == "one"):
            return 0.0
        weights = fit_logit(stream.learned_by(k, MAX_EXAMPLES), task)
        network.logit_weights.copy_(network.logit_weights.new_tensor(weights))
        weights_of_part = np.array([example.weight for example in part])
        rows: list[Floats] = []
        for share in SHARES:
            network.logit_share.fill_(share)
            rows.append(log_likelihoods_of(network, task, part) * weights_of_part)
        measured.append(np.stack(rows))
    log_likelihoods = np.mean(measured, 0) if is_shared else np.concatenate(measured, 1)
    best = best_share(log_likelihoods, groups)
    for network in networks:
        network.get_buffer("logit_share").fill_(best)
    return best


def best_share(log_likelihoods: Floats, groups: Indices | None = None) -> float:
    """Return the share with the highest likelihood, or 1 if the logit alone is hardly worse.

    "Hardly worse" means by at most one standard error of the mean difference. The same examples
    chose the networks' weights, so the likelihoods of networks are a little too high.

    Args:
        log_likelihoods: `(shares, examples)`, a row for each of SHARES. Log-likelihoods are
            multiplied by the weights of the examples.
        groups: `(examples,)`, the codes of the examples' groups, if known. Only groups count as
            independent.
    """
    best = int(log_likelihoods.mean(1).argmax())
    gains = log_likelihoods[best] - log_likelihoods[-1]
    is_better = gains.mean() > Moments.of(gains, groups).standard_error()
    return float(SHARES[best]) if is_better else 1.0


def forget_logits(model: PointerModel) -> None:
    """Set the share of all logits of a model to 0, so that its probabilities use no logit."""
    for network in model.networks():
        if isinstance(network, SetPtrNet) and network.answer == "one":
            network.get_buffer("logit_share").zero_()


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
    return fit_weights(x, sizes, chosen, np.array([example.weight for example in examples]))


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


def fit_weights(x: Floats, sizes: Indices, chosen: Indices, counts: Floats | None = None) -> Floats:
    """Return the weights `(d,)` of a conditional logit, fitted to choices by maximum likelihood.

    The probability of an element is `softmax(x b)` over the elements of its instance, where `b` are
    the weights. The loss is the sum of the negative log-likelihoods, plus RIDGE times the sum of
    the squared weights.

    Args:
        x: `(n, d)`, the features of all elements of B instances, one instance after another.
        sizes: `(B,)`, the number of elements of each instance.
        chosen: `(B,)`, the index of the chosen element in each instance.
        counts: `(B,)`, how often each instance counts. None if each counts once.
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

    found: Floats = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x
    return found
