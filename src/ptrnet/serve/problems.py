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
RETRY = {"Retry-After": "1"}  # seconds


class Problem(HTTPException):
    """Raised to refuse a request. Its detail is one line: what was expected, given, and where."""


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
        problem = _problem_of(error, request)
        document = {
            "type": "about:blank",
            "title": HTTPStatus(problem.status_code).phrase,
            "status": problem.status_code,
            "detail": " ".join(problem.detail.split()),
        }
        return Response(json.dumps(document), problem.status_code, problem.headers, PROBLEM)

    for kind in (PtrnetError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def _problem_of(error: Exception, request: Request) -> HTTPException:
    if isinstance(error, Problem):
        return error
    if isinstance(error, PtrnetError):
        return Problem(422, str(error))
    if isinstance(error, RequestValidationError):  # FastAPI checks only the options in the URL
        first = error.errors()[0]
        option = {**first, "loc": first["loc"][1:]}  # drop the leading "query"
        return Problem(422, str(one_line(option, "option", MethodOptions.model_fields)))
    if isinstance(error, HTTPException):  # Starlette's: an unknown address or method
        detail = f"{request.method} {request.url.path[:200]}: {error.detail.lower()}"
        return Problem(error.status_code, detail, error.headers)
    return Problem(500, "a defect of ptrnet; the log of the service says more")
