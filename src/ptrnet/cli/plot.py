"""`ptrnet plot`: draw learning curves of runs."""

from pathlib import Path
from typing import Annotated

import typer

from ptrnet.cli.options import UnusedSeed, echo


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", show_default=False)],
    output: Annotated[Path, typer.Option(help="The picture, .png or .svg.")] = Path("curves.png"),
    x: Annotated[
        str, typer.Option(help="The horizontal axis: steps, examples or minutes.")
    ] = "steps",
    seed: UnusedSeed = 0,
) -> None:
    """Draw the loss, accuracy and cost of trainings, from their logs, in one picture.

    RUN is the folder of a training, which may still be running.

    Examples:
        ptrnet plot runs/hull runs/hull-512 --x examples --output curves.svg
    """
    from typing import get_args

    from ptrnet.errors import InputError, unknown
    from ptrnet.plots.curves import Axis, draw_curves, read_curves
    from ptrnet.plots.figure import check_picture, figure
    from ptrnet.training.recipe import Recipe

    if x not in get_args(Axis):
        raise unknown("--x", x, get_args(Axis))
    check_picture(output)
    for run in runs:
        if not run.is_dir():
            raise InputError(
                f"{run}: expected the folder of a training; --plot of ptrnet solve draws answers"
            )
    recipes = [Recipe.read(run / "recipe.toml") for run in runs]
    pairs = zip(runs, recipes, strict=True)
    curves = [read_curves(run, recipe.data.batch_size) for run, recipe in pairs]
    with figure(output, 8.0, 8.0) as fig:
        draw_curves(fig, curves, x)  # type: ignore[arg-type]
    echo(str(output))
