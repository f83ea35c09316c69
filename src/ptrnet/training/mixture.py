"""Mix a network with a conditional logit and with gradient-boosted trees.

A network overfits a few hundred choices. A conditional logit is linear in the features, so it does
not. Trees learn jumps that a network smooths. Which of them predicts new sets best depends on the
data, so the validation examples decide how much each of them counts.
`docs/dev/own-data-defaults.md` has the measurements.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from ptrnet.data.groups import codes_of
from ptrnet.data.streams import BatchStream, DatasetStream
from ptrnet.metrics import Moments
from ptrnet.models.base import PointerModel
from ptrnet.models.set_ptr_net import SetPtrNet
from ptrnet.solver.scoring import element_scores, log_likelihoods_of
from ptrnet.tasks.base import Task
from ptrnet.training.recipe import Recipe
from ptrnet.types import Dataset, Floats, Indices

STEPS = 20  # shares are multiples of 1 / STEPS
MAX_EXAMPLES = 20_000  # more examples would not change the few weights of a logit
MAX_ROWS = 500_000  # of the elements that trees learn from


class Shares(NamedTuple):
    """The share of each model in a mixture. Their sum is 1."""

    network: float = 1.0
    logit: float = 0.0
    trees: float = 0.0

    def __str__(self) -> str:
        """The models in words, such as `30% the network, 70% gradient-boosted trees`."""
        names = ("the network", "a conditional logit", "gradient-boosted trees")
        parts = zip(self, names, strict=True)
        return ", ".join(f"{share:.0%} {name}" for share, name in parts if share)


def mix(
    model: PointerModel, recipe: Recipe, stream: BatchStream, parts: Sequence[Dataset]
) -> Shares:
    """Fit the other models of the mixture for each network of a model, and set their shares.

    The shares are the same for all networks. We measure each mixture on examples that none of its
    models learned from; see `best_mixture`.

    Args:
        model: the model. A network that is a `SetPtrNet` can be mixed with other models.
        recipe: the recipe of the training.
        stream: the batches that the model learned from.
        parts: the validation examples; see `ptrnet.training.examples.open_valid`.

    Returns:
        The shares. Without validation examples, the network answers alone.
    """
    networks = [network for network in model.networks() if isinstance(network, SetPtrNet)]
    is_choice, most = recipe.task.facts.kind == "choice", getattr(recipe.network, "trees", 0)
    has_data = bool(networks and parts) and isinstance(stream, DatasetStream)
    if not has_data or not (is_choice or most):
        return Shares()
    assert isinstance(stream, DatasetStream)
    is_shared = len(parts) == 1
    groups = codes_of(example for part in parts for example in part)
    parts = [*parts] * len(networks) if is_shared else parts
    if is_choice:
        from ptrnet.training.conditional_logit import fit_logit

        for k, network in enumerate(networks):
            weights = fit_logit(stream.learned_by(k, MAX_EXAMPLES), recipe.task)
            network.logit_weights.copy_(network.logit_weights.new_tensor(weights))
    has_trees = bool(most) and _add_trees(networks, recipe, stream, parts, most)
    stages = _stages(is_choice, has_trees)
    candidates = np.array([shares for stage in stages for shares in stage])
    measure = _log_likelihoods if is_choice else _ranking_measures
    values = [
        measure(network, recipe.task, part, candidates)
        for network, part in zip(networks, parts, strict=True)
    ]
    of_examples = np.mean(values, 0) if is_shared else np.concatenate(values, 1)
    best = Shares(*candidates[best_mixture(of_examples, [*map(len, stages)], groups)].tolist())
    for network in networks:
        _set_shares(network, best)
        if not best.trees:
            network.set_trees(None)
    return best


def best_mixture(values: Floats, stages: Sequence[int], groups: Indices | None = None) -> int:
    """Return the number of the best mixture. Prefer a simple one unless another is clearly better.

    Begin with the best mixture of the first stage. Replace it by the best mixture of the next stage
    if this one is better by more than one standard error of the mean difference, and so on. The
    same examples chose the networks' weights and the number of trees, so the measures of mixtures
    with them are a little too high.

    Args:
        values: `(mixtures, examples)`, the measures of each mixture. Higher is better.
        stages: the number of mixtures in each stage, the simplest mixtures first.
        groups: `(examples,)`, the codes of the examples' groups, if known. Only groups count as
            independent.
    """
    means, first = values.mean(1), stages[0]
    best = int(means[:first].argmax())
    for count in stages[1:]:
        other = first + int(means[first : first + count].argmax())
        gains = values[other] - values[best]
        if gains.mean() > Moments.of(gains, groups).standard_error():
            best = other
        first += count
    return best


def forget_others(model: PointerModel) -> None:
    """Let the networks of a model answer alone."""
    for network in model.networks():
        if isinstance(network, SetPtrNet):
            network.set_trees(None)
            _set_shares(network, Shares())


def _stages(is_choice: bool, has_trees: bool) -> list[list[Shares]]:
    """Return the mixtures to choose from, in stages: the simplest ones first.

    For choices, the simplest one is the logit alone.
    """
    grid = [k / STEPS for k in range(STEPS + 1)]
    if not is_choice:
        of_trees = [Shares(1 - share, 0, share) for share in grid[1:] if has_trees]
        return [[Shares()], *([of_trees] if of_trees else [])]
    with_logit = [Shares(1 - share, share) for share in grid[:-1]]
    with_trees = [
        Shares(max(0, 1 - logit - trees), logit, trees)
        for trees in grid[1:]
        for logit in grid
        if has_trees and logit + trees < 1 + 1e-9
    ]
    return [[Shares(0, 1)], with_logit, *([with_trees] if with_trees else [])]


def _set_shares(network: SetPtrNet, shares: Shares) -> None:
    if network.answer == "one":
        network.logit_share.fill_(shares.logit)
    if network.trees is not None:
        network.trees.share.fill_(shares.trees)


def _add_trees(
    networks: Sequence[SetPtrNet],
    recipe: Recipe,
    stream: DatasetStream,
    parts: Sequence[Dataset],
    most: int,
) -> bool:
    """Grow trees for each network, on what it learned from. Return whether any grew."""
    from ptrnet.training.trees import Sets, grow

    task, largest = recipe.task, max(1, int(MAX_ROWS / stream.examples.sizes.mean()))
    if not all(map(len, parts)):  # few groups may leave a network nothing to measure trees on
        return False
    learned = [Sets.of(stream.learned_by(k, largest), task) for k in range(len(networks))]
    held_out = [Sets.of(part, task) for part in parts]
    for network, trees in zip(
        networks, grow(learned, held_out, most, recipe.run.seed), strict=True
    ):
        network.set_trees(trees if len(trees) else None)
    return networks[0].trees is not None


def _log_likelihoods(network: SetPtrNet, task: Task, part: Dataset, candidates: Floats) -> Floats:
    """Return the log-likelihoods `(mixtures, examples)` of choices, times the examples' weights."""
    of_models = []
    for alone in (Shares(), Shares(0, 1), Shares(0, 0, 1)):
        if alone.trees and network.trees is None:
            break
        _set_shares(network, alone)
        of_models.append(log_likelihoods_of(network, task, part))
    p = np.exp(of_models)
    with np.errstate(divide="ignore"):
        mixed = np.log(candidates[:, : len(p)] @ p)
    return mixed * np.array([example.weight for example in part])


def _ranking_measures(network: SetPtrNet, task: Task, part: Dataset, candidates: Floats) -> Floats:
    """Return the task's main metric `(mixtures, examples)` of rankings, times their weights."""
    if network.trees is None:
        return np.zeros((1, len(part)))
    of_models = []
    for alone in (Shares(), Shares(0, 0, 1)):
        _set_shares(network, alone)
        scores = map(torch.from_numpy, element_scores(network, task, part))
        of_models.append(pad_sequence([*scores], True, -torch.inf))
    rows = []
    for share in candidates[:, 2].tolist():
        orders = network.join(of_models[0], of_models[1], torch.tensor(share)).argsort(
            -1, descending=True
        )
        answers = [order[:n].numpy() for order, n in zip(orders, part.sizes.tolist(), strict=True)]
        values = task.score(part, answers)[task.facts.metric].astype(float)
        rows.append(np.nan_to_num(values))  # the metric may leave sets out, in all mixtures alike
    return np.stack(rows) * np.array([example.weight for example in part])
