"""The trace of a search has exactly the steps of the solver."""

import asyncio
import math
from contextlib import suppress
from threading import Event

import numpy as np
import pytest
from pydantic import TypeAdapter

import ptrnet
from ptrnet import labellers, tasks
from ptrnet import models as networks
from ptrnet.decoding import Beam, Greedy
from ptrnet.serve import service, tracing
from ptrnet.serve.limits import Limits
from ptrnet.serve.schemas import TraceResponse
from ptrnet.solver import Solver
from ptrnet.types import END, Example
from tests.serve.conftest import problem

RNG = np.random.default_rng(5)
DECODERS = [({}, Greedy()), ({"decoder": "beam", "beam_size": 3}, Beam(3))]


def trace_of(send, task, instance, limits=None, **options):
    body = {"instance": instance, **options}
    return send("POST", f"/v1/models/{task}/trace", limits, json=body)


def add_problem(models, name, n):
    """Add a small untrained model of a problem. Return a random instance of n elements, as JSON."""
    task = tasks.get(name)
    settings = networks.settings_of(networks.STATES, hidden_size=16, heads=2, encoder_layers=1)
    models[name] = Solver(networks.for_task(networks.STATES, task, settings).eval(), task)
    return task.problem.to_fields(task.sample(np.random.default_rng(0), 1, n)[0])


def tokens_of(steps, step, k):
    """Return the tokens of prefix k after a step."""
    tokens = []
    for one in reversed(steps[: step + 1]):
        prefix = one["prefixes"][k]
        tokens.insert(0, prefix["token"])
        k = prefix["parent"]
    return tokens


@pytest.mark.parametrize(("options", "decoder"), DECODERS, ids=("greedy", "beam"))
@pytest.mark.parametrize("task", ["hull", "tsp", "sort", "delaunay"])
def test_a_trace_ends_in_the_solvers_answer(send, models, task, options, decoder):
    instance = RNG.random((7, models[task].task.facts.num_features))
    response = trace_of(send, task, instance.tolist(), **options)
    TypeAdapter(TraceResponse).validate_json(response.text, strict=True)
    trace, expected = response.json(), models[task].answer(instance, decoder, improve=False)
    assert trace["answer"]["outputs"] == expected.outputs.tolist()
    assert trace["answer"]["log_likelihood"] == pytest.approx(expected.log_prob, rel=1e-5)
    last = len(trace["steps"]) - 1
    assert tokens_of(trace["steps"], last, 0)[: len(trace["tokens"])] == trace["tokens"]
    assert trace["tokens"].index(END) == len(trace["tokens"]) - 1
    outputs = models[task].task.from_tokens(np.array(trace["tokens"][:-1]))
    assert outputs.tolist() == trace["answer"]["outputs"]


@pytest.mark.parametrize("settings", [{}, {"order": "lexicographic"}], ids=("given", "sorted"))
def test_probabilities_are_the_models(send, models, small, settings):
    """For greedy decoding they equal `Solver.attention`, which is computed in another way."""
    models["hull"] = small("hull", scale=8.0, **settings)
    instance = RNG.random((6, 2))
    trace = trace_of(send, "hull", instance.tolist()).json()
    outputs = np.array(trace["tokens"][:-1]) - 1
    expected, _ = models["hull"].attention(Example(instance, outputs))
    steps = [step["probabilities"][0] for step in trace["steps"]]
    assert len(steps) == len(trace["tokens"])
    for row, actual in zip(expected, steps, strict=False):
        allowed = [k for k, value in enumerate(actual) if value is not None]
        if trace["answer"]["outputs"] == outputs.tolist():  # else attention starts elsewhere
            assert [actual[k] for k in allowed] == pytest.approx(row[allowed], abs=2e-6)
    used = set()
    for token, row in zip(trace["tokens"], steps, strict=True):
        assert {k for k, value in enumerate(row) if value is None} >= used
        used |= {token} - {END}


