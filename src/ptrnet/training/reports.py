"""What a training tells: its progress, its loggers, and the caller's own functions."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from lightning_fabric.loggers import CSVLogger, TensorBoardLogger
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Column
from torch import Tensor

from ptrnet.errors import InputError, check_package, unknown
from ptrnet.metrics import summary
from ptrnet.tasks.custom import METRICS
from ptrnet.training.recipe import Recipe

LOGGERS = ("mlflow", "wandb")
LOG_EVERY = 50  # steps; reading the loss more often would slow down small models
LINE_EVERY = 60.0  # seconds between lines if standard error is not a terminal

# Takes the number of a step and its metrics. If it returns True, the training ends.
StepHook = Callable[[int, Mapping[str, Tensor | float]], bool | Tensor | None]
Log = Callable[[Mapping[str, float], int], None]  # takes metrics and the number of their step


@runtime_checkable
class Logger(Protocol):
    """The methods of a logger that a training calls. Lightning's loggers have them."""

    def log_hyperparams(self, params: dict[str, Any], /) -> Any:
        """Log the recipe, before the first step."""

    def log_metrics(self, metrics: dict[str, float], step: int, /) -> Any:
        """Log metrics of a step. Steps count from 0."""

    def finalize(self, status: str, /) -> Any:
        """Write what is not written yet. `status` is "success" or "failed"."""


@dataclass(frozen=True)
class Hooks:
    """The caller's own functions and loggers.

    Args:
        callbacks: functions `callback(step, metrics)`, called after each step. The metrics are
            `loss` and `accuracy` (or `cost`), as tensors, because to read a number makes a GPU
            wait. After a validation there are also the numbers `valid_loss` and so on. If a
            function returns True, the training ends after this step. If there are several
            processes, each calls the functions, and those of the main process decide.
        loggers: objects with the methods of `Logger`, such as those of `lightning.pytorch.loggers`
            or `lightning_fabric.loggers`, or names in `LOGGERS`. "wandb" and "mlflow" need the
            extra of the same name. If `MLFLOW_TRACKING_URI` is set, "mlflow" logs to this address.
            Otherwise "mlflow" writes `logs/mlflow.db` in the run's folder.

    Raises:
        InputError: a callback is not a function, a logger lacks a method, or a logger's name is
            unknown.
        MissingExtraError: a logger's package is not installed.
    """

    callbacks: tuple[StepHook, ...] = ()
    loggers: tuple[Logger | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "callbacks", _to_tuple(self.callbacks, "callbacks"))
        object.__setattr__(self, "loggers", _to_tuple(self.loggers, "loggers"))
        for callback in self.callbacks:
            if not callable(callback):
                raise InputError(
                    "callbacks: expected functions callback(step, metrics), "
                    f"got {type(callback).__module__}.{type(callback).__name__}"
                )
        for logger in self.loggers:
            if isinstance(logger, str):
                if logger not in LOGGERS:
                    raise unknown("logger", logger, LOGGERS)
                check_package(logger, f"logger {logger}", logger)
            elif isinstance(logger, type) or not isinstance(logger, Logger):
                raise InputError(
                    "loggers: expected objects with the methods log_hyperparams, log_metrics and "
                    f"finalize, got {type(logger).__module__}.{type(logger).__name__}"
                )

    def after_step(self, step: int, metrics: Mapping[str, Tensor | float]) -> bool:
        """Call all callbacks. Return whether one of them ends the training."""
        answers = [callback(step, metrics) for callback in self.callbacks]
        # A comparison of `metrics["loss"]` is a tensor, and one of NumPy's numbers is a `np.bool_`.
        return any(bool(a) for a in answers if isinstance(a, bool | np.bool_ | Tensor))

    @contextlib.contextmanager
    def logging(self, output: Path, recipe: Recipe) -> Iterator[Log]:
        """Log the recipe to the caller's loggers. Yield a function that logs metrics to all.

        On exit, the loggers write what they have not written yet.
        """
        logs, loggers, status = output / "logs", list[Logger](), "failed"
        csv = CSVLogger(logs, "csv", flush_logs_every_n_steps=1)

        def end(logger: Logger) -> None:
            logger.finalize(status)

        with contextlib.ExitStack() as ends:  # ends all loggers, even if one of them fails
            for each in (csv, TensorBoardLogger(logs, "tensorboard"), *self.loggers):
                logger = _built(each, output) if isinstance(each, str) else each
                ends.callback(end, logger)
                loggers.append(logger)
            for logger in loggers[2:]:  # the folder of the run has the recipe already
                logger.log_hyperparams(recipe.table())

            def log(metrics: Mapping[str, float], step: int) -> None:
                for logger in loggers:
                    try:
                        logger.log_metrics(dict(metrics), step)
                    except ValueError as error:
                        # TensorBoard's logger says of any failure that it cannot log this value.
                        if isinstance(error.__cause__, OSError):
                            raise error.__cause__ from None
                        raise

            yield log
            status = "success"


