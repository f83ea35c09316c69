"""Many at one moment, and what takes long beside what is quick."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from ptrnet.serve import batching, pace, routes
from ptrnet.serve.abandoning import AbandonedError
from ptrnet.serve.limits import Limits
from ptrnet.serve.requests.parsing import parse_solve
from ptrnet.solver import Solver
from tests.serve.conftest import QUESTION, SOLVE, TRIANGLE, until


@pytest.mark.parametrize("count", [1, 1000])  # parsed in the loop, and in a thread
def test_a_crowd_of_one_moment_is_refused_before_anything_is_answered(
    with_client, count, monkeypatch
):
    """Parsing and decoding would keep the refusals waiting."""
    events = []

    def parse(*arguments, **options):
        events.append("parsed")
        return parse_solve(*arguments, **options)

    monkeypatch.setattr(routes, "parse_solve", parse)

    async def scenario(client):
        async def ask():
            response = await client.post(SOLVE, json={"instances": [TRIANGLE] * count})
            if response.status_code == 429:
                events.append("refused")

        await asyncio.gather(*(ask() for _ in range(40)))

    with_client(scenario, Limits(queue=4))
    assert events == ["refused"] * 36 + ["parsed"] * 4


@pytest.mark.parametrize("slow", [{"instance": TRIANGLE * 200}, {**QUESTION, "augment": 1000}])
def test_what_takes_long_keeps_nothing_quick_waiting(with_client, blocking, slow):
    """A large instance, or many views of a small one: no batch of them can be left in the midst."""

    async def scenario(client):
        waiting = asyncio.create_task(client.post(SOLVE, json=slow))
        await until(lambda: blocking.batches)
        quick = await client.post("/v1/models/tsp/solve", json=QUESTION)
        assert not waiting.done()
        blocking.go.set()
        return quick, await waiting

    assert [response.status_code for response in with_client(scenario)] == [200, 200]


class SlowSolver(Solver):
    """Takes so many seconds for each instance."""

    def __init__(self, solver, seconds):
        super().__init__(solver.model, solver.task, solver.trained)
        self.seconds, self.batches = seconds, []

    def solve_examples(self, examples, decoder=None, **options):
        self.batches.append(len(examples))
        time.sleep(self.seconds * len(examples))
        return super().predict(examples, decoder, **options)


def test_what_takes_long_is_answered_one_by_one(with_client, models, monkeypatch):
    """Batches by memory alone answered none of these requests within the deadline."""
    monkeypatch.setattr("ptrnet.serve.batching.QUICK_ELEMENTS", 0)
    models["tsp"] = SlowSolver(models["tsp"], pace.SECONDS)

    async def scenario(client):
        address = "/v1/models/tsp/solve"
        asked = [client.post(address, json=QUESTION) for _ in range(12)]
        return [response.status_code for response in await asyncio.gather(*asked)]

    statuses = with_client(scenario, Limits(answer_seconds=6 * pace.SECONDS))
    assert set(statuses) == {200, 503} and statuses.count(200) >= 2
    assert {*models["tsp"].batches} == {1}


def test_batches_grow_while_they_are_in_time():
    paced = pace.Pace(first=1)
    rooms = []
    for _ in range(8):
        rooms.append(paced.room("tours"))
        paced.note("tours", rooms[-1], 0.05 * rooms[-1])
    assert rooms == [1, 2, 4, 8, 16, 10, 20, 10]
    paced.note("tours", 3, 0.15)  # one that was not full tells nothing of a full one
    assert paced.room("tours") == 20
    paced.note("tours", 1, 40.0)
    assert paced.room("tours") == 1 and paced.room("hulls") == 1


class Questions:
    """A request of four instances."""

    examples = (None,) * 4


def test_a_batch_that_was_given_up_at_once_says_nothing_of_its_kind():
    """Clients that leave early doubled the room of batches that take far too long."""

    async def run(solve):
        raise AbandonedError

    learned = pace.Pace(1)
    batcher = SimpleNamespace(run=run, _pace=learned)
    key, request = SimpleNamespace(kind="slow"), Questions()
    asyncio.run(batching._Queue._decode(batcher, key, [(request, k) for k in range(4)]))
    assert learned.room("slow") == 1
