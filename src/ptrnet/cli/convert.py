"""`ptrnet convert`: write the examples of a file in another format."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.cli.options import Index, Plot, UnusedSeed, expand_option_groups, task_names
from ptrnet.data.columns import TableColumns
from ptrnet.errors import InputError

if TYPE_CHECKING:
    from ptrnet.tasks.base import Task
    from ptrnet.types import Example


@expand_option_groups
def convert(
    *,
    source: Annotated[
        str, typer.Argument(metavar="IN", help="The file to read; its extension is the format.")
    ],
    output: Annotated[
        str | None,
        typer.Argument(
            metavar="OUT",
            help="The file to write; - prints .txt. May be left out with --plot.",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="The task; not needed for a format of one task, such as .tsp."),
    ] = None,
    columns: TableColumns,
    plot: Plot = None,
    index: Index = 0,
    seed: UnusedSeed = 0,
) -> None:
    """Write the examples of IN in the format of OUT.

    With --set-id, IN, OUT or both are long tables (.csv, .tsv, .dat, .txt, .parquet), in which rows
    are elements. A .svmlight file is always a long table. The columns of a table, except ids and
    answers, become fields of the elements in a .jsonl file, and vice versa. With --alternatives, IN
    is a wide table: each row is a set. OUT is then a long table or a .jsonl file.

    The command stops with an error if the format of OUT would lose a part of IN. A .tsp, and a .csv
    that is not a long table, hold no answers. A .txt or .csv does not hold TSPLIB's rounded
    distances between points. A .tsp does not hold unrounded Euclidean distances. TSPLIB stores the
    cities and the answer in two files: write NAME.tsp first, then NAME.tour.

    --plot draws an answer that IN has, with its cost.

    Examples:
        ptrnet convert berlin52.opt.tour berlin52.jsonl
        ptrnet convert berlin52.opt.tour --plot berlin52.png
        ptrnet convert offers.csv offers.jsonl --set-id order --rank place
        ptrnet convert trips.csv long.csv --alternatives car,bus --chosen choice
    """
    from ptrnet import tasks
    from ptrnet.data import formats
    from ptrnet.progress import track

    if output is None and plot is None:
        raise InputError(f"expected OUT, the file to write, or --plot; got: {source}")
    source_format = formats.format_of(source)
    target = source_format if output is None else formats.format_of(output)
    has_table = bool(columns or source_format.columns or target.columns)
    if columns.group and not has_table:
        raise InputError("--group names a column of a long table, so it needs --set-id")
    if has_table:
        if task is not None:
            raise InputError("--task has no effect with a long table")
        if columns.alternatives and not source_format.has("table"):
            raise InputError("--alternatives is for a wide table, so IN has to be a table")
        if output is None or plot is not None:
            raise InputError(
                "--plot: a long table is not of a task that draws its answers; to draw a model's "
                f"answers, use ptrnet solve --model MODEL {source} --set-id ... --plot"
            )
        _convert_table(source, output, columns)
        return
    name = task or source_format.capabilities.task or target.capabilities.task
    if name is None:
        files = (
            f"format of {source} does" if output is None else f"formats of {source} and {output} do"
        )
        raise InputError(
            f"expected --task, one of {', '.join(task_names())}: the {files} not tell it"
        )
    kind = tasks.get(name)
    drawing: AbstractContextManager[None] = nullcontext()
    if plot is not None:
        drawing = _plotting(plot, source, kind, index)
    if output is None:
        with drawing:
            return
    formats.check_output(output, kind, has_answers=False)
    examples = target.checked(formats.read(source, kind), kind, keep_answers=True)
    if target.extension == "tour":
        examples = _with_city_names(examples, output, kind)
    with drawing:
        formats.write(output, track(examples, "converting"), kind)


def _plotting(path: Path, source: str, task: "Task", index: int) -> AbstractContextManager[None]:
    """Return a context that draws the answer to an instance of a file."""
    from ptrnet.data import formats
    from ptrnet.plots.answer import check_index, check_plot, plotting

    check_plot(path, task)
    if source == "-":
        raise InputError("--plot reads IN again: expected a file, got standard input")
    examples = list(islice(formats.read(source, task), index + 1))
    check_index(index, len(examples))
    if examples[index].outputs is None:
        raise InputError(
            f"{examples[index].source}: has no answer to draw; to compute one, use: "
            f"ptrnet label {task.name} {source} --plot {path}"
        )
    return plotting(path, task, examples[index], None, author="")


def _convert_table(source: str, output: str, columns: TableColumns) -> None:
    """Convert a long table to .jsonl or to another table, or .jsonl to a table.

    Raises:
        InputError: a file is neither a table nor .jsonl, or cannot be used.
    """
    from ptrnet.data import formats
    from ptrnet.data.arrays import records_of
    from ptrnet.data.formats import jsonl
    from ptrnet.data.formats.parts.json_values import num_features
    from ptrnet.data.infer_task import loosest_task
    from ptrnet.data.tables import read_sets, table_of_examples, with_keys

    formats.check_output(output)
    source_format, target = formats.check_input(source), formats.format_of(output)
    if "jsonl" in (source_format.extension, target.extension):
        columns.check_keys()
    if source_format.extension != "jsonl":
        opened = formats.open_table(source, columns)
        assert opened is not None
        table, named = opened
        sets = read_sets(table, named)
        if (formats.table_format(output) if named else target).has("write_table"):
            formats.write_table(output, table)
        else:
            formats.write(output, with_keys(table, named, sets), loosest_task(1))
        return
    task = loosest_task(1)
    if not target.columns:
        examples = jsonl.read_any(source, task)
        formats.write_table(output, table_of_examples(examples, columns, source))
        return
    first, place = next(formats.instances(source))
    if records_of(first) is not None:
        formats.write(output, jsonl.read_any(source, task), task)
    else:
        task = loosest_task(num_features(first, place))
        formats.write(output, formats.read(source, task), task)


def _with_city_names(
    examples: Iterable["Example"], output: str, task: "Task"
) -> Iterator["Example"]:
    """Yield the examples with the cities' names from the `.tsp` next to the new `.tour`.

    Raises:
        InputError: there is no `.tsp` of that name, or the `.tsp` has other cities.
    """
    import numpy as np

    from ptrnet.data.formats import tour

    for example in examples:
        cities = tour.read_cities(output, task)
        same = np.array_equal(cities.inputs, example.inputs)
        if not same or cities.distance != example.distance:
            raise InputError(f"{output}: {cities.source} holds other cities than {example.source}")
        yield example.replace(nodes=cities.nodes)
