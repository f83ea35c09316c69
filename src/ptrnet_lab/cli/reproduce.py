"""`ptrnet reproduce`: compute the papers' tables, and print our numbers next to theirs."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.cli.options import Json, aligned, echo
from ptrnet.errors import InputError, MissingExtraError, OutOfDistributionWarning

if TYPE_CHECKING:
    from ptrnet_lab.reproduce.run import Job


def reproduce(
    what: Annotated[
        str, typer.Argument(metavar="[PAPER[/TABLE[/ROW]]|PAPER/FIGURE]", show_default=False)
    ] = "",
    line: Annotated[
        list[str] | None,
        typer.Option(
            help="paper: the paper's own training; ours: the same network, trained as we "
            "recommend; best: the best shipped network. Repeat it for several lines.  [ours]"
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(help="full, or quick: 1,000 steps and a tenth of each test, in minutes.")
    ] = "full",
    list_: Annotated[
        bool,
        typer.Option("--list", help="List all rows, finished or not, and the time for the rest."),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Test finished rows again.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the trainings.  [the recipe's seed]")
    ] = None,
    runs: Annotated[Path, typer.Option(help="The folder of trainings.")] = Path("runs/reproduce"),
    results: Annotated[Path, typer.Option(help="The folder of tables, .md and .json.")] = Path(
        "results"
    ),
    json: Json = False,
) -> None:
    """Train and test the models of the papers' tables; print our number next to the paper's.

    The command trains the recipes one after another. A recipe that several rows use is trained
    only once. The command first measures a few steps of each training, and prints how long all
    trainings will take. --list prints the same forecast, in a minute or two for all tables. If the
    command is stopped, run it again to continue. Finished rows do not run again.

    Examples:
        ptrnet reproduce --list
        ptrnet reproduce vinyals2015/table1 --budget quick
        ptrnet reproduce wang2016/table1/memory-n50 --line paper --line ours
        ptrnet reproduce vinyals2015/figure3 --line best
    """
    from ptrnet.errors import unknown
    from ptrnet_lab.reproduce import tables
    from ptrnet_lab.reproduce.tables import budget_of

    try:
        from ptrnet_lab.reproduce import figures
        from ptrnet_lab.reproduce.run import jobs_of
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "train") from error
    lines = line or ["ours"]
    for name in lines:
        if name not in tables.LINES:
            raise unknown("line", name, tables.LINES)
    drawn = figures.read(what) if what in figures.names() else None
    rows = tables.select(what) if drawn is None else drawn.rows
    limits = budget_of(budget)
    jobs = jobs_of(rows, lines, limits, seed)
    if not jobs:
        raise InputError(f"{what}: no row has a line {' or '.join(lines)}")
    if list_:
        _list(jobs, runs, results, json)
        return
    with warnings.catch_warnings():
        # The tables test models outside their trained sizes on purpose.
        warnings.simplefilter("ignore", OutOfDistributionWarning)
        _run(jobs, again, runs, results, json)
        if drawn is not None:
            print(figures.draw(drawn, jobs, runs, results), file=sys.stderr)


def _run(jobs: "Sequence[Job]", again: bool, runs: Path, results: Path, json: bool) -> None:
    """Run the unfinished jobs; with `again`, all jobs. Then print tables with all jobs' rows."""
    from json import dumps

    from ptrnet_lab.reproduce import records, report, tables
    from ptrnet_lab.reproduce.forecast import duration, seconds_left
    from ptrnet_lab.reproduce.run import run

    rest = [job for job in jobs if again or not job.is_done(results)]
    recipes = [job.recipe for job in rest if job.recipe]
    left = seconds_left(recipes, runs)
    if len(rest) < len(jobs):
        print(
            f"done before: {len(jobs) - len(rest)} of {len(jobs)} tests, in {results}; "
            "--again repeats them",
            file=sys.stderr,
        )
    if rest:
        trainings = sum(seconds > 0 for seconds in left.values())
        print(
            f"to do: {len(rest)} of {len(jobs)} tests, with {trainings} trainings, which "
            f"take {duration(sum(left.values()))} on this machine",
            file=sys.stderr,
        )
    try:
        for record in run(rest, runs, results):
            print(f"{record.row}: {record.line} done", file=sys.stderr)
    except KeyboardInterrupt:
        print("the same command continues", file=sys.stderr)
        raise
    job_keys = {(job.row.table, job.row.name, job.name, job.budget.name) for job in jobs}
    recorded = {
        table: [
            r for r in records.read(table, results) if (table, r.row, r.line, r.budget) in job_keys
        ]
        for table in dict.fromkeys(job.row.table for job in jobs)
    }
    if json:
        echo(dumps({"tables": {name: [vars(r) for r in of] for name, of in recorded.items()}}))
        return
    for name, of_table in recorded.items():
        table = tables.read(name)
        echo("\n".join([table.title, "", *aligned(list(report.compare(table, of_table)))]))
        echo(f"\n{records.path_of(name, results, '.md')}")


def _list(jobs: "Sequence[Job]", runs: Path, results: Path, json: bool) -> None:
    """Print every row with the state of each line."""
    from json import dumps

    from ptrnet_lab.reproduce.forecast import duration, seconds_left
    from ptrnet_lab.reproduce.trainings import folder_of

    left = seconds_left([j.recipe for j in jobs if j.recipe and not j.is_done(results)], runs)
    states = [
        {
            "row": str(job.row),
            "line": job.name,
            "done": job.is_done(results),
            "training": folder_of(job.recipe, runs).name if job.recipe else job.line.weights,
            "seconds_left": round(left.get(folder_of(job.recipe, runs), 0.0)) if job.recipe else 0,
        }
        for job in jobs
    ]
    if json:
        echo(dumps({"rows": states, "seconds_left": round(sum(left.values()))}))
        return
    cells = [["row", "line", "state", "training"]]
    for state in states:
        seconds = float(str(state["seconds_left"]))
        to_do = f"{duration(seconds)} to train" if seconds else "to be tested"
        text = "done" if state["done"] else to_do
        cells.append([str(state["row"]), str(state["line"]), text, str(state["training"])])
    echo("\n".join(aligned(cells)))
    echo(f"\n{sum(s > 0 for s in left.values())} trainings to do: {duration(sum(left.values()))}")
