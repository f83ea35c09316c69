"""`ptrnet serve`: the service."""

import signal
import sys
from typing import Annotated

import typer

from ptrnet.cli.groups.limits import LimitOptions
from ptrnet.cli.options import Seed, expand_option_groups
from ptrnet.errors import InputError, MissingExtraError


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
    limits: LimitOptions,
    seed: Seed = 0,
) -> None:
    """Answer requests over HTTP: POST /v1/models/NAME/solve, and what /openapi.json shows.

    Instances of many users share batches. Requests name their own seed. SIGTERM ends the service
    when it has answered what it accepted.

    Example: ptrnet serve --model hull --model tsp --port 8000
    """
    checked = limits.build()
    try:
        from ptrnet.serve.process.listening import address_of, listen, read_token
        from ptrnet.serve.process.server import App, load_models, run
        from ptrnet.serve.process.workers import run_workers
    except ModuleNotFoundError as error:
        raise MissingExtraError("serving", "serve") from error
    from ptrnet import weights

    for origin in allow_origin or []:
        if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
            raise InputError(f"--allow-origin: expected https://example.org, got {origin}")
    token = None if token_file is None else read_token(token_file)
    app = App(model or weights.names(), checked, token, allow_origin or [], workers)
    listener = listen(host, port, token is not None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    models = load_models(app.models)
    address = address_of(listener)
    print(f"ptrnet serves {', '.join(models)} at {address}", file=sys.stderr, flush=True)
    if workers == 1:
        run(app, models, listener)
    else:
        run_workers(app, listener)
