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

PROBLEM_JSON = "application/problem+json"
CLOSE = {"Connection": "close"}  # do not read the rest of the body
RETRY = {"Retry-After": "1"}  # seconds


class Refusal(HTTPException):
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
        refusal = _refusal_of(error, request)
        document = {
            "type": "about:blank",
            "title": HTTPStatus(refusal.status_code).phrase,
            "status": refusal.status_code,
            "detail": " ".join(refusal.detail.split()),
        }
        return Response(json.dumps(document), refusal.status_code, refusal.headers, PROBLEM_JSON)

    for kind in (PtrnetError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def _refusal_of(error: Exception, request: Request) -> HTTPException:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, PtrnetError):
        return Refusal(422, str(error))
    if isinstance(error, RequestValidationError):  # FastAPI checks only the options in the URL
        first = error.errors()[0]
        option = {**first, "loc": first["loc"][1:]}  # drop the leading "query"
        return Refusal(422, str(one_line(option, "option", MethodOptions.model_fields)))
    if isinstance(error, HTTPException):  # Starlette's: an unknown address or method
        detail = f"{request.method} {request.url.path[:200]}: {error.detail.lower()}"
        return Refusal(error.status_code, detail, error.headers)
    return Refusal(500, "a defect of ptrnet; the log of the service says more")
