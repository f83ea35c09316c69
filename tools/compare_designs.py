"""Networks and sequence forms trained for the same time, on four tasks; writes results/designs.md.

    python tools/compare_designs.py runs/designs --machine "a core of an AMD EPYC" --commit COMMIT

Each training gets the steps that fit into BUDGET seconds of one core, by the processor's time that
short runs take. All of it can be stopped and started again. Answers are compared with those of
ptrnet's exact labellers.
"""

import argparse
import json
import resource
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from compare_models import run

import ptrnet
from ptrnet.labels import generate_dataset
from ptrnet.metrics.interval import Measure

BUDGET, COUNT, SEED = 60.0, 10_000, 20_260_300
SHORT, LONG = 50, 250  # steps of two runs whose difference tells how long one takes


class Design(NamedTuple):
    """One line of the table: what is trained, and the options that make it so."""

    task: str
    name: str
    options: str


TRANSFORMER = "--model transformer-ptr-net --hidden-size 64 --encoder-layers 2 --decoder-layers 1"
TRANSFORMER += " --feed-forward 128 --learning-rate 1e-3 --clip 1"
REMAINING = "--model remaining-ptr-net --hidden-size 64 --encoder-layers 2 --feed-forward 128"
REMAINING += " --learning-rate 1e-3 --clip 1 --cuts 8"
LSTM = "--model ptr-net --hidden-size 128"
# Of triangles by index a network has to know the indices, or an order that stands for them.
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


def folder(runs: Path, number: int) -> Path:
    """Where a design is trained."""
    return runs / f"{number}-{DESIGNS[number].task}"


def command(number: int, steps: int, output: Path) -> list[str]:
    """The training of a design."""
    task, _, options = DESIGNS[number]
    words = f"{task} --n {SIZES[task][0]} {options} --steps {steps} --valid-batches 0".split()
    return ["ptrnet", "train", *words, "--output", str(output)]


def step_seconds(runs: Path, number: int) -> float:
    """Of a step on one core, examples included, kept; whatever else the machine does meanwhile."""
    kept = runs / f"{number}.json"
    if not kept.exists():
        seconds = []
        for steps in (SHORT, SHORT, LONG):  # the first run may compile
            with TemporaryDirectory() as folder:
                before = _cpu_seconds()
                run(command(number, steps, Path(folder) / "run"), OMP_NUM_THREADS="1")
                seconds.append(_cpu_seconds() - before)
        kept.write_text(json.dumps((seconds[2] - seconds[1]) / (LONG - SHORT)))
    step: float = json.loads(kept.read_text())
    return step


def _cpu_seconds() -> float:
    """Of all processes that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def score(runs: Path, number: int) -> str:
    """Of a trained design, kept."""
    kept = runs / f"{number}.txt"
    if not kept.exists():
        kept.write_text(measure(runs, number).text(2, 100))
    return kept.read_text()


def measure(runs: Path, number: int) -> Measure:
    """Of a trained design, on fresh instances of the largest trained size."""
    solver, n = ptrnet.load(folder(runs, number)), SIZES[DESIGNS[number].task][1]
    examples = list(generate_dataset(solver.task, [n], COUNT, SEED))
    answers = [answered.outputs for answered in solver.predict(examples)]
    return solver.task.measure(examples, answers)[
        "gap" if solver.task.name == "tsp" else "accuracy"
    ]


def table(runs: Path) -> Iterator[str]:
    """A line for each design, after it is trained."""
    yield "| task | design | options | ms a step | steps | exact %, of tours gap % |"
    yield "|---|---|---|---|---|---|"
    for number, (task, name, options) in enumerate(DESIGNS):
        seconds = step_seconds(runs, number)
        steps = int(BUDGET / seconds)
        run(command(number, steps, folder(runs, number)), OMP_NUM_THREADS="1")
        text = score(runs, number)
        yield f"| {task} | {name} | `{options}` | {1000 * seconds:.1f} | {steps:,} | {text} |"
        print(task, name, text, flush=True)


def main() -> None:
    """Measures, trains and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    for fact in ("machine", "commit"):
        parser.add_argument(f"--{fact}", required=True)
    arguments = parser.parse_args()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    sizes = ", ".join(f"{task} {n} (at {at})" for task, (n, at) in SIZES.items())
    lines = [
        "# Designs in the same time",
        "",
        f"`python tools/compare_designs.py`, commit {arguments.commit}, on {arguments.machine}.",
        f"{BUDGET:.0f} seconds of one core each: as many steps of 128 fresh examples as fit,",
        "by the processor's time of a step (data, clipping and update included), seed 1.",
        f"Trained on: {sizes}; measured on {COUNT:,} instances of the size in brackets, 95%",
        "intervals of these instances (not of other seeds), greedy, under the constraint.",
        "",
        *table(arguments.runs),
    ]
    Path("results/designs.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
