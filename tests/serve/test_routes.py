"""Each route gives the solver's answers, and requires the token."""

import asyncio
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from pydantic import TypeAdapter

import ptrnet
from ptrnet.cli import run
from ptrnet.data import formats
from ptrnet.decoding import Beam, Greedy, Incremental, Sample
from ptrnet.serve.schemas import EvaluateResponse, ModelCard, SolveResponse
from ptrnet.types import Example
from tests.serve.conftest import QUESTION, SOLVE, problem

RNG = np.random.default_rng(0)


def instances_of(solver, sizes):
    return [RNG.random((n, solver.task.facts.num_features)) for n in sizes]


def as_lists(arrays):
    return [array.tolist() for array in arrays]


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def check_same(answer, solver, instance, decoder, **settings):
    """Check that the answer equals the solver's for this instance, or is equally likely."""
    (expected,) = solver.predict([Example(instance)], decoder, **settings)
    assert answer["log_likelihood"] == pytest.approx(expected.log_prob, rel=1e-4, abs=1e-5)
    if answer["outputs"] != expected.outputs.tolist():
        other = Example(instance, np.array(answer["outputs"]))
        assert solver.log_likelihoods(other) == pytest.approx(expected.log_prob, rel=1e-4)


@pytest.mark.parametrize(
    ("options", "decoder", "settings"),
    [
        ({}, Greedy(), {}),
        ({"decoder": "beam"}, Beam(8), {}),
        ({"decoder": "beam", "beam_size": 3, "augment": 2}, Beam(3), {"augment": 2}),
        (
            {"decoder": "sample", "samples": 4, "temperature": 2, "seed": 7},
            Sample(4, 2.0, seed=7),
            {},
        ),
        ({"constrained": False, "beam_size": None}, Greedy(), {"constrained": False}),
    ],
)
@pytest.mark.parametrize("task", ["hull", "tsp", "sort", "delaunay"])
def test_answers_equal_those_of_the_solver(with_client, models, task, options, decoder, settings):
    instances = instances_of(models[task], (5, 9, 6, 3, 17, 5))

    async def scenario(client):
        body = {"instances": as_lists(instances), **options}
        return (await client.post(f"/v1/models/{task}/solve", json=body)).text

    text = with_client(scenario)
    TypeAdapter(SolveResponse).validate_json(text, strict=True)
    document = json.loads(text)
    assert [document[key] for key in ("task", "model", "decoder")] == [task, task, decoder.name]
    for answer, instance in zip(document["answers"], instances, strict=True):
        check_same(answer, models[task], instance, decoder, **settings)
        outputs = np.array(answer["outputs"])
        tours = np.linalg.norm(instance[outputs] - instance[np.roll(outputs, -1)], axis=-1)
        is_tour = task == "tsp" and len(set(outputs.tolist())) == len(instance)
        assert answer["cost"] == (pytest.approx(tours.sum()) if is_tour else None)


def test_one_instance_and_incremental_decoding(with_client, models):
    (points,) = instances_of(models["hull"], (30,))

    async def scenario(client):
        body = {"instance": points.tolist(), "decoder": "incremental", "window": 7}
        return (await client.post("/v1/models/hull/solve", json=body)).json()

    (answer,) = with_client(scenario)["answers"]
    assert answer["outputs"] == models["hull"].solve(points, Incremental(7)).tolist()
    assert answer["warnings"] == []  # parts have different sizes


COLUMNS = {"choice": "chosen", "grades": "grade", "permutation": "rank", "set": "member"}


