"""The loggers that have a name: MLflow and Weights & Biases."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class MlflowLogger:
    """Logs a run of the experiment "ptrnet".

    The run is at the address `MLFLOW_TRACKING_URI`. If this variable is not set, it is in
    `logs/mlflow.db`, in the folder of the run.
    """

    def __init__(self, output: Path) -> None:
        from mlflow import MlflowClient
        from mlflow.tracking.context.registry import resolve_tags

        database = (output / "logs" / "mlflow.db").resolve()
        address = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{database}"
        self._client = MlflowClient(address)  # our own, because the caller may have an active run
        known = self._client.get_experiment_by_name("ptrnet")
        experiment = known.experiment_id if known else self._client.create_experiment("ptrnet")
        run = self._client.create_run(experiment, tags=resolve_tags(), run_name=output.name)
        self._run = run.info.run_id

    def log_hyperparams(self, params: dict[str, Any]) -> None:
        from mlflow.entities import Param

        self._client.log_batch(self._run, params=[Param(k, str(v)) for k, v in params.items()])

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._client.log_batch(self._run, [Metric(k, v, now, step) for k, v in metrics.items()])

    def finalize(self, status: str) -> None:
        self._client.set_terminated(self._run, "FINISHED" if status == "success" else "FAILED")


class WandbLogger:
    """Logs a run of the project "ptrnet". If the caller has an active run, logs to this run."""

    def __init__(self, output: Path) -> None:
        import wandb

        self._is_own = wandb.run is None
        if not self._is_own:
            self._run = wandb.run
            return
        logs = output / "logs"
        logs.mkdir(exist_ok=True)  # otherwise wandb would write to a temporary folder
        self._run = wandb.init(project="ptrnet", name=output.name, dir=logs)
        self._run.define_metric("trainer/global_step")
        self._run.define_metric("*", step_metric="trainer/global_step", step_sync=True)

    def log_hyperparams(self, params: dict[str, Any]) -> None:
        self._run.config.update(params, allow_val_change=True)

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        self._run.log({**metrics, "trainer/global_step": step})

    def finalize(self, status: str) -> None:
        if self._is_own:
            self._run.finish(exit_code=int(status != "success"))
