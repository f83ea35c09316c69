"""`ptrnet serve`: answer requests over HTTP."""

from typing import Annotated

import typer

from ptrnet.cli.options import UnusedSeed, expand_option_groups
from ptrnet.errors import MissingExtraError
from ptrnet.serve.limits import Limits


@expand_option_groups
def serve(
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A shipped model, a model's folder or a hub id. Repeat it to serve several.  "
            "[all shipped models]"
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="If other machines can reach it, --token-file is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8000,
    token_file: Annotated[
        str | None, typer.Option(help="A file with the token that requests must send.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="The origin of web pages that may use the service, such as https://example.org. "
            "Repeat it to allow several.  [none]"
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 1,
    limits: Limits,
    seed: UnusedSeed = 0,
) -> None:
    """Answer requests over HTTP: POST /v1/models/NAME/solve; /openapi.json lists all routes.

    Open the address in a browser to draw an instance and to see how the model answers it.

    Requests of many users share batches. Each request has its own seed. After SIGTERM the service
    answers the requests that it has accepted, and exits.

    Examples:
        ptrnet serve --model hull --model tsp --port 8000
    """
    try:
        from ptrnet.serve import server
    except ModuleNotFoundError as error:
        raise MissingExtraError("serving", "serve") from error
    from ptrnet import weights

    settings = server.Settings(
        model or weights.names(), limits, token_file, allow_origin or [], workers
    )
    server.serve(settings, host, port)
