"""Conversion between any two formats and back keeps every digit, answer and distance."""

from itertools import permutations

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.types import Example

# Numbers that change if a writer rounds them.
POINTS = np.array([[0.1 + 0.2, 1e-300], [-1 / 3, 2.0**60], [1e22, 5e-324], [np.pi, 0.0], [7, 8]])

NEAR = np.clip(POINTS, -1e9, 1e9)  # small enough for exact sums of rounded distances
ANSWERS = {
    "hull": [[0, 2, 1], [3, 1, 2, 0]],
    "tsp": [[0, 2, 1, 4, 3], [4, 3, 2, 1, 0]],
    "delaunay": [[[0, 1, 2], [1, 2, 3]], [[4, 2, 0]]],
    "sort": [[0, 2, 1, 4, 3], [4, 3, 2, 1, 0]],
}


def answered(task):
    points = POINTS[:, : task.facts.num_features]
    return [Example(points, np.array(outputs)) for outputs in ANSWERS[task.name]]


def unanswered(task):
    return [Example(POINTS[:, : task.facts.num_features])]


def tsplib(_):
    return [Example(NEAR, distance=distance) for distance in ("MAX_2D", "EUC_2D")]


CASES = [
    *((name, answered, ("txt", "jsonl", "parquet")) for name in ANSWERS),
    *(
        (name, unanswered, ("txt", "jsonl", "parquet", "csv"))
        for name in ANSWERS
        if name != "delaunay"
    ),
    ("tsp", tsplib, ("jsonl", "parquet")),
    ("tsp", lambda task: tsplib(task)[:1], ("jsonl", "parquet", "tsp")),
]


@pytest.mark.parametrize(
    ("name", "make", "source", "target"),
    [(name, make, *pair) for name, make, able in CASES for pair in permutations(able, 2)],
)
def test_conversion_and_back_gives_the_same_examples(tmp_path, name, make, source, target):
    task = tasks.get(name)
    examples = make(task)
    first, second, third = (
        str(tmp_path / f"{k}.{extension}") for k, extension in enumerate((source, target, source))
    )
    formats.write(first, examples, task)
    formats.write(second, formats.read(first, task), task)
    formats.write(third, formats.read(second, task), task)
    for path in (second, third):
        assert_same(list(formats.read(path, task)), examples)


@pytest.mark.parametrize("extension", ["jsonl", "parquet"])
def test_conversion_of_a_tour_and_back_gives_the_same_example(tmp_path, extension):
    task = tasks.get("tsp")
    (example,) = tsplib(task)[:1]
    example = example.replace(outputs=np.array(ANSWERS["tsp"][0]))
    tour, other = str(tmp_path / "a.tour"), str(tmp_path / f"b.{extension}")
    formats.write(str(tmp_path / "a.tsp"), [example.replace(outputs=None)], task)
    formats.write(tour, [example], task)
    formats.write(other, formats.read(tour, task), task)
    assert_same(list(formats.read(other, task)), [example])
    formats.write(tour, formats.read(other, task), task)
    assert_same(list(formats.read(tour, task)), [example])


def assert_same(examples, expected):
    assert len(examples) == len(expected)
    for a, b in zip(examples, expected, strict=True):
        assert a.inputs.tobytes() == b.inputs.tobytes() and a.inputs.shape == b.inputs.shape
        assert a.distance == b.distance
        assert (a.outputs is None) == (b.outputs is None)
        assert a.outputs is None or a.outputs.tolist() == b.outputs.tolist()
