"""`Dataset` keeps its rows, and the shape of values decides between one instance and many."""

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import tasks
from ptrnet.data.dataset import examples_of, instances_of
from ptrnet.errors import InputError
from ptrnet.types import CsvText, Dataset, Example, Nodes

RNG = np.random.default_rng(0)
TASK_NAMES = ["hull", "delaunay", "tsp", "sort"]


def make_examples(count=7, d=2):
    """Return examples of several sizes, some without an answer, that set every field."""
    return [
        Example(
            RNG.random((k + 1, d)),
            None if k % 3 == 2 else RNG.permutation(k + 1)[: k % 4],
            source=f"a.jsonl:{k}",
            extra={"name": k} if k % 2 else {},
            table=CsvText(None, [["1"]], [0]) if k == 1 else None,
            nodes=Nodes("t", [k]) if k == 4 else None,
            distance="GEO" if k == 5 else "euclidean",
            log_prob=None,
            elements=[{"x": k}] * (k + 1) if k == 3 else None,
        )
        for k in range(count)
    ]


def assert_same(actual, expected):
    assert np.array_equal(actual.inputs, expected.inputs)
    assert (actual.outputs is None) == (expected.outputs is None)
    if actual.outputs is not None:
        assert actual.outputs.dtype == np.int64
        assert np.array_equal(actual.outputs, expected.outputs)
    for name in ("source", "extra", "table", "nodes", "distance", "log_prob", "elements"):
        assert getattr(actual, name) == getattr(expected, name)


def test_rows_equal_the_examples():
    examples = make_examples()
    data = Dataset.of(examples)
    assert len(data) == 7
    for actual, expected in zip(data, examples, strict=True):
        assert_same(actual, expected)
    assert_same(data[-1], examples[-1])
    with pytest.raises(IndexError):
        data[7]


@pytest.mark.parametrize("cut", [slice(2, 5), slice(0, 0), slice(5, None), slice(-3, -1)])
def test_a_slice_is_a_view_of_the_same_rows(cut):
    examples = make_examples()
    data = Dataset.of(examples)
    part = data[cut]
    assert len(part) == len(examples[cut])
    for actual, expected in zip(part, examples[cut], strict=True):
        assert_same(actual, expected)
    for actual, expected in zip(part[1:], examples[cut][1:], strict=True):
        assert_same(actual, expected)
    if len(part):
        assert np.shares_memory(part.elements, data.elements)
    with pytest.raises(InputError, match="slice of step 1"):
        data[::2]


def test_triangles_keep_their_shape():
    triangles = np.array([[0, 1, 2], [1, 2, 3]])
    data = Dataset.of([Example(RNG.random((4, 2)), triangles)])
    assert np.array_equal(data[0].outputs, triangles)
    assert np.array_equal(data.with_answers([triangles[:1]])[0].outputs, triangles[:1])


def test_grades_follow_their_rows():
    grades = [np.array([2.0, 0.0]), np.array([1.0]), np.array([0.0, 4.0, 4.0])]
    rows = [Example(RNG.random((len(g), 2)), grades=g) for g in grades]
    data = Dataset.of(rows)
    assert data.grades.tolist() == [2, 0, 1, 0, 4, 4]
    part = data[1:]
    assert [row.grades.tolist() for row in part] == [[1], [0, 4, 4]]
    assert part[0].outputs is None and part.lengths.tolist() == [0, 0]


def test_rows_without_a_log_probability_have_none():
    points = np.zeros((2, 2))
    data = Dataset.of([Example(points, log_prob=-1.0), Example(points)])
    assert [row.log_prob for row in data] == [-1.0, None]


def test_rows_of_one_size_are_padded_together():
    data = Dataset.of(
        [Example(RNG.random((3, 2)), np.array(a)) for a in ([0], [2, 1], [1, 0, 2], [2])]
    )
    inputs, answers = data.rows_of_one_size(np.array([2, 0, 1]))
    assert np.array_equal(inputs, np.stack([data[k].inputs for k in (2, 0, 1)]))
    assert [a.tolist() for a in answers] == [[1, 0, 2], [0], [2, 1]]


def test_a_dataset_may_be_empty():
    empty = Dataset.of([])
    assert len(empty) == 0 and list(empty) == [] and len(empty.with_answers([])) == 0


def test_an_example_unpacks_as_a_pair():
    points, answer = RNG.random((3, 2)), np.array([0, 1])
    example = Example(points, answer, source="x")
    inputs, outputs = example
    assert np.shares_memory(inputs, points) and np.shares_memory(outputs, answer)
    assert np.array_equal(example[0], points) and len(example) == 2


POINTS = RNG.random((5, 2))
FLAT = RNG.random(5)


