"""If a program sets the default dtype to float64, ptrnet still computes in float32."""

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import model_folder, models, weights
from ptrnet.export.folder import export_onnx
from ptrnet.serve.server import warm_up
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train

POINTS = list(np.random.default_rng(4).random((6, 9, 2)))


@pytest.fixture
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def recipe(**table):
    known = models.setting_names(table["model"])
    sizes = {"hidden_size": 16, "n": 9, "encoder_layers": 1, "feed_forward": 8}
    sizes = {key: sizes[key] for key in sizes if key in known}
    sizes |= {
        "n": "9",
        "task": "tsp",
        "order": "lexicographic",
        "steps": 2,
        "valid_every": 1,
        "valid_batches": 1,
    }
    return Recipe.from_table(sizes | {"batch_size": 4} | table)


# The losses of costs read no network.
@pytest.mark.parametrize(
    ("model", "learning"),
    [*((name, "answers") for name in models.names()), ("ptr-net", "self-labelling")],
)
def test_models_can_be_trained_with_default_dtype_float64(double, tmp_path, model, learning):
    saved = train(recipe(model=model, learning=learning), tmp_path / "run")
    assert {weight.dtype for weight in saved.model.parameters()} == {torch.float32}
    solver = ptrnet.Solver(saved.model, saved.task)
    again = ptrnet.Solver(*model_folder.load(tmp_path / "run"))
    assert np.array_equal(solver.solve(POINTS[0]), again.solve(POINTS[0]))


def answers():
    solvers = {name: ptrnet.load(name) for name in weights.names() if "sort" not in name}
    return {
        name: [a.tolist() for a in solver.solve(questions(solver))]
        for name, solver in solvers.items()
    }


def questions(solver):
    """Return POINTS, or instances of a task that has more numbers for each element."""
    if solver.task.facts.num_features > 2:
        return list(solver.task.sample(np.random.default_rng(1), 3, 9))
    return POINTS


def test_shipped_models_answer_the_same_with_default_dtype_float64(request):
    expected = answers()
    request.getfixturevalue("double")
    assert answers() == expected
    warm_up({"hull": ptrnet.load("hull")})


@pytest.mark.parametrize("name", ["hull-ptr-net", "hull"])
def test_models_can_be_exported_with_default_dtype_float64(double, tmp_path, name):
    export_onnx(ptrnet.load(name), tmp_path / "out", instances=3)
