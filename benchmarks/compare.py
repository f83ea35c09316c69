"""Compare models, designs, precisions or decoders, and write a page of results/.

    python benchmarks/compare.py WHAT --machine "2 cores of an AMD EPYC" --commit COMMIT \
        [--runs DIR]

WHAT is one of

- `models`: every model trained for the same time on hulls and on sorting (results/variants.md; two
  and a half hours of two cores)
- `designs`: networks and forms of answers trained for a minute of one core each
  (results/designs.md; an hour of one core)
- `precisions`: trainings in bfloat16 and in float32, with the same seeds (results/precision.md)
- `decoders`: how the shipped `hull-ptr-net` answers large sets (results/decoders.md)

Trainings are kept in DIR, by default runs/WHAT, so a stopped comparison can be resumed. Qhull
labels the test hulls, and NumPy sorts the test numbers; `designs` uses ptrnet's exact labellers.
"""

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

import ptrnet
from ptrnet import models
from ptrnet.labels import generate_dataset
from ptrnet.metrics import Measure, Z, summary
from ptrnet.models.base import num_weights
from ptrnet.types import Example

N, UNITS, COUNT, SEED = 10, 256, 10_000, 20_260_300


def train_command(words: str, output: Path) -> list[str]:
    return ["ptrnet", "train", *words.split(), "--valid-batches", "0", "--output", str(output)]


def train(command: list[str], **environment: str) -> None:
    """Run a training, or resume one that was stopped."""
    folder = Path(command[-1])
    resume = ["--resume"] if (folder / "recipe.toml").exists() else []
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{folder}.log").open("a") as log:
        subprocess.run(
            [sys.executable, "-m", *command, *resume],
            check=True,
            env={**os.environ, **environment},
            stderr=log,
        )


def train_in_parallel(commands: list[list[str]]) -> None:
    """Run trainings at the same time, each on one core. This is faster than one after the other."""
    with ThreadPoolExecutor(os.cpu_count()) as lanes:
        for done in [lanes.submit(train, command, OMP_NUM_THREADS="1") for command in commands]:
            done.result()


def fresh_hulls(seed: list[int], count: int, n: int) -> list[Example]:
    points = np.random.default_rng(seed).random((count, n, 2))
    return [Example(p, ConvexHull(p).vertices.astype(np.int64)) for p in points]


def fresh_examples(task: str) -> list[Example]:
    """Draw test instances, with answers of another library."""
    if task == "hull":
        return fresh_hulls([SEED, N], COUNT, N)
    numbers = np.random.default_rng([SEED, N]).random((COUNT, N, 1))
    return [Example(x, np.argsort(x[:, 0])) for x in numbers]


def accuracy(solver: ptrnet.Solver, known: list[Example], constrained: bool) -> Measure:
    answers = [e.outputs for e in solver.predict(known, constrained=constrained)]
    return summary.measure(solver.task, known, answers)["accuracy"]


# ---- models

MODEL_SECONDS = 600.0  # on all cores, for each training
TASKS = ("sort", "hull")
# The order that each paper reports: the second model is better than the first.
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
# Models whose decoders read their own distributions.
FREE_RUNNING = ("soft-ptr-net", "hard-ptr-net", "multi-ptr-net")


def model_command(task: str, model: str, steps: int, output: Path) -> list[str]:
    feed = "--no-teacher-forcing" if model in FREE_RUNNING else ""
    words = f"{task} --model {model} --n {N} --hidden-size {UNITS} --steps {steps} {feed}"
    return train_command(words, output)


def model_step_seconds(runs: Path) -> dict[str, dict[str, float]]:
    """Return the seconds of a step on all cores by task and model: medians of short trainings."""
    path = runs / "steps.json"
    if path.exists():
        return json.loads(path.read_text())
    seconds: dict[str, dict[str, float]] = {task: {} for task in TASKS}
    for task in TASKS:
        for model in models.names():
            folder = runs / "short" / f"{task}-{model}"
            train(model_command(task, model, 500, folder))
            with next(folder.glob("logs/csv/*/metrics.csv")).open() as file:
                rates = [float(row["examples_per_second"]) for row in csv.DictReader(file)]
            seconds[task][model] = 128 / statistics.median(rates[1:])
    path.write_text(json.dumps(seconds, indent=1))
    return seconds


