"""`ptrnet solve`: answer a file of instances with a trained model."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptrnet.cli.options import (
    Arguments,
    Backend,
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
    check_index,
    echo,
    expand_option_groups,
    flag_of,
    load_solver,
    task_alone,
    task_and_file,
)
from ptrnet.data.tables import Columns, SetColumns
from ptrnet.decoding.options import AnswerOptions
from ptrnet.errors import InputError
from ptrnet.settings import OWN_EXAMPLES

if TYPE_CHECKING:
    from ptrnet.data.dataset import Dataset
    from ptrnet.solver import Solver
    from ptrnet.tasks.base import Task
    from ptrnet.types import Example


@expand_option_groups
def solve(
    *,
    arguments: Arguments = None,
    model: Model = None,
    decoding: AnswerOptions,
    output: Annotated[
        str, typer.Option("--output", help="File for the answers; its extension is the format.")
    ] = "-",
    set_columns: SetColumns,
    probability: Annotated[
        str,
        typer.Option(
            "--probability",
            help="Long table: add a column of this name with the probability of each row.",
            rich_help_panel=OWN_EXAMPLES,
        ),
    ] = "",
    plot: Plot = None,
    index: Index = 0,
    random: Annotated[
        int | None,
        typer.Option(
            "--random", min=1, help="Answer a random instance of this size, instead of a FILE."
        ),
    ] = None,
    points: Points = None,
    start: Start = None,
    end: End = None,
    open: Open = False,
    jobs: Jobs = 1,
    backend: Backend = "local",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Answer every instance of FILE with a trained model.

    Without --output, answers are printed in FILE's format: .txt has 1-based indices after `output`,
    .jsonl has 0-based indices, and .csv has the rows in the answer's order. Answers to a .tsp file
    are printed as .tour, and answers to .parquet as .jsonl. TASK may be left out with --model.

    With --set-id, FILE is a long table: each row is an element. The output is the same table with
    one more column for the answers. This column is named place, chosen or member, unless you give
    another name by --rank, --chosen or --member. --probability adds a column of probabilities.

    Files are read, answered and written in chunks, except for long tables, which have to fit into
    memory. If the command is stopped, its finished chunks stay next to --output. Run the same
    command again to continue. Lines of standard input are answered as they arrive. Lines that begin
    with { are .jsonl.

    Examples:
        ptrnet solve hull examples/capitals.csv --plot hull.png
        ptrnet solve tsp stops.csv --start 0 --end 7 --open
        ptrnet solve hull million.txt --output answered.txt --jobs -1
        ptrnet solve --model my-offers new.csv --set-id order --output answered.csv
        ptrnet solve --model my-offers new.csv --set-id order --probability share
    """
    from ptrnet.data import formats
    from ptrnet.data.dataset import Dataset
    from ptrnet.solver.on_files import (
        check_ends,
        check_no_probability,
        instances_to_solve,
        table_writer,
    )
    from ptrnet.solver.predict import predictor_of
    from ptrnet.tasks.tsp import with_ends
    from ptrnet.types import Ends

    if random is None:
        if points is not None:
            raise InputError("--points needs --random")
        name, path = task_and_file(arguments, model)
    else:
        name, path = task_alone(arguments, model), None
    columns = Columns(**vars(set_columns))
    decoder = decoding.build(seed, flag_of)
    solver = load_solver(name, model)
    if plot is not None:
        from ptrnet.plots.answer import check_plot, plotting

        check_plot(plot, solver.task)
    how: dict[str, Any] = {
        "constrained": decoding.constrained,
        "augment": decoding.augment,
        "improve": decoding.improve,
        "jobs": jobs,
        "backend": backend,
    }
    if path is not None and not json and plot is None:
        solver.solve_file(
            path,
            output,
            decoder,
            start=start,
            end=end,
            open=open,
            columns=columns,
            probability=probability,
            **how,
        )
        return
    ends, task, sets = Ends(start, end, open), solver.task, None
    predictor = predictor_of(solver.model, task, decoder, decoding.constrained, decoding.augment)
    check_ends(predictor, ends)
    like = path or f"drawn.{task.stdout_format}"
    write: Callable[[Dataset], None] = partial(formats.write, output, task=task, like=like)
    if path is not None:
        instances, sets = instances_to_solve(task, path, output, ends, columns)
        if sets is not None and (output != "-" or not json):
            write = table_writer(predictor, sets, output, probability)
        else:
            check_no_probability(probability)
    else:
        assert random is not None
        check_no_probability(probability)
        formats.check_output(output, task)
        drawn = with_ends(_random_instance(task, points, random, seed), task, ends)
        instances = formats.output_format(output, like).checked(drawn, task)
    examples = Dataset.of(instances, task.item_size)
    if plot is not None:
        check_index(index, len(examples))
    answered = solver.predict(examples, decoder, activity="solving", **how)
    drawing: AbstractContextManager[None] = nullcontext()
    if plot is not None:
        # `columns` name the column to write. Only a table whose format fixes the names of columns,
        # such as .svmlight, has true answers.
        known = examples if sets is None else sets.dataset(task, with_answers=not columns)
        drawing = plotting(plot, task, answered[index], known.outputs(index))
    with drawing:
        if output != "-":
            write(answered)
    if json:
        echo(dumps(_document(solver, model, decoder.name, answered)))
    elif output == "-":
        write(answered)


def _random_instance(task: "Task", points: str | None, n: int, seed: int) -> Iterable["Example"]:
    import numpy as np

    from ptrnet import tasks
    from ptrnet.data import checks
    from ptrnet.sizes import Sizes
    from ptrnet.types import Example

    task = task if points is None else tasks.with_points(task, points)
    checks.check_sizes(Sizes(n), task)
    (inputs,) = task.sample(np.random.default_rng(seed), 1, n)
    return [Example(inputs, source="the random instance")]


def _document(
    solver: "Solver", model: str | None, decoder: str, answered: "Dataset"
) -> dict[str, Any]:
    """Return the document that `--json` prints."""
    return {
        "task": solver.task.name,
        "model": model or solver.task.name,
        "decoder": decoder,
        "answers": [
            {
                "outputs": example.outputs.tolist(),
                "log_likelihood": example.log_prob,
                **solver.task.answer_stats(example),
            }
            for example in answered
            if example.outputs is not None
        ],
    }
