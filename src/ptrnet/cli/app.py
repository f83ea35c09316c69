"""The program: its commands and `--version`."""

from collections.abc import Sequence
from importlib import import_module
from inspect import getdoc
from typing import Annotated

import typer

from ptrnet.version import VERSION

# The commands, in the order of the help. Each is a function or a `typer.Typer` in a module
# of the same name.
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
    """Return the program with the commands `verbs`. Import only the modules of these commands."""
    app = typer.Typer(
        name="ptrnet",
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(ptrnet)
    for verb in verbs:
        command = getattr(import_module(f"ptrnet.cli.{verb}"), verb)
        if isinstance(command, typer.Typer):  # a command with subcommands
            app.add_typer(command, name=verb)
        else:
            app.command()(command)
    _keep_lines_of_examples(app)
    return app


def _keep_lines_of_examples(app: typer.Typer) -> None:
    """Mark the examples of all commands with click's `\\b`, so that their lines are not joined."""
    for command in [*app.registered_commands, app.registered_callback]:
        if command and command.callback:
            text = getdoc(command.callback) or ""
            command.help = text.replace("\nExamples:\n", "\n\b\nExamples:\n")
    for group in app.registered_groups:
        assert group.typer_instance is not None
        _keep_lines_of_examples(group.typer_instance)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"ptrnet {VERSION}")
        raise typer.Exit


def ptrnet(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version, and exit."
        ),
    ] = False,
) -> None:
    """ptrnet trains and runs models whose answer is made of positions in their own input.

    Every command accepts --plugins FILE.py, a file with your own tasks, models, labellers and
    formats.
    """
