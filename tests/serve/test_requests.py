"""Each malformed body is refused in one line."""

import io
import json
import pickle
import re
import struct
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ptrnet import tasks
from ptrnet.data.dataset import instances_of
from ptrnet.errors import PtrnetError
from ptrnet.serve.limits import Limits
from ptrnet.serve.problems import Problem
from ptrnet.serve.requests import parse_array, parse_evaluate, parse_solve
from ptrnet.serve.schemas import MethodOptions
from tests.serve.conftest import problem

TRIANGLE = [[0, 0], [1, 0], [0, 1]]
SOLVE, EVALUATE = "/v1/models/hull/solve", "/v1/models/hull/evaluate"
JSON, NPY = {"Content-Type": "application/json"}, {"Content-Type": "application/x-npy"}


def question(**fields):
    return json.dumps({"instance": TRIANGLE, **fields}).encode()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "body: not JSON at column 1: Expecting value"),
        (b"{'a': 1}", "body: not JSON at column 2: Expecting property name"),
        (b'{"a":\n1,}', "body: not JSON at line 2, column "),
        (b"\xff\xfe", "body: not UTF-8 text (byte 1)"),
        (b"[1, 2]", "body: expected a JSON object, got a list"),
        (b"[" * 200_000, "body: lists or objects are nested too deeply"),
        (b'{"instance": ' + b"[" * 150 + b"]" * 150 + b"}", "instance 0: "),
        (b'{"instance": [[NaN, 1]]}', "element 1, number 1: expected a finite number, got nan"),
        (
            b'{"instance": [[1e999, 1]]}',
            "instance 0: element 1, number 1: expected a finite number, got inf",
        ),
        (b'{"instance": [[' + b"9" * 400 + b", 1]]}", "instance 0: expected elements of 2"),
        (
            b'{"instance": [[' + b"9" * 5000 + b", 1]]}",
            "body: a whole number of more than 4300 digits",
        ),
        (b"{}", 'body: expected "instances" or "instance", got neither'),
        (b'{"instance": [], "instances": []}', "got both"),
        (b'{"instances": 3}', "instances: Input should be a valid list, got 3"),
        (b'{"instances": null}', "got neither"),
        (b'{"instances": [{"x": 1}]}', "instance 0: expected elements of 2 numbers each, got dict"),
        (b'{"instances": [[[0, 0]], [["a", "b"]]]}', "instance 1: expected elements of 2 numbers"),
        (b'{"instance": [[true, 1]]}', "instance 0: expected elements of 2 numbers each, got bool"),
        (b'{"instance": [[1, 2], [3]]}', "instance 0: expected elements of 2 numbers each"),
        (b'{"instance": [[1, 2, 3]]}', "instance 0: expected shape (n, 2) for hull, got (1, 3)"),
        (b'{"instance": []}', "instance 0: expected at least one element"),
        (question(decoderr="beam"), "unknown field 'decoderr'; did you mean 'decoder'?"),
        (question(outputs=[0, 1]), "unknown field 'outputs'"),
        (question(decoder="bean"), "unknown decoder 'bean'; did you mean 'beam'?"),
        (question(decoder="reconstruct"), "unknown decoder 'reconstruct' (known: beam, greedy"),
        (question(decoder=["beam"]), "decoder: Input should be a valid string, got ['beam']"),
        (question(beam_size=4), "beam_size has no effect with greedy decoding"),
        (question(decoder="beam", beam_size=0), "beam_size: expected a whole number of 1 or more"),
        (
            question(decoder="beam", beam_size=True),
            "beam_size: Input should be a valid integer",
        ),
        (
            question(decoder="beam", beam_size=2.5),
            "a valid integer, got 2.5",
        ),
        (question(decoder="sample", temperature=0), "temperature: expected a number above 0"),
        (
            question(decoder="sample", temperature=10**400),
            "temperature: Input should be a valid number, got 1000",
        ),
        (
            question(decoder="sample", seed=-1),
            "seed: Input should be greater than or equal to 0, got -1",
        ),
        (question(augment=0), "augment: Input should be greater than or equal to 1, got 0"),
        (question(constrained=1), "constrained: Input should be a valid boolean, got 1"),
    ],
)
def test_a_wrong_json_body_is_refused_in_one_line(with_client, body, message):
    async def scenario(client):
        return await client.post(SOLVE, content=body, headers=JSON)

    assert message in problem(with_client(scenario), 422)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"instances": [TRIANGLE]}, "to all 1 instances, got None"),
        ({"instances": [], "outputs": []}, "one or more"),
        (
            {"instances": [TRIANGLE], "outputs": [[0, 1], [2]]},
            "to all 1 instances, got 2 of them",
        ),
        ({"instances": [TRIANGLE], "outputs": [[0, 1, 3]]}, 'instance 0: "outputs": index 3'),
        ({"instances": [TRIANGLE], "outputs": [[0, 1, 1]]}, "each index at most once"),
        ({"instance": TRIANGLE, "outputs": [0.5]}, '"outputs": expected a list of whole numbers'),
        ({"instance": TRIANGLE, "outputs": [10**400]}, "whole numbers, got a number too large"),
    ],
)
def test_wrong_answers_to_evaluate_are_refused(with_client, fields, message):
    async def scenario(client):
        return await client.post(EVALUATE, json=fields)

    assert message in problem(with_client(scenario), 422)


