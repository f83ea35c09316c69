"""Each malformed body is refused in one line that says where the mistake is."""

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
from ptrnet.serve.errors import Refusal
from ptrnet.serve.limits import Limits
from ptrnet.serve.requests import parse_array, parse_evaluate, parse_solve
from ptrnet.serve.schemas import MethodOptions
from ptrnet.tasks.schema import Layout
from tests.serve.conftest import SOLVE, TRIANGLE, problem

EVALUATE = "/v1/models/hull/evaluate"
JSON, NPY = {"Content-Type": "application/json"}, {"Content-Type": "application/x-npy"}


def question(**fields):
    return json.dumps({"instance": TRIANGLE, **fields}).encode()


def instance(text):
    return b'{"instance": ' + text + b"}"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"", "body: not JSON"),
        (b"{'a': 1}", "not JSON at column 2"),
        (b'{"a":\n1,}', "not JSON at line 2, column "),
        (b"\xff\xfe", "body: not UTF-8 text (byte 1)"),
        (b"[1, 2]", "body: "),
        (b"[" * 200_000, "body: lists or objects are nested"),
        (b"{}", "got neither"),
        (b'{"instance": [], "instances": []}', "got both"),
        (b'{"instances": 3}', "instances: "),
        (b'{"instances": null}', "got neither"),
        (b'{"instances": [{"x": 1}]}', "instance 0: "),
        (b'{"instances": [[[0, 0]], [["a", "b"]]]}', "instance 1: "),
        (instance(b"[" * 150 + b"]" * 150), "instance 0: "),
        (instance(b"[[NaN, 1]]"), "instance 0: element 1, number 1: "),
        (instance(b"[[1e999, 1]]"), "instance 0: element 1, number 1: "),
        (instance(b"[[" + b"9" * 400 + b", 1]]"), "instance 0: "),
        (instance(b"[[" + b"9" * 5000 + b", 1]]"), "body: a whole number of more than 4300 digits"),
        (instance(b"[[true, 1]]"), "instance 0: "),
        (instance(b"[[1, 2], [3]]"), "instance 0: "),
        (instance(b"[[1, 2, 3]]"), "instance 0: expected shape (n, 2)"),
        (instance(b"[]"), "instance 0: "),
        (question(decoderr="beam"), "'decoderr'; did you mean 'decoder'?"),
        (question(outputs=[0, 1]), "unknown field 'outputs'"),
        (question(decoder="bean"), "'bean'; did you mean 'beam'?"),
        (question(decoder="reconstruct"), "unknown decoder 'reconstruct'"),
        (question(decoder=["beam"]), "decoder: "),
        (question(beam_size=4), "beam_size has no effect"),
        (question(decoder="beam", beam_size=0), "beam_size: "),
        (question(decoder="beam", beam_size=True), "beam_size: "),
        (question(decoder="beam", beam_size=2.5), "beam_size: "),
        (question(decoder="sample", temperature=0), "temperature: "),
        (question(decoder="sample", temperature=10**400), "temperature: "),
        (question(decoder="sample", seed=-1), "seed: "),
        (question(augment=0), "augment: "),
        (question(constrained=1), "constrained: "),
    ],
)
def test_a_wrong_json_body_is_refused_in_one_line(send, body, place):
    assert place in problem(send("POST", SOLVE, content=body, headers=JSON), 422)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"instances": [TRIANGLE]}, "outputs: "),
        ({"instances": [], "outputs": []}, "instances: "),
        ({"instances": [TRIANGLE], "outputs": [[0, 1], [2]]}, "outputs: "),
        ({"instances": [TRIANGLE], "outputs": [[0, 1, 3]]}, 'instance 0: "outputs": index 3'),
        ({"instances": [TRIANGLE], "outputs": [[0, 1, 1]]}, 'instance 0: "outputs": '),
        ({"instance": TRIANGLE, "outputs": [0.5]}, 'instance 0: "outputs": '),
        ({"instance": TRIANGLE, "outputs": [10**400]}, 'instance 0: "outputs": '),
    ],
)
def test_wrong_answers_to_evaluate_are_refused(send, fields, place):
    assert place in problem(send("POST", EVALUATE, json=fields), 422)


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
    ("body", "kind"),
    [
        (b"", "not a .npy file"),
        (b"PK\x03\x04" + b"\0" * 40, "not a .npy file"),
        (pickle.dumps(TRIANGLE), "not a .npy file"),
        (saved(np.array([{}, 1], object), allow_pickle=True), "not a .npy file: Object"),
        (saved(np.array([["a", "b"]])), "got type <U1"),
        (saved(np.ones((2, 2), complex)), "got type complex128"),
        (saved(np.ones(3)), "got (3,)"),
        (saved(np.ones((2, 2, 2, 2))), "got (2, 2, 2, 2)"),
        (saved(np.ones((4, 3))), "got (4, 3)"),
        (saved(np.ones((0, 2))), "instance 0: "),
        (saved(np.full((3, 2), np.nan)), "got nan"),
        (saved(np.ones((3, 2)))[:-1], "not a .npy file"),
        (saved(np.ones((3, 2)))[:40], "not a .npy file"),
        (with_header(DESCRIPTION % ("<f8", (10**9, 2))), "not a .npy file"),
        (with_header(DESCRIPTION % ("<f8", (10**15, 2))), "not a .npy file"),
        (with_header(DESCRIPTION % ("<f8", (-1, 2))), "not a .npy file"),
        (with_header(DESCRIPTION % ("|O", (1, 2)), b"\0" * 16), "not a .npy file: Object"),
        (with_header("__import__('os').abort()"), "not a .npy file"),
        (with_header("(" * 9000), "not a .npy file"),
        (with_header("{}", version=b"\x07\x00"), "not a .npy file"),
    ],
)
def test_wrong_arrays_are_refused(send, body, kind):
    assert kind in problem(send("POST", SOLVE, content=body, headers=NPY), 422)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("bean_size=4", "unknown option 'bean_size'; did you mean 'beam_size'?"),
        ("decoder=beam&beam_size=four", "beam_size: "),
        ("constrained=perhaps", "constrained: "),
        ("decoder=sample&temperature=nan", "temperature: "),
        ("decoder=sample&temperature=-1.5e0", "temperature: "),
    ],
)
def test_options_of_the_address_are_checked(send, query, place):
    body = saved(np.ones((3, 2)))
    assert place in problem(send("POST", f"{SOLVE}?{query}", content=body, headers=NPY), 422)