def compare_models(facts: str, runs: Path) -> Iterator[str]:
    seconds = model_step_seconds(runs)
    steps = {
        (task, model): int(MODEL_SECONDS / seconds[task][model])
        for task in TASKS
        for model in models.names()
    }
    train_in_parallel(
        [model_command(*cell, count, runs / "-".join(cell)) for cell, count in steps.items()]
    )
    yield from (
        "# Every model in the same time",
        "",
        f"`python benchmarks/compare.py models`, {facts}.",
        f"We trained each model for {MODEL_SECONDS / 60:.0f} minutes on all cores, with n = {N}",
        f"and {UNITS} units. The number of steps of 128 random examples follows from the measured",
        "time of a step, which includes data, clipping and update. Other options are the defaults",
        "of `ptrnet train`, with seed 1. We trained the soft, hard and multi models without",
        "teacher forcing. They read their own choices and so decode step by step, which allowed",
        "about half as many training steps. Accuracy is in percent of",
        f"{COUNT:,} instances, greedy, without and with the constraint. The 95% intervals are over",
        "these instances, not over seeds.",
        "",
        "| task | model | weights | ms a step | steps | accuracy | constrained |",
        "|---|---|---|---|---|---|---|",
    )
    free: dict[tuple[str, str], Measure] = {}
    known = {task: fresh_examples(task) for task in TASKS}
    for (task, model), count in steps.items():
        solver = ptrnet.load(runs / f"{task}-{model}")
        free[task, model] = accuracy(solver, known[task], constrained=False)
        constrained = accuracy(solver, known[task], constrained=True)
        yield (
            f"| {task} | {model} | {num_weights(solver.model):,} | "
            f"{1000 * seconds[task][model]:.1f} | {count:,} | "
            f"{free[task, model].text(1, 100)} | {constrained.text(1, 100)} |"
        )
    yield from ("", "## The papers' orders", "")
    yield from ("Differences in accuracy without the constraint, in percent.", "")
    for task, paper, worse, better in PAPERS_ORDER:
        yield f"- {paper}, on {task}: {better} above {worse} {verdict(free, task, worse, better)}"


def verdict(free: dict[tuple[str, str], Measure], task: str, worse: str, better: str) -> str:
    """Say whether a paper's order holds, by the 95% interval of the difference."""
    a, b = free[task, worse], free[task, better]
    assert a.value is not None and b.value is not None
    gain = b.value - a.value
    half = Z * sum(m.value * (1 - m.value) / m.count for m in (a, b) if m.value) ** 0.5
    seen = "holds" if gain > half else "does not hold" if gain < -half else "is not seen"
    return f"{seen}: {100 * gain:+.1f} ({100 * (gain - half):+.1f} to {100 * (gain + half):+.1f})"


# ---- designs

DESIGN_SECONDS = 60.0  # of one core, for each training
SHORT, LONG = 50, 250  # steps of two runs, whose difference gives the time of a step


class Design(NamedTuple):
    """One row of the table: the task, and the options that make the design."""

    task: str
    name: str
    options: str


