"""Who may ask, whom there is room for, and what is counted: three layers around the app."""

import hmac
from collections.abc import Mapping
from http import HTTPStatus
from time import perf_counter

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ptrnet.page.files import BELOW
from ptrnet.serve.metrics import Metrics
from ptrnet.serve.places import Places
from ptrnet.serve.problems import CLOSE, Problem

PROBES = ("/healthz", "/readyz")  # for whoever watches the process


class Token:
    """Refuses requests without the token.

    Args:
        app: what is behind.
        token: what `Authorization: Bearer` has to carry.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with 401, or hands the request on."""
        if scope["type"] == "http" and not _is_open(scope["path"]):
            header = dict(scope["headers"]).get(b"authorization", b"")
            scheme, _, token = header.partition(b" ")  # a scheme in any case: RFC 9110
            if not (hmac.compare_digest(token, self._expected) and scheme.lower() == b"bearer"):
                detail = "Authorization: expected Bearer and the token of the service"
                headers = {"WWW-Authenticate": "Bearer", **CLOSE}
                problem = Problem(HTTPStatus.UNAUTHORIZED, detail, headers)
                await problem.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_open(path: str) -> bool:
    """Probes; and the files of the page, which asks its user for the token."""
    return path in PROBES or path == "/" or path.startswith(f"/{BELOW}/")


class Admitted:
    """Refuses a question where no place is left, before anything else is done for it.

    That costs a fraction of a millisecond, and the body is not read: a service stays responsive
    under a crowd that it refuses.

    Args:
        app: what is behind.
        places: of the queue.
        routes: of the questions, by the last part of their addresses.
    """

    def __init__(self, app: ASGIApp, places: Places, routes: Mapping[str, BaseRoute]) -> None:
        self._app, self._places, self._routes = app, places, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with 429, or hands the request on."""
        if scope["type"] == "http" and scope["method"] == "POST":
            route = self._routes.get(scope["path"].rpartition("/")[2])
            try:
                if route is not None:
                    self._places.refuse_if_full()
            except Problem as problem:
                scope["route"] = route  # which the router would have found
                await problem.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


class Counted:
    """Counts requests with their status and time.

    Args:
        app: what is behind.
        metrics: get to know.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hands the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = perf_counter(), int(HTTPStatus.INTERNAL_SERVER_ERROR)

        async def note(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            route = getattr(scope.get("route"), "path", "none")  # as it is declared, names left out
            self._metrics.request(route, status, perf_counter() - start)
