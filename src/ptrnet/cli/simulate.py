"""`ptrnet simulate`: answer what-if questions about choices by a model of your own examples."""

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from ptrnet.cli.options import Json, Seed, echo, expand_option_groups
from ptrnet.data.columns import WeightedColumns
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
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--change",
            help='Change a field: "price * 1.1", or "price = cost + 2". Repeat it for several.',
        ),
    ] = None,
    where: Annotated[
        str, typer.Option("--where", help='With --change: the rows to change, "mode == train".')
    ] = "",
    drop: Annotated[
        str, typer.Option("--drop", help='Remove the rows of a condition, "mode == bus".')
    ] = "",
    by: Annotated[
        str,
        typer.Option("--by", help="The column that names the alternatives.  [position in the set]"),
    ] = "",
    segment: Annotated[
        str,
        typer.Option(
            "--segment",
            help="Add rows for each value of a column that all rows of a set share.",
        ),
    ] = "",
    elasticity: Annotated[
        str,
        typer.Option(
            "--elasticity", help="Own and cross elasticities of all shares for a field of numbers."
        ),
    ] = "",
    wtp: Annotated[
        str,
        typer.Option(
            "--wtp", help="Willingness to pay: FIELD/COST, the ratio of marginal utilities."
        ),
    ] = "",
    surplus: Annotated[
        str,
        typer.Option(
            "--surplus", help="Change of the consumer surplus, in the unit of this field of costs."
        ),
    ] = "",
    step: Annotated[
        float,
        typer.Option(
            "--step",
            help="Size of differences: share of a value (--elasticity) or standard deviation "
            "(--wtp). Use 0.1 for trees.",
        ),
    ] = 0.01,
    draws: Annotated[
        int, typer.Option("--draws", min=1, help="Number of draws that intervals are made of.")
    ] = 1000,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Write the tables: FILE.csv (all in one) or FILE.json."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the shares: FILE.png or FILE.svg.")
    ] = None,
    seed: Seed = 0,
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
    simulation = simulate(
        solver,
        data,
        change=change or (),
        where=where,
        drop=drop,
        by=by,
        segment=segment,
        elasticity=elasticity,
        wtp=wtp,
        surplus=surplus,
        step=step,
        draws=draws,
        seed=seed,
        activity=ACTIVITY,
    )
    document = dumps({"model": model, **simulation.to_dict()})
    if output is not None:
        with atomic_path(output) as path:
            if output.suffix.lower() == ".json":
                path.write_text(document + "\n", encoding="utf-8")
            else:
                simulation.to_frame().to_csv(path, index=False)
    if plot is not None:
        shares = simulation["shares"]
        if segment:
            shares = shares[shares[segment] == "all"]
        with axes(plot, 6.0, shares_height(len(shares))) as ax:
            draw_shares(ax, shares, by or "position")
    echo(document if json else str(simulation))