def _to_tuple(values: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise InputError(f"{name}: expected a list, got {type(values).__name__}")
    return tuple(values)


def _built(name: str, output: Path) -> Logger:
    from ptrnet.training.loggers import MlflowLogger, WandbLogger

    return MlflowLogger(output) if name == "mlflow" else WandbLogger(output)


class Progress:
    """Shows and logs the mean of each metric over the last LOG_EVERY steps.

    The text leaves out an accuracy that says nothing; see `ptrnet.metrics.summary.shows`. If
    standard error is not a terminal, lines take the place of the bar. `step` steps were done
    before. If `log` is None, nothing is shown, because this is not the main process.
    """

    def __init__(self, recipe: Recipe, step: int, log: Log | None) -> None:
        self.recipe, self.first, self.log = recipe, step, log
        self.recent: list[Mapping[str, Tensor]] = []
        self.valid = ""
        self.console = Console(stderr=True, quiet=log is None)
        self.bar = RichProgress(
            TextColumn("{task.completed}/{task.total}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=6),
            # On a narrow terminal, truncate the status and never the remaining time.
            TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
            TextColumn("left, {task.fields[status]}", table_column=Column(no_wrap=True)),
            console=self.console,
            disable=not self.console.is_terminal,
            speed_estimate_period=120,
        )

    def __enter__(self) -> Self:
        self.started = self.last_log = self.last_line = time.perf_counter()
        self.bar_task = self.bar.add_task("", total=self.recipe.run.steps, status="")
        self.bar.update(self.bar_task, completed=self.first)
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def add(self, step: int, metrics: Mapping[str, Tensor]) -> None:
        """Take the metrics of a step."""
        if self.log is None:
            return
        self.recent.append(metrics)
        last = self.recipe.run.steps
        if step % LOG_EVERY and step != last:
            return
        now = time.perf_counter()
        rate = len(self.recent) * self.recipe.data.batch_size / (now - self.last_log)
        means = {k: sum(float(m[k]) for m in self.recent) / len(self.recent) for k in metrics}
        self.recent, self.last_log = [], now
        self._log({**means, "examples_per_second": rate}, step)
        # Round as the text does, so that it does not show an accuracy of 0.0%.
        shown = {k: v for k, v in means.items() if summary.shows(self.recipe.task, k, round(v, 3))}
        texts = " ".join(f"{key} {_text(key, value)}" for key, value in shown.items())
        status = f"{texts} {rate:,.0f} examples/s{self.valid}"
        self.bar.update(self.bar_task, completed=step, status=status)
        if not self.console.is_terminal and (now - self.last_line > LINE_EVERY or step == last):
            self.last_line = now
            left = (now - self.started) / (step - self.first) * (last - step)
            self.say(f"step {step}/{last} {status} {left / 60:.0f} min left")

    def add_validation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take the metrics of a validation."""
        if self.log is None:
            return
        self._log(metrics, step)
        # A later key replaces an earlier one. All kinds log the accuracy, so it comes first.
        for key in dict.fromkeys(("accuracy", "cost", "gap", *METRICS.values())):
            if f"valid_{key}" in metrics:
                name = "" if key in ("accuracy", "cost") else f"{key} "
                self.valid = f" valid {name}{_text(key, metrics[f'valid_{key}'])}"

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, soft_wrap=True, highlight=False, markup=False)

    def _log(self, metrics: Mapping[str, float], step: int) -> None:
        assert self.log is not None
        self.log({"epoch": 0, **metrics}, step - 1)  # logs count steps from 0


def _text(metric: str, value: float) -> str:
    """Format accuracies in percent, costs with 5 digits, and other metrics with 3 decimals."""
    if metric == "accuracy":
        return f"{value:.1%}"
    return f"{value:.5g}" if metric == "cost" else f"{value:.3f}"
