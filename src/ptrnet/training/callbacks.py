"""Lightning callbacks for checkpoints, checks and progress, and the caller's hooks."""

import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.io import TorchCheckpointIO
from lightning.pytorch.loggers import Logger
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column
from torch import Tensor

from ptrnet.errors import DivergedError, InputError, MissingExtraError, ModelError, unknown
from ptrnet.metrics import summary
from ptrnet.metrics.interval import Moments
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import METRICS
from ptrnet.training import checkpoint as run_checkpoint
from ptrnet.types import Indices

LOGGERS = ("mlflow", "wandb")


@dataclass(frozen=True)
class Hooks:
    """The caller's own callbacks and loggers.

    If a callback changes the training, the recipe alone no longer determines the weights.

    Args:
        callbacks: objects of `lightning.pytorch.Callback`.
        loggers: objects of `lightning.pytorch.loggers.Logger`, or names in `LOGGERS`. "wandb" and
            "mlflow" need the extra of the same name. If `MLFLOW_TRACKING_URI` is set, "mlflow" logs
            to this address. Otherwise "mlflow" writes `logs/mlflow.db` in the run's folder.

    Raises:
        InputError: a callback or a logger has the wrong class, or a logger's name is unknown.
        MissingExtraError: a logger's package is not installed.
    """

    callbacks: tuple[pl.Callback, ...] = ()
    loggers: tuple[Logger | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "callbacks", _listed(self.callbacks, "callbacks"))
        object.__setattr__(self, "loggers", _listed(self.loggers, "loggers"))
        for callback in self.callbacks:
            if not isinstance(callback, pl.Callback):
                raise InputError(
                    "callbacks: expected objects of lightning.pytorch.Callback, "
                    f"got {type(callback).__module__}.{type(callback).__name__}"
                )
        for logger in self.loggers:
            if isinstance(logger, str):
                _check_name(logger)
            elif not isinstance(logger, Logger):
                raise InputError(
                    "loggers: expected objects of lightning.pytorch.loggers.Logger, "
                    f"got {type(logger).__module__}.{type(logger).__name__}"
                )

    def loggers_of(self, output: Path) -> list[Logger]:
        """Return the loggers of a run in the folder `output`. This function writes nothing."""
        return [
            _build_logger(logger, output) if isinstance(logger, str) else logger
            for logger in self.loggers
        ]


class LogRecipe(pl.Callback):
    """Logs the recipe to the caller's loggers when the training begins."""

    def __init__(self, loggers: list[Logger], facts: dict[str, Any]) -> None:
        self.loggers, self.facts = loggers, facts

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        for logger in self.loggers:
            logger.log_hyperparams(self.facts)


