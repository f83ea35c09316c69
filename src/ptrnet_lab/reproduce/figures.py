"""Draw the papers' figures, from the models that answer the tables' rows."""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ptrnet.errors import InputError
from ptrnet.plots.answer import draw_answered
from ptrnet.plots.curves import draw_curves, read_curves
from ptrnet.plots.figure import figure
from ptrnet_lab.reproduce import records, tables
from ptrnet_lab.reproduce.run import Job
from ptrnet_lab.reproduce.tables import RECIPES, Row
from ptrnet_lab.reproduce.testsets import open_test_set
from ptrnet_lab.reproduce.trainings import folder_of, solver_of

COLUMNS = 3
PANEL = 4.2  # inches


@dataclass(frozen=True)
class Figure:
    """A figure of a paper."""

    name: str  # PAPER/FIGURE
    title: str
    # "answers": each row's model answers the first instance of its test. "curves": the learning
    # curves of the rows' trainings.
    kind: str
    rows: Sequence[Row]


def names() -> list[str]:
    """Return the names of all figures, as PAPER/FIGURE."""
    return sorted(f"{p.parents[1].name}/{p.stem}" for p in RECIPES.glob("*/figures/*.toml"))


def read(name: str) -> Figure:
    """Return a figure by its name, PAPER/FIGURE."""
    paper, _, stem = name.partition("/")
    text = (RECIPES / paper / "figures" / f"{stem}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    rows = [row for what in content["rows"] for row in tables.select(what)]
    return Figure(name, content["title"], content["kind"], rows)


def draw(drawn: Figure, jobs: Sequence[Job], runs: Path, results: Path) -> Path:
    """Draw a figure with the models of its jobs, and return the picture's path.

    Raises:
        InputError: the figure shows curves but all jobs have shipped models, a training has no
            logs, or the picture cannot be written.
        OSError: the folder `results` cannot be created.
        MissingExtraError: matplotlib is not installed.
    """
    path = records.path_of(drawn.name, results, ".png")
    if drawn.kind == "curves":
        recipes = [(job.row, job.recipe) for job in jobs if job.recipe is not None]
        if not recipes:
            raise InputError(
                f"{drawn.name}: curves are of trainings: expected --line paper or ours"
            )
        curves = [
            replace(read_curves(folder_of(recipe, runs), recipe.data.batch_size), name=row.method)
            for row, recipe in recipes
        ]
        results.mkdir(parents=True, exist_ok=True)
        with figure(path, 8.0, 8.0) as fig:
            draw_curves(fig, curves, "steps")
        return path
    results.mkdir(parents=True, exist_ok=True)
    lines = math.ceil(len(jobs) / COLUMNS)
    with figure(path, PANEL * COLUMNS, (PANEL + 0.4) * lines) as fig:
        grid = fig.subplots(lines, COLUMNS, squeeze=False).ravel()
        for ax in grid[len(jobs) :]:
            ax.set_axis_off()
        for ax, job in zip(grid, jobs, strict=False):
            solver, how = solver_of(job.line, job.recipe, runs), job.line.decoding
            test = open_test_set(solver.task, job.row.n, job.instances)[:1]
            (answered,) = solver.predict(
                test, how.build(), constrained=how.constrained, improve=False
            )
            of = job.line.weights or f"{job.row.method}, trained on {job.row.trained_on}"
            title = f"{solver.task.name}, n = {job.row.n}: {of}"
            draw_answered(ax, solver.task, answered, test[0].outputs, "", title)
    return path
