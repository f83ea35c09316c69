"""Many at one moment, and what takes long beside what is quick."""

import asyncio

import pytest

from ptrnet.serve import routes
from ptrnet.serve.limits import Limits
from ptrnet.serve.requests.parsing import parse_solve
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
