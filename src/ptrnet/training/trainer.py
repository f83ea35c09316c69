"""Build Lightning's trainer from a recipe, and run it."""

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

_LAUNCHER = "_PTRNET_LAUNCHER"  # environment variable: the process id of the main process


def is_main_process() -> bool:
    """Whether this is the main process of the training. Only the main process writes and prints."""
    return getattr(rank_zero_only, "rank", 0) == 0


def end_with_launcher() -> None:
    """Make this process end when the main process of its training ends.

    If the main process is killed, it cannot stop the other processes. Without this function, they
    would wait for half an hour.
    """
    launcher = os.environ.get(_LAUNCHER, "")
    if launcher.isdecimal() and not is_main_process():
        end_with(int(launcher))


@contextlib.contextmanager
def _named_as_launcher() -> Iterator[None]:
    """In this context, put our process id into the environment, for processes that we launch."""
    if not is_main_process():
        yield
        return
    os.environ[_LAUNCHER] = str(os.getpid())
    try:
        yield
    finally:
        os.environ.pop(_LAUNCHER, None)  # a training in another thread may have removed the name


def build_trainer(recipe: Recipe, output: Path, best: BestWeights, hooks: Hooks) -> pl.Trainer:
    """Build a trainer that will log and save to the folder `output`. This function writes nothing.

    Raises:
        InputError: this machine does not have the device or the precision of the recipe.
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
        # `RankBatches` splits the training batches. Every process uses all validation examples.
        use_distributed_sampler=False,
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
            TrainingProgress(recipe.batch_size, recipe.task),
            best,
            LogRecipe(loggers, recipe.table()),
            *hooks.callbacks,
            PeriodicCheckpoint(
                output / checkpoint.LAST, recipe.checkpoint_every, valid_every, best
            ),
        ],
        plugins=[CheckedCheckpointIO()],
        enable_checkpointing=any(isinstance(c, Checkpoint) for c in hooks.callbacks),
        enable_progress_bar=False,
        enable_model_summary=False,
    )


class RankBatches:
    """Iterable over this process's part of each training batch.

    The trainer knows the rank of this process only after it has started all processes. So we read
    the rank when the iteration begins.
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
    """Train to the last step. If `resume_from` is given, start from this checkpoint.

    Raises:
        KeyboardInterrupt: the training was interrupted.
        DivergedError: the loss is not finite. The last good checkpoint is kept.
    """
    valid: Any = examples.valid_batches
    valid_loader = None
    if valid:  # torch's own collation would turn arrays of `InstanceBatch` into tensors
        valid_loader = DataLoader(
            valid,
            batch_size=None,
            collate_fn=lambda batch: batch,
            generator=torch.Generator(),  # without it, the loader draws from the global generator
        )
    device = device_of(module.recipe.device)
    precision = precision_of(module.recipe, device)
    try:
        with (
            warnings.catch_warnings(),
            matmul_precision(precision, device),
            _named_as_launcher(),
            _quiet_log_threads(),
        ):
            # Lightning warns about things that we do on purpose: load batches without workers, and
            # stop or save in the middle of an epoch.
            warnings.simplefilter("ignore")
            batches = RankBatches(examples.stream, trainer)
            trainer.fit(module, batches, valid_loader, ckpt_path=resume_from, weights_only=True)
    except SystemExit:  # Lightning raises SystemExit after an interrupt
        raise KeyboardInterrupt from None
    finally:
        # Without this call, the threads of the process group would abort this process at exit.
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


@contextlib.contextmanager
def _quiet_log_threads() -> Iterator[None]:
    """Hide tracebacks of log threads that cannot write.

    The user still sees the error, because TensorBoard raises it again in the main thread.
    """
    hook = threading.excepthook

    def print_others(arguments: threading.ExceptHookArgs) -> None:
        if not issubclass(arguments.exc_type, OSError):
            hook(arguments)

    threading.excepthook = print_others
    try:
        yield
    except OSError:
        time.sleep(0.1)  # keep the hook until the log thread has ended
        raise
    finally:
        threading.excepthook = hook
