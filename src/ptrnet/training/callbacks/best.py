"""The weights of the lowest validation loss, and the end of a training that gets no lower."""

import sys
from typing import Any

import lightning.pytorch as pl
from torch import Tensor


class BestWeights(pl.Callback):
    """Keeps the weights of the lowest validation loss; ends after `patience` validations above it.

    Its state is part of every checkpoint.
    """

    state_key = "best_weights"

    def __init__(self, patience: int) -> None:
        self.patience, self.waited = patience, 0
        self.loss, self.step = float("inf"), 0
        self.weights: dict[str, Tensor] = {}

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        loss = float(trainer.callback_metrics["valid_loss"])
        self.waited += 1
        if loss < self.loss:
            self.loss, self.step, self.waited = loss, trainer.global_step, 0
            state = pl_module.state_dict()
            self.weights = {name: tensor.cpu().clone() for name, tensor in state.items()}
        if self.has_ended:
            trainer.should_stop = True
            if trainer.is_global_zero:
                print(
                    f"ended at step {trainer.global_step}: no better loss in {self.patience} "
                    f"validations than that of step {self.step}",
                    file=sys.stderr,
                )

    @property
    def has_ended(self) -> bool:
        """Whether so many validations in a row were no better; never without patience."""
        return 0 < self.patience <= self.waited

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("waited", "loss", "step", "weights")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name, value in state_dict.items():
            setattr(self, name, value)
