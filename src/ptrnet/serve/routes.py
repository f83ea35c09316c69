"""HTTP routes of the service."""

import hmac
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST

from ptrnet import weights
from ptrnet.serve.errors import CLOSE, PROBLEM_JSON, Refusal
from ptrnet.serve.requests import (
    JSON,
    NPY,
    Parse,
    parse_array,
    parse_evaluate,
    parse_solve,
    parse_trace,
)
from ptrnet.serve.schemas import (
    EvaluateRequest,
    EvaluateResponse,
    MethodOptions,
    Model,
    ModelCard,
    SolveRequest,
    SolveResponse,
    TraceRequest,
    TraceResponse,
)
from ptrnet.serve.service import Service


async def check_token(
    request: Request,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))],
) -> None:
    """Raise Refusal 401 if a request lacks the token. Used only if the service has a token."""
    expected: str = request.app.state.token
    token = "" if given is None else given.credentials
    if not hmac.compare_digest(token.encode(), expected.encode()):
        detail = "Authorization: expected Bearer and the token of the service"
        headers = {"WWW-Authenticate": "Bearer", **CLOSE}
        raise Refusal(401, detail, headers)


# Dependencies are `async`. FastAPI would run ordinary functions in a thread, which takes longer.
async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


TheService = Annotated[Service, Depends(_service)]
TOKEN_REFUSED: dict[int | str, dict[str, Any]] = {
    401: {"description": "No token, or a wrong one.", "content": {PROBLEM_JSON: {}}}
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": description, "content": {PROBLEM_JSON: {}}}
    for status, description in (
        (404, "No such model."),
        (413, "Larger than the service allows."),
        (415, "Neither JSON nor .npy, or compressed."),
        (422, "Not an instance, or a wrong option."),
        (429, "The queue is full. Retry-After says when to try again."),
        (503, "Out of time."),
    )
}
router = APIRouter()
probes = APIRouter()  # health checks, which need no token


def _body(kind: type[SolveRequest] | type[TraceRequest], *others: str) -> dict[str, Any]:
    """Return the OpenAPI description of a body.

    `BodyReader` reads the body, because FastAPI cannot limit the size of a body. So FastAPI does
    not know the schema of the body.
    """
    content: dict[str, Any] = {JSON: {"schema": kind.model_json_schema()}}
    content.update({media_type: {"schema": {"format": "binary"}} for media_type in others})
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/v1/models/{name}/solve",
    response_model=SolveResponse,
    responses=REFUSALS,
    openapi_extra=_body(SolveRequest, NPY),
)
async def solve(
    name: str, request: Request, service: TheService, options: Annotated[MethodOptions, Query()]
) -> SolveResponse | Response:
    """Answer every instance of a JSON body, or of an array (n, d) or (B, n, d) in a .npy body.

    With a .npy body, pass the options in the URL: `?decoder=beam&beam_size=4`.
    """
    parsers: dict[str, Parse] = {JSON: parse_solve, NPY: partial(parse_array, options)}
    return await service.respond(request, name, SolveResponse, parsers, service.answers)


@router.post(
    "/v1/models/{name}/evaluate",
    response_model=EvaluateResponse,
    responses=REFUSALS,
    openapi_extra=_body(EvaluateRequest),
)
async def evaluate(name: str, request: Request, service: TheService) -> EvaluateResponse | Response:
    """Compare the model's answers with the true answers in `outputs`."""
    parsers = {JSON: parse_evaluate}
    return await service.respond(request, name, EvaluateResponse, parsers, service.measures)


@router.post(
    "/v1/models/{name}/trace",
    response_model=TraceResponse,
    responses=REFUSALS,
    openapi_extra=_body(TraceRequest),
)
async def trace(name: str, request: Request, service: TheService) -> TraceResponse | Response:
    """Answer one instance, and return the probabilities and the beam at each step.

    If the exact answer is ready within a second of the model's answer, the response includes it.
    """
    parsers = {JSON: parse_trace}
    return await service.respond(request, name, TraceResponse, parsers, service.steps)


@router.get("/v1/models")
async def models(service: TheService) -> dict[str, list[Model]]:
    """List the models with their tasks, sizes and scores."""
    return {"models": [Model(**weights.facts(name, of)) for name, of in service.models.items()]}


@router.get("/v1/models/{name}", responses={404: REFUSALS[404]})
async def model(name: str, service: TheService) -> ModelCard:
    """Describe a model, and return its card."""
    solver = service.model(name)
    return ModelCard(**weights.facts(name, solver), card=solver.card)


@router.get("/metrics")
async def metrics(service: TheService) -> Response:
    """Return the metrics in the text format of Prometheus."""
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> dict[str, Any]:
    """Return the OpenAPI description. FastAPI's own route would not check the token."""
    description: dict[str, Any] = request.app.openapi()
    return description


@probes.get("/healthz")
async def healthz() -> dict[str, str]:
    """Liveness check: succeeds as long as the process runs."""
    return {"status": "ok"}


@probes.get("/readyz", responses={503: {**REFUSALS[503], "description": "The queue is full."}})
async def readyz(service: TheService) -> dict[str, str]:
    """Readiness check: 503 if the queue is full."""
    if service.is_full:
        raise Refusal(503, "the queue is full")
    return {"status": "ready"}