@pytest.mark.parametrize(
    ("path", "headers", "status", "place"),
    [
        (SOLVE, {"Content-Type": "text/plain"}, 415, "Content-Type: "),
        (SOLVE, {**JSON, "Content-Encoding": "gzip"}, 415, "Content-Encoding: "),
        (EVALUATE, NPY, 415, "Content-Type: "),
        (f"{SOLVE}?decoder=beam", JSON, 422, "not in the address"),
    ],
)
def test_other_media_types_are_refused(send, path, headers, status, place):
    assert place in problem(send("POST", path, content=question(), headers=headers), status)


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
        with suppress(PtrnetError, Refusal):
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
    with pytest.raises(Refusal, match="instance 0: expected at most 2 elements, got 3"):
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


def test_true_answers_that_break_the_rules_of_an_instance_are_refused():
    """Here both customers together need more than a vehicle holds."""
    instance = {"position": [[0, 0], [1, 1], [2, 2]], "demand": [0, 2, 2], "capacity": 3}
    body = json.dumps({"instances": [instance], "outputs": [[1, 2]]}).encode()
    with pytest.raises(PtrnetError, match=r"^instance 0: answer: .* element 2 is not allowed"):
        parse_evaluate(body, tasks.get("cvrp"), Limits())
    body = body.replace(b"[[1, 2]]", b"[[1, 0, 2]]")
    assert parse_evaluate(body, tasks.get("cvrp"), Limits()).data.outputs(0).tolist() == [1, 0, 2]


def test_a_row_of_a_wide_table_has_an_element_for_each_alternative():
    layout = Layout(("car", "bus", "ship"), (("cost", ("a", "b", "c")),))
    schema = {"fields": ("cost",), "categories": ((),), "center": (0.0,), "spread": (1.0,)}
    task = tasks.get("custom", kind="choice", layout=str(layout), **schema)
    body = b'{"instance": {"a": 1, "b": 2, "c": 3}}'
    assert len(parse_solve(body, task, Limits()).data.elements) == 3
    with pytest.raises(Refusal, match="instance 0: expected at most 2 elements, got 3"):
        parse_solve(body, task, Limits(max_n=2))


@settings(max_examples=50)
@given(st.sampled_from([("knapsack", KNAPSACK), ("job-shop", {"jobs": [[[0, 3]]]})]), st.data())
def test_any_object_is_an_instance_of_a_problem_or_refused(known, data):
    task, fields = known
    changes = data.draw(st.dictionaries(st.sampled_from([*fields]), VALUES, min_size=1))
    with suppress(PtrnetError, Refusal):
        inputs = parsed(task, {**fields, **changes}).data[0].inputs
        assert np.isfinite(inputs).all() and inputs.shape[1] == tasks.get(task).facts.num_features
