"""`ptrnet label`: answer a file's instances by an algorithm."""

from pathlib import Path
from typing import Annotated, Any

import typer

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
    check_index,
    known_task_and_file,
)


def label(
    arguments: Arguments = None,
    output: Annotated[
        str, typer.Option("--output", help="The file; its extension is the format.")
    ] = "-",
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
    import ptrnet

    task, file = known_task_and_file(arguments)
    how: dict[str, Any] = {
        "labeller": labeller,
        "strict": strict,
        "start": start,
        "end": end,
        "open": open,
        "jobs": jobs,
        "backend": backend,
    }
    if plot is None:
        ptrnet.label(task, file, output=output, **how)
    else:
        _label_and_plot(task, file, output, plot, index, how)


def _label_and_plot(
    name: str, file: str, output: str, plot: Path, index: int, how: dict[str, Any]
) -> None:
    """Answer the instances in memory, draw one answer, and write all answers.

    Args:
        name: the name of the task.
        file: the file of the instances.
        output: the file of the answers.
        plot: the picture.
        index: the instance to draw.
        how: other arguments of `ptrnet.label`.
    """
    import ptrnet
    from ptrnet import tasks
    from ptrnet.data import formats
    from ptrnet.data.dataset import Dataset
    from ptrnet.plots.answer import check_drawable, check_plot, plotting

    task = tasks.get(name)
    check_plot(plot, task)
    formats.check_output(output, task)
    if file != "-":
        formats.check_input(file)
    formats.check_not_overwritten(file, output)
    instances = formats.output_format(output, file).checked(formats.read(file, task), task)
    examples = Dataset.of(instances, task.item_size)
    check_index(index, len(examples))
    check_drawable(examples[index])
    labelled = ptrnet.label(task, examples, **how)
    # The file's answer can be compared if it has a cost, by the same rules.
    is_comparable = task.has_costs and labelled[index].rules == examples[index].rules
    known = examples.outputs(index) if is_comparable else None
    with plotting(plot, task, labelled[index], known, how["labeller"] or task.labellers[0]):
        formats.write(output, labelled, task, file)
