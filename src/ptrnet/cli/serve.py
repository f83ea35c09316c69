"""`ptrnet serve`: the service."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.cli.options import UnusedSeed, expand_option_groups
from ptrnet.errors import MissingExtraError
from ptrnet.serve.limits import Limits

if TYPE_CHECKING:
    from socket import socket


def register(app: typer.Typer) -> None:
    app.command()(expand_option_groups(serve))


def serve(
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="A shipped model, a model's folder or a hub id; may stand several times.  "
            "[all shipped models]",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Other than this machine alone: with --token-file.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0: one that is free.")
    ] = 8000,
    token_file: Annotated[
        str | None,
        typer.Option("--token-file", help="A file with the token that requests have to carry."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            help="The origin of web pages that may ask, https://example.org; may stand several "
            "times.  [none]",
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes.")] = 1,
    limits: Limits,
    seed: UnusedSeed = 0,
) -> None:
    """Answer requests over HTTP: POST /v1/models/NAME/solve, and what /openapi.json shows.

    In a browser its address is a page to draw on, which shows how an answer comes about.

    Instances of many users share batches. Requests name their own seed. SIGTERM ends the service
    when it has answered what it accepted.

    Example: ptrnet serve --model hull --model tsp --port 8000
    """
    from ptrnet.serve.process.listening import check_origin, listen, read_token
    from ptrnet.serve.process.signals import sigterm_exits

    origins = allow_origin or []
    for origin in origins:
        check_origin(origin)
    token = None if token_file is None else read_token(token_file)
    with sigterm_exits(), listen(host, port, token is not None) as listener:
        _serve(model, listener, limits, token, origins, workers)


def _serve(
    names: list[str] | None,
    listener: "socket",
    limits: Limits,
    token: str | None,
    origins: list[str],
    workers: int,
) -> None:
    """Loads the models and serves them."""
    try:
        from ptrnet.serve.process.server import App, load_models, run, warm_up
        from ptrnet.serve.process.workers import run_workers
    except ModuleNotFoundError as error:
        raise MissingExtraError("serving", "serve") from error
    from ptrnet import weights
    from ptrnet.serve.process.listening import address_of

    app = App(names or weights.names(), limits, token, origins, workers)
    models = load_models(app.models)
    started = f"ptrnet serves {', '.join(models)} at {address_of(listener)}"
    if workers > 1:
        print(started, file=sys.stderr)
        run_workers(app, listener)
        return
    for model in models.values():
        warm_up(model.solver)
    print(started, file=sys.stderr)
    run(app, models, listener)
