"""What a caller hangs on a training: Lightning's callbacks, and loggers beside ptrnet's own."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger

from ptrnet.errors import InputError, MissingExtraError, unknown

LOGGERS = ("mlflow", "wandb")


@dataclass(frozen=True)
class Hooks:
    """Callbacks and loggers of a caller.

    A callback that changes what is trained changes the weights, and what a run that was stopped
    goes on to: then the recipe alone does not tell them any more.

    Args:
        callbacks: of the class `lightning.pytorch.Callback`.
        loggers: of the class `lightning.pytorch.loggers.Logger`, or a name of `LOGGERS`: Weights
            and Biases' (extra "wandb") or MLflow's (extra "mlflow"), which writes `mlflow.db` into
            the run's folder unless the environment says where (`MLFLOW_TRACKING_URI`).

    Raises:
        InputError: something else.
        MissingExtraError: a logger's package is not installed.
    """

    callbacks: tuple[Callback, ...] = ()
    loggers: tuple[Logger | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "callbacks", _listed(self.callbacks, "callbacks"))
        object.__setattr__(self, "loggers", _listed(self.loggers, "loggers"))
        for callback in self.callbacks:
            if not isinstance(callback, Callback):
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
        """The loggers, of a run in the folder `output`; nothing is written yet."""
        return [
            _build_logger(logger, output) if isinstance(logger, str) else logger
            for logger in self.loggers
        ]


class LogRecipe(Callback):
    """Tells the caller's loggers the recipe, when the training begins."""

    def __init__(self, loggers: list[Logger], facts: dict[str, Any]) -> None:
        self.loggers, self.facts = loggers, facts

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
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
