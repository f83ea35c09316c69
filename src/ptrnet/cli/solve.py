"""`ptrnet solve`: answer a file of instances with a trained model."""

from functools import partial
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptrnet.cli.options import (
    Arguments,
    Backend,
    Direction,
    End,
    Index,
    Jobs,
    Json,
    Model,
    Open,
    Plot,
    Points,
    Seed,
    Start,
    echo,
    expand_option_groups,
    flag_of,
    load_solver,
    task_alone,
    task_and_file,
)
from ptrnet.data.columns import Columns, SetColumns
from ptrnet.decoding.options import AnswerOptions
from ptrnet.errors import InputError
from ptrnet.run import Sink
from ptrnet.settings import OWN_EXAMPLES
from ptrnet.sinks import Doubts, Shown

if TYPE_CHECKING:
    from ptrnet.solver import Solver
    from ptrnet.tasks.base import Task
    from ptrnet.types import Dataset, Floats

CHOOSER_USAGE = "chooser FILE --examples OLD, where OLD has answered sets and FILE new ones"


@expand_option_groups
def solve(
    *,
    arguments: Arguments = None,
    model: Model = None,
    decoding: AnswerOptions,
    output: Annotated[
        str, typer.Option(help="File for the answers; its extension is the format.")
    ] = "-",
    set_columns: SetColumns,
    probability: Annotated[
        str,
        typer.Option(
            help="Long table: add a column of this name with the probability of each row. Wide "
            "table: the beginning of the names of such columns.  [probability]",
            rich_help_panel=OWN_EXAMPLES,
        ),
    ] = "",
    examples: Annotated[
        str,
        typer.Option(
            help="chooser: the file of answered sets, such as a table with --set-id and --chosen.",
            rich_help_panel=OWN_EXAMPLES,
        ),
    ] = "",
    group: Annotated[
        str,
        typer.Option(
            help="chooser: the column of --examples that says to which person or household a set "
            "belongs.",
            rich_help_panel=OWN_EXAMPLES,
        ),
    ] = "",
    doubt: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Name on standard error the instances whose answer has a lower probability.",
        ),
    ] = 0.0,
    plot: Plot = None,
    index: Index = 0,
    random: Annotated[
        int | None,
        typer.Option(min=1, help="Answer a random instance of this size, instead of a FILE."),
    ] = None,
    points: Points = None,
    start: Start = None,
    end: End = None,
    open: Open = False,
    direction: Direction = None,
    jobs: Jobs = 1,
    backend: Backend = "local",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Answer every instance of FILE with a trained model.

    Without --output, answers are printed in FILE's format: .txt has 1-based indices after `output`,
    .jsonl has 0-based indices, and .csv has the rows in the answer's order. Answers to a .tsp file
    are printed as .tour, answers to .parquet and to documents of pages as .jsonl, and answers to
    .pdf as text. FILE may be a folder of documents of pages; --output is then a new folder. TASK
    may be left out with --model.

    With --set-id, FILE is a long table: each row is an element. The output is the same table with
    one more column for the answers. This column is named place, chosen or member, unless you give
    another name by --rank, --chosen or --member. --probability adds a column of probabilities. If
    the model was trained on a wide table (--alternatives), so is FILE: the output has a column with
    the chosen alternative, and one of probabilities for each alternative.

    With chooser as TASK, nothing is trained: --examples names a file with some 20 to 2,000 answered
    choices or grades, and ptrnet answers FILE as they say.

    Files are read, answered and written in chunks, except for long tables, which have to fit into
    memory. If the command is stopped, its finished chunks stay next to --output. Run the same
    command again to continue. Lines of standard input are answered as they arrive. Lines that begin
    with { are .jsonl.

    Examples:
        ptrnet solve hull examples/capitals.csv --plot hull.png
        ptrnet solve tsp stops.csv --start 0 --end 7 --open
        ptrnet solve hull million.txt --output answered.txt --jobs -1
        ptrnet solve reading-order examples/newspaper.xml --output ordered.xml --doubt 0.5
        ptrnet solve --model my-offers new.csv --set-id order --output answered.csv
        ptrnet solve --model my-offers new.csv --set-id order --probability share
        ptrnet solve chooser new.csv --examples offers.csv --set-id order --chosen bought
    """
    from ptrnet.models import CHOOSER
    from ptrnet.solver import solve_source
    from ptrnet.solver.predict import predictor_of
    from ptrnet.solver.solving import ACTIVITY, open_drawn, open_file
    from ptrnet.types import Ends

    if random is None and points is not None:
        raise InputError("--points needs --random")
    decoder = decoding.build(seed, flag_of)
    if arguments and arguments[0] == CHOOSER:
        if (model, random, direction) != (None, None, None) or not examples:
            raise InputError(f"expected {CHOOSER_USAGE}")
        solver, path = _chooser_and_file(arguments[1:], examples, set_columns, group)
    else:
        if examples or group:
            raise InputError(f"--examples and --group are for {CHOOSER_USAGE}")
        if random is None:
            name, path = task_and_file(arguments, model)
        else:
            name, path = task_alone(arguments, model), ""
        solver = load_solver(name, model, {"direction": direction})
    task, trained_range = solver.task, solver.trained_range
    if plot is not None:
        from ptrnet.plots.answer import Picture, check_plot

        check_plot(plot, task)
    predictor = predictor_of(
        solver.model, task, decoder, decoding.constrained, decoding.augment, decoding.improve
    )
    target, ends = None if json and output == "-" else output, Ends(start, end, open)
    if random is None:
        columns, whole = Columns(**vars(set_columns)), json or plot is not None or doubt > 0
        source, sink = open_file(predictor, path, target, ends, columns, probability, whole)
    else:
        inputs = _random_instance(task, points, random, seed)
        source, sink = open_drawn(predictor, inputs, target, ends, probability)
    if plot is not None:
        sink = Picture(sink, plot, task, index)
        source = sink.watched(source)
    if json:
        header = {"task": task.name, "model": model or task.name, "decoder": decoder.name}
        sink = Document(sink, header, task)
    if doubt:
        sink = Doubts(sink, doubt)
    solve_source(predictor, trained_range, source, sink, ACTIVITY, jobs, backend)


def _chooser_and_file(
    words: list[str], examples: str, columns: SetColumns, group: str
) -> "tuple[Solver, str]":
    """Return a model that answers as a file of examples says, and the path of the new sets."""
    from ptrnet.weights.chooser import Chooser

    if len(words) != 1:
        raise InputError(f"expected {CHOOSER_USAGE}")
    names = {**vars(columns), "group": group}
    return Chooser().given(examples, **{key: name for key, name in names.items() if name}), words[0]


def _random_instance(task: "Task", points: str | None, n: int, seed: int) -> "Floats":
    import numpy as np

    from ptrnet import tasks
    from ptrnet.data import checks
    from ptrnet.types import Sizes

    task = task if points is None else tasks.with_points(task, points)
    checks.check_sizes(Sizes(n), task)
    (inputs,) = task.sample(np.random.default_rng(seed), 1, n)
    return inputs


class Document(Shown[Any]):
    """Print a header and all answers as one JSON document, after another sink has taken them."""

    def __init__(self, inner: Sink[Any], header: dict[str, str], task: "Task") -> None:
        super().__init__(inner, partial(_rows, task))
        self._header, self._answers = header, list[dict[str, Any]]()

    def show(self, picked: list[dict[str, Any]]) -> None:
        self._answers += picked

    def result(self) -> None:
        self.inner.result()
        echo(dumps({**self._header, "answers": self._answers}))


def _rows(task: "Task", answered: "Dataset") -> list[dict[str, Any]]:
    from ptrnet.metrics import summary

    rows = []
    for example in answered:
        assert example.outputs is not None
        row = {"outputs": example.outputs.tolist(), "log_likelihood": example.log_prob}
        if names := task.facts.layout.names_in(example.elements):
            row["alternatives"] = names
        if page := example.page:  # pages may be left out, and readers sort boxes
            row = {"source": example.source, **row}
            if any(page.ids):
                row["ids"] = list(page.ids)
        rows.append({**row, **summary.answer_stats(task, example)})
    return rows
