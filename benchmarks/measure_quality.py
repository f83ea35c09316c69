"""Measure the quality of all shipped models, and write results/quality.md.

    python benchmarks/measure_quality.py --machine "2 cores of an AMD EPYC" --commit COMMIT \
        --tsplib DIR

The scores on uniform instances come from `results/MODEL.json`, which `benchmarks/ship.py` writes.
This script measures answers of several views, the time of one answer, points of other kinds, and
real coordinates that no training saw. These are TSPLIB's files in DIR, the capitals of `examples/`,
and pairs of features of the tables that ship with scikit-learn.
"""

import argparse
import itertools
import json
import statistics
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import ship
from sklearn import datasets

import ptrnet
from ptrnet import Solver, labellers, tasks, weights
from ptrnet.data import formats
from ptrnet.metrics import Measure, summary
from ptrnet.tasks.base import Task
from ptrnet.types import Example

SEED = 20_260_300
VIEWS, COUNT = 8, 200
VIEW_COUNT = 100  # instances to answer with several views
LARGEST_VIEWED = {"tsp": 50}  # cities; larger instances take minutes with several views
SINGLE = 30  # instances to answer one by one
METRIC = {"tsp": "gap"}  # other tasks: "accuracy"
KINDS = ("uniform", "gaussian", "clustered", "curves", "stretched", "grid", "duplicates")
KIND_SIZES = {"hull": (10, 50, 200), "delaunay": (5, 10, 15), "tsp": (20, 50)}
# The best of the papers: V's tables 1 and 2 and section 4.3, C's tables, Orders Matter's sorting.
PAPERS = {
    "hull": {5: "93.7", 10: "93.4", 50: "78.2", 100: "59.0", 200: "22.1", 500: "1.3"},
    "delaunay": {5: "80.7", 10: "22.6"},
    "sort": {10: "57"},
    "tsp": {5: "0.0", 10: "0.0", 20: "1.3", 30: "3.6", 50: "34.6"},
}
IMPROVED_COUNT = 1000  # the first of the instances of `benchmarks/ship.py`
LARGEST_TOUR = 105  # cities of the largest real set for which we ask for tours


def text(measure: Measure) -> str:
    """Format a share or a gap in percent, with its interval."""
    return measure.text(2, 100)


def score_rows(task: str) -> Iterator[str]:
    """Yield rows for all models of a task by n: results of `benchmarks/ship.py` and the papers."""
    names = [name for name in weights.names() if weights.summary(name)["task"] == task]
    results = {n: json.loads(Path(f"results/{n}.json").read_text())["rows"] for n in names}
    metric = METRIC.get(task, "accuracy")
    free = "valid" if task == "tsp" else metric
    improves = improvements(tasks.get(task))[1:]
    titles = [f"{free}, free greedy", f"{metric}, constrained", "beam", "papers"]
    titles += [f"{metric}, improved" for _ in improves]
    yield f"| n | instances | model | {' | '.join(titles)} |"
    yield "|---|---|---|" + "---|" * len(titles)
    for n in sorted({row["n"] for rows in results.values() for row in rows}):
        for name in names:
            for row in (row for row in results[name] if row["n"] == n):
                cells = [text(Measure(**row[key])) for key in (free, "constrained", beam_key(row))]
                cells.append(PAPERS.get(task, {}).get(n, ""))
                if improves:
                    known = ship.examples(task, n, IMPROVED_COUNT)
                    cells.append(text(measured(ptrnet.load(name), known, improve=True)))
                yield f"| {n} | {row['constrained']['count']:,} | `{name}` | {' | '.join(cells)} |"


def beam_key(row: dict) -> str:
    """Return the key of the beam's metric in a row, such as "beam_4"."""
    return next(key for key in row if key.startswith("beam_") and key[5:].isdigit())


def fresh(solver: Solver, n: int, count: int) -> list[Example]:
    """Draw uniform instances, and label them."""
    task = tasks.with_points(solver.task, "uniform")
    inputs = task.sample(np.random.default_rng([SEED, n]), count, n)
    return labelled(solver, list(inputs))


def labelled(solver: Solver, instances: list[np.ndarray]) -> list[Example]:
    """Label instances exactly; tours of 50 cities or more by local search."""
    task = tasks.get(solver.task.name)
    pairs = []
    for instance in instances:
        labeller = "local-search" if task.name == "tsp" and len(instance) >= 50 else None
        pairs.append(Example(instance, labellers.label(task, instance[None], labeller)[0]))
    return pairs


def improvements(task: Task) -> tuple[bool, ...]:
    """Return the settings of `improve` that a table compares: both where answers are improved."""
    return (False, True) if type(task).improve is not Task.improve else (False,)


def title(name: str, improve: bool) -> str:
    """Return the first cell of a row."""
    return f"`{name}`, improved" if improve else f"`{name}`"


def measured(
    solver: Solver, known: list[Example], views: int = 1, improve: bool = False
) -> Measure:
    """Return the task's metric of constrained greedy answers."""
    answers = [e.outputs for e in solver.predict(known, augment=views, improve=improve)]
    measures = summary.measure(solver.task, known, [a for a in answers if a is not None])
    return measures[METRIC.get(solver.task.name, "accuracy")]


def names_of_tasks() -> list[str]:
    """Return the shipped models, except those of problems (results/problems.md)."""
    return [n for n in weights.names() if weights.summary(n)["task"] in tasks.names()]


