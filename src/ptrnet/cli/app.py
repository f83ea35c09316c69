"""The program: its commands and `--version`."""

from collections.abc import Collection, Mapping
from inspect import getdoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ptrnet import __version__
from ptrnet.cli.options import owners_named
from ptrnet.settings import ANY_TASK, COSTS, NETWORKS, OWN_EXAMPLES

_WORDS = "ptrnet.words"  # key of the arguments in the context of a command


def build(commands: Mapping[str, Any]) -> typer.Typer:
    """Return the program with these commands: functions, or `typer.Typer`s, by name."""
    app = typer.Typer(
        name="ptrnet",
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(ptrnet)
    for name, command in commands.items():
        if isinstance(command, typer.Typer):  # a command with subcommands
            app.add_typer(command, name=name)
        else:
            app.command(name, cls=GroupedCommand)(command)
    _keep_lines_of_examples(app)
    return app


class GroupedCommand(TyperCommand):
    """A command whose help groups options by their owners, and leaves out owners not named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments, because `--help` prints the help before they are parsed."""
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each owner that the arguments name, and say how to see others."""
        given = self.make_parser(ctx).parse_args(ctx.meta.get(_WORDS, []))[0]
        named = owners_named(str(ctx.info_name), given)
        first = [OWN_EXAMPLES] if OWN_EXAMPLES in named else []
        sections: dict[str, list[Any]] = {key: [] for key in ("Arguments", *first, "", *named)}
        hidden: set[str] = set()
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            owners = (getattr(param, "rich_help_panel", None) or "").split(",")
            if param.param_type_name == "argument":
                owners = ["Arguments"]
            shown = [
                owner
                for owner in owners
                if owner in sections
                and ((names := named.get(owner)) is None or param.name in names)
            ]
            if record is not None and shown:
                sections[shown[0]].append(record)
            elif record is not None:
                hidden.update(owners)
        titles = {"Arguments": "Arguments", "": "Options"}
        for owner, records in sections.items():
            if records:
                with formatter.section(titles.get(owner, f"Options for {owner}")):
                    formatter.write_dl(records)
        if hidden:
            with formatter.section("More options"):
                formatter.write_dl(_ways_to_see(hidden, named, ctx.command_path))


def _ways_to_see(
    hidden: Collection[str], named: Collection[str], command: str
) -> list[tuple[str, str]]:
    """Return commands that show hidden options, and what these options are for."""
    tasks = sorted({*hidden} - {OWN_EXAMPLES, ANY_TASK, COSTS, NETWORKS})
    ways = []
    if OWN_EXAMPLES in hidden:
        ways.append((f"{command} --help", f"options for {OWN_EXAMPLES}"))
    if ANY_TASK in hidden or len(tasks) > 1:
        every = "options for all tasks, and " * (ANY_TASK in hidden)
        ways.append((f"{command} TASK --help", f"{every}options for {', '.join(tasks)}"))
    elif tasks:
        ways.append((f"{command} {tasks[0]} --help", f"options for {tasks[0]}"))
    if NETWORKS in hidden:
        if NETWORKS not in named:
            what = f"options for the networks of {OWN_EXAMPLES}"
            ways.append((f"{command} --data FILE --help", what))
        ways.append((f"{command} --model NAME --help", "options for that network"))
    return ways


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
        print(f"ptrnet {__version__}")
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

    Every command accepts --plugins FILE.py, a file with your own tasks, models, labellers,
    formats, optimizers and commands.
    """
