"""The losses of a training on known answers, and its metrics.

`losses`, `gain_losses` and `cut_losses` return one loss for each answer. The mean of these losses
is the loss of the batch. Answers without tokens (`target_lengths` is 0) have loss 0 and do not
change the mean loss per token. An answer of weight 2 counts as if it was in the batch twice, and an
answer of weight 0 as if it was left out. `TrainingModule` computes these losses in a training.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ptrnet.constraints import machine_of
from ptrnet.data.batches import Batch, token_log_likelihoods
from ptrnet.data.random_streams import DROPOUT
from ptrnet.decoding import Greedy
from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel
from ptrnet.models.parts.random_numbers import Dropout
from ptrnet.tasks.base import Task
from ptrnet.training.hardware import has_run_on_gpu
from ptrnet.training.recipe import Recipe
from ptrnet.types import Example, Indices

if TYPE_CHECKING:
    from lightning.fabric import Fabric

# Takes a network and a batch. Returns the losses of its answers, and which answers are right.
Losses = Callable[[PointerModel, Batch], tuple[Tensor, Tensor]]


def losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the losses `(B,)` of whole answers, and which answers `(B,)` are right.

    The mean of the losses is the mean of -log p(a right token) over the steps in all answers.

    A token is right if a right answer can continue with this token. Without grades, only the target
    is right. With grades, all remaining elements of the highest grade are right.

    An answer counts as right if, at every step, each right token is more likely than each wrong
    token. If answers have no ties, or if scores do not depend on earlier tokens, greedy decoding
    then gives a right answer.
    """
    log_probs = model.log_probs(*batch[:4])
    real = length_mask(batch.target_lengths, batch.targets.shape[1])
    likelihood, is_right = token_log_likelihoods(log_probs, batch)
    right = _are_likeliest(log_probs, batch.targets, is_right) | ~real
    # A target after END may be padding, whose log p is -inf. So use `where` and not a product.
    of_answers = -torch.where(real, likelihood, 0).sum(1)
    return _shares(of_answers, real, batch.weights), right.all(1)


def gain_losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return losses `(B,)` of the first token's distribution, and which answers `(B,)` are right.

    In the target distribution of the first token, probabilities are in proportion to the gains
    `2^grade - 1` (ListNet; Cao et al. 2007). The mean of the losses is the mean cross-entropy
    between this target and the predicted distribution, over the instances whose gains are not all
    0. Other instances have loss 0. These losses suit models whose scores do not depend on earlier
    tokens. `losses` says when an answer is right.
    """
    real = length_mask(batch.target_lengths, batch.targets.shape[1])
    log_probs = model.log_probs(*batch[:4])
    shares = shares_of_gains(batch)
    first = log_probs[:, 0, -shares.shape[1] :]
    # The log p of padding is -inf. So use `where` and not a product.
    cross_entropy = -(shares * torch.where(shares > 0, first, 0)).sum(1)
    _, is_right = token_log_likelihoods(log_probs, batch)
    right = _are_likeliest(log_probs, batch.targets, is_right) | ~real
    return _shares(cross_entropy, shares.any(1, keepdim=True), batch.weights), right.all(1)


def shares_of_gains(batch: Batch) -> Tensor:
    """Return `(B, n)`: the gain of each element, divided by the sum of its instance's gains.

    The shares are 0 for padding, for answers without tokens, and for instances without gains.
    """
    assert batch.grades is not None
    has_tokens = batch.target_lengths[:, None] > 0
    is_element = length_mask(batch.lengths, batch.grades.shape[1]) & has_tokens
    positive = torch.where(is_element, batch.grades.clamp(min=0), 0)
    highest = positive.amax(1, keepdim=True)
    # 2^grade may be infinite, so divide all gains by 2^highest. The divisor cancels.
    gains = torch.exp2(positive - highest) - torch.exp2(-highest)
    sums = gains.sum(1, keepdim=True)
    return gains / torch.where(sums > 0, sums, 1)


def cut_losses(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the losses `(B,)` of cut answers, and which first tokens `(B,)` are predicted right.

    The first token of an answer is here the one right after the cut. The mean of the losses is the
    mean of -log p(a right token) over the first tokens, plus the same mean over all later tokens.
    So the first token weighs as much as all later tokens together. `losses` says which tokens are
    right.
    """
    num_known = batch.num_known
    log_probs = model.rest_log_probs(*batch[:4], num_known)
    steps = log_probs.shape[1]
    real = length_mask(batch.target_lengths - num_known, steps)
    likelihood, is_right = token_log_likelihoods(log_probs, batch, num_known)
    likelihood = torch.where(real, likelihood, 0)
    next_token = _shares(likelihood[:, 0], real[:, :1], batch.weights)
    later_tokens = _shares(likelihood[:, 1:].sum(1), real[:, 1:], batch.weights)
    rest = batch.targets[:, num_known : num_known + steps]
    right = _are_likeliest(log_probs, rest, is_right)[:, 0] | ~real[:, 0]
    return -next_token - later_tokens, right


