"""`ptrnet convert`: write the examples of a file in another format."""

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
    source: Annotated[
        str, typer.Argument(metavar="IN", help="The file; its extension tells the format.")
    ],
    output: Annotated[str, typer.Argument(metavar="OUT", help="The file; - prints .txt.")],
    task: Annotated[
        str | None, typer.Option("--task", help="TASK; not needed for .tsp and .tour.")
    ] = None,
    set_id: Annotated[
        str | None,
        typer.Option(
            "--set-id", help="The column of a long .csv whose value the rows of an instance share."
        ),
    ] = None,
    rank: Annotated[
        str | None, typer.Option("--rank", help="The column with an element's place in the answer.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", help="Or the column that is 1 if the element is in the answer."),
    ] = None,
    seed: UnusedSeed = 0,
) -> None:
    """Write the examples of IN in the format of OUT.

    With --set-id one of the two is a long .csv, in which a row is an element. Its other columns
    become the fields of objects in a .jsonl, and the other way round.

    The command refuses what OUT cannot hold: answers in .csv and .tsp, TSPLIB's distances in .txt
    and .csv, plain distances in .tsp. An example of TSPLIB is two files: write NAME.tsp, then
    NAME.tour.

    Example: ptrnet convert berlin52.opt.tour berlin52.jsonl

    Example: ptrnet convert offers.csv offers.jsonl --set-id order --rank place
    """
    from ptrnet import tasks
    from ptrnet.data import formats
    from ptrnet.progress import track

    source_format, target = formats.format_of(source), formats.format_of(output)
    if set_id is not None:
        if task is not None:
            raise InputError("--task does nothing with --set-id")
        _convert_table(source, output, set_id, rank, label)
        return
    if rank or label:
        raise InputError("--rank and --label need --set-id, the column of a long .csv")
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
    formats.write_checked(output, track(examples, "converting"), kind)


def _convert_table(
    source: str, output: str, set_id: str, rank: str | None, label: str | None
) -> None:
    """Convert a long table to .jsonl, or the other way.

    Raises:
        InputError: other formats, or a file that cannot be used.
    """
    from ptrnet.data import formats
    from ptrnet.data.infer_task import loosest_task
    from ptrnet.data.tables import read_lines, read_table, write_table

    if rank and label:
        raise InputError("expected --rank or --label, got both")
    extensions = [formats.format_of(path).extension for path in (source, output)]
    formats.check_output(output)
    if extensions == ["csv", "jsonl"]:
        examples = read_table(source, set_id=set_id, rank=rank, label=label)
        formats.write(output, examples, loosest_task(1))
    elif extensions == ["jsonl", "csv"] and rank and not label:
        write_table(output, read_lines(source), set_id=set_id, rank=rank)
    else:
        raise InputError(
            "--set-id: expected a .csv to be written to a .jsonl, or a .jsonl to a .csv with --rank"
        )


def _with_city_names(
    examples: Iterable["Example"], output: str, task: "Task"
) -> Iterator["Example"]:
    """Give examples the names of cities in the `.tsp` beside the `.tour` that is written.

    Raises:
        InputError: there is no such `.tsp`, or it has other cities.
    """
    import numpy as np

    from ptrnet.data.formats import tour

    for example in examples:
        cities = tour.read_cities(output, task)
        same = np.array_equal(cities.inputs, example.inputs)
        if not same or cities.distance != example.distance:
            raise InputError(f"{output}: {cities.source} holds other cities than {example.source}")
        yield example.replace(nodes=cities.nodes)
