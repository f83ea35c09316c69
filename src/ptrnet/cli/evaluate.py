"""`ptrnet evaluate`: compare a model's answers with a file's."""

from collections.abc import Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptrnet.cli.options import (
    Arguments,
    Backend,
    Direction,
    Jobs,
    Json,
    Model,
    Points,
    Seed,
    aligned,
    echo,
    expand_option_groups,
    flag_of,
    load_solver,
    task_alone,
    task_and_file,
)
from ptrnet.data.columns import WeightedColumns
from ptrnet.decoding.options import AnswerOptions
from ptrnet.errors import InputError
from ptrnet.settings import numbers_of
from ptrnet.types import Sizes

if TYPE_CHECKING:
    from ptrnet.metrics import Measure

    Measures = dict[str, Measure]
    Rows = dict[str, tuple[int, Measures]]
    Header = dict[str, str | int]


@expand_option_groups
def evaluate(
    *,
    arguments: Arguments = None,
    model: Model = None,
    decoding: AnswerOptions,
    columns: WeightedColumns,
    output: Annotated[
        str | None,
        typer.Option(help="A .jsonl or .parquet file for the examples with answers and scores."),
    ] = None,
    random: Annotated[
        int | None, typer.Option(min=1, help="Draw this many instances instead of reading FILE.")
    ] = None,
    n: Annotated[
        str | None,
        typer.Option(help="With --random: sizes, such as 5-50.  [sizes of the training]"),
    ] = None,
    points: Points = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Add a row for each value of this field: a key of each line, or a field that all "
            "elements of an instance share."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw a reliability diagram, which shows how often the model is right for each "
            "probability that it gives: FILE.png or FILE.svg. Only for models of your own "
            "examples."
        ),
    ] = None,
    direction: Direction = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="K,...", help="The k of ndcg@k and top@k.  [1,5,10 and 3,5]"),
    ] = None,
    gains: Annotated[
        str | None,
        typer.Option(
            metavar="G,...", help="The gains of grades 0, 1, 2, ... in ndcg@k.  [2^grade - 1]"
        ),
    ] = None,
    irrelevant: Annotated[
        str | None,
        typer.Option(
            help="What a set without a relevant element counts in ndcg@k, mrr and map: 1, 0 or out "
            "(left out).  [1]"
        ),
    ] = None,
    jobs: Jobs = 1,
    backend: Backend = "local",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure a model's answers to FILE against the answers that FILE gives.

    Every metric has a 95% interval, and the number of examples over which it is taken. If instances
    have different sizes, a table has a row for each size n. If there are more than 12 sizes, each
    row is a range of sizes. With --by, each row is a value of a field instead. The text leaves out
    metrics that say nothing about the examples, such as top@5 of three alternatives. --json has
    them, too.

    TASK may be left out with --model. With --random there is no FILE: ptrnet draws the instances,
    and the task's first labeller answers them.

    Files of any length are read and answered in chunks. --output keeps each example's scores. If
    a command with --output is stopped, run it again to continue. With --set-id, FILE is a long
    table: each row is an element, and another column has the answers. With --group, the intervals
    take a group, such as a person, as one observation.

    Examples:
        ptrnet evaluate hull test.txt --decoder beam --beam-size 4
        ptrnet evaluate hull million.txt --output scores.jsonl --jobs -1
        ptrnet evaluate --model my-offers test.jsonl --by country --plot calibration.png
        ptrnet evaluate --model my-offers test.csv --set-id order --chosen bought
        ptrnet evaluate --model my-offers test.jsonl --at 1,2,4
    """
    from ptrnet import tasks
    from ptrnet.data import formats
    from ptrnet.plots.figure import axes, check_picture
    from ptrnet.solver.evaluating import evaluate_drawn
    from ptrnet.solver.predict import predictor_of

    if random is None:
        for name, value in (("--n", n), ("--points", points)):
            if value is not None:
                raise InputError(f"{name} needs --random")
        task, path = task_and_file(arguments, model)
    else:
        for flag, given in (("--by", by), ("--plot", plot)):
            if given is not None:
                raise InputError(f"{flag} needs a FILE, and cannot be used with --random")
        task, path = task_alone(arguments, model), ""
    if plot is not None:
        check_picture(plot)
        if path == "-":
            raise InputError("--plot reads FILE again: expected a file, got standard input")
    decoder = decoding.build(seed, flag_of)
    settings = {
        "direction": direction,
        "at": None if at is None else numbers_of("--at", at, int),
        "gains": None if gains is None else numbers_of("--gains", gains),
        "irrelevant": irrelevant,
    }
    solver = load_solver(task, model, settings)
    if plot is not None and solver.task.name != tasks.CUSTOM:
        raise InputError(
            "--plot: only a model of your own examples has a reliability diagram, got one of task "
            f"{solver.task.name}; to draw an answer, use --plot of ptrnet solve"
        )
    how: dict[str, Any] = {
        "constrained": decoding.constrained,
        "augment": decoding.augment,
        "improve": decoding.improve,
    }
    if random is None:
        where: dict[str, Any] = {"jobs": jobs, "backend": backend}
        evaluation = solver.evaluate_file(
            path, output, decoder, by=by, columns=columns, **how, **where
        )
    else:
        evaluation = evaluate_drawn(
            predictor_of(solver.model, solver.task, decoder, **how),
            solver.trained_range,
            solver.task if points is None else tasks.with_points(solver.task, points),
            _sizes(n, solver.trained),
            random,
            seed,
            output,
            jobs,
            backend,
        )
    if plot is not None:
        with axes(plot, 5.0, 5.0) as ax:
            solver.plot_reliability(list(formats.read(path, solver.task, columns)), ax)
    header: Header = {
        "task": solver.task.name,
        "model": model or solver.task.name,
        "decoder": decoder.name,
        "instances": len(evaluation),
        **({"groups": len(evaluation.groups)} if evaluation.groups else {}),
    }
    column, rows = ("n", evaluation.by_size()) if by is None else (by, evaluation.by_value())
    measures = evaluation.measures()
    if json:
        document = {**header, **_document(len(evaluation), measures)}
        if rows:
            parts = [{column: name, **_document(*row)} for name, row in rows.items()]
            document[f"by_{column}"] = parts
        echo(dumps(document))
    else:
        echo(_text(header, measures, column, rows, evaluation.telling_metrics()))


def _sizes(n: str | None, trained: Mapping[str, Any]) -> Sizes:
    """Return the sizes to draw: those that the user gives, or those of the training."""
    if n is None and "n" not in trained:
        raise InputError(
            "--n: expected sizes such as 5-50, because the model's files do not say on which sizes "
            "it was trained"
        )
    return Sizes(trained["n"] if n is None else n)


def _document(count: int, measures: "Measures") -> dict[str, Any]:
    metrics = {metric: measure.to_dict() for metric, measure in measures.items()}
    return {"instances": count, "metrics": metrics}


def _text(
    header: "Header", measures: "Measures", column: str, rows: "Rows", shown: Sequence[str]
) -> str:
    """Return a line for each metric in `shown` over all instances, then a table by n or a field."""
    groups = f" in {header['groups']} groups" if "groups" in header else ""
    lines = ["{instances} instances{0}, model {model}, {decoder} decoding".format(groups, **header)]
    for metric in shown:
        m = measures[metric]
        value, interval = m.value_and_interval(4)
        interval = f"  95%: {interval}" if interval else ""
        lines.append(f"{metric:<18}{value:>10}{interval}  over {m.count}")
    if rows:
        table = [[column, "instances", *shown]]
        for name, (count, metrics) in rows.items():
            table.append([name, str(count), *(metrics[metric].text(3) for metric in shown)])
        lines += ["", *aligned(table)]
    return "\n".join(lines)
