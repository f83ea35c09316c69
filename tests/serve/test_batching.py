"""Batches: which requests share one, how large it is, and which requests are dropped."""

import asyncio

import numpy as np
import pytest

from ptrnet.errors import InputError
from ptrnet.serve import batching
from ptrnet.serve.limits import Limits
from ptrnet.solver import Solver
from tests.serve.conftest import QUESTION, SOLVE, TRIANGLE, num_waiting, problem, until


def run_while_blocked(with_client, blocking, bodies, limits=None):
    """Send a request, and the others one by one while it is decoded.

    Return the responses, and the numbers of the requests in the order of their responses.
    """
    done = []

    async def scenario(client):
        async def ask(k, body):
            response = await client.post(SOLVE, json=body)
            done.append(k)
            return response

        tasks = []
        for k, body in enumerate((QUESTION, *bodies)):
            tasks.append(asyncio.create_task(ask(k, body)))
            await until(lambda: blocking.batches and num_waiting(client) == len(tasks))
        blocking.go.set()
        return await asyncio.gather(*tasks)

    return with_client(scenario, limits), done


def test_requests_that_arrive_while_a_batch_is_decoded_share_the_next_one(with_client, blocking):
    run_while_blocked(with_client, blocking, [QUESTION] * 9)
    assert blocking.batches == [[3], [3] * 9]


@pytest.mark.parametrize(
    "other", [{"decoder": "beam"}, {"constrained": False}, {"augment": 2}, {"improve": False}]
)
def test_a_batch_has_requests_with_the_same_options(with_client, blocking, other):
    bodies = [QUESTION, {**QUESTION, **other}] * 2
    responses, _ = run_while_blocked(with_client, blocking, bodies)
    assert blocking.batches == [[3], [3, 3], [3, 3]]
    assert {response.status_code for response in responses} == {200}


def test_small_instances_do_not_wait_for_a_much_larger_one(with_client, blocking):
    bodies = [QUESTION, {"instance": TRIANGLE * 5}, QUESTION]
    _, done = run_while_blocked(with_client, blocking, bodies)
    assert blocking.batches == [[3], [3, 3], [15]] and done == [0, 1, 3, 2]


def test_small_requests_are_answered_between_the_batches_of_a_large_one(
    with_client, blocking, monkeypatch
):
    monkeypatch.setattr(batching, "BATCH_ELEMENTS", 40)
    large = {"instances": [TRIANGLE] * 50}
    responses, done = run_while_blocked(with_client, blocking, [large, QUESTION])
    assert [len(response.json()["answers"]) for response in responses] == [1, 50, 1]
    assert done == [0, 2, 1]
    assert max(map(len, blocking.batches)) == 14 and sum(map(len, blocking.batches)) == 52


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


def test_requests_out_of_time_are_not_decoded(with_client, blocking):
    async def scenario(client):
        requests = [asyncio.create_task(client.post(SOLVE, json=QUESTION))]
        await until(lambda: blocking.batches)
        requests += [asyncio.create_task(client.post(SOLVE, json=QUESTION)) for _ in range(3)]
        late = await asyncio.gather(*requests)
        blocking.go.set()
        return late, await client.post(SOLVE, json={"instance": TRIANGLE + [[1, 1]]})

    late, after = with_client(scenario, Limits(answer_seconds=0.5))
    for response in late:
        assert "no answer" in problem(response, 503)
    assert after.status_code == 200 and blocking.batches == [[3], [4]]
