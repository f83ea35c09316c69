"""The thin Lightning module: loss and accuracy of one batch, nothing else."""

from collections.abc import Callable
from functools import partial
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from ptrnet.models.base import PointerModel
from ptrnet.training import optimizers
from ptrnet.training.graphs import Replayed
from ptrnet.training.losses import losses, rest_losses
from ptrnet.training.recipe import Recipe
from ptrnet.types import Batch, CutBatch


class Training(pl.LightningModule):
    """Maximises `sum log p(C | P)` (V eq. 2), as a mean over the batch's tokens."""

    def __init__(self, model: PointerModel, recipe: Recipe) -> None:
        super().__init__()
        self.model, self.recipe = model, recipe
        # Of training; made when the model is in its place.
        self._losses: Callable[[Batch], tuple[Tensor, Tensor]] | None = None

    def training_step(self, batch: Batch | CutBatch, index: int) -> dict[str, Tensor]:
        if isinstance(batch, CutBatch):
            loss, right = rest_losses(self.model, batch)
            return {"loss": loss * self._share(batch.batch), "accuracy": right.float().mean()}
        if self._losses is None:
            replays = self.device.type == "cuda" and self.trainer.world_size == 1
            self._losses = Replayed(self.model) if replays else partial(losses, self.model)
        loss, right = self._losses(batch)
        return {"loss": loss * self._share(batch), "accuracy": right.float().mean()}

    def _share(self, batch: Batch) -> Tensor | float:
        """How many tokens this process has, in those that a process has in the mean.

        So the mean of all processes' losses is that of all tokens.
        """
        if self.trainer.world_size == 1:
            return 1.0
        tokens = batch.target_lengths.sum().float().to(self.device)
        return tokens / self.trainer.strategy.reduce(tokens.clone(), reduce_op="mean")

    def validation_step(self, batch: Batch | CutBatch, index: int) -> None:
        if isinstance(batch, CutBatch):
            loss, right = rest_losses(self.model, batch)
        else:
            loss, right = losses(self.model, batch)
        values = {"valid_loss": loss, "valid_accuracy": right.float().mean()}
        self.log_dict(values, batch_size=len(right))

    def configure_gradient_clipping(
        self,
        optimizer: Any,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        # Lightning refuses to clip for a fused optimiser, for the sake of gradient scalers.
        torch.nn.utils.clip_grad_norm_(self.parameters(), self.recipe.clip)

    def configure_optimizers(self) -> Any:
        found = optimizers.optimizer(self.recipe, self.model.parameters())
        schedule = optimizers.scheduler(self.recipe, found)
        return {
            "optimizer": found,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }
