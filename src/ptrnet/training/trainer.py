"""Lightning's trainer, set up by a recipe, and its loop over the batches."""

import contextlib
import logging
import os
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader

from ptrnet.data.streams import BatchStream
from ptrnet.parallel import end_with
from ptrnet.training import checkpoint
from ptrnet.training.callbacks import (
    LOG_EVERY,
    BestWeights,
    CheckedCheckpointIO,
    FiniteLoss,
    Hooks,
    LogRecipe,
    PeriodicCheckpoint,
    TrainingProgress,
)
from ptrnet.training.examples import TrainingExamples
from ptrnet.training.hardware import device_of, matmul_precision, precision_of
from ptrnet.training.module import TrainingModule
from ptrnet.training.recipe import Recipe
from ptrnet.types import Batch, CutBatch

_LAUNCHER = "_PTRNET_LAUNCHER"  # the variable with the number of the process that launched this one


def is_main_process() -> bool:
    """Whether this is the one of a training's processes that writes and prints."""
    return getattr(rank_zero_only, "rank", 0) == 0


def end_with_launcher() -> None:
    """Lets a process that another one has launched to share its training end with that one.

    Killed, that one could not end it; and it would wait for it half an hour.
    """
    launcher = os.environ.get(_LAUNCHER, "")
    if launcher.isdecimal() and not is_main_process():
        end_with(int(launcher))


@contextlib.contextmanager
def _named_as_launcher() -> Iterator[None]:
    """The processes that this one starts meanwhile know who started them."""
    if not is_main_process():
        yield
        return
    os.environ[_LAUNCHER] = str(os.getpid())
    try:
        yield
    finally:
        os.environ.pop(_LAUNCHER, None)  # another thread's training may have removed it


def build_trainer(recipe: Recipe, output: Path, best: BestWeights, hooks: Hooks) -> pl.Trainer:
    """A trainer that logs and saves into the folder `output`; nothing is written there yet.

    Raises:
        InputError: a device or a precision that this machine has not.
    """
    device = device_of(recipe.device)
    precision = precision_of(recipe, device)
    for part in ("pytorch", "fabric"):
        logging.getLogger(f"lightning.{part}").setLevel(logging.ERROR)
    logs, loggers = output / "logs", hooks.loggers_of(output)
    valid_every = min(recipe.valid_every, recipe.steps)  # a short run validates at its end
    return pl.Trainer(
        max_steps=recipe.steps,
        accelerator=device,
        devices=recipe.devices,
        num_nodes=recipe.nodes,
        strategy="ddp" if recipe.devices * recipe.nodes > 1 else "auto",
        use_distributed_sampler=False,  # streams share batches, and all processes validate alike
        precision="bf16-mixed" if precision == "bfloat16" else "32-true",
        val_check_interval=valid_every,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        log_every_n_steps=LOG_EVERY,
        logger=[
            CSVLogger(logs, "csv"),
            TensorBoardLogger(logs, "tensorboard"),
            *loggers,
        ],
        callbacks=[
            FiniteLoss(
                output,
                LOG_EVERY,
                recipe.checkpoint_every,
                valid_every,
                is_likelihood=recipe.learning == "answers",
            ),
            TrainingProgress(recipe.batch_size),
            *([best] if recipe.patience else []),
            LogRecipe(loggers, recipe.table()),
            *hooks.callbacks,
            PeriodicCheckpoint(output / checkpoint.LAST, recipe.checkpoint_every, valid_every),
        ],
        plugins=[CheckedCheckpointIO()],
        enable_checkpointing=any(isinstance(c, Checkpoint) for c in hooks.callbacks),
        enable_progress_bar=False,
        enable_model_summary=False,
    )


class RankBatches:
    """The part of every batch that this process trains on.

    Which that is, the trainer knows only when it has started its processes.
    """

    def __init__(self, stream: BatchStream[Any], trainer: pl.Trainer) -> None:
        self.stream, self.trainer = stream, trainer

    def __iter__(self) -> Iterator[Batch | CutBatch]:
        return self.stream.batches(self.trainer.global_rank, self.trainer.world_size)


def run_trainer(
    trainer: pl.Trainer,
    module: TrainingModule,
    examples: TrainingExamples,
    resume_from: Path | None,
) -> None:
    """Trains to the end, from the checkpoint's step on where there is one.

    Raises:
        KeyboardInterrupt: the training was interrupted.
        DivergedError: its loss is no finite number; nothing was saved since the last good step.
    """
    valid: Any = examples.valid_batches
    valid_loader = DataLoader(valid, batch_size=None, collate_fn=_as_is) if valid else None
    device = device_of(module.recipe.device)
    precision = precision_of(module.recipe, device)
    try:
        with (
            warnings.catch_warnings(),
            matmul_precision(precision, device),
            _named_as_launcher(),
            _quiet_log_threads(),
        ):
            # Lightning warns of what is meant here: batches without workers, a run that ends in
            # the midst of an epoch, a checkpoint there.
            warnings.simplefilter("ignore")
            batches = RankBatches(examples.stream, trainer)
            trainer.fit(module, batches, valid_loader, ckpt_path=resume_from, weights_only=True)
    except SystemExit:  # Lightning's answer to an interrupt
        raise KeyboardInterrupt from None
    finally:
        if torch.distributed.is_initialized():  # its threads would abort the process at its end
            torch.distributed.destroy_process_group()


@contextlib.contextmanager
def _quiet_log_threads() -> Iterator[None]:
    """No traceback of a thread that cannot write: TensorBoard raises it again in the main one."""
    hook = threading.excepthook

    def print_others(arguments: threading.ExceptHookArgs) -> None:
        if not issubclass(arguments.exc_type, OSError):
            hook(arguments)

    threading.excepthook = print_others
    try:
        yield
    except OSError:
        time.sleep(0.1)  # the thread, too, has come to its end then
        raise
    finally:
        threading.excepthook = hook


def _as_is(batch: Any) -> Any:
    """Instead of torch's conversion, which makes tensors of the arrays of an `InstanceBatch`."""
    return batch
