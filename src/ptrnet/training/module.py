"""The network of a training on known answers, with its losses for each step and each validation."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ptrnet.data.batches import Batch
from ptrnet.decoding import Greedy
from ptrnet.models.base import PointerModel
from ptrnet.models.parts import Dropout
from ptrnet.tasks.base import Task
from ptrnet.training.hardware import has_run_on_gpu
from ptrnet.training.losses import cut_losses, gain_losses, losses, shares_of_gains
from ptrnet.training.recipe import Recipe
from ptrnet.types import DROPOUT, Example, Indices

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# Takes a network and a batch. Returns the losses of its answers, and which answers are right.
Losses = Callable[[PointerModel, Batch], tuple[Tensor, Tensor]]


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
        answers = Greedy().decode(model, inputs, lengths, longest, task)
        answered += [task.from_tokens(tokens) for tokens in answers.tokens[:, 0].cpu().numpy()]
        for k in rows.tolist():
            grades = None if batch.grades is None else batch.grades[k, :n].double().cpu().numpy()
            outputs = task.from_tokens(batch.targets[k].cpu().numpy())
            features = batch.inputs[k, :n].double().cpu().numpy()
            examples.append(Example(features, outputs, grades=grades))
    return float(task.score(examples, answered)[metric].mean())


def without_held_out(batch: Batch, network: int) -> Batch:
    """Return the batch with a target length of 0 for answers that network `network` holds out."""
    if batch.held_out_by is None:
        return batch
    tokens = torch.where(batch.held_out_by == network, 0, batch.target_lengths)
    return batch._replace(target_lengths=tokens)


class TrainingModule(nn.Module):
    """A network with its losses on known answers.

    By default, their mean is the mean of `-log p(C_i | C_<i, P)` over the tokens of a batch, as in
    equation 2 of Vinyals et al. 2015. Recipes with `cuts` or the loss "gains" have other losses.
    """

    def __init__(self, model: PointerModel, recipe: Recipe, fabric: "Fabric") -> None:
        super().__init__()
        self.model, self.recipe, self.fabric = model, recipe, fabric
        self._gains = recipe.task.facts.gains
        of_gains = partial(gain_losses, gains=self._gains)
        of_batch = of_gains if recipe.objective.loss == "gains" else losses
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
        means, accuracies = [], []
        for k, of_network in enumerate(self._of_networks):
            learned = without_held_out(batch, k)
            of_answers, right = of_network(learned)
            means.append(of_answers.mean() * self._loss_weight(learned))
            is_learned = learned.target_lengths > 0
            accuracies.append((right & is_learned).sum() / is_learned.sum().clamp(min=1))
        return {"loss": torch.stack(means).mean(), "accuracy": torch.stack(accuracies).mean()}

    def _losses_of(self, network: PointerModel) -> Callable[[Batch], tuple[Tensor, Tensor]]:
        """Return the losses of a network, as a function of the batch."""
        on_one_gpu = self.fabric.device.type == "cuda" and self.fabric.world_size == 1
        if on_one_gpu and has_run_on_gpu(self.recipe):
            from ptrnet.training.cuda_graphs import GraphLosses

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
        if self.recipe.objective.loss == "gains":
            counts = shares_of_gains(batch, self._gains).any(1)
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
