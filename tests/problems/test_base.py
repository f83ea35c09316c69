"""Instances of problems: named arrays, lines of JSON, and their errors."""

import json

import numpy as np
import pandas as pd
import pytest

from ptrnet import labellers, tasks
from ptrnet.data import formats
from ptrnet.data.dataset import instances_of
from ptrnet.errors import InputError
from ptrnet.problems import names
from ptrnet.types import Example

CVRP = tasks.get("cvrp")
FIELDS = {"position": [[0, 0], [1, 0], [2, 0.5]], "demand": [0, 3, 4], "capacity": 6}


@pytest.mark.parametrize("name", names())
def test_instances_survive_lines_of_json(name, tmp_path):
    task = tasks.get(name)
    written = [Example(x) for n in (3, 6) for x in task.sample(np.random.default_rng(n), 2, n)]
    file = tmp_path / "instances.jsonl"
    formats.write(str(file), written, task)
    for before, after in zip(written, formats.read(str(file), task), strict=True):
        np.testing.assert_array_equal(after.inputs, before.inputs)


def test_named_arrays_are_one_instance_or_many():
    data, is_one = instances_of(FIELDS, CVRP)
    assert is_one and len(data) == 1
    data, is_one = instances_of([FIELDS, CVRP.problem.from_fields(FIELDS, "")], CVRP)
    assert not is_one
    np.testing.assert_array_equal(data[0].inputs, data[1].inputs)
    assert CVRP.problem.to_fields(data[0].inputs) == FIELDS


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"capacity": None}, '"capacity": expected a number'),
        ({"capacity": [1, 2]}, '"capacity": expected a number'),
        ({"position": [[0, 0], [1], [2, 2]]}, '"position": expected 2 numbers for each'),
        ({"demand": [0, 1]}, '"demand": expected a number for each of 3 elements'),
        ({"demand": [0, 1, "a"]}, '"demand": expected a number for each of 3 elements'),
        ({"demand": [0, 1, 7]}, "element 2: its demand 7 is more than the capacity 6"),
        ({"demand": [1, 1, 1]}, "element 0 is the depot"),
        (
            {"distance": "EUC_2D"},
            '"distance": is of task tsp; cvrp has Euclidean distances',
        ),
        ({"outputs": [1, 2]}, "answer: after 1 choices: element 2 is not allowed"),
        ({"outputs": [1, 0]}, "answer: after 1 choices: ends too early"),
        ({"outputs": [1, 0, 3]}, '"outputs": index 3: expected 0 to 2'),
    ],
)
def test_errors_name_line_and_field(changes, complaint, tmp_path):
    file = tmp_path / "instances.jsonl"
    file.write_text(json.dumps({**FIELDS, **changes}) + "\n")
    with pytest.raises(InputError) as error:
        list(formats.read(str(file), CVRP))
    assert complaint in str(error.value)
    assert str(error.value).startswith(f"{file}:1: ")


def test_whole_numbers_of_more_than_64_bits_are_read(tmp_path):
    file = tmp_path / "instances.jsonl"
    file.write_text(json.dumps({**FIELDS, "capacity": 10**20, "demand": [0, 10**19, 4]}) + "\n")
    (example,) = formats.read(str(file), CVRP)
    assert example.inputs[:, 2:4].tolist() == [[0, 1e20], [1e19, 1e20], [4, 1e20]]
    (tmp_path / "jobs.jsonl").write_text(json.dumps({"jobs": [[[0, 10**20], [1, 2]]]}))
    (example,) = formats.read(str(tmp_path / "jobs.jsonl"), tasks.get("job-shop"))
    assert example.inputs[0, 20:22].tolist() == [1e20, 2]


def test_an_infeasible_answer_is_refused_by_its_line(tmp_path):
    file, rows = tmp_path / "instances.jsonl", [{**FIELDS, "outputs": [1, 0, 2]}] * 90
    rows[70] = {**FIELDS, "outputs": [1, 2]}
    rows[80] = {**FIELDS, "outputs": [1]}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"jsonl:71: answer: after 1 choices: element 2 is not"):
        list(formats.read(str(file), CVRP))


def test_a_missing_field_is_named(tmp_path):
    file = tmp_path / "instances.jsonl"
    file.write_text('{"position": [[0, 0]], "demand": [0]}\n')
    with pytest.raises(InputError, match='expected the key "capacity"'):
        list(formats.read(str(file), CVRP))


def test_settings_of_points_are_refused():
    with pytest.raises(InputError, match="points: problem knapsack has no such setting"):
        tasks.get("knapsack", points="grid")


def test_an_invalid_answer_has_no_gap_also_if_the_known_answer_is_invalid():
    inputs = CVRP.problem.from_fields(FIELDS, "")
    invalid, valid = np.array([1]), np.array([1, 0, 2])
    examples = [Example(inputs, known) for known in (invalid, valid, valid)]
    scores = CVRP.score(examples, [invalid, invalid, valid])
    assert scores["valid"].tolist() == [False, False, True]
    np.testing.assert_array_equal(scores["gap"], [np.nan, np.nan, 0.0])


@pytest.mark.parametrize("capacity", [9, 10**6, 2 * 10**12])
def test_whole_numbers_have_no_tolerance(capacity):
    """Once, a knapsack of 2e12 could hold 3 too much."""
    knapsack = tasks.get("knapsack")
    fields = {"weight": [capacity, 1], "value": [1, 1], "capacity": capacity}
    inputs = knapsack.problem.from_fields(fields, "")
    assert knapsack.problem.answer_errors(inputs, [np.array([0])]) == [None]
    assert knapsack.problem.answer_errors(inputs, [np.array([0, 1])]) != [None]
    assert len(labellers.label(knapsack, inputs[None])[0]) == 1
    demands = {"position": [[0, 0], [0, 1], [1, 0]], "demand": [0, capacity, 1]}
    inputs = CVRP.problem.from_fields({**demands, "capacity": capacity}, "")
    assert CVRP.problem.answer_errors(inputs, [np.array([1, 0, 2])]) == [None]
    assert CVRP.problem.answer_errors(inputs, [np.array([1, 2])]) != [None]


def test_sums_of_fractions_have_a_tolerance():
    knapsack = tasks.get("knapsack")
    inputs = knapsack.problem.from_fields(
        {"weight": [0.1, 0.2], "value": [1, 1], "capacity": 0.3}, ""
    )
    assert knapsack.problem.answer_errors(inputs, [np.array([0, 1])]) == [None]


def test_arrays_and_frames_may_lack_optional_numbers_only():
    fields = CVRP.problem.from_fields(FIELDS, "")
    np.testing.assert_array_equal(instances_of(fields[:, :-1], CVRP)[0][0].inputs, fields)
    frame = pd.DataFrame(fields, columns=list(CVRP.facts.number_names))
    found, _ = instances_of(frame.drop(columns="rounded"), CVRP)
    np.testing.assert_array_equal(found[0].inputs, fields)
    with pytest.raises(InputError, match="expected the columns position 1, position 2, demand"):
        instances_of(frame.drop(columns="capacity"), CVRP)
