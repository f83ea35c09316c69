"""`ptrnet push`: upload a model to the Hugging Face hub."""

from typing import Annotated

import typer

from ptrnet.cli.options import UnusedSeed, echo


def push(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model's folder, or a shipped model.")
    ],
    repository: Annotated[
        str, typer.Argument(metavar="OWNER/NAME", help="The repository on the hub.")
    ],
    private: Annotated[
        bool, typer.Option("--private", help="Make a new repository visible only to its owner.")
    ] = False,
    license: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The hub's name for the model's license, such as mit."),
    ] = None,
    seed: UnusedSeed = 0,
) -> None:
    """Upload a model to the Hugging Face hub: its weights, its configuration and its card.

    Log in first: hf auth login. Then others can use the model: ptrnet solve --model OWNER/NAME, or
    OWNER/NAME@REVISION for one revision.

    Examples:
        ptrnet push my-hull me/hull --license mit
    """
    from ptrnet import weights

    echo(weights.load(model).push_to_hub(repository, private, license))
