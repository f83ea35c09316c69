"""What `/openapi.json` says beyond the routes' own types: bodies, options of an address, tokens."""

from dataclasses import fields
from typing import Any, get_type_hints

from fastapi import FastAPI
from pydantic import TypeAdapter

from ptrnet.serve.requests import npy
from ptrnet.serve.requests.schemas import MethodOptions

JSON = "application/json"
PROBLEM = "application/problem+json"
_SCHEME = "token"


def json_body(kind: type) -> dict[str, Any]:
    """A body of JSON."""
    return {"requestBody": {"required": True, "content": {JSON: _schema(kind)}}}


def json_or_npy_body(kind: type) -> dict[str, Any]:
    """A body of JSON; or of an array, with `MethodOptions` in the address."""
    content = {JSON: _schema(kind), npy.MEDIA_TYPE: {"schema": {"format": "binary"}}}
    hints = get_type_hints(MethodOptions)
    options = [
        {
            "name": field.name,
            "in": "query",
            "required": False,
            "description": f"With a body {npy.MEDIA_TYPE}; of JSON it is a field of the body.",
            "schema": {**TypeAdapter(hints[field.name]).json_schema(), "default": field.default},
        }
        for field in fields(MethodOptions)
    ]
    return {"requestBody": {"required": True, "content": content}, "parameters": options}


def demand_token(app: FastAPI, open_paths: tuple[str, ...]) -> None:
    """Says of every route but the open ones that it wants a token."""
    describe = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = describe()
            schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
            schemes[_SCHEME] = {"type": "http", "scheme": "bearer"}
            refusal = {"description": "No token, or another one.", "content": {PROBLEM: {}}}
            for path, operations in document["paths"].items():
                for operation in operations.values() if path not in open_paths else ():
                    operation["security"] = [{_SCHEME: []}]
                    operation["responses"]["401"] = refusal
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _schema(kind: type) -> dict[str, Any]:
    return {"schema": TypeAdapter(kind).json_schema()}