def saved(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def with_header(text, data=b"", version=b"\x01\x00"):
    """Return a `.npy` file with the given header."""
    header = text.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header + data


DESCRIPTION = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "body: not a .npy file"),
        (b"PK\x03\x04" + b"\0" * 40, "body: not a .npy file"),
        (pickle.dumps(TRIANGLE), "body: not a .npy file"),
        (saved(np.array([{}, 1], object), allow_pickle=True), "Object arrays cannot be loaded"),
        (saved(np.array([["a", "b"]])), "got type <U1"),
        (saved(np.ones((2, 2), complex)), "got type complex128"),
        (saved(np.ones(3)), "expected shape (n, d) or (B, n, d), got (3,)"),
        (saved(np.ones((2, 2, 2, 2))), "expected shape (n, d) or (B, n, d)"),
        (saved(np.ones((4, 3))), "expected shape (n, 2) for hull, got (4, 3)"),
        (saved(np.ones((0, 2))), "instance 0: expected 1 to 100000 elements, got 0"),
        (saved(np.full((3, 2), np.nan)), "expected a finite number, got nan"),
        (saved(np.ones((3, 2)))[:-1], "body: not a .npy file: EOF"),
        (saved(np.ones((3, 2)))[:40], "body: not a .npy file"),
        (with_header(DESCRIPTION % ("<f8", (10**9, 2))), "body: not a .npy file"),
        (with_header(DESCRIPTION % ("<f8", (10**15, 2))), "body: not a .npy file"),
        (with_header(DESCRIPTION % ("<f8", (-1, 2))), "body: not a .npy file"),
        (with_header(DESCRIPTION % ("|O", (1, 2)), b"\0" * 16), "Object arrays cannot be loaded"),
        (with_header("__import__('os').abort()"), "body: not a .npy file"),
        (with_header("(" * 9000), "body: not a .npy file"),
        (with_header("{}", version=b"\x07\x00"), "body: not a .npy file"),
    ],
)
def test_wrong_arrays_are_refused(with_client, body, message):
    async def scenario(client):
        return await client.post(SOLVE, content=body, headers=NPY)

    assert message in problem(with_client(scenario), 422)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("bean_size=4", "unknown option 'bean_size'; did you mean 'beam_size'?"),
        ("decoder=beam&beam_size=four", "beam_size: Input should be a valid integer"),
        ("constrained=perhaps", "constrained: Input should be a valid boolean"),
        ("decoder=sample&temperature=nan", "temperature: Input should be a finite number"),
        ("decoder=sample&temperature=-1.5e0", "temperature: expected a number above 0"),
    ],
)
def test_options_of_the_address_are_checked(with_client, query, message):
    async def scenario(client):
        return await client.post(f"{SOLVE}?{query}", content=saved(np.ones((3, 2))), headers=NPY)

    assert message in problem(with_client(scenario), 422)


def test_other_media_types_are_refused(with_client):
    async def scenario(client):
        text = await client.post(SOLVE, content=question(), headers={"Content-Type": "text/plain"})
        packed = await client.post(
            SOLVE, content=question(), headers={**JSON, "Content-Encoding": "gzip"}
        )
        array = await client.post(EVALUATE, content=saved(np.ones((3, 2))), headers=NPY)
        both = await client.post(f"{SOLVE}?decoder=beam", content=question(), headers=JSON)
        return text, packed, array, both

    text, packed, array, both = with_client(scenario)
    assert "expected application/json or application/x-npy, got text/plain" in problem(text, 415)
    assert "Content-Encoding: expected none, got 'gzip'" in problem(packed, 415)
    assert "expected application/json, got application/x-npy" in problem(array, 415)
    assert "options of a JSON request belong in its body" in problem(both, 422)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)
