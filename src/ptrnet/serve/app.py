"""The ASGI app: it combines routes, error handlers, the web page and middleware."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import FileResponse
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from ptrnet import __version__, webpage
from ptrnet.serve import errors, routes
from ptrnet.serve.limits import Limits
from ptrnet.serve.metrics import CountingMiddleware
from ptrnet.serve.service import Service
from ptrnet.solver import Solver


def create_app(
    models: Mapping[str, Solver],
    limits: Limits | None = None,
    *,
    token: str | None = None,
    origins: Sequence[str] = (),
) -> FastAPI:
    """Return the service as an ASGI app.

    Args:
        models: the models to serve. The keys are the models' names in the URL.
        limits: `Limits()` if None.
        token: the bearer token that requests must carry. If None, the service needs no token.
        origins: the origins of other web pages that may send requests (CORS).
    """
    service = Service(models, limits or Limits())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with service.batcher:
            yield

    app = FastAPI(
        title="ptrnet",
        version=__version__,
        description="Pointer networks: answers made of positions in their own input.",
        openapi_url=None,  # replaced by `routes.openapi`, which checks the token
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.service = service
    app.state.token = token
    guards = [] if token is None else [Depends(routes.check_token)]
    refused = {} if token is None else routes.TOKEN_REFUSED
    app.include_router(routes.router, dependencies=guards, responses=refused)
    app.include_router(routes.probes)
    app.add_route("/", _index, include_in_schema=False)
    app.mount(f"/{webpage.BELOW}", _PageFiles(directory=webpage.FOLDER))
    errors.add_handlers(app)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(CountingMiddleware, metrics=service.metrics)
    return app


async def _index(request: Request) -> Response:
    """Return the page. Loading the page needs no token, because the page asks for the token."""
    return FileResponse(webpage.FOLDER / webpage.INDEX, headers=webpage.HEADERS)


class _PageFiles(StaticFiles):
    """Serves the other files of the page, with the page's security headers."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response: Any = await super().get_response(path, scope)
        response.headers.update(webpage.HEADERS)
        return response
