"""The program: its commands and `--version`."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from ptrnet.version import VERSION

# The modules of the commands, in the order of the help.
VERBS = (
    "solve",
    "evaluate",
    "explain",
    "train",
    "generate",
    "label",
    "convert",
    "check",
    "models",
    "push",
    "export",
    "serve",
    "reproduce",
    "plot",
    "bench",
)


def build(verbs: Sequence[str] = VERBS) -> typer.Typer:
    """Return the program with some of its commands; only their modules are imported."""
    app = typer.Typer(
        name="ptrnet",
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(ptrnet)
    for verb in verbs:
        import_module(f"ptrnet.cli.{verb}").register(app)
    return app


def _print_version(requested: bool) -> None:
    if requested:
        print(f"ptrnet {VERSION}")
        raise typer.Exit


def ptrnet(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """ptrnet learns to point: models whose answer is made of positions in their own input.

    Every command takes --plugins FILE.py: tasks, models, labellers and formats of your own.
    """
