"""Mix a network with a conditional logit, with gradient-boosted trees, and with a chooser.

A network overfits a few hundred choices. A conditional logit is linear in the features, so it does
not. Trees learn jumps that a network smooths. A chooser (`Spaces`) needs the fewest examples. Which
of them predicts new sets best depends on the data, so the validation examples decide how much each
of them counts.
`docs/dev/own-data-defaults.md` has the measurements.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ptrnet.data.streams import BatchStream, DatasetStream
from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel
from ptrnet.models.set_ptr_net import SetPtrNet
from ptrnet.solver.scoring import element_scores, log_likelihoods_of
from ptrnet.training.losses import gain_shares
from ptrnet.training.recipe import Recipe
from ptrnet.types import Dataset, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.models.parts.spaces import Spaces
    from ptrnet.models.parts.trees import Trees

STEPS = 20  # shares of a resample are multiples of 1 / STEPS
RESAMPLES = 100
NEWTON_STEPS = 10
SMALLEST = 0.05  # share of a model; one with less would cost time and change little
MAX_EXAMPLES = 20_000  # more examples would not change the few weights of a logit
MAX_ROWS = 500_000  # of the elements that trees learn from


class Shares(NamedTuple):
    """The share of each model in a mixture. Their sum is 1."""

    network: float = 1.0
    logit: float = 0.0
    trees: float = 0.0
    spaces: float = 0.0

    def __str__(self) -> str:
        """The models in words, such as `30% the network, 70% gradient-boosted trees`."""
        names = ("the network", "a conditional logit", "gradient-boosted trees", "a chooser")
        parts = zip(self, names, strict=True)
        return ", ".join(f"{share:.0%} {name}" for share, name in parts if share)


def grow_trees(
    model: PointerModel, recipe: Recipe, stream: BatchStream, parts: Sequence[Dataset]
) -> "Iterator[list[Trees]]":
    """Grow trees for each network of a model, on what the network learns from, but no others.

    Yield the first trees of each network, and then all of them; see `grow`. Yield nothing if the
    recipe has no trees, or if none grew. Only a network that is a `SetPtrNet` can be mixed with
    other models. The validation examples are in parts; see `ptrnet.training.examples.open_valid`.
    """
    networks, most = _networks(model), getattr(recipe.network, "trees", 0)
    # Few groups may leave a network nothing to measure trees on.
    if not (
        networks and parts and most and isinstance(stream, DatasetStream) and all(map(len, parts))
    ):
        return
    from ptrnet.training.sets import Sets
    from ptrnet.training.trees import grow

    task, largest = recipe.task, max(1, int(MAX_ROWS / stream.examples.sizes.mean()))
    learned = [Sets.of(stream.learned_by(k, largest), task) for k in range(len(networks))]
    held_out = [Sets.of(part, task) for part in _of_networks(parts, networks)]
    # A choice is between elements; the grade of a document is its own.
    is_choice = task.facts.kind == "choice"
    for grown in grow(learned, held_out, most, recipe.run.seed, compared=is_choice):
        if len(grown[0]):
            yield grown


@contextmanager
def mixed_with(model: PointerModel, trees: "Sequence[Trees]", share: float) -> Iterator[None]:
    """In this context, a share of the answers of each network is that of its trees, if any."""
    networks = _networks(model) if trees else []
    for network, own in zip(networks, trees, strict=True):
        network.set_others(own)
        _set_shares(network, Shares(1 - share, 0, share))
    yield
    for network in networks:
        network.set_others()


def mix(
    model: PointerModel,
    recipe: Recipe,
    stream: BatchStream,
    parts: Sequence[Dataset],
    trees: "Sequence[Trees]",
) -> Shares:
    """Mix each network of a model with other models, and set their shares.

    The other models are a conditional logit for choices, the trees, and a chooser if the recipe has
    one. The shares are the same for all networks. We measure each mixture on examples that none of
    its models learned from; see `mean_shares`. Without validation examples, the network answers
    alone. Arguments are those of `grow_trees`, and the trees of each network.
    """
    networks, is_choice = _networks(model), recipe.task.facts.kind == "choice"
    most = getattr(recipe.network, "spaces", 0)
    if not (
        networks and parts and isinstance(stream, DatasetStream) and (is_choice or trees or most)
    ):
        return Shares()
    is_shared = len(parts) == 1
    groups = Dataset.join(parts).groups
    parts_learned = [stream.learned_by(k, MAX_EXAMPLES) for k in range(len(networks))]
    if is_choice:
        from ptrnet.training.linear_scores import fit_logit
        from ptrnet.training.sets import Sets

        for network, learned in zip(networks, parts_learned, strict=True):
            weights = fit_logit(Sets.of(learned, recipe.task))
            network.logit_weights.copy_(network.logit_weights.new_tensor(weights))
    spaces: list[Spaces] = []
    if most:
        from ptrnet.training.spaces import fit_spaces

        spaces = [fit_spaces(learned, recipe.task, most) for learned in parts_learned]
        for part in spaces:
            part.resize(max(map(len, spaces)))
    for k, network in enumerate(networks):
        network.set_others(trees[k] if trees else None, spaces[k] if spaces else None)
    stages = [np.array(stage) for stage in _stages(is_choice, bool(trees), most > 0)]
    measure = _log_likelihoods if is_choice else _ranking_measures
    values = [
        measure(network, recipe, part, np.concatenate(stages))
        for network, part in zip(networks, _of_networks(parts, networks), strict=True)
    ]
    of_examples = np.mean(values, 0) if is_shared else np.concatenate(values, 1)
    best = mean_shares(of_examples, stages, groups)
    for network in networks:
        network.set_others(
            network.trees if best.trees else None, network.spaces if best.spaces else None
        )
        _set_shares(network, best)
    return best


def mean_shares(values: Floats, stages: Sequence[Floats], groups: Indices | None = None) -> Shares:
    """Return the mean shares of the mixtures that are best on resamples of the groups.

    This is bagging (Breiman 1996). The examples of few persons may favour very different mixtures
    by chance, and a mean of these predicts new persons better than any of them. Models whose mean
    share is below SMALLEST are left out.

    Args:
        values: `(mixtures, examples)`, the measures of each mixture. Higher is better.
        stages: the shares `(mixtures, 4)` of each stage, the simplest mixtures first.
        groups: `(examples,)`, the codes of the examples' groups, if known. Only groups count as
            independent.
    """
    names = np.arange(values.shape[1]) if groups is None else groups
    codes = np.unique(names, return_inverse=True)[1]
    sums: Floats = np.stack([np.bincount(codes, row) for row in values])
    sizes, num_groups = np.bincount(codes), sums.shape[1]
    even = np.full(num_groups, 1 / num_groups)
    counts = np.random.default_rng(0).multinomial(num_groups, even, RESAMPLES)
    lengths = [*map(len, stages)]
    best = [best_mixture(sums, sizes, lengths, count) for count in counts]
    shares = np.concatenate(stages)[best].mean(0)
    shares[shares < SMALLEST] = 0
    return Shares(*(shares / shares.sum()).tolist())


def best_mixture(sums: Floats, sizes: Indices, stages: Sequence[int], counts: Indices) -> int:
    """Return the number of the best mixture. Prefer a simple one unless another is clearly better.

    Begin with the best mixture of the first stage. Replace it by the best mixture of the next stage
    if this one is better by more than one standard error of the mean difference, and so on. The
    same examples chose the networks' weights and the number of trees, so the measures of mixtures
    with them are a little too high.

    Args:
        sums: `(mixtures, groups)`, the measure of each mixture, summed over a group's examples.
        sizes: `(groups,)`, the number of examples of each group.
        stages: the number of mixtures in each stage, the simplest mixtures first.
        counts: `(groups,)`, how often each group is in the sample.
    """
    num_groups, weight = counts.sum(), counts @ sizes
    means, first = sums @ counts / weight, stages[0]
    best = int(means[:first].argmax())
    for count in stages[1:]:
        other = first + int(means[first : first + count].argmax())
        gain = means[other] - means[best]
        squares = counts @ (sums[other] - sums[best] - gain * sizes) ** 2
        if gain > np.sqrt(squares * num_groups / max(1, num_groups - 1)) / weight:
            best = other
        first += count
    return best


def forget_others(model: PointerModel) -> None:
    """Let the networks of a model answer alone."""
    for network in _networks(model):
        network.set_others()
        _set_shares(network, Shares())


def _stages(is_choice: bool, has_trees: bool, has_spaces: bool) -> list[list[Shares]]:
    """Return the mixtures to choose from, in stages: the simplest ones first.

    A logit is simpler than trees, and trees are simpler than a network, which may overfit most. A
    chooser is a mean over strengths of ridges, which the examples hardly choose. So it comes first.
    """
    others = [has_spaces, is_choice, has_trees]
    mixtures = [
        Shares(*(count / STEPS for count in (STEPS - logit - trees - spaces, logit, trees, spaces)))
        for spaces in range(STEPS + 1 if has_spaces else 1)
        for trees in range(STEPS + 1 - spaces if has_trees else 1)
        for logit in range(STEPS + 1 - spaces - trees if is_choice else 1)
    ]
    alone = (Shares(0, 0, 0, 1), Shares(0, 1), Shares(0, 0, 1))
    there = [shares for shares, is_there in zip(alone, others, strict=True) if is_there]
    without_network = [
        shares for shares in mixtures if not shares.network and shares not in there[:1]
    ]
    with_network = [shares for shares in mixtures if shares.network]
    stages = [there[:1], without_network, with_network]
    return [stage for stage in stages if stage]


def _set_shares(network: SetPtrNet, shares: Shares) -> None:
    if network.answer == "one":
        network.logit_share.fill_(shares.logit)
    if network.trees is not None:
        network.trees.share.fill_(shares.trees)
    if network.spaces is not None:
        network.spaces.share.fill_(shares.spaces)


def _networks(model: PointerModel) -> list[SetPtrNet]:
    """Return the networks that can be mixed with other models."""
    return [network for network in model.networks() if isinstance(network, SetPtrNet)]


def _of_networks(parts: Sequence[Dataset], networks: Sequence[SetPtrNet]) -> Sequence[Dataset]:
    """Return the validation examples of each network. A single part is for all of them."""
    return [*parts] * len(networks) if len(parts) == 1 else parts


def _log_likelihoods(
    network: SetPtrNet, recipe: Recipe, part: Dataset, candidates: Floats
) -> Floats:
    """Return the log-likelihoods `(mixtures, examples)` of choices, times the examples' weights."""
    p = np.zeros((len(Shares()), len(part)))
    for k, alone in _alone(network):
        _set_shares(network, alone)
        p[k] = np.exp(log_likelihoods_of(network, recipe.task, part))
    mixed = np.log(np.maximum(candidates @ p, np.finfo(float).tiny))
    return mixed * np.array([example.weight for example in part])


