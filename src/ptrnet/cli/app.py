"""The program: its verbs and `--version`."""

from typing import Annotated

import typer

from ptrnet.cli import (
    bench,
    convert,
    evaluate,
    generate,
    label,
    models,
    plot,
    push,
    reproduce,
    serve,
    solve,
    train,
)
from ptrnet.version import VERSION

app = typer.Typer(
    name="ptrnet",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"ptrnet {VERSION}")
        raise typer.Exit


@app.callback()
def ptrnet(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """ptrnet learns to point: models whose answer is made of positions in their own input.

    Every command takes --plugins FILE.py: tasks, models, labellers and formats of your own.
    """


VERBS = (
    solve,
    evaluate,
    train,
    generate,
    label,
    convert,
    models,
    push,
    reproduce,
    plot,
    serve,
    bench,
)
for verb in VERBS:
    verb.register(app)