@pytest.mark.parametrize(
    ("task", "values", "count"),
    [
        ("hull", POINTS, None),
        ("hull", POINTS.tolist(), None),
        ("hull", list(POINTS), None),
        ("hull", tuple(map(tuple, POINTS.tolist())), None),
        ("hull", ((0.0, 1.0), (0.5, 0.25)), None),
        ("hull", torch.tensor(POINTS), None),
        ("hull", Example(POINTS), None),
        ("hull", (POINTS, [0, 1]), None),
        ("hull", [POINTS], 1),
        ("hull", [POINTS.tolist()] * 2, 2),
        ("hull", np.stack([POINTS] * 3), 3),
        ("hull", [Example(POINTS), Example(POINTS)], 2),
        ("hull", [(POINTS, [0, 1]), (POINTS, [2])], 2),
        ("hull", (p for p in [POINTS, POINTS]), 2),
        ("hull", [], 0),
        ("hull", np.zeros((0, 5, 2)), 0),
        ("sort", FLAT, None),
        ("sort", FLAT.tolist(), None),
        ("sort", FLAT[:, None], None),
        ("sort", FLAT[:, None].tolist(), None),
        ("sort", FLAT.astype(object), None),
        ("sort", [FLAT], 1),
        ("sort", [FLAT.tolist(), FLAT.tolist()[:2]], 2),
        ("sort", [FLAT[:, None]] * 2, 2),
        ("sort", np.stack([FLAT[:, None]] * 2), 2),
        ("sort", [Example(FLAT[:, None])], 1),
    ],
)
def test_the_shape_decides_between_one_instance_and_many(task, values, count):
    data, is_one = instances_of(values, tasks.get(task))
    assert is_one == (count is None) and len(data) == (1 if count is None else count)
    assert all(row.outputs is None for row in data)


@pytest.mark.parametrize("task", TASK_NAMES)
def test_every_function_takes_a_dataset_as_many_instances(small, task):
    solver, data = small(task), ptrnet.generate(task, 6, 3)
    assert isinstance(data, Dataset) and len(data) == 3
    instances = [inputs for inputs, _ in data]
    expected = [a.tolist() for a in solver.solve(instances)]
    assert [a.tolist() for a in solver.solve(data)] == expected
    assert [row.outputs.tolist() for row in solver.predict(data)] == expected
    assert [row.outputs.tolist() for row in ptrnet.label(task, data)] == [
        row.outputs.tolist() for row in data
    ]
    assert solver.log_likelihoods(data).shape == (3,)
    assert solver.evaluate(data) == solver.evaluate(list(data))


@pytest.mark.parametrize("name", ["solve", "log_likelihoods", "evaluate"])
def test_refuses_a_dataset_of_another_task(small, name):
    data = ptrnet.generate("sort", 5, 2)
    with pytest.raises(InputError, match="Dataset: expected elements of 2 numbers for hull, got 1"):
        getattr(small("hull"), name)(data)
    assert small("hull").solve(data[:0]) == []


def test_a_dataset_of_matrices_can_be_labelled():
    matrix = np.random.default_rng(0).random((4, 4))
    data = Dataset.of([Example(matrix, distance="EXPLICIT")])
    (labelled,) = ptrnet.label("tsp", data)
    assert sorted(labelled.outputs.tolist()) == [0, 1, 2, 3]


def test_solve_checks_the_outputs_of_a_pair(small):
    with pytest.raises(InputError, match="outputs: expected a list of whole numbers"):
        small().solve((POINTS, POINTS[:, 0]))


@pytest.mark.parametrize("name", ["log_likelihoods", "evaluate"])
def test_scoring_refuses_instances_without_answers(small, name):
    pandas = pytest.importorskip("pandas")
    for values in (POINTS, POINTS.tolist(), pandas.DataFrame(POINTS, columns=["x", "y"])):
        with pytest.raises(InputError, match=r"pairs of inputs .* got an instance without an ans"):
            getattr(small(), name)(values)
    with pytest.raises(InputError, match=r"example 0: expected a pair of .*, got ndarray"):
        getattr(small(), name)([POINTS])
    with pytest.raises(InputError, match="has no answer to measure against"):
        getattr(small(), name)([Example(POINTS)])


def test_refuses_values_without_items():
    for values in (3.5, "abc", {"x": [1.0]}, {1, 2}, None):
        with pytest.raises(InputError, match="expected a list or an array"):
            instances_of(values, tasks.get("hull"))
    with pytest.raises(InputError, match="expected a list or an array"):
        examples_of(3.5, tasks.get("hull"))


def test_an_example_shows_its_inputs_its_answer_and_what_differs_from_the_defaults():
    shown = "Example(inputs=array([[1.],\n       [2.]]), outputs=array([1, 0])"
    assert repr(Example([1.0, 2.0], [1, 0])) == f"{shown})"
    assert repr(Example([1.0, 2.0], [1, 0], "a.txt:3")) == f"{shown}, source='a.txt:3')"