def _listed(values: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise InputError(f"{name}: expected a list, got {type(values).__name__}")
    return tuple(values)


def _check_name(name: str) -> None:
    if name not in LOGGERS:
        raise unknown("logger", name, LOGGERS)
    if find_spec(name) is None:
        raise MissingExtraError(f"logger {name}", name)


def _build_logger(name: str, output: Path) -> Logger:
    from lightning.pytorch.loggers import MLFlowLogger, WandbLogger

    if name == "wandb":
        return WandbLogger(name=output.name, save_dir=output / "logs", project="ptrnet")
    logs = (output / "logs").resolve()
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{logs}/mlflow.db"
    return MLFlowLogger("ptrnet", run_name=output.name, tracking_uri=uri)


class BestWeights(pl.Callback):
    """Saves the model of the latest validation whose loss is close to the lowest. Stops early.

    With `patience`, the callback also keeps the weights of this validation, which the training ends
    with.

    A mean loss is close to the lowest mean loss if it exceeds the lowest by at most one standard
    error. To compute this error, subtract the losses of the best validation from the losses of the
    new validation, example by example, and take the standard error of the mean of the differences,
    which only counts groups as independent if the examples have groups.
    With few examples the lowest loss is partly chance, and weights of a later step with nearly the
    same loss do better on new data (one-standard-error rule; Breiman et al. 1984).

    The callback's state is part of every checkpoint, so a resumed run stops at the same step as a
    run that was never interrupted.

    Args:
        patience: stop after this many validations in a row without a lower loss; 0 means never.
        save: saves the present model; called with the step.
        groups: `(num_examples,)`, the codes of the groups of the validation examples, if known.
    """

    state_key = "best_weights"

    def __init__(
        self, patience: int, save: Callable[[int], None], groups: Indices | None = None
    ) -> None:
        self.patience, self.save, self.groups, self.waited = patience, save, groups, 0
        self.losses: Tensor | None = None  # (num_examples,) of the validation with the lowest mean
        self.step = 0  # the step of the model that was saved; 0 if none was
        self.weights: dict[str, Tensor] = {}  # of this step, if there is a patience

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        losses = torch.cat(pl_module.valid_losses).double().cpu()  # type: ignore[arg-type]
        self.waited += 1
        if self._is_as_good(losses):
            self.step = trainer.global_step
            if self.patience:
                state = pl_module.state_dict()
                self.weights = {name: tensor.cpu().clone() for name, tensor in state.items()}
            if trainer.is_global_zero:
                self.save(self.step)
        if self.losses is None or losses.mean() < self.losses.mean():
            self.losses, self.waited = losses, 0
        if self.has_ended:
            trainer.should_stop = True
            if trainer.is_global_zero:
                print(
                    f"stopped at step {trainer.global_step}: the validation loss has not fallen "
                    f"below its lowest value in {self.patience} validations; the kept weights are "
                    f"those of step {self.step}, the last ones within a standard error of it",
                    file=sys.stderr,
                )

    def _is_as_good(self, losses: Tensor) -> bool:
        if self.losses is None:
            return True
        excess = (losses - self.losses).numpy()
        return bool(excess.mean() <= Moments.of(excess, self.groups).standard_error())

    @property
    def has_ended(self) -> bool:
        """Whether the patience is used up. Always False if `patience` is 0."""
        return 0 < self.patience <= self.waited

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("waited", "losses", "step", "weights")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name, value in state_dict.items():
            setattr(self, name, value)


class CheckedCheckpointIO(TorchCheckpointIO):
    """Writes checkpoints atomically. Verifies the checksum of a checkpoint before loading it.

    Loading a checkpoint runs no code from the file.
    """

    def save_checkpoint(self, checkpoint: Any, path: Any, storage_options: Any = None) -> None:
        # A callback of the caller may save to a folder that does not exist yet.
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        run_checkpoint.write(Path(path), checkpoint)

    def load_checkpoint(
        self, path: Any, map_location: Any = None, weights_only: bool | None = True
    ) -> dict[str, Any]:
        return run_checkpoint.read(Path(path))


class PeriodicCheckpoint(pl.Callback):
    """Saves a checkpoint every `every` steps, with each better model, and at the end.

    If a validation follows a step, the callback saves after the validation, because a run that is
    resumed at this step does not validate again. A resumed run thus knows how good the model in its
    folder is, and does not replace it by a worse one.
    """

    def __init__(self, path: Path, every: int, valid_every: int, best: BestWeights) -> None:
        self.path, self.every, self.valid_every, self.best = path, every, valid_every, best

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any
    ) -> None:
        validates = trainer.enable_validation and trainer.global_step % self.valid_every == 0
        if self._due(trainer) and not validates:
            trainer.save_checkpoint(self.path)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        is_better = self.best.step == trainer.global_step
        is_better = trainer.strategy.reduce_boolean_decision(is_better, all=False)
        if self._due(trainer) or trainer.should_stop or is_better:
            trainer.save_checkpoint(self.path)

    def _due(self, trainer: pl.Trainer) -> bool:
        step = trainer.global_step
        return step % self.every == 0 or step == trainer.max_steps


LOSS_ROUNDING = 1e-2  # rounding to bfloat16 may push a mean loss below 0 by this much