def view_rows() -> Iterator[str]:
    """Yield rows that compare one view with several, and the time of an answer."""
    yield f"| model | n | instances | one view | {VIEWS} views | one answer, ms | 95 of 100, ms |"
    yield "|---|---|---|---|---|---|---|"
    for name in names_of_tasks():
        solver = ptrnet.load(name)
        largest = LARGEST_VIEWED.get(solver.task.name, 1000)
        rows = json.loads(Path(f"results/{name}.json").read_text())["rows"]
        for row in (row for row in rows if row["n"] <= largest):
            known = fresh(solver, row["n"], VIEW_COUNT)
            cells = [text(measured(solver, known, views)) for views in (1, VIEWS)]
            times = []
            for example in known[:SINGLE]:
                began = time.perf_counter()
                solver.solve(example.inputs, improve=False)
                times.append(1000 * (time.perf_counter() - began))
            cells += [f"{statistics.median(times):.1f}", f"{np.quantile(times, 0.95):.1f}"]
            yield f"| {title(name, False)} | {row['n']} | {VIEW_COUNT} | {' | '.join(cells)} |"
            for improve in improvements(solver.task)[1:]:
                cells = [text(measured(solver, known, views, improve)) for views in (1, VIEWS)]
                cells = [title(name, improve), str(row["n"]), str(VIEW_COUNT), *cells, "", ""]
                yield f"| {' | '.join(cells)} |"


def kind_rows() -> Iterator[str]:
    """Yield rows for distributions of points other than the uniform one."""
    yield f"| model | n | {' | '.join(KINDS)} |"
    yield "|---|---|" + "---|" * len(KINDS)
    for name in names_of_tasks():
        solver = ptrnet.load(name)
        for n in KIND_SIZES.get(solver.task.name, ()):
            known = []
            for kind in KINDS:
                task = tasks.get(solver.task.name, points=kind)
                drawn = task.sample(np.random.default_rng([SEED, n]), 2 * COUNT, n)
                usable = [x for x in drawn if task.instance_error(x) is None][:COUNT]
                known.append(labelled(solver, usable))
            for improve in improvements(solver.task):
                cells = [text(measured(solver, examples, improve=improve)) for examples in known]
                yield f"| {title(name, improve)} | {n} | {' | '.join(cells)} |"


def real_sets(tsplib: Path) -> list[np.ndarray]:
    """Return real coordinates, from TSPLIB and other data sets."""
    files = [*sorted(tsplib.glob("*.tsp")), Path("examples/capitals.csv")]
    sets = [e.inputs for file in files for e in formats.read(str(file), tasks.get("tsp"))]
    linnerud = datasets.load_linnerud()
    tables = (datasets.load_iris().data, linnerud.data, linnerud.target)
    for table in tables:
        sets += [table[:, pair] for pair in itertools.combinations(range(table.shape[1]), 2)]
    wine = datasets.load_wine().data
    sets += [wine[:, [k, k + 1]] for k in range(wine.shape[1] - 1)]
    return [np.ascontiguousarray(points, np.float64) for points in sets]


def real_rows(sets: list[np.ndarray]) -> Iterator[str]:
    """Yield rows for real coordinates: hulls of all sets, tours of the smaller ones."""
    yield "| model | sets | constrained greedy |"
    yield "|---|---|---|"
    for name in names_of_tasks():
        solver = ptrnet.load(name)
        if solver.task.name not in ("hull", "tsp"):
            continue
        limit = LARGEST_TOUR if solver.task.name == "tsp" else 200
        known = labelled(solver, [points for points in sets if 14 <= len(points) <= limit])
        metric = METRIC.get(solver.task.name, "accuracy")
        for improve in improvements(solver.task):
            measure = text(measured(solver, known, improve=improve))
            yield f"| {title(name, improve)} | {len(known)} | {metric} {measure} |"


def page(machine: str, commit: str, tsplib: Path) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# How well the shipped models answer"
    yield ""
    yield f"`python benchmarks/measure_quality.py`, seed {SEED}, commit {commit}, on"
    yield f"{machine}. Numbers are in percent, with 95% intervals. Answers obey the task's"
    yield "constraint and are greedy, unless a column says otherwise. *Improved* tours are those of"
    yield f"`ptrnet solve` (of at most {IMPROVED_COUNT:,} instances), all others the network's own."
    yield "Gaps compare tours with the shortest ones. Above 50 cities, and from 50 cities on in the"
    yield "tables of views and of other kinds of points, gaps compare them with tours of a local"
    yield "search."
    for task in tasks.names():
        yield from ("", f"## {task}", "")
        yield from score_rows(task)
    yield from ("", "## Views, and time", "")
    yield f"`augment={VIEWS}` answers {VIEWS} views of each instance and keeps the best answer."
    yield "We measured the times in Python, one instance after another."
    yield ""
    yield from view_rows()
    yield from ("", "## Points of other kinds", "")
    yield f"{COUNT} random instances of each kind; see `--points` in `ptrnet train --help`."
    yield ""
    yield from kind_rows()
    yield from ("", "## Real coordinates", "")
    yield from real_rows(real_sets(tsplib))


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    for fact in ("machine", "commit"):
        parser.add_argument(f"--{fact}", required=True)
    parser.add_argument("--tsplib", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ptrnet.OutOfDistributionWarning)
    lines = []
    for line in page(options.machine, options.commit, options.tsplib):
        print(line, flush=True)
        lines.append(line)
    Path("results/quality.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
