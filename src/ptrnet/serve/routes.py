"""The addresses of the service."""

from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from ptrnet.pretrained.model_folder import registered_name
from ptrnet.serve.metrics import MEDIA_TYPE
from ptrnet.serve.problems import Problem
from ptrnet.serve.requests import npy
from ptrnet.serve.requests.openapi import JSON, PROBLEM, json_body, json_or_npy_body
from ptrnet.serve.requests.parsing import parse_array, parse_evaluate, parse_solve, parse_trace
from ptrnet.serve.requests.schemas import (
    EvaluateRequest,
    EvaluateResponse,
    Model,
    ModelCard,
    SolveRequest,
    SolveResponse,
    TraceRequest,
    TraceResponse,
)
from ptrnet.serve.service import Served, Service, while_connected

router = APIRouter()
LEFT = 499  # for the log alone: nobody is there to read it

_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": description, "content": {PROBLEM: {}}}
    for status, description in (
        (404, "No such model."),
        (413, "Larger than the service allows."),
        (415, "Neither JSON nor .npy, or compressed."),
        (422, "Not an instance, or a wrong option."),
        (429, "The queue is full; Retry-After says when to come again."),
        (503, "Out of time."),
    )
}


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


@router.post(
    "/v1/models/{name}/solve",
    response_model=SolveResponse,
    responses=_REFUSALS,
    openapi_extra=json_or_npy_body(SolveRequest),
)
async def solve(name: str, request: Request) -> Response:
    """Answers every instance: of JSON, or of an array (n, d) or (B, n, d) as NumPy saves it.

    With an array the options stand in the address: `?decoder=beam&beam_size=4`.
    """
    service = _service(request)
    served, kind = service.model(name), _media_type(request, JSON, npy.MEDIA_TYPE)
    parse: Any = parse_solve
    if kind == npy.MEDIA_TYPE:
        parse = partial(parse_array, options=request.query_params.multi_items())
    parse = partial(parse, task=served.solver.task, limits=service.limits)
    return await _respond(request, service.solve, served, parse)


@router.post(
    "/v1/models/{name}/evaluate",
    response_model=EvaluateResponse,
    responses=_REFUSALS,
    openapi_extra=json_body(EvaluateRequest),
)
async def evaluate(name: str, request: Request) -> Response:
    """Measures the model's answers against the true ones, `outputs`."""
    service = _service(request)
    served, _ = service.model(name), _media_type(request, JSON)
    parse = partial(parse_evaluate, task=served.solver.task, limits=service.limits)
    return await _respond(request, service.evaluate, served, parse)


@router.post(
    "/v1/models/{name}/trace",
    response_model=TraceResponse,
    responses=_REFUSALS,
    openapi_extra=json_body(TraceRequest),
)
async def trace(name: str, request: Request) -> Response:
    """How the answer to one instance comes about: each step's probabilities, and the beam.

    The exact answer stands beside it, where an algorithm has it within seconds.
    """
    service = _service(request)
    served, _ = service.model(name), _media_type(request, JSON)
    parse = partial(parse_trace, task=served.solver.task, limits=service.limits)
    return await _respond(request, service.trace, served, parse)


@router.get("/v1/models")
async def models(request: Request) -> dict[str, list[Model]]:
    """The models: task, sizes and scores."""
    return {"models": [Model(**_facts(served)) for served in _service(request).models.values()]}


@router.get("/v1/models/{name}", responses={404: _REFUSALS[404]})
async def model(name: str, request: Request) -> ModelCard:
    """A model with its card."""
    served = _service(request).model(name)
    return ModelCard(**_facts(served), card=served.solver.card)


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether the process lives."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: _REFUSALS[503]})
async def readyz(request: Request) -> dict[str, str]:
    """Whether requests are answered: not when the queue is full."""
    places = _service(request).places
    if places.taken >= places.count:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "the queue is full")
    return {"status": "ready"}


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """The numbers for Prometheus."""
    return Response(_service(request).metrics.text(), media_type=MEDIA_TYPE)


# What takes a place in the queue, by the last part of its address.
QUESTIONS = {
    route.path.rpartition("/")[2]: route
    for route in router.routes
    if isinstance(route, APIRoute) and "POST" in (route.methods or ())
}


async def _respond(request: Request, answer: Any, served: Served, parse: Any) -> Response:
    """Reads the body and answers it; gives up when the client leaves."""
    service = _service(request)
    try:
        body = await service.bodies.read(request)
    except ClientDisconnect:
        return Response(status_code=LEFT)
    # The place is taken before anything waits: of a crowd that comes in one moment, all beyond the
    # queue are then refused before the first answer takes the processor.
    async with service.admitted():
        document = await while_connected(request.receive, answer(served, body, parse))
    return Response(status_code=LEFT) if document is None else JSONResponse(document)


def _media_type(request: Request, *expected: str) -> str:
    """The media type of the body. Raises Problem 415 for one that is not expected."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in expected:
        detail = f"Content-Type: expected {' or '.join(expected)}, got {kind[:60] or 'none'}"
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
    if kind == JSON and request.query_params:
        detail = "options of a JSON request stand in its body, not in the address"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
    return kind


def _facts(served: Served) -> dict[str, Any]:
    solver = served.solver
    n = solver.trained.get("n")
    return {
        "name": served.name,
        "task": solver.task.name,
        "model": registered_name(solver.model),
        "features": solver.task.num_features,
        "fields": list(solver.task.schema.fields) if solver.task.schema else [],
        "n": None if n is None else str(n),
        "scores": solver.trained.get("scores", []),
    }
