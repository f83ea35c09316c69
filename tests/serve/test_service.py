"""Full queues, slow and large bodies, deadlines, and clients that disconnect."""

import asyncio
import json

import numpy as np
import pytest

from ptrnet.errors import InputError
from ptrnet.serve.limits import Limits
from tests.serve.conftest import QUESTION, SOLVE, TRIANGLE, client_of, num_waiting, problem, until


async def nothing():
    raise AssertionError("the body was asked for")
    yield


def test_a_full_queue_refuses_at_once_and_is_free_again(with_client, blocking):
    async def scenario(client):
        waiting = [asyncio.create_task(client.post(SOLVE, json=QUESTION)) for _ in range(3)]
        await until(lambda: num_waiting(client) == 3)
        refused = await client.post(SOLVE, json=QUESTION)
        unread = status_and_detail(await call(client.app, nothing()))
        ready = await client.get("/readyz")
        assert not any(task.done() for task in waiting)
        blocking.go.set()
        answered = [(await task).status_code for task in waiting]
        return refused, unread, ready, answered, await client.post(SOLVE, json=QUESTION)

    refused, unread, ready, answered, after = with_client(scenario, Limits(queue=3))
    assert "all 3 places of the queue are taken" in problem(refused, 429)
    assert int(refused.headers["retry-after"]) >= 1
    assert unread[0] == 429
    assert problem(ready, 503) == "the queue is full"
    assert answered == [200, 200, 200] and after.status_code == 200


async def call(app, messages, headers=()):
    """Send a request's messages one by one from a generator; return the response's messages."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": SOLVE,
        "raw_path": SOLVE.encode(),
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), *headers],
    }
    await app(scope, messages.__anext__, send)
    return sent


BODY = json.dumps(QUESTION).encode()


def test_a_client_that_leaves_frees_its_place_and_is_not_decoded(with_client, blocking):
    async def leaving(client):
        yield {"type": "http.request", "body": BODY, "more_body": False}
        await until(lambda: num_waiting(client) == 2)
        yield {"type": "http.disconnect"}

    async def leaving_early():
        yield {"type": "http.request", "body": BODY[:5], "more_body": True}
        yield {"type": "http.disconnect"}

    async def scenario(client):
        first = asyncio.create_task(client.post(SOLVE, json=QUESTION))
        await until(lambda: blocking.batches)
        await call(client.app, leaving(client))
        await until(lambda: num_waiting(client) == 1)
        await call(client.app, leaving_early())
        last = asyncio.create_task(client.post(SOLVE, json={"instance": TRIANGLE * 5}))
        await until(lambda: num_waiting(client) == 2)
        blocking.go.set()
        return [(await task).status_code for task in (first, last)]

    assert with_client(scenario, Limits(queue=2)) == [200, 200]
    assert blocking.batches == [[3], [15]]


async def parts(*bodies, pause=0.0):
    for body in bodies:
        yield {"type": "http.request", "body": body, "more_body": True}
        await asyncio.sleep(pause)
    yield {"type": "http.request", "body": b"", "more_body": False}


def status_and_detail(sent):
    return sent[0]["status"], json.loads(sent[1]["body"])["detail"], dict(sent[0]["headers"])


def test_a_slow_body_takes_no_place_and_is_not_waited_for(with_client):
    async def scenario(client):
        slow = asyncio.create_task(call(client.app, parts(*[b" "] * 100, pause=0.05)))
        await asyncio.sleep(0.01)
        other = await client.post(SOLVE, json=QUESTION)
        assert not slow.done() and other.status_code == 200
        return status_and_detail(await slow)

    status, detail, headers = with_client(scenario, Limits(queue=1, body_seconds=1.0))
    assert (status, detail) == (503, "body: not complete after 1 seconds")
    assert headers[b"connection"] == b"close"


def test_bodies_that_arrive_share_a_budget(with_client):
    """Eight of the largest bodies may arrive at the same time. A finished body frees its bytes."""
    arrived, finish = [], asyncio.Event()

    async def slow_body():
        yield {"type": "http.request", "body": b" " * 1000, "more_body": True}
        arrived.append(True)  # the service asks for the next part only after it counted this one
        await finish.wait()
        yield {"type": "http.request", "body": b"", "more_body": False}

    async def scenario(client):
        arriving = [asyncio.create_task(call(client.app, slow_body())) for _ in range(8)]
        await until(lambda: len(arrived) == 8)
        refused = status_and_detail(await call(client.app, parts(BODY)))
        finish.set()
        await asyncio.gather(*arriving)
        return refused, (await client.post(SOLVE, json=QUESTION)).status_code

    (status, detail, _), after = with_client(scenario, Limits(max_body=1000))
    assert status == 429 and "too many bodies" in detail and after == 200


@pytest.mark.parametrize(
    ("limits", "body", "place"),
    [
        (Limits(max_body=30), QUESTION, "body: expected at most 30 bytes"),
        (Limits(max_n=2), QUESTION, "instance 0: expected at most 2 elements, got 3"),
        (Limits(max_elements=8), {"instances": [TRIANGLE] * 3}, "at most 8 elements in all, got 9"),
        (
            Limits(max_prefix_elements=20),
            {"instance": TRIANGLE, "decoder": "beam", "beam_size": 4, "augment": 2},
            "got 8 elements times 8",
        ),
        (
            Limits(),  # 70 bytes, for which the parser once took 2 GB
            {"instance": TRIANGLE, "decoder": "sample", "samples": 300_000},
            "got 8 elements times 300000",
        ),
        (
            Limits(),
            {"instance": TRIANGLE, "decoder": "beam", "beam_size": 10**300},
            "got 8 elements times 10",
        ),
    ],
)
def test_too_large_bodies_get_status_413(with_client, limits, body, place):
    async def scenario(client):
        return await client.post(SOLVE, json=body), num_waiting(client)

    response, taken = with_client(scenario, limits)
    assert place in problem(response, 413) and taken == 0


def test_limits_are_above_0():
    for name in vars(Limits()):
        with pytest.raises(InputError, match=f"{name}: expected a .*number above 0"):
            Limits(**{name: 0})


def test_a_large_body_is_parsed_outside_the_event_loop(models):
    """Other requests are answered while a thread parses a large body, and its answers are right."""
    instances = np.random.default_rng(1).random((400, 3, 2))
    expected = [answer.tolist() for answer in models["hull"].solve(instances)]

    async def main():
        async with client_of(models) as client:
            large = asyncio.create_task(client.post(SOLVE, json={"instances": instances.tolist()}))
            while not large.done():
                assert (await client.get("/healthz")).status_code == 200
                await asyncio.sleep(0.01)
            return [answer["outputs"] for answer in (await large).json()["answers"]]

    assert asyncio.run(main()) == expected
