"""`ptrnet label`: answers for a file's instances, by an algorithm."""

from typing import Annotated

import typer

from ptrnet.cli.options import (
    Backend,
    End,
    Jobs,
    Labeller,
    Open,
    Start,
    Strict,
    TaskName,
    UnusedSeed,
)


def register(app: typer.Typer) -> None:
    app.command()(label)


def label(
    task: TaskName,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Instances; answers are replaced.")],
    output: Annotated[
        str, typer.Option("--output", help="The file; its extension is the format.")
    ] = "-",
    labeller: Labeller = None,
    strict: Strict = False,
    start: Start = None,
    end: End = None,
    open: Open = False,
    jobs: Jobs = -1,
    backend: Backend = "local",
    seed: UnusedSeed = 0,
) -> None:
    """Answer the instances of FILE by an algorithm.

    The answers are in FILE's own format; those to a .tsp file are a .tour, those to .parquet are
    printed as .jsonl. The algorithms draw nothing at random. Hulls and triangulations are right for
    coordinates as they stand; tours of `exact` are proved, or said not to be. Where the work is
    stopped, what was done is kept beside the output, and the same command goes on.

    Tours may also be of square matrices of distances, in .tsp, .atsp, .npy and .csv.

    Example: ptrnet label hull points.csv --labeller monotone-chain --output hull.csv
    """
    import ptrnet

    ptrnet.label(
        task,
        file,
        output=output,
        labeller=labeller,
        strict=strict,
        start=start,
        end=end,
        open=open,
        jobs=jobs,
        backend=backend,
    )
