"""The app in this process, called by an HTTP client without a network."""

import asyncio
from contextlib import asynccontextmanager
from threading import Event

import httpx
import pytest

from ptrnet.serve.app import create_app
from ptrnet.solver import Solver

SOLVE = "/v1/models/hull/solve"
TRIANGLE = [[0, 0], [1, 0], [0, 1]]
QUESTION = {"instance": TRIANGLE}


async def until(condition):
    while not condition():
        await asyncio.sleep(0.002)


def num_waiting(client):
    """Return how many requests hold a place in the queue of a client's app."""
    return client.app.state.service.num_waiting


@asynccontextmanager
async def client_of(models, limits=None, **options):
    """Return a client of an app with these solvers. The app is `client.app`."""
    app = create_app(models, limits, **options)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://service", timeout=20) as client,
    ):
        client.app = app
        yield client


@pytest.fixture
def models(small):
    """Small untrained models, whose probabilities differ enough that rounding does not matter."""
    return {task: small(task, scale=8.0) for task in ("hull", "tsp", "sort", "delaunay")}


@pytest.fixture
def with_client(models):
    """Return a function that calls `scenario(client)` with a client of these models."""

    def call(scenario, limits=None, models=models, **options):
        async def main():
            async with client_of(models, limits, **options) as client:
                return await asyncio.wait_for(scenario(client), 30)

        return asyncio.run(main())

    return call


@pytest.fixture
def send(with_client):
    """Return a function that sends one request to these models, and returns the response."""

    def call(method, path, limits=None, **content):
        return with_client(lambda client: client.request(method, path, **content), limits)

    return call


class BlockingSolver(Solver):
    """A solver that waits until `go` is set before it answers."""

    def __init__(self, solver):
        super().__init__(solver.model, solver.task, solver.trained)
        self.go, self.batches = Event(), []

    def predict(self, examples, decoder=None, **options):
        self.batches.append([len(example.inputs) for example in examples])
        self.go.wait(20)
        return super().predict(examples, decoder, **options)


@pytest.fixture
def blocking(models):
    """The model of hulls, which waits until `blocking.go` is set before it answers."""
    models["hull"] = BlockingSolver(models["hull"])
    yield models["hull"]
    models["hull"].go.set()


def problem(response, status):
    """Return the detail of a problem document: one line."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert set(document) == {"type", "title", "status", "detail"}
    assert document["status"] == status and document["detail"].count("\n") == 0
    assert "Traceback" not in response.text
    return document["detail"]