@pytest.mark.parametrize(("options", "decoder"), DECODERS, ids=("greedy", "beam"))
def test_elements_of_a_problem_with_two_ways_have_two_tokens(send, models, options, decoder):
    fields = add_problem(models, "cvrp", 7)
    task = models["cvrp"].task
    trace = trace_of(send, "cvrp", fields, **options).json()
    assert trace["tokens"] and {len(step["probabilities"][0]) for step in trace["steps"]} == {15}
    answer = models["cvrp"].answer(task.problem.from_fields(fields, ""), decoder, improve=False)
    expected = answer.outputs.tolist()
    assert trace["answer"]["outputs"] == expected
    assert task.from_tokens(np.array(trace["tokens"][:-1])).tolist() == expected
    response = trace_of(send, "cvrp", fields, Limits(max_trace=104), **options)
    assert "prefixes times 15 tokens" in problem(response, 413)


def test_each_prefix_extends_one_before_it(send, models):
    instance = RNG.random((6, 2)).tolist()
    steps = trace_of(send, "tsp", instance, decoder="beam", beam_size=4).json()["steps"]
    before = [0.0]
    for step in steps:
        assert len(step["probabilities"]) == len(before)
        for prefix in step["prefixes"]:
            row = step["probabilities"][prefix["parent"]]
            assert row[prefix["token"]] is not None
            if row[prefix["token"]] > 1e-3:
                expected = before[prefix["parent"]] + math.log(row[prefix["token"]])
                assert prefix["log_likelihood"] == pytest.approx(expected, abs=2e-3)
        before = [prefix["log_likelihood"] for prefix in step["prefixes"]]
        assert before == sorted(before, reverse=True) and len(before) <= 4


def test_a_trace_includes_the_exact_answer(send, models, monkeypatch):
    monkeypatch.setattr(service, "EXACT_SECONDS", 60)  # the labeller may have to be compiled
    instance = RNG.random((6, 2))
    for task in ("hull", "delaunay"):
        trace = trace_of(send, task, instance.tolist()).json()
        (expected,) = labellers.label(models[task].task, instance[None])
        exact = trace["exact"]
        assert exact["outputs"] == expected.tolist() and exact["proved"] and not trace["pending"]
        measures = models[task].evaluate([(instance, expected)])
        assert trace["metrics"] == {name: measures[name]["value"] for name in trace["metrics"]}
        assert trace["correct"] == (measures["accuracy"]["value"] == 1)


def test_answers_of_a_heuristic_count_as_not_proved(send, models, monkeypatch):
    monkeypatch.setattr(service, "EXACT_SECONDS", 60)
    for name, is_proved in (("job-shop", False), ("knapsack", True)):
        trace = trace_of(send, name, add_problem(models, name, 4)).json()
        assert trace["exact"]["proved"] == is_proved
        assert (trace["correct"] is None) != is_proved


def test_a_slow_labeller_does_not_delay_answers(with_client, models, monkeypatch):
    released = Event()
    monkeypatch.setattr(service, "EXACT_SECONDS", 0.05)
    slow, right = RNG.random((2, 6, 2))
    exact_of, calls = tracing.exact_of, []

    def computed(task, example):
        calls.append(example)
        if np.array_equal(example.inputs, slow) and task.name == "tsp":
            released.wait(20)
        return exact_of(task, example)

    monkeypatch.setattr(tracing, "exact_of", computed)

    async def scenario(client):
        async def ask(task, instance):
            body = {"instance": instance.tolist()}
            return (await client.post(f"/v1/models/{task}/trace", json=body)).json()

        first = await ask("tsp", slow)
        monkeypatch.setattr(service, "EXACT_SECONDS", 60)
        other = await ask("hull", right)
        released.set()
        return first, other, await ask("tsp", slow)

    try:
        first, other, again = with_client(scenario)
    finally:
        released.set()
    assert first["exact"] is None and first["pending"] and first["correct"] is None
    assert first["answer"]["outputs"]
    assert other["exact"] is not None and again["exact"]["proved"] and not again["pending"]
    assert len(calls) == 2  # the second request joins the running computation


