"""Errors of the service as problem documents (RFC 9457): one line, never a traceback."""

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ptrnet.errors import InputError, PtrnetError, short, unknown
from ptrnet.serve.schemas import MethodOptions

PROBLEM = "application/problem+json"
CLOSE = {"Connection": "close"}  # do not read the rest of the body


class Problem(Exception):
    """Raised to refuse a request.

    Args:
        status: HTTP status of the response.
        detail: one line that says what was expected, what was given, and where.
        headers: additional headers of the response.
    """

    def __init__(
        self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})

    def response(self) -> Response:
        """Return the problem document."""
        document = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": int(self.status),
            "detail": " ".join(self.detail.split()),
        }
        return Response(json.dumps(document), self.status, self.headers, PROBLEM)


def too_large(detail: str) -> Problem:
    """Return Problem 413, for a request that exceeds a limit."""
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)


def too_busy(detail: str) -> Problem:
    """Return Problem 429, for a request that the client may send again in a second."""
    return Problem(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": "1"})


def out_of_time(detail: str, headers: Mapping[str, str] | None = None) -> Problem:
    """Return Problem 503, for a request whose deadline has passed."""
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers)


def one_line(error: Mapping[str, Any], kind: str, known: Iterable[str]) -> InputError:
    """Convert an error of pydantic to one line that names the field.

    Args:
        error: an item of `ValidationError.errors()`.
        kind: what the message calls the name: "field" in a body, or "option" in a URL.
        known: the allowed names. The message for an unknown name suggests the nearest of these.
    """
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return unknown(kind, name, known)
    got = "" if error["type"] == "missing" else f", got {short(error['input'])}"
    return InputError(f"{name or 'body'}: {error['msg']}{got}")


def add_handlers(app: FastAPI) -> None:
    """Register a handler that turns every error of the app into a problem document."""

    async def answer(request: Request, error: Exception) -> Response:
        return _problem_of(error, request).response()

    for kind in (Problem, PtrnetError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def _problem_of(error: Exception, request: Request) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, PtrnetError):
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    if isinstance(error, RequestValidationError):  # FastAPI checks only the options in the URL
        first = error.errors()[0]
        option = {**first, "loc": first["loc"][1:]}  # drop the leading "query"
        complaint = one_line(option, "option", MethodOptions.model_fields)
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(complaint))
    if isinstance(error, HTTPException):
        status = HTTPStatus(error.status_code)
        address = f"{request.method} {request.url.path[:200]}"
        return Problem(status, f"{address}: {status.phrase.lower()}", error.headers)
    detail = "a defect of ptrnet; the log of the service says more"
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail)
