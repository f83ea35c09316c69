"""`ptrnet label`: answer a file's instances by an algorithm."""

from typing import Annotated

import typer

from ptrnet import tasks
from ptrnet.cli.options import (
    Arguments,
    Backend,
    End,
    Index,
    Jobs,
    Labeller,
    Open,
    Plot,
    Start,
    Strict,
    UnusedSeed,
    known_task_and_file,
)
from ptrnet.labels import label_source, open_labels
from ptrnet.plots.answer import Picture, check_plot
from ptrnet.types import Ends


def label(
    arguments: Arguments = None,
    output: Annotated[str, typer.Option(help="The file; its extension is the format.")] = "-",
    labeller: Labeller = None,
    plot: Plot = None,
    index: Index = 0,
    strict: Strict = False,
    start: Start = None,
    end: End = None,
    open: Open = False,
    jobs: Jobs = -1,
    backend: Backend = "local",
    seed: UnusedSeed = 0,
) -> None:
    """Answer the instances of FILE by an algorithm. Answers that FILE has are replaced.

    Without --output, the answers are printed in FILE's format; answers to .tsp are printed as
    .tour, and answers to .parquet as .jsonl. Algorithms that draw random numbers use a fixed
    seed. Hulls and triangulations are exact. The labeller `exact` proves that its tours are the
    shortest, or marks them as not proved. If the command is stopped, its finished chunks stay next
    to the output. Run the same command again to continue.

    For tours, FILE may also be a square matrix of distances: .tsp, .atsp, .npy or .csv. TASK may be
    left out for files of one task, such as .vrp.

    --plot draws an answer, with the cost and, if FILE has an answer, the gap to it. The answers
    then have to fit into memory.

    Examples:
        ptrnet label hull points.csv --labeller monotone-chain --output hull.csv
        ptrnet label tsp stops.csv --plot tour.png
    """
    name, file = known_task_and_file(arguments)
    task, ends = tasks.get(name), Ends(start, end, open)
    if plot is None:
        source, sink = open_labels(task, file, output, labeller, strict, ends)
    else:
        check_plot(plot, task)
        source, sink = open_labels(task, file, output, labeller, strict, ends, whole=True)
        sink = Picture(sink, plot, task, index, author=labeller or task.facts.labellers[0])
        source = sink.watched(source)
    label_source(task, source, sink, labeller, strict, jobs, backend)