def _shares(of_answers: Tensor, real: Tensor, weights: Tensor | None) -> Tensor:
    """Return `(B,)` losses whose mean is the mean loss of a token.

    Args:
        of_answers: `(B,)`, the sum of the losses of each answer's tokens.
        real: `(B, M)` boolean: False on padding.
        weights: `(B,)`, the weights of the answers. None if all are 1.
    """
    count = real.sum()
    if weights is not None:
        of_answers, count = of_answers * weights, (real.sum(1) * weights).sum()
    return of_answers / (torch.where(count > 0, count, 1) / len(real))


def _are_likeliest(log_probs: Tensor, targets: Tensor, is_right: Tensor | None) -> Tensor:
    """Return for each step whether all right tokens are more likely than all wrong tokens.

    The result is `(B, M)`. If `is_right` is None, only the target of a step is right.
    """
    if is_right is None:
        return log_probs.argmax(-1) == targets
    least = log_probs.masked_fill(~is_right, torch.inf).amin(-1)
    return least > log_probs.masked_fill(is_right, -torch.inf).amax(-1)


@torch.no_grad()
def mean_of_metric(model: PointerModel, task: Task, batch: Batch, metric: str) -> float:
    """Return a metric of the task, averaged over the greedy answers to a batch."""
    examples: list[Example] = []
    answered: list[Indices] = []
    # Decode each size separately, because some models need instances of equal size in a batch.
    for n in sorted(set(batch.lengths.tolist())):
        rows = (batch.lengths == n).nonzero()[:, 0]
        inputs, lengths = batch.inputs[rows, :n], batch.lengths[rows]
        longest = torch.full_like(lengths, task.max_length(n))
        answers = Greedy().decode(model, inputs, lengths, longest, machine_of(task.facts))
        answered += [task.from_tokens(tokens) for tokens in answers.tokens[:, 0].cpu().numpy()]
        for k in rows.tolist():
            grades = None if batch.grades is None else batch.grades[k, :n].double().cpu().numpy()
            outputs = task.from_tokens(batch.targets[k].cpu().numpy())
            features = batch.inputs[k, :n].double().cpu().numpy()
            examples.append(Example(features, outputs, grades=grades))
    return float(task.score(examples, answered)[metric].mean())


def learned_by(batch: Batch, network: int) -> Batch:
    """Return the batch with a target length of 0 for answers that network `network` holds out."""
    if batch.held_out_by is None:
        return batch
    tokens = torch.where(batch.held_out_by == network, 0, batch.target_lengths)
    return batch._replace(target_lengths=tokens)


