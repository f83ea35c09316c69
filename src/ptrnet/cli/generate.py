"""`ptrnet generate`: draw random instances, and answer them by an algorithm."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from ptrnet import tasks
from ptrnet.cli.options import (
    Backend,
    Jobs,
    Labeller,
    Seed,
    Strict,
    TaskName,
    add_settings,
    task_names,
)
from ptrnet.problems import Problem
from ptrnet.settings import Option, options_of

POINTS = (
    "How elements are distributed: uniform, gaussian, clustered, curves, stretched, grid, "
    "duplicates or mixed (any of these)."
)


def _problem_settings() -> dict[str, Option]:
    """Return, by name, the settings that only some problems have."""
    shared = options_of(Problem)
    kinds = [tasks.kind(name) for name in task_names()]
    return {
        name: replace(option, owners=(kind.name,))
        for kind in kinds
        if issubclass(kind, Problem)
        for name, option in options_of(kind).items()
        if name not in shared
    }


def generate(
    task: TaskName,
    n: Annotated[str, typer.Option(help="Sizes: 50, 5-50 or 5,10,20-30.")],
    count: Annotated[int, typer.Option(min=1, help="Number of examples.")],
    output: Annotated[str, typer.Option(help="The file; its extension is the format.")],
    points: Annotated[str, typer.Option(help=POINTS)] = "uniform",
    labeller: Labeller = None,
    strict: Strict = False,
    jobs: Jobs = -1,
    backend: Backend = "local",
    seed: Seed = 0,
    **settings: Any,
) -> None:
    """Draw instances of TASK, answer them by an algorithm, and write instances and answers.

    The file does not depend on --jobs and --backend. If the command is stopped, its finished chunks
    stay next to the file. Run the same command again to continue.

    Examples:
        ptrnet generate tsp --n 5-20 --count 100000 --labeller exact --output tsp.txt
        ptrnet generate hull --n 50 --points clustered --count 1000 --output clusters.txt
        ptrnet generate job-shop --n 10 --machines 5 --count 1000 --output shops.jsonl
    """
    import ptrnet

    given = {name: value for name, value in settings.items() if value is not None}
    ptrnet.generate(
        tasks.get(task, points=points, **given),
        n,
        count,
        output=output,
        labeller=labeller,
        strict=strict,
        seed=seed,
        jobs=jobs,
        backend=backend,
    )


add_settings(generate, _problem_settings().values(), {})
