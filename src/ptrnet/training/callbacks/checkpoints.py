"""When a training saves its state, and how: by `ptrnet.training.checkpoint`."""

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.fabric.plugins.io import TorchCheckpointIO

from ptrnet.training.checkpoint import read, write


class CheckedCheckpointIO(TorchCheckpointIO):
    """Checkpoints that survive a kill at any moment, are checked when read, and load no code."""

    def save_checkpoint(self, checkpoint: Any, path: Any, storage_options: Any = None) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)  # of a caller's own callback
        write(Path(path), checkpoint)

    def load_checkpoint(
        self, path: Any, map_location: Any = None, weights_only: bool | None = True
    ) -> dict[str, Any]:
        return read(Path(path))


class PeriodicCheckpoint(pl.Callback):
    """Saves the state of the run every so many steps, and at the end.

    Where a validation falls on the same step it comes first: a resumed run begins after it.
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