NAMES = ("instances", "instance", "decoder", "beam_size", "samples", "augment", "seed", "outputs")
NEAR = st.fixed_dictionaries({"instance": st.just(TRIANGLE) | VALUES}) | st.just({})
BODIES = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=40).map(lambda tail: saved(np.ones((3, 2)))[:100] + tail),
    st.builds(
        lambda near, more: json.dumps({**near, **more}).encode(),
        NEAR,
        st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=2),
    ),
)


@settings(max_examples=200)
@given(body=BODIES)
@example(body=b'{"instance":[{"x":0,"y":0},null]}')
def test_any_body_is_read_or_refused(body):
    """Any body is either a valid request or an error."""
    task, limits = tasks.get("hull"), Limits(max_prefix_elements=1000)
    for parse in (parse_solve, parse_evaluate, partial(parse_array, MethodOptions())):
        with suppress(PtrnetError, Problem):
            question = parse(body, task, limits)
            assert {example.inputs.shape[1] for example in question.data} <= {2}


KNAPSACK = {"weight": [3, 4, 2], "value": [5, 6, 3], "capacity": 6}


def parsed(task, instance, **limits):
    return parse_solve(
        json.dumps({"instance": instance}).encode(), tasks.get(task), Limits(**limits)
    )


def test_an_instance_of_a_problem_is_an_object_as_in_its_files():
    expected = [[3, 5, 6], [4, 6, 6], [2, 3, 6]]
    assert parsed("knapsack", KNAPSACK).data[0].inputs.tolist() == expected
    assert len(parsed("job-shop", {"jobs": [[[0, 3], [1, 2]], [[1, 4]]]}).data[0].inputs) == 2
    with pytest.raises(PtrnetError, match=r'^instance 0: expected the key "capacity"$'):
        parsed("knapsack", {"weight": [1], "value": [2]})
    with pytest.raises(Problem, match="instance 0: expected at most 2 elements, got 3"):
        parsed("knapsack", KNAPSACK, max_n=2)


CVRP = {"position": [[0, 0], [1, 1]], "demand": [0, 1], "capacity": 3}


@pytest.mark.parametrize(
    ("task", "instance", "message"),
    [
        ("knapsack", {**KNAPSACK, "value": [True, 6, 3]}, '"value": expected a number for each of'),
        ("knapsack", {**KNAPSACK, "capacity": True}, '"capacity": expected a number'),
        ("job-shop", {"jobs": [[[0, True]]]}, '"jobs": job 0: expected 1 to 20 pairs'),
        ("cvrp", {**CVRP, "position": [[0, False], [1, 1]]}, '"position": expected 2 numbers'),
        ("cvrp", {**CVRP, "round": 1}, "unknown key 'round'; did you mean 'rounded'?"),
        ("job-shop", {"jobs": [[[0, 1]]], "name": "x"}, "unknown key 'name' (known: jobs)"),
    ],
)
def test_booleans_and_unknown_keys_of_a_problem_are_refused(task, instance, message):
    """NumPy would read true as 1. An unknown key may be a misspelled optional one."""
    with pytest.raises(PtrnetError) as error:
        parsed(task, instance)
    assert str(error.value).startswith(f"instance 0: {message}")
    with pytest.raises(PtrnetError, match=re.escape(message)):
        instances_of([instance], tasks.get(task))


@settings(max_examples=50)
@given(st.sampled_from([("knapsack", KNAPSACK), ("job-shop", {"jobs": [[[0, 3]]]})]), st.data())
def test_any_object_is_an_instance_of_a_problem_or_refused(known, data):
    task, fields = known
    changes = data.draw(st.dictionaries(st.sampled_from([*fields]), VALUES, min_size=1))
    with suppress(PtrnetError, Problem):
        inputs = parsed(task, {**fields, **changes}).data[0].inputs
        assert np.isfinite(inputs).all() and inputs.shape[1] == tasks.get(task).num_features
