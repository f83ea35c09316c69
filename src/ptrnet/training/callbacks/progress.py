"""The progress bar of a training: loss, accuracy or cost, examples a second. On standard error."""

import time
from typing import Any

import lightning.pytorch as pl
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

LOG_EVERY = 50  # steps; reading the loss more often would slow small models
LINE_EVERY = 60.0  # seconds between lines where there is no terminal


class TrainingProgress(pl.Callback):
    """Shows and logs means over the last LOG_EVERY steps; as lines where there is no terminal."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self.console = Console(stderr=True)
        self.recent: list[dict[str, Any]] = []
        self.valid = ""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.last_log = self.last_line = time.perf_counter()
        self.console.quiet = not trainer.is_global_zero
        self.bar = Progress(
            TextColumn("{task.completed}/{task.total}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=6),
            # The time left keeps its place on a narrow terminal; the status is cut at its end.
            TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
            TextColumn("left, {task.fields[status]}", table_column=Column(no_wrap=True)),
            console=self.console,
            disable=not self.console.is_terminal,
            speed_estimate_period=120,
        )
        self.task = self.bar.add_task("", total=trainer.max_steps, status="")
        self.bar.update(self.task, completed=trainer.global_step)
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
        metrics = " ".join(f"{key} {_text(key, value)}" for key, value in means.items())
        status = f"{metrics} {rate:,.0f} examples/s{self.valid}"
        self.bar.update(self.task, completed=step, status=status)
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
        for key in ("accuracy", "cost"):
            value = trainer.callback_metrics.get(f"valid_{key}")
            if value is not None:
                self.valid = f" valid {_text(key, float(value))}"

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.bar.stop()

    def on_exception(self, trainer: pl.Trainer, *_: Any) -> None:
        if hasattr(self, "bar"):
            self.bar.stop()


def _text(metric: str, value: float) -> str:
    """A share in percent, a loss with three digits, a cost with as many as tell."""
    if metric == "accuracy":
        return f"{value:.1%}"
    return f"{value:.3f}" if metric == "loss" else f"{value:.5g}"
