"""`ptrnet push`: a model to the Hugging Face hub."""

from typing import Annotated

import typer

from ptrnet.cli.options import UnusedSeed, echo


def register(app: typer.Typer) -> None:
    app.command()(push)


def push(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model's folder, or a shipped model.")
    ],
    repository: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Where it goes.")],
    private: Annotated[
        bool, typer.Option("--private", help="Only its owner sees a new repository.")
    ] = False,
    license: Annotated[
        str | None,
        typer.Option(
            "--license", metavar="ID", help="Of the model, by the hub's name for it, such as mit."
        ),
    ] = None,
    seed: UnusedSeed = 0,
) -> None:
    """Upload a model to the Hugging Face hub: its weights, its configuration and its card.

    Log in first: hf auth login. Others then use the model as ptrnet solve --model OWNER/NAME, or
    one revision of it as OWNER/NAME@REVISION.

    Example: ptrnet push my-hull me/hull --license mit
    """
    from ptrnet import weights

    echo(weights.load(model).push_to_hub(repository, private, license))
