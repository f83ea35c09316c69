"""`ptrnet models`: the shipped models."""

from typing import Annotated

import typer

from ptrnet.cli.options import Json, UnusedSeed, echo

models = typer.Typer(rich_markup_mode=None)


@models.callback(invoke_without_command=True)
def list_models(context: typer.Context, seed: UnusedSeed = 0, json: Json = False) -> None:
    """List the shipped models: task, sizes, scores and file; `show NAME` prints a card.

    The scores are measured with unconstrained greedy decoding. solve and evaluate obey the task's
    constraint by default, which gives slightly higher scores.

    Examples:
        ptrnet models show hull
    """
    if context.invoked_subcommand:
        return
    from json import dumps

    from ptrnet import weights
    from ptrnet.evaluation import describe_scores

    rows = [weights.summary(name) for name in weights.names()]
    if json:
        echo(dumps({"models": rows}))
        return
    lines = []
    for row in rows:
        lines.append(f"{row['name']}: task {row['task']}, trained on n {row['n']}, {row['file']}")
        lines += describe_scores(row["scores"])
    echo("\n".join(lines))


@models.command()
def show(name: Annotated[str, typer.Argument(metavar="NAME")], seed: UnusedSeed = 0) -> None:
    """Print the card of a shipped model.

    Examples:
        ptrnet models show hull
    """
    from ptrnet import model_folder, weights

    echo((weights.folder(name) / model_folder.CARD).read_text(encoding="utf-8").rstrip("\n"))
