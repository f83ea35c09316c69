"""`ptrnet tune`: search the settings of a training on your own examples."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ptrnet.cli.options import add_settings, complete_architectures, complete_optimizers, echo
from ptrnet.settings import ANY_TASK, COSTS
from ptrnet.training.recipe import NOT_TUNED, recipe_options


def tune(
    data: Annotated[
        str, typer.Option(metavar="FILE", help="File of examples.", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option(help="Folder of the search, which keeps its trials.", show_default=False)
    ],
    trials: Annotated[int, typer.Option(help="Number of settings to try.")] = 30,
    folds: Annotated[int, typer.Option(help="Number of parts of the examples.")] = 5,
    seconds: Annotated[
        float | None, typer.Option(help="Begin no training after this many seconds.  [all trials]")
    ] = None,
    **options: Any,
) -> None:
    """Search the settings of a training on your own examples, and measure what the defaults give.

    Examples:
        ptrnet tune --data test.csv --set-id order --chosen bought --output tuned
        ptrnet tune --data mine.jsonl --trials 10 --folds 3 --seconds 3600 --output tuned-mine

    The first trial has the defaults of ptrnet train. Each trial trains on all folds but one and is
    measured on that one, for each fold in turn: by the log-likelihood of choices, and by the main
    metric of other answers. With --group, a fold has all sets of a person. Trials that are clearly
    worse than the best one are stopped early.

    ptrnet searches the size of the network, dropout, waves, learning rate and weight decay. It does
    not change settings that you give. If the command is stopped, run it again to go on. More
    --trials go on, too. At the end it compares the best settings with the defaults, and prints the
    command that trains a model on all examples. It needs the extra "tune".
    """
    from ptrnet.training.tuning import tune as search

    options = {key: value for key, value in options.items() if value is not None}
    try:
        found = search(data, output=output, trials=trials, folds=folds, seconds=seconds, **options)
    except KeyboardInterrupt:
        print(f"{output}: stopped; the same command goes on", file=sys.stderr)
        raise
    echo(str(found))


def prepare(arguments: Sequence[str] = ()) -> None:
    """Add an option to `tune` for each setting of a training on own examples."""
    del arguments  # they name no task
    add_settings(
        tune,
        [
            option
            for name, option in recipe_options([]).items()
            if name not in ("data", *NOT_TUNED) and not {ANY_TASK, COSTS} & {*option.owners}
        ],
        {"model": complete_architectures, "optimizer": complete_optimizers},
    )