def _ranking_measures(
    network: SetPtrNet, recipe: Recipe, part: Dataset, candidates: Floats
) -> Floats:
    """Return the measures `(mixtures, examples)` of rankings, times the examples' weights.

    The measure is `sum_i t_i log p_i` with `p = softmax(a scores)`. The targets t are those of the
    network's loss "gains"; with another loss, those of the trees. Scores of rankings have no scale,
    so a is the one that is best for the mixture. The measure is much less noisy than NDCG, which
    depends on a few documents of each query.
    """
    task, sizes = recipe.task, part.sizes.tolist()

    def padded(numbers: Floats) -> Tensor:
        return pad_sequence([*torch.split(torch.from_numpy(numbers), sizes)], True)

    if recipe.objective.loss == "gains":
        assert part.grades is not None
        is_element = length_mask(torch.tensor(sizes), max(sizes))
        targets = gain_shares(padded(part.grades), is_element, task.facts.gains)
    else:
        from ptrnet.training.sets import Sets

        targets = padded(Sets.of(part, task).targets)
    of_models, models = [], []
    for k, alone in _alone(network):
        _set_shares(network, alone)
        scores = map(torch.from_numpy, element_scores(network, task, part))
        of_models.append(pad_sequence([*scores], True, -torch.inf))
        models.append(k)
    weights = torch.tensor([example.weight for example in part], dtype=torch.float64)
    rows = [
        _likelihoods(network.join(of_models, [*shares]), targets, weights)
        for shares in torch.tensor(candidates[:, models])
    ]
    return torch.stack(rows).numpy()


