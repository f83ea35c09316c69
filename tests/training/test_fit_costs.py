"""Trainings from costs: from Python and from the command line."""

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet.errors import InputError
from ptrnet.training.recipe import Recipe

SMALL = {"hidden_size": 16, "batch_size": 16, "learning_rate": 1e-2, "precision": "float32"}


def inversions(inputs, outputs):
    """Count the pairs in the wrong order: 0 for a sorted list."""
    values = inputs[outputs, 0]
    return float((values[:, None] > values[None])[np.triu_indices(len(values), 1)].sum())


def numbers(count=200, n=5):
    return list(np.random.default_rng(5).random((count, n, 1)) * 100 - 300)


@pytest.mark.parametrize(
    "recipe",
    [
        {"learning": "self-labelling"},
        {"learning": "reinforce"},
        {"learning": "reinforce", "baseline": "greedy"},
    ],
    ids=str,
)
def test_sorting_is_learned_from_the_number_of_inversions(recipe):
    """Random orders of 4 numbers have 3 inversions on average.

    A beam ranks by log-probabilities of the model without the constraint: those learn, too.
    """
    recipe = {**SMALL, "hidden_size": 32, "learning_rate": 0.03, "samples": 8, **recipe}
    model = ptrnet.fit(numbers(n=4), "permutation", cost=inversions, steps=50, **recipe)
    fresh = list(np.random.default_rng(6).random((100, 4, 1)) * 100 - 300)
    for decoder in (ptrnet.Greedy(), ptrnet.Beam(4)):
        answers = model.solve(fresh, decoder)
        assert np.mean([inversions(x, y) for x, y in zip(fresh, answers, strict=True)]) < 1


def test_a_stopped_training_reaches_the_same_weights(tmp_path):
    def fit(cost, **options):
        return ptrnet.fit(
            numbers(40), "permutation", cost=cost, steps=12, samples=4,
            checkpoint_every=4, valid_every=6, **options, **SMALL,
        )  # fmt: skip

    calls = 0

    def stopping(inputs, outputs):
        nonlocal calls
        calls += 1
        if calls > 16 * 4 * 9:
            raise KeyboardInterrupt
        return inversions(inputs, outputs)

    expected = fit(inversions).model.state_dict()
    with pytest.raises(KeyboardInterrupt):
        fit(stopping, output=tmp_path / "run")
    assert ptrnet.load(tmp_path / "run").task.kind == "permutation"  # the best model so far
    resumed = fit(inversions, output=tmp_path / "run", resume=True).model.state_dict()
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)
    assert ptrnet.load(tmp_path / "run").task.name == "custom"


def test_other_instances_do_not_resume_a_run(tmp_path):
    options = {"cost": inversions, "steps": 2, "output": tmp_path / "run", **SMALL}
    sizes = [[[0.0]] * 3, [[1.0]] * 3, [[0.0]] * 4, [[1.0]] * 4]  # orders have the same mean
    ptrnet.fit(sizes, "permutation", **options)
    with pytest.raises(InputError, match="instances: has changed since the run began"):
        ptrnet.fit(sizes[::-1], "permutation", resume=True, **options)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"constraint": None}, "fit: with a cost, kind is one of permutation, subset"),
        ({"constraint": "order"}, "unknown constraint 'order'"),
        ({"examples": []}, "instances: expected at least one, got none"),
        ({"examples": [[[1.0]], [["a"]]]}, "instance 1: expected elements of 1 number each"),
        ({"resume": True}, "resume needs output"),
        ({"augment": True}, "augment is for learning from answers"),
        ({"task": "tsp"}, "task cannot be given, because it follows from the examples"),
        ({"samples": 1}, "samples: expected a whole number of 2 or more, got 1"),
        ({"cost": lambda x, y: float("inf")}, "cost: expected a finite number, got inf"),
        ({"cost": lambda x, y: "dear"}, "cost: expected a number, got 'dear'"),
        ({"cost": lambda x, y: 1 if y[0] else None}, "cost: expected a number, got 'None'"),
        ({"cost": 3}, "fit: expected a function as cost, got 3"),
        ({"examples": [([[1.0, 2.0]], [0])]}, "instance 0: with a cost, expected inputs alone"),
        ({"cost": None, "resume": True}, "resume needs a cost"),
        ({"cost": None, "learning": "reinforce"}, "fit: learning 'reinforce' needs a cost"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path, arguments, complaint):
    options = {"examples": numbers(20), "constraint": "permutation", "cost": inversions, "steps": 2}
    with pytest.raises(InputError, match=complaint):
        ptrnet.fit(**{**options, **SMALL, **arguments})


def test_default_steps_are_a_multiple_of_the_cycles(tmp_path, monkeypatch):
    monkeypatch.setattr("ptrnet.training.fit_costs.STEPS", 2)
    options = {"cost": inversions, "output": tmp_path / "run", **SMALL}
    ptrnet.fit(numbers(20), "permutation", cycles=np.int64(3), **options)
    assert Recipe.read(tmp_path / "run" / "recipe.toml").run.steps == 3


def test_invalid_recipes_for_costs_are_refused():
    table = {"task": "tsp", "learning": "self-labelling", "n": "5", "hidden_size": 8}
    assert Recipe.from_table({**table, "model": "transformer-ptr-net"}).objective.samples == 16
    for change, complaint in (
        ({"task": "hull"}, "task hull has no cost"),
        ({"labeller": "exact"}, "labeller is for learning from answers"),
        ({"cuts": 2}, "cuts is for learning from answers"),
        ({"loss": "gains"}, "loss is for learning from answers"),
    ):
        with pytest.raises(InputError, match=complaint):
            Recipe.from_table({**table, **change})


def test_ptrnet_train_learns_tours_from_costs(tmp_path, capsys):
    from ptrnet.cli import run

    command = "train tsp --learning self-labelling --n 5-6 --steps 3 --hidden-size 8 --batch-size 8"
    assert run([*command.split(), "--valid-every", "2", "--output", str(tmp_path / "t")]) == 0
    assert "cost " in capsys.readouterr().err
    points = np.random.default_rng(0).random((6, 2))
    assert sorted(ptrnet.load(tmp_path / "t").solve(points)) == list(range(6))