class FiniteLoss(pl.Callback):
    """Raises DivergedError if a loss or a weight is not finite.

    This must be the first callback, so that later callbacks never save or log diverged weights.

    A single process on a CPU checks the loss after every step. On a GPU or with several processes,
    every step would have to wait for such a check, so we collect the losses. At multiples of
    `intervals` and at the end, we check the collected losses and the weights.

    Args:
        folder: the folder of the run. The error names the last good checkpoint in this folder.
        intervals: numbers of steps between checks of the weights. The intervals of validations and
            of checkpoints must be among these numbers.
        is_likelihood: whether the loss is a negative log-likelihood. No probability is above 1, so
            such a loss must not be below 0. If it is below -LOSS_ROUNDING, raise ModelError.
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
        is_negative = self.is_likelihood and bool((losses < -LOSS_ROUNDING).any())
        if trainer.strategy.reduce_boolean_decision(is_negative, all=False):
            raise ModelError(
                "the loss is below 0: the model's log_probs must be log-probabilities, such as the "
                "output of log_softmax"
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
    """Return the error of a diverged run. The message names the last good checkpoint, if any."""
    good = run_checkpoint.read_last(folder)
    advice = "there is no checkpoint yet; start again with a smaller --learning-rate"
    if good:
        advice = (
            f"the last good checkpoint, of step {good.content['global_step']}, is {good.path}; "
            f"to start from the best model so far, use --weights {folder} with a smaller "
            "--learning-rate and another --output"
        )
    return DivergedError(
        f"training diverged at step {step}: the loss or the weights are not finite; {advice}"
    )


LOG_EVERY = 50  # steps; reading the loss more often would slow down small models
LINE_EVERY = 60.0  # seconds between lines if standard error is not a terminal


class TrainingProgress(pl.Callback):
    """Shows and logs the mean of each metric over the last LOG_EVERY steps.

    The text leaves out an accuracy that says nothing; see `ptrnet.metrics.summary.shows`.

    If standard error is not a terminal, the callback prints lines instead of a progress bar.
    """

    def __init__(self, batch_size: int, task: Task) -> None:
        self.batch_size, self.task = batch_size, task
        self.console = Console(stderr=True)
        self.recent: list[dict[str, Any]] = []
        self.valid = ""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.last_log = self.last_line = time.perf_counter()
        self.console.quiet = not trainer.is_global_zero
        self.bar = Progress(
            TextColumn("{task.completed}/{task.total}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=6),
            # On a narrow terminal, truncate the status and never the remaining time.
            TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
            TextColumn("left, {task.fields[status]}", table_column=Column(no_wrap=True)),
            console=self.console,
            disable=not self.console.is_terminal,
            speed_estimate_period=120,
        )
        self.bar_task = self.bar.add_task("", total=trainer.max_steps, status="")
        self.bar.update(self.bar_task, completed=trainer.global_step)
        self.first_step = trainer.global_step
        self.started = self.last_log
        self.bar.start()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, *_: Any
    ) -> None:
        self.recent.append(outputs)
        step = trainer.global_step
        if step % LOG_EVERY and step != trainer.max_steps:
            return
        now = time.perf_counter()
        rate = len(self.recent) * self.batch_size / (now - self.last_log)
        means = {key: sum(float(o[key]) for o in self.recent) / len(self.recent) for key in outputs}
        self.recent, self.last_log = [], now
        pl_module.log_dict({**means, "examples_per_second": rate})
        # Round as the text does, so that it does not show an accuracy of 0.0%.
        shown = {k: v for k, v in means.items() if summary.shows(self.task, k, round(v, 3))}
        metrics = " ".join(f"{key} {_text(key, value)}" for key, value in shown.items())
        status = f"{metrics} {rate:,.0f} examples/s{self.valid}"
        self.bar.update(self.bar_task, completed=step, status=status)
        if not self.console.is_terminal and (
            now - self.last_line > LINE_EVERY or step == trainer.max_steps
        ):
            self.last_line = now
            left = (now - self.started) / (step - self.first_step) * (trainer.max_steps - step)
            self.console.print(
                f"step {step}/{trainer.max_steps} {status} {left / 60:.0f} min left",
                soft_wrap=True,
                highlight=False,
            )

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # A later key replaces an earlier one. All kinds log the accuracy, so it comes first.
        for key in dict.fromkeys(("accuracy", "cost", "gap", *METRICS.values())):
            value = trainer.callback_metrics.get(f"valid_{key}")
            if value is not None:
                name = "" if key in ("accuracy", "cost") else f"{key} "
                self.valid = f" valid {name}{_text(key, float(value))}"

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.bar.stop()

    def on_exception(self, trainer: pl.Trainer, *_: Any) -> None:
        if hasattr(self, "bar"):
            self.bar.stop()


def _text(metric: str, value: float) -> str:
    """Format accuracies in percent, costs with 5 digits, and other metrics with 3 decimals."""
    if metric == "accuracy":
        return f"{value:.1%}"
    return f"{value:.5g}" if metric == "cost" else f"{value:.3f}"