@pytest.mark.parametrize("kind", COLUMNS)
def test_scores_of_elements_are_the_same_everywhere(with_client, kind, tmp_path, capsys):
    """In the service, an export's example, Python and the command line."""
    rng = np.random.default_rng(3)
    table = []
    for q in range(12):
        points = rng.random((3 + q % 4, 2)).round(3)
        ranks = points[:, 0].argsort().argsort().tolist()
        for (x, y), rank in zip(points.tolist(), ranks, strict=True):
            answer = rank + 1 if kind == "permutation" else int(rank == 0)
            table.append({"q": q, "x": x, "y": y, "answer": answer})
    options = {"steps": 3, "hidden_size": 8, "batch_size": 4, "valid_batches": 0, "ensemble": 2}
    solver = ptrnet.fit(table, set_id="q", **{COLUMNS[kind]: "answer"}, **options)
    assert solver.task.kind == kind
    solver.save_pretrained(tmp_path / "m")
    ptrnet.export_onnx(solver, tmp_path / "onnx", instances=3)
    sets = [[row for row in table if row["q"] == q] for q in range(12)]
    scores, probabilities = solver.scores(sets), solver.predict_proba(sets)
    assert np.concatenate(scores).std() > 1e-3  # so that the comparisons mean something

    async def scenario(client):
        body = {"instances": sets, "decoder": "beam", "beam_size": 2}
        return (await client.post("/v1/models/m/solve", json=body)).json()["answers"]

    answers = with_client(scenario, models={"m": solver})
    names = ["q", "x", "y"]
    for k in (0, 3):
        path = str(tmp_path / f"{k}.csv")
        lines = [",".join(str(row[name]) for name in names) + "\n" for row in sets[k]]
        Path(path).write_text("q,x,y\n" + "".join(lines))
        command = [sys.executable, tmp_path / "onnx" / "example.py", path, "--scores"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        exported = json.loads(done.stdout)
        out = str(tmp_path / "out.csv")
        command = ["solve", "--model", str(tmp_path / "m"), path, "--set-id", "q"]
        assert run([*command, "--probability", "p", "--output", out]) == 0
        printed = [float(value) for value in formats.table_of(out).values("p")]
        for found in (answers[k]["probabilities"], exported["probabilities"], printed):
            assert found == pytest.approx(probabilities[k], rel=1e-4)
        for found in (answers[k]["scores"], exported["scores"]):
            assert found == pytest.approx(scores[k], rel=1e-4, abs=1e-5)
        assert exported["outputs"] == solver.solve(sets[k]).tolist()


def test_models_without_scores_of_elements_have_null(with_client):
    async def scenario(client):
        document = (await client.get("/openapi.json")).json()
        return (await client.post(SOLVE, json=QUESTION)).json(), document

    answer, document = with_client(scenario)
    assert answer["answers"][0]["scores"] is answer["answers"][0]["probabilities"] is None
    described = document["components"]["schemas"]["Answer"]["properties"]
    assert "model.scores" in described["scores"]["description"]
    assert "model.predict_proba" in described["probabilities"]["description"]


def test_npy_bodies_are_answered_like_json(with_client, models):
    many = RNG.random((4, 8, 2))

    async def scenario(client):
        responses = []
        for array in (many, many[0], np.asfortranarray(many), many.astype(">f4"), many * 9 // 1):
            for body in {npy(array), npy(array.astype(array.dtype))}:
                response = await client.post(
                    "/v1/models/tsp/solve?decoder=beam&beam_size=2&constrained=true",
                    content=body,
                    headers={"Content-Type": "application/x-npy"},
                )
                responses.append((array, response.json()))
        return responses

    for array, document in with_client(scenario):
        batch = array if array.ndim == 3 else array[None]
        expected = as_lists(models["tsp"].solve(list(batch), Beam(2)))
        assert [answer["outputs"] for answer in document["answers"]] == expected


def test_sharing_batches_changes_no_answer(with_client, models):
    """60 users at the same time get the same answers as one user."""
    users = [
        (task, instances_of(models[task], RNG.integers(3, 20, RNG.integers(1, 4))), beam)
        for task in ("hull", "tsp", "sort")
        for beam in (1, 2)
        for _ in range(10)
    ]

    async def scenario(client):
        async def ask(task, instances, beam):
            body = {"instances": as_lists(instances), "decoder": "beam", "beam_size": beam}
            return (await client.post(f"/v1/models/{task}/solve", json=body)).json()["answers"]

        answers = await asyncio.gather(*(ask(*user) for user in users))
        return answers, (await client.get("/metrics")).text

    answers, metrics = with_client(scenario)
    for (task, instances, beam), of_user in zip(users, answers, strict=True):
        for instance, answer in zip(instances, of_user, strict=True):
            check_same(answer, models[task], instance, Beam(beam))
    count = sum(len(instances) for _, instances, _ in users)
    assert f"ptrnet_batch_instances_sum {count:.1f}" in metrics
    batches = float(re.search(r"ptrnet_batch_instances_count (\S+)", metrics)[1])
    assert batches <= count / 3
    assert 'ptrnet_requests_total{route="/v1/models/{name}/solve",status="200"} 60.0' in metrics
    assert "ptrnet_queue 0.0" in metrics


@pytest.mark.parametrize("task", ["hull", "tsp", "sort", "delaunay"])
def test_evaluate_gives_the_metrics_of_the_solver(with_client, models, task):
    solver = models[task]
    instances = instances_of(solver, (6, 4, 9))
    outputs = solver.solve(instances, Sample(1, temperature=9.0, seed=1))

    async def scenario(client):
        body = {"instances": as_lists(instances), "outputs": as_lists(outputs)}
        one = {"instance": body["instances"][0], "outputs": body["outputs"][0]}
        path = f"/v1/models/{task}/evaluate"
        return [
            (await client.post(path, json=json)).json()
            for json in (body, one, {**body, "constrained": False})
        ]

    many, one, free = with_client(scenario)
    for document in (many, one, free):
        TypeAdapter(EvaluateResponse).validate_json(json.dumps(document), strict=True)
    pairs = list(zip(instances, outputs, strict=True))
    for document, metrics in (
        (many, solver.evaluate(pairs)),
        (one, solver.evaluate(pairs[:1])),
        (free, solver.evaluate(pairs, constrained=False)),
    ):
        assert json.dumps(document["metrics"]) == json.dumps(metrics)
    assert many["instances"] == 3 and one["instances"] == 1


def test_each_instance_has_its_warnings(with_client):
    async def scenario(client):
        trained, smaller = [[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.2]], [[0, 0], [1, 1]]
        body = {"instances": [trained, smaller, smaller]}
        response = await client.post("/v1/models/hull/solve", json=body)
        return [answer["warnings"] for answer in response.json()["answers"]]

    none, *others = with_client(scenario)
    assert none == [] and others[0] == others[1]
    assert others[0][0].startswith("the model was trained on instances of 5 elements, this one has")


def test_models_are_listed_with_their_cards(with_client, models):
    models["hull"].card = "# hull"

    async def scenario(client):
        listed = (await client.get("/v1/models")).json()["models"]
        card = (await client.get("/v1/models/hull")).json()
        unknown = [
            problem(await client.request(method, path), 404)
            for method, path in (("GET", "/v1/models/hul"), ("POST", "/v1/models/hul/solve"))
        ]
        return listed, card, unknown

    listed, card, unknown = with_client(scenario)
    assert [row["name"] for row in listed] == list(models)
    TypeAdapter(ModelCard).validate_json(json.dumps(card), strict=True)
    assert card["card"] == "# hull" and card["model"] == "ptr-net" and card["n"] == "5"
    assert set(unknown) == {
        "unknown model 'hul'; did you mean 'hull'? (known: delaunay, hull, sort, tsp)"
    }


def test_the_description_names_every_route(with_client):
    async def scenario(client):
        health = [(await client.get(path)).status_code for path in ("/healthz", "/readyz")]
        return health, (await client.get("/openapi.json")).json()

    health, document = with_client(scenario)
    assert health == [200, 200]
    assert set(document["paths"]) == {
        "/v1/models",
        "/v1/models/{name}",
        "/v1/models/{name}/solve",
        "/v1/models/{name}/evaluate",
        "/v1/models/{name}/trace",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    body = document["paths"]["/v1/models/{name}/solve"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-npy"}
    properties = body["application/json"]["schema"]["properties"]
    assert {"instance", "instances", "decoder", "beam_size", "augment"} <= set(properties)
    options = document["paths"]["/v1/models/{name}/solve"]["post"]["parameters"]
    in_address = {option["name"] for option in options if option["in"] == "query"}
    assert in_address == set(properties) - {"instance", "instances"}
    assert "securitySchemes" not in document.get("components", {})


def test_slow_metrics_do_not_delay_answers(with_client, models, monkeypatch):
    """Measuring a large hull takes seconds. Once, all other answers waited for it."""
    measured = Event()
    monkeypatch.setattr("ptrnet.serve.service.score_answers", lambda *_: measured.wait(20) and {})
    points = [[0.1, 0.2], [0.8, 0.3], [0.4, 0.9]]

    async def scenario(client):
        body = {"instances": [points], "outputs": [[0, 1, 2]]}
        measuring = asyncio.create_task(client.post("/v1/models/hull/evaluate", json=body))
        await asyncio.sleep(0.2)
        solved = await client.post("/v1/models/hull/solve", json={"instance": points})
        was_first = not measuring.done()
        measured.set()
        return solved.status_code, was_first, (await measuring).status_code

    status, was_first, _ = with_client(scenario)
    assert (status, was_first) == (200, True)


def test_elements_may_be_objects_with_fields(with_client, models, small):
    schema = {"fields": ("price", "colour"), "categories": ((), ("blue", "red"))}
    schema |= {"center": (0.0,) * 3, "spread": (1.0,) * 3, "kind": "choice"}
    models["offers"] = solver = small("custom", scale=8.0, **schema)
    models["strict"] = small("custom", scale=8.0, **schema, unknown="refuse")
    elements = [{"price": k, "colour": ["red", "blue"][k % 2], "title": "t"} for k in range(6)]

    async def scenario(client):
        unknown = [*elements, {"price": 1, "colour": "pink"}]
        known = {"instances": [unknown] * 2, "outputs": [[0], [1]]}
        return [
            await client.post(f"/v1/models/{path}", json=body)
            for path, body in (
                ("offers/solve", {"instance": elements}),
                ("strict/solve", {"instance": unknown}),
                ("offers/solve", {"instance": unknown}),
                ("offers/evaluate", known),
                ("offers/solve", {"instance": [[1, 2, 3]]}),
            )
        ]

    answered, refused, unknown, measured, numbers = with_client(scenario)
    assert answered.json()["answers"][0]["outputs"] == solver.solve(elements).tolist()
    assert "got 'pink'" in problem(refused, 422)
    said = "treated as missing, because no training example had it: \"colour\": 'pink' "
    assert f"{said}(1 element)" in unknown.json()["answers"][0]["warnings"]
    assert f"{said}(2 elements)" in measured.json()["warnings"]
    assert "expected elements with the fields price, colour" in problem(numbers, 422)
