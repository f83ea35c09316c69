"""The caller's own functions and loggers, and the loggers of every run."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lightning.fabric.loggers import CSVLogger, Logger, TensorBoardLogger
from torch import Tensor

from ptrnet.errors import InputError, MissingExtraError, unknown
from ptrnet.training.recipe import Recipe

LOGGERS = ("mlflow", "wandb")

# Takes the number of a step and its metrics. If it returns True, the training ends.
StepHook = Callable[[int, Mapping[str, Tensor | float]], bool | None]
Log = Callable[[Mapping[str, float], int], None]  # takes metrics and the number of their step


@dataclass(frozen=True)
class Hooks:
    """The caller's own functions and loggers.

    Args:
        callbacks: functions `callback(step, metrics)`, called after each step. The metrics are
            `loss` and `accuracy` (or `cost`), as tensors, because to read a number makes a GPU
            wait. After a validation there are also the numbers `valid_loss` and so on. If a
            function returns True, the training ends after this step.
        loggers: objects of `lightning.fabric.loggers.Logger`, such as those of
            `lightning.pytorch.loggers`, or names in `LOGGERS`. "wandb" and "mlflow" need the extra
            of the same name. If `MLFLOW_TRACKING_URI` is set, "mlflow" logs to this address.
            Otherwise "mlflow" writes `logs/mlflow.db` in the run's folder.

    Raises:
        InputError: a callback is not a function, a logger has the wrong class, or a logger's name
            is unknown.
        MissingExtraError: a logger's package is not installed.
    """

    callbacks: tuple[StepHook, ...] = ()
    loggers: tuple[Logger | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "callbacks", _listed(self.callbacks, "callbacks"))
        object.__setattr__(self, "loggers", _listed(self.loggers, "loggers"))
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
                if find_spec(logger) is None:
                    raise MissingExtraError(f"logger {logger}", logger)
            elif not isinstance(logger, Logger):
                raise InputError(
                    "loggers: expected objects of lightning.fabric.loggers.Logger, "
                    f"got {type(logger).__module__}.{type(logger).__name__}"
                )

    def after_step(self, step: int, metrics: Mapping[str, Tensor | float]) -> bool:
        """Call all callbacks. Return whether one of them ends the training."""
        answers = [callback(step, metrics) for callback in self.callbacks]
        return any(answer is True for answer in answers)

    @contextlib.contextmanager
    def logging(self, output: Path, recipe: Recipe) -> Iterator[Log]:
        """Log the recipe to the caller's loggers. Yield a function that logs metrics to all.

        On exit, the loggers write what they have not written yet.
        """
        own = [_built(each, output) if isinstance(each, str) else each for each in self.loggers]
        logs = output / "logs"
        csv = CSVLogger(logs, "csv", flush_logs_every_n_steps=1)
        loggers = [csv, TensorBoardLogger(logs, "tensorboard"), *own]
        for logger in own:
            logger.log_hyperparams(recipe.table())

        def log(metrics: Mapping[str, float], step: int) -> None:
            for logger in loggers:
                logger.log_metrics(dict(metrics), step)

        status = "failed"
        try:
            yield log
            status = "success"
        finally:
            for logger in loggers:
                logger.finalize(status)


def _listed(values: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise InputError(f"{name}: expected a list, got {type(values).__name__}")
    return tuple(values)


def _built(name: str, output: Path) -> Logger:
    from lightning.pytorch.loggers import MLFlowLogger, WandbLogger

    if name == "wandb":
        return WandbLogger(name=output.name, save_dir=output / "logs", project="ptrnet")
    logs = (output / "logs").resolve()
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{logs}/mlflow.db"
    return MLFlowLogger("ptrnet", run_name=output.name, tracking_uri=uri)