TRANSFORMER = "--model transformer-ptr-net --hidden-size 64 --encoder-layers 2 --decoder-layers 1"
TRANSFORMER += " --feed-forward 128 --learning-rate 1e-3 --clip 1"
REMAINING = "--model remaining-ptr-net --hidden-size 64 --encoder-layers 2 --feed-forward 128"
REMAINING += " --learning-rate 1e-3 --clip 1 --cuts 8"
LSTM = "--model ptr-net --hidden-size 128"
# Triangles by index need a network that sees indices, or sorted elements.
DESIGNS = [
    Design("delaunay", "LSTM, triangles", LSTM),
    Design("delaunay", "LSTM, apexes", f"{LSTM} --sequence apexes"),
    Design("delaunay", "transformer, triangles, indices seen", f"{TRANSFORMER} --see-indices"),
    Design("delaunay", "transformer, triangles, sorted", f"{TRANSFORMER} --order lexicographic"),
    Design("delaunay", "transformer, apexes", f"{TRANSFORMER} --sequence apexes"),
    Design(
        "delaunay",
        "transformer, triangles, sorted, edge frames",
        f"{TRANSFORMER} --order lexicographic --edge-frames",
    ),
    Design(
        "delaunay",
        "transformer, apexes, frames of the open edge",
        f"{TRANSFORMER} --sequence apexes --edge-frames --frame-edge open",
    ),
    Design("delaunay", "what remains, apexes", f"{REMAINING} --sequence apexes"),
    *(
        Design(task, name, options)
        for task in ("hull", "sort")
        for name, options in (
            ("LSTM", LSTM),
            ("transformer", TRANSFORMER),
            ("what remains", REMAINING),
        )
    ),
    Design("tsp", "LSTM", LSTM),
    Design("tsp", "transformer, sorted", f"{TRANSFORMER} --order lexicographic"),
    Design("tsp", "what remains", REMAINING),
    Design("hull", "transformer, edge frames", f"{TRANSFORMER} --edge-frames"),
]
SIZES = {"delaunay": ("5-10", 10), "hull": ("5-20", 20), "sort": ("5-20", 20), "tsp": ("5-20", 20)}


def design_command(design: Design, steps: int, output: Path) -> list[str]:
    n, _ = SIZES[design.task]
    return train_command(f"{design.task} --n {n} {design.options} --steps {steps}", output)


def design_step_seconds(design: Design, kept: Path) -> float:
    """Return the processor time of a step, examples included, without other work on the machine."""
    if not kept.exists():
        seconds = []
        for steps in (SHORT, SHORT, LONG):  # the first run may compile
            with TemporaryDirectory() as folder:
                before = _child_seconds()
                train(design_command(design, steps, Path(folder) / "run"), OMP_NUM_THREADS="1")
                seconds.append(_child_seconds() - before)
        kept.write_text(json.dumps((seconds[2] - seconds[1]) / (LONG - SHORT)))
    step: float = json.loads(kept.read_text())
    return step


def _child_seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def design_score(design: Design, run: Path, kept: Path) -> str:
    """Return the metric on fresh instances of the largest trained size."""
    if not kept.exists():
        solver, (_, n) = ptrnet.load(run), SIZES[design.task]
        examples = list(generate_dataset(solver.task, [n], COUNT, SEED))
        answers = [answered.outputs for answered in solver.predict(examples)]
        measures = summary.measure(solver.task, examples, answers)
        measure = measures["gap" if design.task == "tsp" else "accuracy"]
        kept.write_text(measure.text(2, 100))
    return kept.read_text()


def compare_designs(facts: str, runs: Path) -> Iterator[str]:
    sizes = ", ".join(f"{task} {n} (at {at})" for task, (n, at) in SIZES.items())
    yield from (
        "# Designs in the same time",
        "",
        f"`python benchmarks/compare.py designs`, {facts}.",
        f"We trained each design for {DESIGN_SECONDS:.0f} seconds on one core, in steps of 128",
        "random examples (data, clipping and update included), with seed 1. The sizes of the",
        f"training are {sizes}. The scores are",
        f"those of {COUNT:,} instances of the size in brackets, greedy, with the constraint. The",
        "95% intervals are over these instances, not over seeds.",
        "",
        "| task | design | options | ms a step | steps | exact %, of tours gap % |",
        "|---|---|---|---|---|---|",
    )
    for number, design in enumerate(DESIGNS):
        seconds = design_step_seconds(design, runs / f"{number}.json")
        steps, run = int(DESIGN_SECONDS / seconds), runs / f"{number}-{design.task}"
        train(design_command(design, steps, run), OMP_NUM_THREADS="1")
        score = design_score(design, run, runs / f"{number}.txt")
        yield (
            f"| {design.task} | {design.name} | `{design.options}` | {1000 * seconds:.1f} | "
            f"{steps:,} | {score} |"
        )


# ---- precisions

STEPS, SEEDS, PRECISIONS = 5000, (1, 2, 3), ("bfloat16", "float32")


