"""Batches: which requests share one, how large it is, and how long requests wait."""

import asyncio
import time

import numpy as np
import pytest

from ptrnet.errors import InputError
from ptrnet.serve import batching
from ptrnet.serve.limits import Limits
from ptrnet.solver import Solver
from tests.serve.conftest import QUESTION, SOLVE, TRIANGLE, num_waiting, problem, until


def test_requests_that_arrive_while_a_batch_is_decoded_share_the_next_one(with_client, blocking):
    async def scenario(client):
        first = asyncio.create_task(client.post(SOLVE, json=QUESTION))
        await until(lambda: blocking.batches)
        rest = [asyncio.create_task(client.post(SOLVE, json=QUESTION)) for _ in range(9)]
        larger = asyncio.create_task(client.post(SOLVE, json={"instance": TRIANGLE * 5}))
        await until(lambda: num_waiting(client) == 11)
        blocking.go.set()
        await asyncio.gather(first, *rest, larger)

    with_client(scenario)
    assert blocking.batches == [[3], [3] * 9, [15]]


def test_small_requests_are_answered_between_the_batches_of_a_large_one(
    with_client, blocking, monkeypatch
):
    monkeypatch.setattr(batching, "BATCH_ELEMENTS", 40)
    done = []

    async def scenario(client):
        async def ask(name, count):
            response = await client.post(SOLVE, json={"instances": [TRIANGLE] * count})
            assert len(response.json()["answers"]) == count
            done.append(name)

        first = asyncio.create_task(ask("first", 1))
        await until(lambda: blocking.batches)
        others = [asyncio.create_task(ask("large", 50))]
        await until(lambda: num_waiting(client) == 2)
        others += [asyncio.create_task(ask("small", 1))]
        await until(lambda: num_waiting(client) == 3)
        blocking.go.set()
        await asyncio.gather(first, *others)

    with_client(scenario)
    assert done == ["first", "small", "large"]
    assert max(map(len, blocking.batches)) == 10 and sum(map(len, blocking.batches)) == 52


def test_a_request_that_fails_does_not_fail_the_others_of_its_batch(with_client, models):
    class Picky(Solver):
        def predict(self, examples, decoder=None, **options):
            if any(example.inputs.max() > 5 for example in examples):
                raise InputError("no more than 5")
            return super().predict(examples, decoder, **options)

    models["hull"] = Picky(models["hull"].model, models["hull"].task)

    async def scenario(client):
        bodies = [{"instance": (np.array(TRIANGLE) * k).tolist()} for k in (1, 9, 2, 3)]
        return await asyncio.gather(*(client.post(SOLVE, json=body) for body in bodies))

    one, bad, *others = with_client(scenario)
    assert "no more than 5" in problem(bad, 422)
    assert [response.status_code for response in (one, *others)] == [200, 200, 200]


@pytest.mark.parametrize("slow", [{"instance": TRIANGLE * 200}, {**QUESTION, "augment": 1000}])
def test_slow_instances_do_not_delay_quick_ones(with_client, blocking, slow):
    """A large instance, or many views of a small one: their batch cannot be interrupted."""

    async def scenario(client):
        waiting = asyncio.create_task(client.post(SOLVE, json=slow))
        await until(lambda: blocking.batches)
        quick = await client.post("/v1/models/tsp/solve", json=QUESTION)
        assert not waiting.done()
        blocking.go.set()
        return quick, await waiting

    assert [response.status_code for response in with_client(scenario)] == [200, 200]


class SlowSolver(Solver):
    """A solver that takes some seconds for each instance."""

    def __init__(self, solver, seconds):
        super().__init__(solver.model, solver.task, solver.trained)
        self.seconds, self.batches = seconds, []

    def predict(self, examples, decoder=None, **options):
        self.batches.append(len(examples))
        time.sleep(self.seconds * len(examples))
        return super().predict(examples, decoder, **options)


def test_instances_slower_than_a_batch_should_be_are_answered_one_by_one(
    with_client, models, monkeypatch
):
    """If only memory limited the batches, no request would be answered before the deadline."""
    monkeypatch.setattr(batching, "QUICK_ELEMENTS", 0)
    models["tsp"] = SlowSolver(models["tsp"], batching.BATCH_SECONDS)

    async def scenario(client):
        address = "/v1/models/tsp/solve"
        asked = [client.post(address, json=QUESTION) for _ in range(12)]
        return [response.status_code for response in await asyncio.gather(*asked)]

    statuses = with_client(scenario, Limits(answer_seconds=6 * batching.BATCH_SECONDS))
    assert set(statuses) == {200, 503} and statuses.count(200) >= 2
    assert {*models["tsp"].batches} == {1}


def test_batches_grow_while_they_are_in_time():
    batch_size = batching.AdaptiveBatchSize(first=1)
    sizes = []
    for _ in range(8):
        sizes.append(batch_size.get("tours"))
        batch_size.update("tours", sizes[-1], 0.05 * sizes[-1])
    assert sizes == [1, 2, 4, 8, 16, 10, 20, 10]
    batch_size.update("tours", 3, 0.15)  # a batch that was not full says nothing about a full one
    assert batch_size.get("tours") == 20
    batch_size.update("tours", 1, 40.0)
    assert batch_size.get("tours") == 1 and batch_size.get("hulls") == 1


def test_decoding_stops_when_no_caller_waits(with_client, models):
    """The model takes no further step for callers that have already got a 503."""
    steps, step = [], models["sort"].model.step

    def slow_step(*arguments):
        steps.append(1)
        time.sleep(0.01)
        return step(*arguments)

    models["sort"].model.step = slow_step
    body = {"instance": np.random.default_rng(0).random((400, 1)).tolist()}

    async def scenario(client):
        late = await client.post("/v1/models/sort/solve", json=body)
        before = len(steps)
        other = await client.post(SOLVE, json=QUESTION)
        return late, other, len(steps) - before

    late, other, more = with_client(scenario, Limits(answer_seconds=0.3))
    assert problem(late, 503) == "no answer after 0.3 seconds"
    assert other.status_code == 200 and more <= 2 and len(steps) < 100
