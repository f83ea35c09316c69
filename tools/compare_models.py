"""Every model trained for the same time on hulls and on sorting; writes results/variants.md.

    python tools/compare_models.py runs/variants --machine "2 cores of an AMD EPYC" --commit COMMIT

Each training gets the steps that fit into BUDGET seconds on all cores of this machine, as a short
run of its own measures them. The trainings then go side by side, one core each, which gives the
same weights' worth of work in less time. All of it can be stopped and started again. Hulls of the
test are labelled by Qhull, orders by NumPy.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

import ptrnet
from ptrnet import models
from ptrnet.metrics.interval import Measure, Z
from ptrnet.models.base import num_weights
from ptrnet.types import Example

N, UNITS, COUNT, SEED = 10, 256, 10_000, 20_260_300
BUDGET = 600.0  # seconds
TASKS = ("sort", "hull")
# What the papers rows: the second is better than the first.
PAPERS_ORDER = [
    *(
        (task, "V", worse, better)
        for task in TASKS
        for worse, better in (("seq2seq", "seq2seq-attention"), ("seq2seq-attention", "ptr-net"))
    ),
    ("hull", "W", "ptr-net", "memory-ptr-net"),
    ("sort", "C", "soft-ptr-net", "hard-ptr-net"),
    ("sort", "C", "soft-ptr-net", "multi-ptr-net"),
]
FREE_RUNNING = (
    "soft-ptr-net",
    "hard-ptr-net",
    "multi-ptr-net",
)  # fed their own distributions in training


def command(task: str, model: str, steps: int, output: Path) -> list[str]:
    """The training of one cell of the table."""
    feed = ["--no-teacher-forcing"] if model in FREE_RUNNING else []
    words = f"{task} --model {model} --n {N} --hidden-size {UNITS} --steps {steps}".split()
    return ["ptrnet", "train", *words, *feed, "--valid-batches", "0", "--output", str(output)]


def run(words: list[str], **environment: str) -> None:
    """Trains, or goes on with a training that was stopped."""
    folder = Path(words[-1])
    resume = ["--resume"] if (folder / "recipe.toml").exists() else []
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{folder}.log").open("a") as log:
        subprocess.run(
            [sys.executable, "-m", *words, *resume],
            check=True,
            env={**os.environ, **environment},
            stderr=log,
        )


def step_seconds(task: str, model: str, folder: Path) -> float:
    """Of a step on all cores, examples included: the median over a short training."""
    run(command(task, model, 500, folder))
    with next(folder.glob("logs/csv/*/metrics.csv")).open() as file:
        rates = [float(row["examples_per_second"]) for row in csv.DictReader(file)]
    return 128 / statistics.median(rates[1:])


def plan(runs: Path) -> dict[str, dict[str, float]]:
    """Step time by task and model, measured once."""
    path = runs / "steps.json"
    if path.exists():
        return json.loads(path.read_text())
    rows = {
        task: {m: step_seconds(task, m, runs / "short" / f"{task}-{m}") for m in models.names()}
        for task in TASKS
    }
    path.write_text(json.dumps(rows, indent=1))
    return rows


def examples(task: str) -> list[Example]:
    """Fresh instances, with answers by another library."""
    rng = np.random.default_rng([SEED, N])
    if task == "sort":
        return [Example(x, np.argsort(x[:, 0])) for x in rng.random((COUNT, N, 1))]
    points = rng.random((COUNT, N, 2))
    return [Example(p, ConvexHull(p).vertices.astype(np.int64)) for p in points]


class Row(NamedTuple):
    """What is told of one model on one task."""

    weights: int
    free: Measure
    constrained: Measure


def measured(runs: Path) -> dict[tuple[str, str], Row]:
    """The models' answers to fresh instances, by task and model."""
    rows = {}
    for task in TASKS:
        known = examples(task)
        for name in models.names():
            solver = ptrnet.load(runs / f"{task}-{name}")
            free, constrained = (
                solver.task.measure(
                    known,
                    [e.outputs for e in solver.predict(known, constrained=is_constrained)],
                )["accuracy"]
                for is_constrained in (False, True)
            )
            weights = num_weights(solver.model)
            rows[task, name] = Row(weights, free, constrained)
            print(task, name, free.text(1, 100), flush=True)
    return rows


def table(rows: dict[tuple[str, str], Row], seconds: dict[str, dict[str, float]]) -> Iterator[str]:
    """A line for each of them."""
    yield "| task | model | weights | ms a step | steps | accuracy | constrained |"
    yield "|---|---|---|---|---|---|---|"
    for (task, name), row in rows.items():
        step = seconds[task][name]
        yield (
            f"| {task} | {name} | {row.weights:,} | {1000 * step:.1f} | {int(BUDGET / step):,} | "
            f"{row.free.text(1, 100)} | {row.constrained.text(1, 100)} |"
        )


def verdicts(rows: dict[tuple[str, str], Row]) -> Iterator[str]:
    """Whether the papers' orders are seen: by the 95% interval of the difference, free greedy."""
    for task, paper, worse, better in PAPERS_ORDER:
        a, b = rows[task, worse].free, rows[task, better].free
        assert a.value is not None and b.value is not None
        gain = b.value - a.value
        half = Z * sum(m.value * (1 - m.value) / m.count for m in (a, b) if m.value) ** 0.5
        seen = "holds" if gain > half else "does not hold" if gain < -half else "is not seen"
        yield (
            f"- {paper}, on {task}: {better} above {worse} {seen}: "
            f"{100 * gain:+.1f} ({100 * (gain - half):+.1f} to {100 * (gain + half):+.1f})"
        )


def main() -> None:
    """Measures, trains and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    for fact in ("machine", "commit"):
        parser.add_argument(f"--{fact}", required=True)
    arguments = parser.parse_args()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    seconds = plan(arguments.runs)
    with ThreadPoolExecutor(os.cpu_count()) as lanes:
        for done in [
            lanes.submit(
                run,
                command(
                    task,
                    name,
                    int(BUDGET / seconds[task][name]),
                    arguments.runs / f"{task}-{name}",
                ),
                OMP_NUM_THREADS="1",
            )
            for name in models.names()
            for task in TASKS
        ]:
            done.result()
    lines = [
        "# Every model in the same time",
        "",
        f"`python tools/compare_models.py`, commit {arguments.commit}, on {arguments.machine}.",
        f"n = {N}, {UNITS} units, {BUDGET / 60:.0f} minutes each on both cores: as many steps of",
        "128 fresh examples as fit, by the step time of the column (data, clipping and update",
        "included). Defaults of `ptrnet train` otherwise; seed 1. The soft, hard and multi models",
        "are trained without teacher forcing. Accuracy in percent of",
        f"{COUNT:,} instances, with 95% intervals of these instances (not of other seeds), greedy,",
        "free and under the constraint. Models that are fed what they point at take their steps",
        "one by one, and so had about half as many of them.",
        "",
    ]
    rows = measured(arguments.runs)
    lines += [
        *table(rows, seconds),
        "",
        "## The papers' orders",
        "",
        "Differences of accuracy, free, in percent.",
        "",
        *verdicts(rows),
    ]
    Path("results/variants.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
