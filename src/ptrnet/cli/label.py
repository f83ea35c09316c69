"""`ptrnet label`: answer a file's instances by an algorithm."""

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

    Without --output, the answers are printed in FILE's format; answers to .tsp are printed as
    .tour, and answers to .parquet as .jsonl. Algorithms that draw random numbers use a fixed
    seed. Hulls and triangulations are exact. The labeller `exact` proves that its tours are the
    shortest, or marks them as not proved. If the command is stopped, its finished chunks stay next
    to the output. Run the same command again to continue.

    For tours, FILE may also be a square matrix of distances: .tsp, .atsp, .npy or .csv.

    Examples:
        ptrnet label hull points.csv --labeller monotone-chain --output hull.csv
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
