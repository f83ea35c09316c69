"""Each measurement returns rows. Invalid measurements are refused before they start."""

import json

import numpy as np
import pytest

from ptrnet.decoding import Greedy
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.geometry import model_order
from ptrnet_lab import bench
from ptrnet_lab.bench import harness, label
from ptrnet_lab.bench.harness import format_table
from ptrnet_lab.bench.solve import Questions

SMALL = {
    "score": {"n": 5, "batch_size": 3, "hidden_size": 8},
    "train": {"n": 6, "batch_size": 4, "hidden_size": 8},
    "solve": {"n": 6, "batch_size": 3},
    "label": {"task": "sort", "n": 6},
    "data": {"n": 6, "batch_size": 4, "hidden_size": 8},
    "export": {"task": "sort", "n": 6, "batch_size": 3},
}


@pytest.mark.parametrize("measurement", bench.MEASUREMENTS)
def test_each_measurement_gives_rows(quick, measurement):
    assert set(SMALL) == set(bench.MEASUREMENTS)
    options = {**SMALL[measurement], "repeats": 2, "seed": 1}
    (planned,) = bench.plan(measurement, options).values()
    rows = list(planned)
    assert rows and len({row.name for row in rows}) == len(rows)
    for row in rows:
        table = json.loads(json.dumps(row.to_dict()))
        assert table["what"] == measurement and table["n"] == SMALL[measurement]["n"]
        assert 0 < table["low_ms"] <= table["median_ms"] <= table["high_ms"]
        assert table["runs"] >= 1 and table["rate"] > 0 and table["unit"].endswith("/s")
        assert table["peak_mb"] > 0
        if table["roofline_ms"] is not None:
            share = table["roofline_ms"] / table["median_ms"]
            assert table["roofline_share"] == pytest.approx(share) and share > 0
        if table["other"] is not None:
            assert table["other"]["ms"] > 0 and table["other"]["ratio"] > 0
        assert row.name in format_table(rows)


def test_all_labellers_of_tours_are_measured(monkeypatch):
    monkeypatch.setattr(label, "_rows_of", lambda instances, repeats: [instances.labeller])
    assert [*label.rows("tsp")] == ["exact", "held-karp", "local-search", "a1", "a2", "a3"]


def test_progress_of_data_names_the_examples_that_steps_train_on(quick, monkeypatch):
    titles, peaks = [], harness.peaks
    monkeypatch.setattr(harness, "peaks", lambda s, title: titles.append(title) or peaks(s, title))
    (planned,) = bench.plan("data", {**SMALL["data"], "repeats": 1}).values()
    names = [row.name for row in planned]
    assert titles == [
        "data, reading",
        "data, steps on examples of the file",
        "data, steps on fresh examples",
    ]
    assert names[-2:] == ["step, 8 units, examples of the file", "step, 8 units, fresh examples"]


def test_plan_leaves_out_measurements_with_missing_extras(monkeypatch):
    monkeypatch.setattr("ptrnet.errors.find_spec", lambda package: None)
    assert set(bench.plan(None, {})) == set(bench.MEASUREMENTS) - {"export"}
    with pytest.raises(MissingExtraError):
        bench.plan("export", {})


@pytest.mark.parametrize(
    ("measurement", "options", "complaint"),
    [
        ("trian", {}, "unknown measurement 'trian'; did you mean 'train'"),
        ("solve", {"hidden_size": 5}, "--hidden-size has no effect with bench solve"),
        (None, {"n": 0}, "n: expected 1 <= A <= B"),
        (None, {"task": "hul"}, "did you mean 'hull'"),
        ("label", {"task": "delaunay", "n": 2}, "expected 3 or more"),
        ("train", {"model": "transformer"}, "unknown model 'transformer'"),
        ("solve", {"model": "ptr-net"}, "--model has no effect with bench solve"),
        ("train", {"precision": "float"}, "unknown precision 'float'; did you mean 'float32'"),
        ("score", {"device": "cpuu"}, "unknown device 'cpuu'; did you mean 'cpu'"),
        ("solve", {"batch_size": 10**9}, "too many elements"),
        ("export", {"task": "knapsack"}, "the task of a model that can be exported, got knapsack"),
    ],
)
def test_plan_refuses_invalid_options(measurement, options, complaint):
    with pytest.raises(InputError, match=complaint):
        bench.plan(measurement, options)


@pytest.mark.parametrize("name", ["delaunay", "hull-ptr-net", "reading-order", "sort"])
def test_the_instances_are_those_that_the_model_reads(name):
    """Greedy decoding of a benchmark's batch gives the answers of `Solver.predict`."""
    questions = Questions(name, 8, 3)
    task, inputs = questions.solver().task, questions.tensors()
    drawn = task.sample(np.random.default_rng(questions.seed), 3, 8)
    tokens = Greedy().decode(questions.solver().model, *inputs, task).tokens[:, 0]
    answers = [task.from_tokens(row[row != 0].numpy()) for row in tokens]
    orders = [model_order(task.normalize(one)[None], task.order)[0] for one in drawn]
    found = [order[answer].tolist() for order, answer in zip(orders, answers, strict=True)]
    answered = questions.solver().solve(list(drawn), improve=False)
    assert [np.ravel(a).tolist() for a in answered] == [np.ravel(f).tolist() for f in found]
