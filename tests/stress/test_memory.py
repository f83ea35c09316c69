"""Make ten thousand calls: the process's memory stays as it is after the first ones."""

import asyncio
import gc
import os
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ptrnet
from ptrnet.serve.app import create_app
from ptrnet.solver import Solver
from tests.stress.programs import only_in_stress
from tests.support.small_models import small_solver

CALLS = 100  # calls of a case
FIRST = 10  # cases in which caches may still fill
MEGABYTES = 8.0  # megabytes of growth in the other 9,000 calls: less than a kilobyte each


class Calls:
    """A call of the library, and the process's memory after each case."""

    def __init__(self, call: Callable[[np.random.Generator], Any]) -> None:
        self.call = call
        self.resident: list[float] = []


def _points(rng: np.random.Generator) -> np.ndarray:
    return rng.random((int(rng.integers(3, 20)), 2))


def _solve(solver: Solver, rng: np.random.Generator) -> None:
    solver.solve(_points(rng))


def _label(solver: Solver, rng: np.random.Generator) -> None:
    ptrnet.label(("hull", "delaunay", "tsp")[rng.integers(3)], _points(rng))


def _log_likelihoods(solver: Solver, rng: np.random.Generator) -> None:
    solver.log_likelihoods((_points(rng), [0, 1, 2]))


def _attention(solver: Solver, rng: np.random.Generator) -> None:
    solver.attention(_points(rng))


class Service:
    """The service in this process, called without a network. It ends with this object."""

    def __init__(self, solver: Solver) -> None:
        self._loop = asyncio.new_event_loop()
        app = create_app({"mine": solver})
        lifespan = app.router.lifespan_context(app)
        self._loop.run_until_complete(lifespan.__aenter__())
        transport = httpx.ASGITransport(app)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://service", timeout=60)
        weakref.finalize(self, _end, self._loop, self._client, lifespan)

    def __call__(self, rng: np.random.Generator) -> None:
        body = {"instances": [_points(rng).tolist()]}
        response = self._client.post("/v1/models/mine/solve", json=body)
        assert self._loop.run_until_complete(response).status_code == 200


def _end(loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient, lifespan: Any) -> None:
    loop.run_until_complete(client.aclose())
    loop.run_until_complete(lifespan.__aexit__(None, None, None))
    loop.close()


def _case(calls: Calls, rng: np.random.Generator, folder: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            calls.call(rng)
    gc.collect()
    calls.resident.append(_resident())
    grown = calls.resident[-1] - min(calls.resident[FIRST:], default=calls.resident[-1])
    assert grown < MEGABYTES, f"grown by {grown:.1f} MB in {len(calls.resident) * CALLS} calls"
    return "calls of which none left anything"


def _resident() -> float:
    """Return the process's memory in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


MAKERS = {
    "solve": lambda solver: partial(_solve, solver),
    "label": lambda solver: partial(_label, solver),
    "log_likelihoods": lambda solver: partial(_log_likelihoods, solver),
    "attention": lambda solver: partial(_attention, solver),
    "serve": Service,
}


@only_in_stress
@pytest.mark.parametrize("maker", MAKERS)
def test_calls_leave_no_memory_behind(maker, try_cases):
    calls = Calls(MAKERS[maker](small_solver(scale=8.0)))
    try_cases(partial(_case, calls), 100)
