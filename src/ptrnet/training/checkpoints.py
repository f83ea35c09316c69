"""Checkpoints that survive a kill at any moment, and that load no code."""

import io
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.io import TorchCheckpointIO

from ptrnet.files import atomic_path


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the old checkpoint, then renames; reads tensors and plain values only."""

    def save_checkpoint(self, checkpoint: Any, path: Any, storage_options: Any = None) -> None:
        content = io.BytesIO()
        torch.save(checkpoint, content)
        with atomic_path(Path(path)) as temporary:
            temporary.write_bytes(content.getbuffer())

    def load_checkpoint(
        self, path: Any, map_location: Any = None, weights_only: bool | None = True
    ) -> dict[str, Any]:
        found: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return found


class PeriodicCheckpoint(pl.Callback):
    """Keeps the newest state of the run, every so many steps and at the end."""

    def __init__(self, path: Path, every: int) -> None:
        self.path, self.every = path, every

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any
    ) -> None:
        step = trainer.global_step
        if step % self.every == 0 or step == trainer.max_steps:
            trainer.save_checkpoint(self.path)
