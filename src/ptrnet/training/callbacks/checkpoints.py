"""Checkpoints that survive a kill at any moment, and that load no code."""

import io
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.io import TorchCheckpointIO

from ptrnet.files import atomic_path


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a new file and renames it over the last; reads tensors and plain values only."""

    def save_checkpoint(self, checkpoint: Any, path: Any, storage_options: Any = None) -> None:
        content = io.BytesIO()
        torch.save(checkpoint, content)
        with atomic_path(Path(path)) as temporary:
            temporary.write_bytes(content.getbuffer())

    def load_checkpoint(
        self, path: Any, map_location: Any = None, weights_only: bool | None = True
    ) -> dict[str, Any]:
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return checkpoint


class PeriodicCheckpoint(pl.Callback):
    """Saves the state of the run every so many steps, and at the end.

    Where a validation falls on the same step it comes first: a resumed run begins behind it.
    """

    def __init__(self, path: Path, every: int, valid_every: int) -> None:
        self.path, self.every, self.valid_every = path, every, valid_every

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any
    ) -> None:
        validates = trainer.enable_validation and trainer.global_step % self.valid_every == 0
        if self._due(trainer) and not validates:
            trainer.save_checkpoint(self.path)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._due(trainer) or trainer.should_stop:
            trainer.save_checkpoint(self.path)

    def _due(self, trainer: pl.Trainer) -> bool:
        step = trainer.global_step
        return step % self.every == 0 or step == trainer.max_steps