def test_an_exact_answer_is_computed_once_and_not_for_callers_who_left(monkeypatch):
    released, called = Event(), []

    def computed(task, example):
        called.append(example.source)
        if example.source == "0":
            released.wait(20)

    monkeypatch.setattr(tracing, "exact_of", computed)
    task, answers = tasks.get("hull"), tracing.ExactAnswers()
    inputs = RNG.random((4, 3, 2))

    def ask(k):
        return answers.get(task, Example(inputs[k], source=str(k)))

    async def main():
        for k in (0, 1):  # both callers leave, the second one while the thread is busy
            with suppress(TimeoutError):
                await asyncio.wait_for(ask(k), 0.05)
        waiting = asyncio.gather(ask(0), ask(2), ask(2), ask(3))
        await asyncio.sleep(0.05)
        released.set()
        await waiting

    asyncio.run(main())
    assert called == ["0", "2", "3"]


def test_a_failed_exact_answer_is_computed_again(monkeypatch):
    """The first computation may have failed for lack of memory."""
    errors = [MemoryError(), None]

    def exact_of(task, example):
        if error := errors.pop(0):
            raise error

    monkeypatch.setattr(tracing, "exact_of", exact_of)
    answers, example = tracing.ExactAnswers(), Example(np.zeros((3, 2)))

    async def main():
        with pytest.raises(MemoryError):
            await answers.get(tasks.get("hull"), example)
        return await answers.get(tasks.get("hull"), example)

    assert asyncio.run(main()) is None


def test_numbers_beyond_floats_are_null(send, models):
    """Lengths of these tours overflow; JSON has no infinity."""
    far = [[1e308, 0], [-1e308, 1], [0, 1e308]]
    assert trace_of(send, "tsp", far).json()["answer"]["cost"] is None
    body = {"instance": far, "outputs": [0, 1, 2]}
    measured = send("POST", "/v1/models/tsp/evaluate", json=body)
    assert measured.json()["metrics"]["length"]["value"] is None


def test_a_task_without_labellers_has_no_exact_answer(send, models, small):
    models["own"] = small("custom", center=(0.5,), spread=(0.3,), kind="subset")
    trace = trace_of(send, "own", [[0.1], [0.7], [0.4]]).json()
    assert (trace["exact"], trace["pending"], trace["metrics"]) == (None, False, {})


@pytest.mark.parametrize(("options", "decoder"), DECODERS, ids=("greedy", "beam"))
def test_a_page_is_compared_with_no_rule_and_forbidden_tokens_are_null(
    send, models, options, decoder
):
    """The network of pages obeys the task by itself: its search has no mask."""
    models["reading-order"] = solver = ptrnet.load("reading-order")
    boxes = [[55, 10, 95, 90], [5, 10, 45, 90], [5, 2, 95, 6]]
    labels = ["text", None, "title"]
    instance = {"boxes": boxes, "labels": labels}
    trace = trace_of(send, "reading-order", instance, **options).json()
    assert (trace["exact"], trace["pending"], trace["correct"]) == (None, False, None)
    assert trace["metrics"] == {}
    assert trace["answer"]["outputs"] == solver.solve(boxes, decoder, labels=labels).tolist()
    for step, (rows, before) in enumerate(
        zip(trace["steps"], [None, *trace["steps"]], strict=False)
    ):
        for k, row in enumerate(rows["probabilities"]):
            chosen = tokens_of(trace["steps"], step - 1, k) if before else []
            allowed = {1, 2, 3} - set(chosen) or {END}
            assert {token for token, value in enumerate(row) if value is not None} == allowed


@pytest.mark.parametrize(
    ("body", "status", "place"),
    [
        ({}, 422, "instance: "),
        ({"instances": [[[0, 0]]]}, 422, "instance: "),
        ({"instance": 3}, 422, "instance 0: "),
        ({"instance": [[0, 0]], "decoder": "sample"}, 422, "unknown decoder 'sample'"),
        ({"instance": [[0, 0]], "beam_size": 3}, 422, "beam_size has no effect"),
        ({"instance": [[0, 0]], "augment": 3}, 422, "unknown field 'augment'"),
        (
            {"instance": [[0, 0]] * 40, "decoder": "beam", "beam_size": 5},
            413,
            "at most 5000 probabilities, got 41 steps times 5",
        ),
        ({"instance": [[0, 0]], "decoder": "beam", "beam_size": 10**9}, 413, "at most 5000"),
    ],
)
def test_invalid_requests_are_refused(send, body, status, place):
    response = send("POST", "/v1/models/hull/trace", Limits(max_trace=5000), json=body)
    assert place in problem(response, status)
