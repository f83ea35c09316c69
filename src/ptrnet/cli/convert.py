"""`ptrnet convert`: a file's examples in another format."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.cli.options import Seed
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
    seed: Seed = 0,
) -> None:
    """Write the examples of IN in the format of OUT.

    What OUT could not hold is refused, not dropped: answers in .csv and .tsp, TSPLIB's distances
    in .txt and .csv, plain distances in .tsp. An example of TSPLIB is two files: write NAME.tsp,
    then NAME.tour. Nothing is drawn at random here; every command takes a seed.

    Example: ptrnet convert berlin52.opt.tour berlin52.jsonl
    """
    from ptrnet import tasks
    from ptrnet.data import formats
    from ptrnet.progress import track

    told = (formats.capabilities(formats.of(name)).task for name in (source, output))
    name = task or next(filter(None, told), None)
    if name is None:
        raise InputError(
            f"expected --task, one of {', '.join(tasks.names())}: "
            f"neither {source} nor {output} tells it"
        )
    kind = tasks.get(name)
    formats.check_served(source, kind)
    formats.check_output(output, kind)
    held = _held(formats.read(source, kind), output, kind)
    formats.write(output, track(held, "converting"), kind)


def _held(examples: Iterable["Example"], output: str, task: "Task") -> Iterator["Example"]:
    """The same examples; InputError where an answer, or a tour's cities, would be lost."""
    from ptrnet.data import formats

    extension = formats.of(output)
    for example in formats.fitting(extension, examples, task):
        if example.outputs is not None and not formats.capabilities(extension).answers:
            others = formats.holding(example, task, lambda other: other.answers)
            raise InputError(
                f"{example.source}: a .{extension} file would lose the answer; write to {others}"
            )
        yield _through_its_cities(example, output, task) if extension == "tour" else example


def _through_its_cities(example: "Example", output: str, task: "Task") -> "Example":
    """The example under the names that the `.tsp` beside its `.tour` has for the cities."""
    import numpy as np

    from ptrnet.data.formats import tour

    there = tour.cities(output, task)
    if there.distance != example.distance or not np.array_equal(there.inputs, example.inputs):
        raise InputError(f"{output}: {there.source} holds other cities than {example.source}")
    return example._replace(nodes=there.nodes)
