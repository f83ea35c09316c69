"""`ptrnet label`: answers for a file's instances, by an algorithm."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.cli import words as w

if TYPE_CHECKING:
    from ptrnet.tasks.base import Task
    from ptrnet.types import Example

WINDOW = 1000  # instances that are labelled together


def register(app: typer.Typer) -> None:
    app.command()(label)


def label(
    task: Annotated[str, typer.Argument(metavar="TASK", help="hull or sort.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Instances; answers are replaced.")],
    output: Annotated[
        str, typer.Option("--output", help="The file; its extension is the format.")
    ] = "-",
    labeller: Annotated[
        str | None, typer.Option("--labeller", help="The algorithm; by default the task's first.")
    ] = None,
    seed: w.Seed = 0,
) -> None:
    """Answer the instances of FILE by an algorithm.

    The algorithms of hull and sort draw nothing at random: their answers are the same for every
    seed.

    Example: ptrnet label hull points.csv --labeller monotone-chain --output hull.csv
    """
    from ptrnet import tasks
    from ptrnet.cli.progress import shown
    from ptrnet.data import formats

    kind = tasks.get(task)
    kind.check_labeller(labeller, kind.smallest)
    formats.check_output(output)
    labelled = _labelled(formats.read(file, kind), kind, labeller)
    formats.write(output, shown(labelled, "labelling"), kind, like=file)


def _labelled(
    examples: Iterator["Example"], task: "Task", labeller: str | None
) -> Iterator["Example"]:
    from ptrnet.data.generate import label

    while window := list(islice(examples, WINDOW)):
        yield from label(task, window, labeller)
