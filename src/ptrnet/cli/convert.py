"""`ptrnet convert`: a file's examples in another format."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.cli.options import UnusedSeed
from ptrnet.errors import InputError

if TYPE_CHECKING:
    from ptrnet.tasks.base import Task
    from ptrnet.types import Example


def register(app: typer.Typer) -> None:
    app.command()(convert)


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="The file; its extension tells.")],
    output: Annotated[str, typer.Argument(metavar="OUT", help="The file; - prints .txt.")],
    task: Annotated[
        str | None, typer.Option("--task", help="TASK; .tsp and .tour are of tsp without it.")
    ] = None,
    seed: UnusedSeed = 0,
) -> None:
    """Write the examples of IN in the format of OUT.

    What OUT could not hold is refused, not dropped: answers in .csv and .tsp, TSPLIB's distances
    in .txt and .csv, plain distances in .tsp. An example of TSPLIB is two files: write NAME.tsp,
    then NAME.tour.

    Example: ptrnet convert berlin52.opt.tour berlin52.jsonl
    """
    from ptrnet import tasks
    from ptrnet.data import formats
    from ptrnet.progress import track

    source_format, target = formats.format_of(source), formats.format_of(output)
    name = task or source_format.capabilities.task or target.capabilities.task
    if name is None:
        raise InputError(
            f"expected --task, one of {', '.join(tasks.names())}: "
            f"neither {source} nor {output} tells it"
        )
    kind = tasks.get(name)
    formats.check_output(output, kind)
    examples = target.checked_with_answers(formats.read(source, kind), kind)
    if target.extension == "tour":
        examples = _with_city_names(examples, output, kind)
    formats.write(output, track(examples, "converting"), kind)


def _with_city_names(
    examples: Iterable["Example"], output: str, task: "Task"
) -> Iterator["Example"]:
    """The examples under the names that the `.tsp` beside their `.tour` has for the cities.

    Raises:
        InputError: there is no such file, or it has other cities.
    """
    import numpy as np

    from ptrnet.data.formats import tour

    for example in examples:
        cities = tour.read_cities(output, task)
        same = np.array_equal(cities.inputs, example.inputs)
        if not same or cities.distance != example.distance:
            raise InputError(f"{output}: {cities.source} holds other cities than {example.source}")
        yield example._replace(nodes=cities.nodes)
