"""Learning curves of runs, read from the logs in their folders and drawn for comparison."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ptrnet.errors import InputError
from ptrnet.types import Floats

METRICS = ("loss", "accuracy", "cost")
Axis = Literal["steps", "examples", "minutes"]
_LOGS = "logs/csv/version_*/metrics.csv"
_COLORS = ("#1f5fbf", "#d1495b", "#2a9d6f", "#b07d12", "#7b4fb5", "#4a5568", "#c2577f", "#0f8b8d")


@dataclass(frozen=True)
class Curves:
    """The logs of one run, by step."""

    name: str
    steps: Floats  # (num_steps,) number of updates of the weights so far, increasing
    examples: Floats  # (num_steps,) number of examples so far
    seconds: Floats  # (num_steps,) duration of the training so far, over all parts of a resumed run
    values: Mapping[str, Floats]  # by metric, (num_steps,) values; NaN for steps without a value


def read_curves(run: Path, batch_size: int) -> Curves:
    """Return the curves of a run, from the logs in its folder.

    Each part of a resumed run has its own logs. If a part was killed, the next part may have
    repeated some steps of the killed part. For such steps, return the values of the later part.
    Raises InputError if the folder has no logs, or a line of the logs is damaged.
    """
    parts = sorted(run.glob(_LOGS), key=lambda path: int(path.parent.name.partition("_")[2]))
    by_step: dict[int, dict[str, float]] = {}
    for path in parts:
        rows = _read_rows(path)
        if rows:
            first = min(rows)
            by_step = {step: row for step, row in by_step.items() if step < first}
        by_step.update(rows)
    if not by_step:
        raise InputError(f"{run}: holds no logs of a training (logs/csv/)")
    steps = np.array(sorted(by_step), np.float64)
    rates = np.array([by_step[int(s)].get("examples_per_second", math.nan) for s in steps])
    trained = ~np.isnan(rates)
    seconds = np.zeros(len(steps))
    seconds[trained] = np.diff(steps[trained], prepend=-1) * batch_size / rates[trained]
    names = sorted({name for row in by_step.values() for name in row})
    return Curves(
        name=run.name,
        steps=steps + 1,
        examples=(steps + 1) * batch_size,
        seconds=np.cumsum(seconds),
        values={n: np.array([by_step[int(s)].get(n, math.nan) for s in steps]) for n in names},
    )


def draw_curves(figure: Any, runs: Sequence[Curves], x: Axis) -> None:
    """Draw loss, accuracy and cost on separate axes. Leave out metrics that no run has.

    Thin lines show the training, thick lines the validation. The training's value at a step is the
    mean over all steps since the previous entry of the log.
    """
    metrics = [m for m in METRICS if any(m in r.values or f"valid_{m}" in r.values for r in runs)]
    grid = figure.subplots(len(metrics), 1, sharex=True, squeeze=False)[:, 0]
    for ax, metric in zip(grid, metrics, strict=True):
        for number, run in enumerate(runs):
            color = _COLORS[number % len(_COLORS)]
            _draw(ax, run, x, metric, color, linewidth=0.8, alpha=0.5)
            _draw(ax, run, x, f"valid_{metric}", color, linewidth=1.8, label=run.name)
        ax.set_ylabel(metric)
        drawn = [run.values.get(name) for run in runs for name in (metric, f"valid_{metric}")]
        # Costs are below 0 if the problem maximizes, and NaN where nothing was logged.
        if metric != "accuracy" and not any((v <= 0).any() for v in drawn if v is not None):
            ax.set_yscale("log")
        ax.grid(color="#e8eaed")
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    grid[-1].set_xlabel(x)
    grid[0].legend(frameon=False, fontsize="small")


def _draw(ax: Any, run: Curves, x: Axis, metric: str, color: str, **style: Any) -> None:
    values = run.values.get(metric, np.array([]))
    across = {"steps": run.steps, "examples": run.examples, "minutes": run.seconds / 60}[x]
    there = ~np.isnan(values)
    ax.plot(across[: len(values)][there], values[there], color=color, **style)


def _read_rows(path: Path) -> dict[int, dict[str, float]]:
    """Return the values that were logged at each step, by the step's number from 0."""
    rows: dict[int, dict[str, float]] = {}
    text = path.read_text(encoding="utf-8")
    # If the run is still writing or was killed, the last line may be incomplete.
    whole = text[: text.rfind("\n") + 1]
    with StringIO(whole, newline="") as stream:
        for number, line in enumerate(csv.DictReader(stream), 2):
            try:
                values = {k: float(v) for k, v in line.items() if k and v}
                rows.setdefault(int(values.pop("step")), {}).update(values)
            except (KeyError, TypeError, ValueError):
                raise InputError(f"{path}:{number}: expected a step, and numbers for it") from None
    return rows
