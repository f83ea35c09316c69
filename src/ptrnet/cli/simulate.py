"""`ptrnet simulate`: answer what-if questions about choices by a model of your own examples."""

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from ptrnet.cli.options import Json, echo, expand_option_groups
from ptrnet.data.columns import WeightedColumns
from ptrnet.data.question import Question
from ptrnet.errors import InputError


@expand_option_groups
def simulate(
    *,
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A model's folder or a hub id.", show_default=False),
    ],
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Sets, with or without answers.", show_default=False),
    ],
    columns: WeightedColumns,
    question: Question,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Write the tables: FILE.csv (all in one) or FILE.json."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the shares: FILE.png or FILE.svg.")
    ] = None,
    json: Json = False,
) -> None:
    """Answer what-if questions about choices: shares, elasticities, willingness to pay, ...

    MODEL is a model of choices. Without options, the command prints the share of each alternative
    in the choices of FILE. With --change or --drop, it prints the shares before and after, and the
    diversion: which part of the lost buyers goes to each other alternative. All numbers have a 95%
    interval, from resampled groups (--group) or sets, and from the networks of an ensemble or the
    errors of a conditional logit. The page docs/simulate.md defines the numbers.

    Examples:
        ptrnet simulate my-offers test.csv --set-id order --by colour
        ptrnet simulate my-offers test.csv --set-id order --change "price + 1" --surplus price
        ptrnet simulate my-offers test.csv --set-id order --change "price * 0.9" --where "price > 2"
        ptrnet simulate my-offers test.csv --set-id order --by colour --drop "colour == red"
        ptrnet simulate my-offers test.csv --set-id order --by colour --elasticity price
    """
    from ptrnet.cli.options import load_solver
    from ptrnet.data import formats
    from ptrnet.files import atomic_path, check_writable
    from ptrnet.plots.figure import axes, check_picture
    from ptrnet.plots.shares import draw_shares, shares_height
    from ptrnet.solver.simulate import ACTIVITY, simulate
    from ptrnet.tasks.custom import own_task
    from ptrnet.types import Dataset

    if plot is not None:
        check_picture(plot)
    if output is not None:
        if output.suffix.lower() not in (".csv", ".json"):
            raise InputError(f"{output}: expected a name that ends in .csv or .json")
        check_writable(output)
    solver = load_solver(None, model)
    data = Dataset.of(list(formats.read(file, own_task(solver.task), columns)))
    simulation = simulate(solver, data, question, ACTIVITY)
    document = dumps({"model": model, **simulation.to_dict()})
    if output is not None:
        with atomic_path(output) as path:
            if output.suffix.lower() == ".json":
                path.write_text(document + "\n", encoding="utf-8")
            else:
                simulation.to_frame().to_csv(path, index=False)
    if plot is not None:
        shares = simulation["shares"]
        if question.segment:
            shares = shares[shares[question.segment] == "all"]
        with axes(plot, 6.0, shares_height(len(shares))) as ax:
            draw_shares(ax, shares, question.by or "position")
    echo(document if json else str(simulation))
