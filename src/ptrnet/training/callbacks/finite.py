"""The end of a training that has diverged: before anything is saved of it."""

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from ptrnet.errors import DivergedError, ModelError
from ptrnet.training import checkpoint

ROUNDING = 1e-2  # of a mean loss in bfloat16


class FiniteLoss(pl.Callback):
    """Raises DivergedError at the first loss that is no finite number; stands before all others.

    One process on a CPU looks at every step. Elsewhere that would make every step wait: the losses
    are looked at together, every so many steps. In both, at each multiple of `intervals` and at the
    end, which are the steps after which something is saved or validated, also the weights.

    Args:
        folder: of the run, whose checkpoint the error names.
        intervals: in steps.
        is_likelihood: whether a loss below 0 is refused, too: no probability is above 1.
    """

    def __init__(self, folder: Path, *intervals: int, is_likelihood: bool = False) -> None:
        self.folder, self.intervals, self.is_likelihood = folder, intervals, is_likelihood
        self.recent: list[Tensor] = []

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, *_: Any
    ) -> None:
        self.recent.append(outputs["loss"].detach())
        step = trainer.global_step
        is_due = step == trainer.max_steps or any(step % every == 0 for every in self.intervals)
        is_cheap = pl_module.device.type == "cpu" and trainer.world_size == 1
        if not is_due and not is_cheap:
            return
        losses = torch.stack(self.recent)
        is_negative = self.is_likelihood and bool((losses < -ROUNDING).any())
        if trainer.strategy.reduce_boolean_decision(is_negative, all=False):
            raise ModelError(
                "the loss is below 0: the model's log_probs are no "
                "log-probabilities, as log_softmax gives them"
            )
        finite = losses.isfinite()
        has_diverged = not finite.all()
        if is_due and not has_diverged:
            has_diverged = not all(p.isfinite().all() for p in pl_module.parameters())
        if trainer.strategy.reduce_boolean_decision(has_diverged, all=False):
            first = step - len(self.recent) + 1
            at = first + int(finite.long().argmin()) if not finite.all() else step
            raise diverged_error(self.folder, at)
        self.recent = []


def diverged_error(folder: Path, step: int) -> DivergedError:
    """The error of a diverged run: it names the checkpoint to begin again from."""
    good = checkpoint.read_last(folder)
    advice = "no checkpoint had been written; begin again with a smaller --learning-rate"
    if good:
        advice = (
            f"the last good checkpoint, of step {good.content['global_step']}, is {good.path}; "
            f"--weights {folder} with a smaller --learning-rate and another --output begins there"
        )
    return DivergedError(
        f"training diverged at step {step}: its loss or its weights are no finite numbers; {advice}"
    )
