"""Run rows of the papers' tables: train a model if necessary, test it, and record the result."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ptrnet import __version__, labellers, tasks, weights
from ptrnet.errors import InputError
from ptrnet.files import checksum, locked
from ptrnet.metrics import Measure
from ptrnet.model_folder import TENSORS
from ptrnet.plots.curves import read_curves
from ptrnet.solver.scoring import score_answers
from ptrnet.training.recipe import Recipe
from ptrnet.types import Example
from ptrnet_lab.bench.harness import commit, processor
from ptrnet_lab.reproduce import records, report
from ptrnet_lab.reproduce.records import Record
from ptrnet_lab.reproduce.tables import Budget, Line, Row
from ptrnet_lab.reproduce.testsets import SEED, count_for, open_test_set
from ptrnet_lab.reproduce.trainings import folder_of, solver_of


@dataclass(frozen=True)
class Job:
    """The training and the test for one line of a row, such as `paper` (see `tables.py`)."""

    row: Row
    name: str  # the line's name: paper, ours or best
    budget: Budget  # limits the training and the test
    seed: int | None = None  # the training's seed; None: the seed in the recipe

    @property
    def line(self) -> Line:
        """The line, which says which model and decoder to test."""
        return self.row.lines[self.name]

    @property
    def recipe(self) -> Recipe | None:
        """The recipe to train; None if a shipped model answers."""
        if self.line.recipe is None:
            return None
        recipe = self.budget.limit(self.line.recipe)
        return recipe if self.seed is None else recipe.replace(seed=self.seed)

    @property
    def instances(self) -> int:
        """The number of instances of the test."""
        return count_for(self.row.n, self.budget.share)

    def digest(self) -> str:
        """Return a checksum of everything that decides the result."""
        test = [self.row.task.name, self.row.n, self.instances, SEED, list(self.row.labellers)]
        shipped = checksum(weights.folder(self.line.weights) / TENSORS) if self.line.weights else ""
        # Leave out options that have no value, so that a new option does not change checksums.
        how = self.line.decoding.table()
        content = [__version__, training_of(self), shipped, how, test]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def is_done(self, results: Path) -> bool:
        """Whether the results already have this job's record."""
        identity = (self.row.name, self.name, self.budget.name, self.digest())
        recorded = records.read(self.row.table, results)
        return any((r.row, r.line, r.budget, r.digest) == identity for r in recorded)


def jobs_of(
    rows: Sequence[Row], lines: Sequence[str], budget: Budget, seed: int | None = None
) -> list[Job]:
    """Return a job for each row and each of the given lines that the row has.

    Jobs with the same model are adjacent.
    """
    jobs = [Job(row, line, budget, seed) for row in rows for line in lines if line in row.lines]
    order: dict[str, int] = {}
    for job in jobs:
        order.setdefault(training_of(job), len(order))
    return sorted(jobs, key=lambda job: order[training_of(job)])


def run(jobs: Sequence[Job], runs: Path, results: Path) -> Iterator[Record]:
    """Run jobs one after another, and yield each record after it was written.

    Args:
        jobs: the jobs, see `jobs_of`.
        runs: the folder of the trainings. A training that was stopped is resumed.
        results: the folder of `PAPER-TABLE.json` and `.md`.
    """
    for job in jobs:
        record = _run_job(job, runs)
        records.put(job.row.table, results, record)
        with locked(results):  # otherwise another process could write an older report last
            report.write(job.row.table, results, records.read(job.row.table, results))
        yield record


def _run_job(job: Job, runs: Path) -> Record:
    recipe = job.recipe
    solver = solver_of(job.line, recipe, runs)
    test = open_test_set(solver.task, job.row.n, job.instances)
    how = job.line.decoding
    answered = solver.predict(
        test,
        how.build(),
        constrained=how.constrained,
        improve=False,
        activity=f"answering {job.row}",
    )
    measures = score_answers(solver.model, solver.task, test, answered)
    trained = solver.trained
    minutes, examples = None, None
    if recipe is not None:
        with suppress(InputError):  # damaged logs; the result then has no minutes
            curves = read_curves(folder_of(recipe, runs), recipe.data.batch_size)
            minutes = float(curves.seconds[-1]) / 60
        examples = trained["steps"] * recipe.data.batch_size
    options = "" if job.budget.name == "full" else f" --budget {job.budget.name}"
    options += "" if job.seed is None else f" --seed {job.seed}"
    return Record(
        row=job.row.name,
        line=job.name,
        budget=job.budget.name,
        digest=job.digest(),
        model=job.line.weights if recipe is None else folder_of(recipe, runs).name,
        decoder=str(how),
        instances=len(test),
        metrics={name: measure.to_dict() for name, measure in measures.items()},
        published=job.row.published,
        differences=_differences(job.row, measures),
        algorithms=_mean_costs(job.row, test),
        command=f"ptrnet reproduce {job.row} --line {job.name}{options}",
        seed=trained.get("seed"),
        commit=commit(),
        machine=processor(),
        minutes=minutes,
        examples=examples,
    )


def _differences(row: Row, measures: Mapping[str, Measure]) -> dict[str, float]:
    """Return our numbers minus the paper's, in the paper's units."""
    return {
        name: report.scale(name) * measure.value - paper
        for name, measure in measures.items()
        if measure.value is not None and isinstance(paper := row.published.get(name), (int, float))
    }


def _mean_costs(row: Row, test: Sequence[Example]) -> dict[str, float]:
    """Return the mean cost of each algorithm's answers to the test. The row names the algorithms.

    The test already has the answers of the task's first labeller.
    """
    task = tasks.get(row.task.name)
    costs = {}
    for labeller in row.labellers:
        if labeller == task.facts.labellers[0]:
            answers = [example.outputs for example in test]
        else:
            points = np.stack([example.inputs for example in test])
            answers = list(labellers.label(task, points, labeller))
        pairs = zip(test, answers, strict=True)
        costs[labeller] = float(np.mean([task.costs(e, [a])[0] for e, a in pairs]))  # type: ignore
    return costs


def training_of(job: Job) -> str:
    """Return a key of the job's model: the shipped model's name, or the recipe's folder."""
    recipe = job.recipe
    return job.line.weights if recipe is None else folder_of(recipe, Path()).name
