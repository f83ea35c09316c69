"""`ptrnet generate`: draw random instances, and answer them by an algorithm."""

from typing import Annotated

import typer

from ptrnet.cli.options import Backend, Jobs, Labeller, Seed, Strict, TaskName

POINTS = (
    "How elements are distributed: uniform, gaussian, clustered, curves, stretched, grid, "
    "duplicates or mixed (any of these)."
)


def register(app: typer.Typer) -> None:
    app.command()(generate)


def generate(
    task: TaskName,
    n: Annotated[str, typer.Option("--n", help="Sizes: 50, 5-50 or 5,10,20-30.")],
    count: Annotated[int, typer.Option("--count", min=1, help="Number of examples.")],
    output: Annotated[str, typer.Option("--output", help="The file; its extension is the format.")],
    points: Annotated[str, typer.Option("--points", help=POINTS)] = "uniform",
    labeller: Labeller = None,
    strict: Strict = False,
    jobs: Jobs = -1,
    backend: Backend = "local",
    seed: Seed = 0,
) -> None:
    """Draw instances of TASK, answer them by an algorithm, and write both.

    The file does not depend on --jobs and --backend. If the command is stopped, its finished chunks
    stay next to the file, and the same command continues from there.

    Examples:
        ptrnet generate tsp --n 5-20 --count 100000 --labeller exact --output tsp.txt
        ptrnet generate hull --n 50 --points clustered --count 1000 --output clusters.txt
    """
    import ptrnet
    from ptrnet import tasks

    ptrnet.generate(
        tasks.get(task, points=points),
        n,
        count,
        output=output,
        labeller=labeller,
        strict=strict,
        seed=seed,
        jobs=jobs,
        backend=backend,
    )
