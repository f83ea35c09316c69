"""Show and log the metrics of a training while it runs."""

import time
from collections.abc import Mapping
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Column
from torch import Tensor

from ptrnet.metrics import summary
from ptrnet.tasks.custom import METRICS
from ptrnet.training.hooks import Log
from ptrnet.training.recipe import Recipe

LOG_EVERY = 50  # steps; reading the loss more often would slow down small models
LINE_EVERY = 60.0  # seconds between lines if standard error is not a terminal


class Progress:
    """Shows and logs the mean of each metric over the last LOG_EVERY steps.

    The text leaves out an accuracy that says nothing; see `ptrnet.metrics.summary.shows`. If
    standard error is not a terminal, lines take the place of the bar.

    Args:
        recipe: the recipe of the training.
        step: the number of steps before the first one.
        log: logs metrics. None: show nothing, because this is not the main process.
    """

    def __init__(self, recipe: Recipe, step: int, log: Log | None) -> None:
        self.recipe, self.first, self.log = recipe, step, log
        self.recent: list[Mapping[str, Tensor]] = []
        self.valid = ""
        self.console = Console(stderr=True, quiet=log is None)
        self.bar = Bar(
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
