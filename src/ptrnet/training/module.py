"""Lightning module that computes the loss and accuracy of a batch, and builds the optimiser."""

import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import lightning.pytorch as pl
import numpy as np
import torch
from torch import Tensor

from ptrnet.data.random_streams import DROPOUT
from ptrnet.decoding import Greedy
from ptrnet.models.base import PointerModel
from ptrnet.models.parts.random_numbers import Dropout
from ptrnet.tasks.base import Task
from ptrnet.training import optimizers
from ptrnet.training.graphs import GraphLosses
from ptrnet.training.hardware import has_run_on_gpu
from ptrnet.training.losses import cut_losses, gain_losses, losses, shares_of_gains
from ptrnet.training.recipe import Recipe
from ptrnet.training.schedule import scheduler
from ptrnet.types import Batch, CutBatch, Example, Indices

# Takes a batch. Returns the losses of its answers or the mean loss, and which answers are right.
Losses = Callable[[Any], tuple[Tensor, Tensor]]


def metric_of(task: Task) -> str | None:
    """Return the name of the metric that validations compute from greedy answers, or None."""
    return None if task.facts.metric in ("", "accuracy") else task.facts.metric


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
        answers = Greedy().decode(model, inputs, lengths, longest, task.build_constraint())
        answered += [task.from_tokens(tokens) for tokens in answers.tokens[:, 0].cpu().numpy()]
        for k in rows.tolist():
            grades = None if batch.grades is None else batch.grades[k, :n].double().cpu().numpy()
            outputs = task.from_tokens(batch.targets[k].cpu().numpy())
            features = batch.inputs[k, :n].double().cpu().numpy()
            examples.append(Example(features, outputs, grades=grades))
    return float(task.score(examples, answered)[metric].mean())


def learned_by(batch: Batch | CutBatch, network: int) -> Batch | CutBatch:
    """Return the batch with a target length of 0 for answers that network `network` holds out."""
    if batch.held_out_by is None:
        return batch
    tokens = torch.where(batch.held_out_by == network, 0, batch.target_lengths)
    return batch._replace(target_lengths=tokens)


class TrainingModule(pl.LightningModule):
    """Minimises the mean of the recipe's losses (`ptrnet.training.losses`).

    By default, this mean is the mean of `-log p(C_i | C_<i, P)` over the tokens of a batch, as in
    equation 2 of Vinyals et al. 2015. Recipes with `cuts` or the loss "gains" have other losses.
    """

    def __init__(self, model: PointerModel, recipe: Recipe) -> None:
        super().__init__()
        self.model, self.recipe = model, recipe
        of_batch = gain_losses if recipe.loss == "gains" else losses
        self._of_batch: Callable[[PointerModel, Any], tuple[Tensor, Tensor]] = (
            cut_losses if recipe.cuts else of_batch
        )
        # A loss function for each network. Empty until the first step, when we know the device.
        self._training_losses: list[Losses] = []
        self.valid_losses: list[Tensor] = []  # (B,) for each batch of the latest validation
        self._dropouts = [m for m in model.modules() if isinstance(m, Dropout) and m.p > 0]

    def on_train_start(self) -> None:
        if self.trainer.world_size > 1 and threading.current_thread() is threading.main_thread():
            # Let SIGTERM raise KeyboardInterrupt, as Ctrl-C does. Lightning's handler would wait
            # until all processes take part in a broadcast. But the other processes may be waiting
            # for us in another operation.
            signal.signal(signal.SIGTERM, signal.default_int_handler)

    def training_step(self, batch: Batch | CutBatch, index: int) -> dict[str, Tensor]:
        if not self._training_losses:
            on_one_gpu = self.device.type == "cuda" and self.trainer.world_size == 1
            as_graph = on_one_gpu and has_run_on_gpu(self.recipe)
            self._training_losses = [
                GraphLosses(network) if as_graph else partial(self._of_batch, network)
                for network in self.model.networks()
            ]
        if self._dropouts:
            # Seed dropout by the step, so that a resumed run drops the same units as a run that was
            # never stopped.
            step, world = self.trainer.global_step, self.trainer.world_size
            stream = [self.recipe.seed, DROPOUT, step * world + self.trainer.global_rank]
            masks = torch.Generator(self.device)
            masks.manual_seed(int(np.random.default_rng(stream).integers(2**63)))
            for dropout in self._dropouts:
                dropout.generator = masks
        losses, accuracies = [], []
        for k, of_network in enumerate(self._training_losses):
            learned = learned_by(batch, k)
            of_answers, right = of_network(learned)
            losses.append(of_answers.mean() * self._loss_weight(learned))
            is_learned = learned.target_lengths > 0
            accuracies.append((right & is_learned).sum() / is_learned.sum().clamp(min=1))
        return {"loss": torch.stack(losses).mean(), "accuracy": torch.stack(accuracies).mean()}

    def _loss_weight(self, batch: Batch | CutBatch) -> Tensor | float:
        """Return this process's number of tokens, divided by the processes' mean number of tokens.

        A token counts as often as the weight of its answer says.

        DDP averages the losses of the processes. With this weight, the average of `losses` equals
        the mean loss over the tokens of all processes. `gain_losses` are means over the instances
        with gains, so the weight counts these instances instead. For `cut_losses`, which are sums
        of two means, the average is only close to the loss of the whole batch.
        """
        if self.trainer.world_size == 1:
            return 1.0
        if self._of_batch is gain_losses:
            counts = shares_of_gains(batch).any(1)  # type: ignore[arg-type]
        else:
            counts = batch.target_lengths
        if batch.weights is not None:
            counts = counts * batch.weights
        count = counts.sum().float().to(self.device)
        mean = self.trainer.strategy.reduce(count.clone(), reduce_op="mean")
        # If the network holds out the whole batch, no process has tokens. Then return 0.
        return count / torch.where(mean > 0, mean, 1)

    def on_train_end(self) -> None:
        for dropout in self._dropouts:
            dropout.generator = None

    def on_validation_start(self) -> None:
        self.valid_losses = []

    def validation_step(self, batch: Batch | CutBatch, index: int) -> None:
        model = self.model
        if batch.held_out_by is not None:  # all answers of a batch are held out by one network
            model = model.networks()[int(batch.held_out_by[0])]
        of_answers, right = self._of_batch(model, batch)
        # The loss of a batch does not depend on the scale of its weights. The factor makes batches
        # count in proportion to the sum of their weights.
        scale = 1.0 if batch.weights is None else batch.weights.mean()
        self.valid_losses.append(of_answers * scale)
        values = {"valid_loss": of_answers.mean() * scale, "valid_accuracy": right.float().mean()}
        task = self.recipe.task
        metric = metric_of(task)
        if metric and isinstance(batch, Batch):
            mean = mean_of_metric(model, task, batch, metric)
            values[f"valid_{metric}"] = torch.tensor(mean, device=self.device)
        self.log_dict(values, batch_size=len(right))

    def configure_gradient_clipping(
        self,
        optimizer: Any,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        # Work around Lightning, which refuses to clip for fused optimisers because of gradient
        # scalers. We use no scaler.
        torch.nn.utils.clip_grad_norm_(self.parameters(), self.recipe.clip)

    def configure_optimizers(self) -> Any:
        optimizer = optimizers.optimizer(self.recipe, self.model)
        schedule = scheduler(self.recipe, optimizer)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }
