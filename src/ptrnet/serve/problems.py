"""What a request can meet, as problem documents (RFC 9457): one line each, never a traceback."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from ptrnet.errors import PtrnetError
from ptrnet.serve.requests.openapi import PROBLEM

CLOSE = {"Connection": "close"}  # where the rest of a body is not waited for


class Problem(Exception):
    """A request that is not answered.

    Args:
        status: of HTTP.
        detail: one line: what was expected, what came, where.
        headers: of the response, beside the usual.
    """

    def __init__(
        self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})

    def response(self) -> Response:
        """The problem document."""
        document = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": int(self.status),
            "detail": " ".join(self.detail.split()),
        }
        return Response(json.dumps(document), self.status, self.headers, PROBLEM)


def too_large(detail: str) -> Problem:
    """More than a limit of the service allows."""
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)


def too_busy(detail: str) -> Problem:
    """No place for the request now."""
    return Problem(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": "1"})


def out_of_time(detail: str, headers: Mapping[str, str] | None = None) -> Problem:
    """A deadline has passed."""
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers)


def handle(app: FastAPI) -> None:
    """Makes every error of the app a problem document."""

    async def of_problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return error.response()

    async def of_input(request: Request, error: Exception) -> Response:
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)).response()

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status = HTTPStatus(error.status_code)
        address = f"{request.method} {request.url.path[:200]}"
        return Problem(status, f"{address}: {status.phrase.lower()}", error.headers).response()

    async def of_defect(request: Request, error: Exception) -> Response:
        detail = "a defect of ptrnet; the service's log says more"
        return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail).response()

    app.add_exception_handler(Problem, of_problem)
    app.add_exception_handler(PtrnetError, of_input)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(Exception, of_defect)