class TrainingModule(nn.Module):
    """A network with its losses on known answers.

    By default, their mean is the mean of `-log p(C_i | C_<i, P)` over the tokens of a batch, as in
    equation 2 of Vinyals et al. 2015. Recipes with `cuts` or the loss "gains" have other losses.

    Args:
        model: the network.
        recipe: the recipe of the training.
        fabric: the processes of the training.
    """

    def __init__(self, model: PointerModel, recipe: Recipe, fabric: "Fabric") -> None:
        super().__init__()
        self.model, self.recipe, self.fabric = model, recipe, fabric
        of_batch = gain_losses if recipe.objective.loss == "gains" else losses
        self._of_batch: Losses = cut_losses if recipe.data.cuts else of_batch
        # A loss function for each network. Empty until the first step, when we know the device.
        self._of_networks: list[Callable[[Batch], tuple[Tensor, Tensor]]] = []
        self._dropouts = [m for m in model.modules() if isinstance(m, Dropout) and m.p > 0]

    def forward(self, batch: Batch, step: int) -> dict[str, Tensor]:
        """Return the mean loss and the accuracy of a training batch, after `step` steps."""
        if not self._of_networks:
            self._of_networks = [self._losses_of(network) for network in self.model.networks()]
        if self._dropouts:
            # Seed dropout by the step, so that a resumed run drops the same units as a run that was
            # never stopped.
            process = step * self.fabric.world_size + self.fabric.global_rank
            masks = torch.Generator(self.fabric.device)
            rng = np.random.default_rng([self.recipe.run.seed, DROPOUT, process])
            masks.manual_seed(int(rng.integers(2**63)))
            for dropout in self._dropouts:
                dropout.generator = masks
        losses, accuracies = [], []
        for k, of_network in enumerate(self._of_networks):
            learned = learned_by(batch, k)
            of_answers, right = of_network(learned)
            losses.append(of_answers.mean() * self._loss_weight(learned))
            is_learned = learned.target_lengths > 0
            accuracies.append((right & is_learned).sum() / is_learned.sum().clamp(min=1))
        return {"loss": torch.stack(losses).mean(), "accuracy": torch.stack(accuracies).mean()}

    def _losses_of(self, network: PointerModel) -> Callable[[Batch], tuple[Tensor, Tensor]]:
        """Return the losses of a network, as a function of the batch."""
        on_one_gpu = self.fabric.device.type == "cuda" and self.fabric.world_size == 1
        if on_one_gpu and has_run_on_gpu(self.recipe):
            from ptrnet.training.graphs import GraphLosses

            return GraphLosses(network)
        return partial(self._of_batch, network)

    def _loss_weight(self, batch: Batch) -> Tensor | float:
        """Return this process's number of tokens, divided by the processes' mean number of tokens.

        A token counts as often as the weight of its answer says.

        DDP averages the losses of the processes. With this weight, the average of `losses` equals
        the mean loss over the tokens of all processes. `gain_losses` are means over the instances
        with gains, so the weight counts these instances instead. For `cut_losses`, which are sums
        of two means, the average is only close to the loss of the whole batch.
        """
        if self.fabric.world_size == 1:
            return 1.0
        if self._of_batch is gain_losses:
            counts = shares_of_gains(batch).any(1)
        else:
            counts = batch.target_lengths
        if batch.weights is not None:
            counts = counts * batch.weights
        count = counts.sum().float()
        mean = self.fabric.all_reduce(count.clone(), reduce_op="mean")
        # If the network holds out the whole batch, no process has tokens. Then return 0.
        return count / torch.where(mean > 0, mean, 1)

    def validate(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor | float]]:
        """Return the losses `(B,)` of a validation batch, and means of metrics."""
        model = self.model
        if batch.held_out_by is not None:  # all answers of a batch are held out by one network
            model = model.networks()[int(batch.held_out_by[0])]
        of_answers, right = self._of_batch(model, batch)
        if batch.weights is not None:
            # The loss of a batch does not depend on the scale of its weights. The factor makes
            # batches count in proportion to the sum of their weights.
            of_answers = of_answers * batch.weights.mean()
        metrics: dict[str, Tensor | float] = {
            "loss": of_answers.mean(),
            "accuracy": right.float().mean(),
        }
        metric = self.recipe.task.facts.metric
        if metric not in ("", "accuracy") and not self.recipe.data.cuts:
            metrics[metric] = mean_of_metric(model, self.recipe.task, batch, metric)
        return of_answers, metrics

    def forget_seeds(self) -> None:
        """Let dropout draw from PyTorch's own generator again, after the training."""
        for dropout in self._dropouts:
            dropout.generator = None