def compare_precisions(facts: str, runs: Path) -> Iterator[str]:
    folders = {(p, seed): runs / f"{p}-{seed}" for seed in SEEDS for p in PRECISIONS}
    words = f"hull --n {N} --hidden-size {UNITS} --steps {STEPS}"
    train_in_parallel(
        [
            train_command(f"{words} --precision {precision} --seed {seed}", folder)
            for (precision, seed), folder in folders.items()
        ]
    )
    yield from (
        "# Training in bfloat16 and in float32",
        "",
        f"`python benchmarks/compare.py precisions`, {facts}.",
        f"We trained Ptr-Nets on hulls with n = {N} and {UNITS} units, for {STEPS:,} steps of 128",
        "fresh examples; other options are the defaults of `ptrnet train`. The trainings of a row",
        "start with the same weights and see the same examples. Accuracy is in percent of",
        f"{COUNT:,} instances, greedy, without the constraint, with 95% intervals over these",
        "instances.",
        "",
        "| seed | bfloat16 | float32 |",
        "|---|---|---|",
    )
    known = fresh_examples("hull")
    accuracies = {
        run: accuracy(ptrnet.load(folder), known, constrained=False)
        for run, folder in folders.items()
    }
    for seed in SEEDS:
        cells = " | ".join(accuracies[precision, seed].text(1, 100) for precision in PRECISIONS)
        yield f"| {seed} | {cells} |"
    means = [sum(accuracies[p, s].value or 0 for s in SEEDS) / len(SEEDS) for p in PRECISIONS]
    yield f"| mean | {' | '.join(f'{100 * mean:.1f}' for mean in means)} |"


# ---- decoders

HULL_SEED = 20_260_200
HULL_COUNTS = {100: 1000, 200: 1000, 500: 500}  # instances, by n
WINDOWS = (1, 5, 10, 25, 50)
NUM_VIEWS = (4, 16)


def compare_decoders(facts: str, runs: Path) -> Iterator[str]:
    model = ptrnet.load("hull-ptr-net")
    decoders = [("greedy", ptrnet.Greedy(), 1)]
    decoders += [(f"incremental, w = {w}", ptrnet.Incremental(w), 1) for w in WINDOWS]
    decoders += [(f"greedy, {k} views", ptrnet.Greedy(), k) for k in NUM_VIEWS]
    yield from (
        "# The shipped hull-ptr-net by decoder",
        "",
        f"`python benchmarks/compare.py decoders`, seed {HULL_SEED}, {facts}.",
        "The model was trained on 5 to 50 points. Scores are in percent, with 95% intervals. All",
        "decoders obey the constraint.",
        "",
        "| n | instances | decoder | accuracy | simple | area | seconds |",
        "|---|---|---|---|---|---|---|",
    )
    for n, count in HULL_COUNTS.items():
        known = fresh_hulls([HULL_SEED, n], count, n)
        for name, decoder, views in decoders:
            start = time.perf_counter()
            answers = [e.outputs for e in model.predict(known, decoder, augment=views)]
            seconds = time.perf_counter() - start
            measures = summary.measure(model.task, known, [a for a in answers if a is not None])
            cells = " | ".join(measures[key].text(1, 100) for key in ("accuracy", "simple", "area"))
            yield f"| {n} | {count:,} | {name} | {cells} | {seconds:.1f} |"


COMPARISONS: dict[str, tuple[Callable[[str, Path], Iterator[str]], str]] = {
    "models": (compare_models, "variants"),
    "designs": (compare_designs, "designs"),
    "precisions": (compare_precisions, "precision"),
    "decoders": (compare_decoders, "decoders"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare, and write a page of results/.")
    parser.add_argument("what", choices=COMPARISONS)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--runs", type=Path, help="folder of the trainings; runs/WHAT by default")
    options = parser.parse_args()
    runs = options.runs or Path("runs") / options.what
    runs.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ptrnet.OutOfDistributionWarning)
    compare, page = COMPARISONS[options.what]
    lines = []
    for line in compare(f"commit {options.commit}, on {options.machine}", runs):
        print(line, flush=True)
        lines.append(line)
    (Path("results") / f"{page}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
