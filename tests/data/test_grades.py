"""Grades, which are rankings with ties, survive files and memory maps."""

import json

import numpy as np
import pytest

from ptrnet import InputError
from ptrnet.data import formats
from ptrnet.data.infer_task import loosest_task
from ptrnet.data.stored import open_file
from ptrnet.types import Example, ranking

TASK = loosest_task(2)


def lines_of(tmp_path, *rows, name="g.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


GRADED = {"inputs": [[0, 1], [2, 3], [4, 5]], "grades": [0, 2.5, 2.5]}


def test_ranking_is_stable_and_starts_with_the_highest_grade():
    rng = np.random.default_rng(0)
    for _ in range(50):
        grades = rng.integers(0, 4, rng.integers(1, 9)).astype(float)
        expected = sorted(range(len(grades)), key=lambda k: (-grades[k], k))
        assert ranking(grades).tolist() == expected


def test_grades_without_outputs_give_a_ranking_as_answer(tmp_path):
    path = lines_of(tmp_path, GRADED, {**GRADED, "outputs": [2]}, {**GRADED, "grades": None})
    first, second, third = formats.read(path, TASK)
    assert first.grades.tolist() == second.grades.tolist() == [0, 2.5, 2.5]
    assert first.outputs.tolist() == [1, 2, 0] and second.outputs.tolist() == [2]
    assert third.grades is None and third.outputs is None


@pytest.mark.parametrize("extension", ["jsonl", "parquet"])
def test_grades_survive_a_write_and_a_read(tmp_path, extension):
    rng = np.random.default_rng(1)
    examples = []
    for _ in range(20):
        grades = rng.normal(size=rng.integers(1, 6))
        examples.append(Example(rng.random((len(grades), 2)), ranking(grades), grades=grades))
    path = str(tmp_path / f"g.{extension}")
    formats.write(path, examples, TASK)
    opened = open_file(path, TASK)
    assert opened.grades.tolist() == np.concatenate([e.grades for e in examples]).tolist()
    for known, *others in zip(examples, formats.read(path, TASK), opened, strict=True):
        for example in others:
            assert example.grades.tolist() == known.grades.tolist()
            assert example.outputs.tolist() == known.outputs.tolist()


@pytest.mark.parametrize(
    ("grades", "complaint"),
    [
        ([1, 2], "expected a number for each of 3 elements, got 2"),
        ([1, "2", 3], "expected 3 numbers, got strings"),
        ([1, None, 3], "expected 3 numbers, got None among the numbers"),
        ([1, True, 3], "expected 3 numbers, got booleans"),
        (3, "expected a number for each of 3 elements, got shape ()"),
        ([[1], [2], [3]], "expected a number for each of 3 elements, got shape"),
    ],
)
def test_refuses_grades_that_are_not_a_number_for_each_element(tmp_path, grades, complaint):
    path = lines_of(tmp_path, GRADED, {**GRADED, "grades": grades})
    with pytest.raises(InputError) as error:
        list(formats.read(path, TASK))
    assert str(error.value).startswith(f'{path}:2: "grades": {complaint}')


def test_refuses_a_training_file_with_grades_in_some_examples(tmp_path):
    plain = {"inputs": GRADED["inputs"], "outputs": [0]}
    for first, second, words in (
        (GRADED, plain, "expected grades"),
        (plain, GRADED, "expected no grades"),
    ):
        path = lines_of(tmp_path, first, first, second)
        with pytest.raises(InputError, match=rf"g\.jsonl:3: {words}, as in earlier examples"):
            open_file(path, TASK)


def test_a_dataset_may_have_grades_in_some_rows(tmp_path):
    from ptrnet.types import Dataset

    path = lines_of(tmp_path, GRADED, {"inputs": [[0, 1]], "outputs": [0]})
    data = Dataset.of(formats.read(path, TASK))
    assert data[0].grades.tolist() == GRADED["grades"] and data[1].grades is None
    assert data[1:][0].grades is None


def test_other_tasks_keep_grades_as_a_key_of_the_user(tmp_path):
    from ptrnet import tasks

    path = lines_of(tmp_path, {"inputs": [[0, 0], [1, 0], [0, 1]], "grades": "A"})
    (example,) = formats.read(path, tasks.get("hull"))
    assert example.extra == {"grades": "A"} and example.grades is None
