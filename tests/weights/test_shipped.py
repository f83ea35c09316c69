"""The shipped models are complete, documented, and as good as their cards say."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file
from scipy.spatial import ConvexHull, Delaunay

import ptrnet
from ptrnet import labellers, model_folder, tasks, weights
from ptrnet.labellers import held_karp
from ptrnet.metrics import summary
from ptrnet.types import Example

SHIPPED = pytest.mark.parametrize("name", weights.names())


def test_every_task_has_a_shipped_model():
    ours = {
        name
        for name in [*tasks.names(), *tasks.problem_names()]
        if tasks.kind(name).__module__.startswith("ptrnet.")
    }
    assert set(weights.names()) >= ours  # other tests may have registered tasks of their own
    for name in ours:
        assert ptrnet.load(name).task.name == name


@SHIPPED
def test_card_has_all_required_parts(name):
    card = (weights.folder(name) / model_folder.CARD).read_text()
    for word in ("Recipe: ", "Commit: ", "Time: ", "seed ", "steps", "## Scores", "## Limits"):
        assert word in card, word
    summary = weights.summary(name)
    assert summary["scores"] and Path(summary["file"]).stat().st_size < 6_000_000
    for score in summary["scores"]:
        digits = 2 if score["metric"] == "gap" else 1
        row = next(r for r in card.splitlines() if r.startswith(f"| {score['n']} | "))
        assert f" {100 * score['value']:.{digits}f} (" in row and f" {score['count']} " in row
    assert {t.dtype.itemsize for t in load_file(summary["file"]).values()} == {2}


@SHIPPED
def test_recorded_results_equal_those_of_the_card(name):
    path = Path(__file__).parents[2] / "results" / f"{name}.json"
    rows = json.loads(path.read_text())["rows"]
    for row, score in zip(rows, weights.summary(name)["scores"], strict=True):
        key = "constrained" if score["metric"] == "gap" else "accuracy"
        assert row["n"] == score["n"] and row[key]["value"] == score["value"]


def examples(name, n, count):
    """Instances of seeds that no training and no card used, labelled by other libraries."""
    rng = np.random.default_rng(987_000 + n)
    if name == "sort":
        return [Example(x, np.argsort(x[:, 0])) for x in rng.random((count, n, 1))]
    points = rng.random((count, n, 2))
    if name == "hull":
        return [Example(x, ConvexHull(x).vertices.astype(np.int64)) for x in points]
    if name == "delaunay":
        return [Example(x, Delaunay(x).simplices.astype(np.int64)) for x in points]
    return [Example(x, t) for x, t in zip(points, held_karp.label(points), strict=True)]


@pytest.mark.parametrize(
    ("name", "n", "decoder", "floor"),
    [
        ("hull", 5, ptrnet.Greedy(), 0.999),
        ("hull", 10, ptrnet.Greedy(), 0.999),
        ("hull", 50, ptrnet.Greedy(), 0.995),
        ("sort", 10, ptrnet.Greedy(), 0.999),
        ("sort", 20, ptrnet.Beam(4), 0.995),
    ],
)
def test_accuracy_on_unseen_instances(name, n, decoder, floor):
    """The accuracy is at least the promised one, minus three standard errors of this sample."""
    model, count = ptrnet.load(name), 1000
    known = examples(name, n, count)
    answers = [e.outputs for e in model.predict(known, decoder)]
    accuracy = summary.measure(model.task, known, answers)["accuracy"].value
    assert accuracy > floor - 3 * (floor * (1 - floor) / count) ** 0.5


@pytest.mark.parametrize(("n", "accuracy", "coverage"), [(5, 0.995, 0.999), (10, 0.99, 0.999)])
def test_coverage_of_unseen_triangulations(n, accuracy, coverage):
    """The shares are at least the promised ones, minus three standard errors of this sample."""
    model, count = ptrnet.load("delaunay"), 300
    known = examples("delaunay", n, count)
    measures = summary.measure(model.task, known, [e.outputs for e in model.predict(known)])
    assert measures["accuracy"].value > accuracy - 3 * (accuracy * (1 - accuracy) / count) ** 0.5
    assert measures["triangle_coverage"].value > coverage - 0.003


@pytest.mark.parametrize(("n", "gap"), [(5, 0.001), (10, 0.003), (14, 0.005)])
def test_gap_of_unseen_tours(n, gap):
    """The gap to the shortest tours (dynamic programming) is at most the promised one."""
    model = ptrnet.load("tsp")
    known = examples("tsp", n, 200)
    answers = [e.outputs for e in model.predict(known)]
    measures = summary.measure(model.task, known, answers)
    assert measures["gap"].value < gap and measures["valid"].value == 1


@pytest.mark.parametrize(
    ("name", "n", "labeller", "gap"),
    [
        ("cvrp", 11, "pyvrp", 0.04),
        ("cvrp", 31, "pyvrp-quick", 0.07),
        ("knapsack", 30, "dynamic-programming", 0.006),
        ("knapsack", 120, "dynamic-programming", 0.002),
        ("orienteering", 11, "best-tour", 0.1),
        ("job-shop", 6, "tabu-search", 0.12),
    ],
)
def test_gap_of_unseen_problems(name, n, labeller, gap):
    """The gap to an algorithm's answers is at most the promised one, on the papers' instances."""
    if labeller.startswith("pyvrp"):
        pytest.importorskip("pyvrp")
    task = tasks.get(name)
    instances = list(task.sample(np.random.default_rng(987_000 + n), 20, n))
    known = [
        Example(x, answer)
        for x, answer in zip(
            instances, labellers.label(task, np.stack(instances), labeller), strict=True
        )
    ]
    measures = ptrnet.load(name).evaluate(known)
    assert measures["gap"]["value"] < gap and measures["valid"]["value"] == 1


def test_coordinates_of_maps_need_no_scaling():
    """A square far away and large is an easy hull in any units."""
    square = np.array([[0.0, 0.0], [1.0, 0.05], [0.95, 1.0], [0.02, 0.9], [0.5, 0.4]])
    expected = ptrnet.load("hull").solve(square).tolist()
    assert expected == [0, 1, 2, 3]
    assert ptrnet.load("hull").solve(square * 3e4 + [5e5, -4e6]).tolist() == expected


@pytest.mark.parametrize(("values", "n"), [(10, 10), (3, 10), (10, 20)])
def test_many_equal_numbers_are_sorted_by_index(values, n):
    """Many integers are equal. A model trained on uniform numbers got 62% and 13% of sets right."""
    inputs = np.random.default_rng(6).integers(values, size=(200, n, 1)).astype(float)
    answers = weights.load("sort").solve(list(inputs))
    in_order = [
        (np.diff(x[answer, 0]) >= 0).all() for x, answer in zip(inputs, answers, strict=True)
    ]
    assert np.mean(in_order) > 0.95


@pytest.mark.parametrize("task", ["hull", "delaunay", "tsp", "sort"])
def test_units_of_length_do_not_matter(task):
    """Points get the same answer if they are scaled down by a thousand or more."""
    solver = ptrnet.load(task)
    points = np.random.default_rng(6).random((10, solver.task.facts.num_features))
    points -= points.min(0)
    points /= points.max()
    expected = solver.solve(points)
    for unit in (2.0**-10, 2.0**-30, 2.0**-1000, 2.0**-30 + 2.0**-31):
        assert np.array_equal(solver.solve(points * unit), expected)


def test_most_columns_of_level_lines_are_read_one_after_the_other():
    """Two columns of equal lines, with a gutter of 2% of their width, are not read across."""
    rng, right = np.random.default_rng(0), 0
    for _ in range(20):
        rows, step, width = int(rng.integers(10, 21)), 14 * rng.uniform(1.1, 1.4), 294
        page = np.array(
            [
                [left, 100 + k * step, left + width, 114 + k * step]
                for left in (50, 356)
                for k in range(rows)
            ]
        )
        order = rng.permutation(len(page))
        right += (
            ptrnet.load("reading-order").solve(page[order]).tolist() == np.argsort(order).tolist()
        )
    assert right > 10