def _likelihoods(scores: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Return `weights * sum_i t_i log p_i` `(B,)` of scores and targets `(B, N)`.

    `p = softmax(a scores)`. Newton's method finds the a with the largest sum over all sets, which
    is concave in a, from one over the spread of the scores. Padding has the score -inf.
    """
    is_element = scores > -torch.inf
    finite = scores.masked_fill(~is_element, 0)
    spread = float(scores[is_element].std(correction=0))
    factor = 1 / spread if spread > 0 else 1.0
    shares = weights * targets.sum(1)  # 0 for a set that says nothing
    for _ in range(NEWTON_STEPS):
        p = (factor * finite).masked_fill(~is_element, -torch.inf).softmax(1)
        means = (p * finite).sum(1)
        slope = ((targets * finite).sum(1) * weights - shares * means).sum()
        curvature = (shares * ((p * finite**2).sum(1) - means**2)).sum()
        step = float(slope / curvature.clamp(min=1e-12))
        factor = min(max(factor + step, factor / 2), factor * 2)
    log_p = (factor * finite).masked_fill(~is_element, -torch.inf).log_softmax(1)
    return weights * (targets * log_p.masked_fill(~is_element, 0)).sum(1)


def _alone(network: SetPtrNet) -> list[tuple[int, Shares]]:
    """Return the models of a mixture: the number of each in `Shares`, and its share of 1."""
    are_there = (True, network.answer == "one", network.trees, network.spaces)
    alone = (Shares(), Shares(0, 1), Shares(0, 0, 1), Shares(0, 0, 0, 1))
    return [(k, alone[k]) for k, part in enumerate(are_there) if part not in (None, False)]
