"""A solver's text and pictures in Python equal those of the program."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

import ptrnet
from ptrnet.cli import run
from ptrnet.data import formats
from ptrnet.errors import InputError


@pytest.fixture(autouse=True)
def _no_window(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")


def test_evaluate_equals_the_json_of_ptrnet_evaluate(small, tmp_path, capsys):
    solver = small(scale=8.0)
    solver.save_pretrained(tmp_path / "m")
    ptrnet.generate("hull", "3-6", 12, output=tmp_path / "a.jsonl")
    pairs = ptrnet.generate("hull", "3-6", 12)
    assert (
        run(["evaluate", "--model", str(tmp_path / "m"), str(tmp_path / "a.jsonl"), "--json"]) == 0
    )
    expected = json.loads(capsys.readouterr().out)["metrics"]
    assert solver.evaluate(pairs) == expected
    assert solver.evaluate(list(formats.read(str(tmp_path / "a.jsonl"), solver.task))) == expected
    assert solver.evaluate([(x.tolist(), y.tolist()) for x, y in pairs]) == expected
    assert solver.evaluate(pairs[0])["accuracy"]["count"] == 1
    for bad in ([], [np.zeros((3, 2))]):
        with pytest.raises(InputError):
            solver.evaluate(bad)


def test_plots_are_of_the_models_answer(small):
    solver = small("tsp", scale=8.0)
    points = np.random.default_rng(0).random((6, 2))
    tour = solver.solve(points)
    ax = solver.plot(points)
    lines = {line.get_label(): line.get_xydata() for line in ax.lines}
    assert lines["network's answer"].tolist() == points[np.append(tour, tour[0])].tolist()
    mine = Figure().add_subplot()
    assert solver.plot((points.tolist(), np.arange(6)), ax=mine) is mine and mine.lines
    with pytest.raises(InputError, match="expected one instance, got a list of 2"):
        solver.plot([points, points])


def test_objects_that_are_not_axes_are_refused(small):
    solver, points = small(), np.random.default_rng(0).random((6, 2))
    for draw in (solver.plot, solver.plot_attention, lambda x, ax: solver.answer(x).plot(ax)):
        with pytest.raises(InputError, match="ax: expected axes of matplotlib, got int"):
            draw(points, ax=3)


def test_attention_is_drawn_step_by_step(small):
    solver = small(scale=8.0)
    points = np.random.default_rng(0).random((6, 2))
    ax = solver.plot_attention(points)
    probabilities, tokens = solver.attention(points)
    assert np.array_equal(ax.images[0].get_array(), probabilities)
    assert ax.lines[0].get_xdata().tolist() == tokens.tolist()
    with pytest.raises(InputError, match="at most 200 steps over as many tokens, got"):
        solver.plot_attention(np.random.default_rng(0).random((201, 2)))


def test_repr_shows_task_sizes_and_scores(small):
    solver = small("sort")
    assert repr(solver).startswith("Solver of task sort: PtrNet, ")
    assert "trained on n 5" in repr(solver)
    score = {"n": 5, "metric": "accuracy", "value": 0.9, "low": 0.85, "high": 0.93, "count": 100}
    solver.trained["scores"] = [score]
    assert repr(solver).endswith("n=5: accuracy 90.0 (85.0 to 93.0)%")
