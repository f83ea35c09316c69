"""The app: routes, errors, access and limits put together."""

from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from ptrnet.serve import page, problems
from ptrnet.serve.access import PROBES, Admitted, Counted, Token
from ptrnet.serve.batching import Batcher
from ptrnet.serve.exact import ExactAnswers
from ptrnet.serve.head import Head
from ptrnet.serve.limits import Limits
from ptrnet.serve.metrics import Metrics
from ptrnet.serve.places import Places
from ptrnet.serve.requests.bodies import Bodies
from ptrnet.serve.requests.openapi import demand_token
from ptrnet.serve.routes import QUESTIONS, router
from ptrnet.serve.service import Served, Service
from ptrnet.version import VERSION


def create_app(
    models: Mapping[str, Served],
    limits: Limits | None = None,
    *,
    token: str | None = None,
    origins: Sequence[str] = (),
    threads: int | None = None,
) -> FastAPI:
    """The service as an ASGI app.

    Args:
        models: by the name in their address.
        limits: those of `Limits()` when None.
        token: what requests have to carry; None: nothing.
        origins: of web pages that may ask; none by default.
        threads: of torch; None: as many as it takes by itself.
    """
    limits = limits or Limits()
    metrics, places = Metrics(), Places(limits.queue)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        measuring, parsing = (ThreadPoolExecutor(1, name) for name in ("measuring", "parsing"))
        with measuring, parsing:
            async with Batcher(metrics, threads) as batcher:
                bodies, exact = Bodies(limits), ExactAnswers()
                app.state.service = Service(
                    models, limits, batcher, places, bodies, metrics, measuring, exact, parsing
                )
                yield

    app = FastAPI(
        title="ptrnet",
        version=VERSION,
        description="Pointer networks: answers made of positions in their own input.",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.include_router(router)
    app.include_router(page.router)
    problems.handle(app)
    app.add_middleware(Head)
    app.add_middleware(Admitted, places=places, routes=QUESTIONS)
    if token is not None:
        app.add_middleware(Token, token=token)
        demand_token(app, PROBES)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(Counted, metrics=metrics)
    return app
