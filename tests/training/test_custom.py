"""Trainings on own examples, from a file or from memory, and the models' answers."""

import csv
import json

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet.cli import run
from ptrnet.errors import InputError
from ptrnet.model_folder import load
from ptrnet.solver import Solver
from ptrnet.training import checkpoint
from ptrnet.training.own_data import infer_recipe
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train

TINY = {"hidden_size": 16, "batch_size": 16, "valid_every": 10, "seed": 3, "ensemble": 1}


def rows(count, d=3, seed=0, sizes=(2, 5)):
    """Return elements ordered by the sum of two features, which have very different ranges."""
    rng = np.random.default_rng(seed)
    scale, middle = np.array([1, 1000, 1e-3])[:d], np.array([0, 1e6, 5])[:d]
    for _ in range(count):
        features = rng.random((rng.integers(*sizes, endpoint=True), d))
        yield features * scale + middle, np.argsort(features[:, 0] + features[:, 1])


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.jsonl"
    lines = [{"inputs": i.tolist(), "outputs": o.tolist()} for i, o in rows(200)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_ptrnet_train_makes_a_model_from_a_file(tmp_path, mine, monkeypatch, capsys):
    def ptrnet_command(*words):
        assert run([str(word) for word in words]) == 0
        return capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    options = ["--steps", "30", "--hidden-size", "16", "--batch-size", "16", "--valid-every", "10"]
    out, err = ptrnet_command("train", "--data", mine, "--output", "m", *options)
    assert out == "m\n"
    assert "200 examples of 2 to 5 elements of 3 features; answers of 2 to 5 indices" in err
    assert "taken as permutation (guessed" in err
    card = (tmp_path / "m" / "README.md").read_text()
    assert "orders of all elements" in card and "Measured on 100 examples" in card
    assert "set-ptr-net of 16 units and 1 layer, dropout 0.3, 30 steps of 16 examples" in card
    assert "| kendall_tau |" in card
    out, _ = ptrnet_command("evaluate", "--model", "m", mine, "--json")
    metrics = json.loads(out)["metrics"]
    assert set(metrics) == {"accuracy", "in_place", "kendall_tau", "log_likelihood"}
    assert all(measure["count"] == 200 for measure in metrics.values())

    (tmp_path / "new.csv").write_text("name,a,b,c\nx,.5,1000500,5\ny,.1,1000100,5\n")
    ptrnet_command("solve", "--model", "m", "new.csv", "--plot", "a.png")
    assert (tmp_path / "a.png").exists()
    out, _ = ptrnet_command("solve", "--model", "m", mine)
    answers = [json.loads(line)["outputs"] for line in out.splitlines()]
    assert all(sorted(a) == list(range(len(a))) for a in answers) and len(answers) == 200


def test_features_of_any_scale_are_learned():
    options = {"hidden_size": 32, "steps": 100, "learning_rate": 0.01, "valid_every": 50}
    model = ptrnet.fit(rows(600), "permutation", ensemble=1, **options)
    assert model.task.kind == "permutation"
    new = [*rows(300, seed=1)]
    answers = model.solve([i for i, _ in new])
    right = [a.tolist() == o.tolist() for a, (_, o) in zip(answers, new, strict=True)]
    assert sum(right) / 300 > 0.8  # by chance 0.19


def test_empty_sets_and_repeated_elements_are_learned(capsys):
    rng = np.random.default_rng(0)
    options = {"hidden_size": 32, "steps": 60, "learning_rate": 0.01, "ensemble": 1}
    small = [(x, np.flatnonzero(x > 0.6)) for x in rng.random((500, 3))]
    model = ptrnet.fit(small, **options)
    assert model.task.kind == "set"
    new = rng.random((300, 3))
    answers = model.solve([*new])
    right = [
        sorted(a) == np.flatnonzero(x > 0.6).tolist() for a, x in zip(answers, new, strict=True)
    ]
    assert sum(right) / 300 > 0.8  # 0.22 if the answer were always empty
    assert any(len(answer) == 0 for answer in answers)

    def twice(x):
        return np.argsort(x)[[0, 1, 1]]

    free = [(x, twice(x)) for x in rng.random((500, 3))]
    model = ptrnet.fit(free, **options)
    assert "taken as sequence (guessed, because answers repeat indices" in capsys.readouterr().err
    assert model.task.kind == "sequence"
    new = rng.random((200, 3))
    right = [a.tolist() == twice(x).tolist() for a, x in zip(model.solve([*new]), new, strict=True)]
    assert sum(right) / 200 > 0.6  # 1/6 by chance, among answers of this form


def test_each_network_is_measured_on_examples_that_it_did_not_learn(tmp_path):
    """Random orders can only be memorised; the other network of the ensemble does so."""
    rng = np.random.default_rng(0)
    noise = [(rng.random((3, 3)), rng.permutation(3)) for _ in range(60)]
    options = {**TINY, "hidden_size": 64, "learning_rate": 0.01, "dropout": 0.0, "patience": 0}
    model = ptrnet.fit(
        noise,
        "permutation",
        output=tmp_path / "m",
        steps=120,
        valid_share=0.4,
        **{**options, "ensemble": 2},
    )
    (score,) = (s for s in model.trained["scores"] if s["metric"] == "accuracy")
    assert score["count"] == 48 and score["value"] < 0.4  # by chance 0.17
    networks = [Solver(network, model.task) for network in model.model.networks()]
    learned = [np.mean([(solver.solve(x) == y).all() for x, y in noise]) for solver in networks]
    assert all(
        0.5 < share < 0.9 for share in learned
    )  # each knows the three fifths that it learned
    card = (tmp_path / "m" / "README.md").read_text()
    assert "Measured on 48 examples" in card and "whole ensemble should be better" in card


def test_early_stopping_keeps_the_best_weights(tmp_path):
    """Random answers can only be memorised, so the validation loss soon rises."""
    rng = np.random.default_rng(0)
    noise = [(rng.random((5, 1)), rng.permutation(5)) for _ in range(60)]
    options = {**TINY, "hidden_size": 64, "learning_rate": 0.01, "schedule": "constant"}
    model = ptrnet.fit(noise, output=tmp_path / "m", steps=2000, patience=3, **options)
    (log,) = (tmp_path / "m" / "logs" / "csv").glob("*/metrics.csv")
    with log.open() as file:
        seen = [
            (int(r["step"]) + 1, float(r["valid_loss"]))
            for r in csv.DictReader(file)
            if r["valid_loss"]
        ]
    best = min(seen, key=lambda row: row[1])
    assert seen[-1][0] < 2000
    assert seen[-1][0] == best[0] + 3 * 10
    assert model.trained["steps"] in range(best[0], seen[-1][0] + 1, 10)
    recipe = Recipe.read(tmp_path / "m" / "recipe.toml")
    again = train(recipe, tmp_path / "m", resume=True)  # ended: trains nothing
    for a, b in zip(
        model.model.state_dict().values(), again.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)
    assert again.trained == model.trained


def test_a_run_that_was_killed_keeps_the_best_weights(tmp_path, mine, monkeypatch):
    """The run is killed just after each checkpoint, with and without a validation at that step."""
    options = {**TINY, "steps": 20, "patience": 4, "checkpoint_every": 5}
    recipe, _, _ = infer_recipe(str(mine), options)
    straight = train(recipe, tmp_path / "straight")
    save = checkpoint.write

    class Killed(Exception):
        pass

    def save_and_die(*arguments):
        save(*arguments)
        raise Killed

    monkeypatch.setattr(checkpoint, "write", save_and_die)
    kills = 0
    while not (tmp_path / "killed" / "README.md").exists():
        try:
            train(recipe, tmp_path / "killed", resume=kills > 0)
        except Killed:
            kills += 1
            if kills > 2:  # after a validation: the folder has the best model so far
                assert ptrnet.load(str(tmp_path / "killed")).trained["steps"] >= 10
        assert kills < 20
    assert kills >= 4
    saved = load(tmp_path / "killed")
    assert saved.trained == straight.trained
    for a, b in zip(
        saved.model.state_dict().values(), straight.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("examples", "kind", "complaint"),
    [
        ([], None, "examples: expected at least one, got none"),
        (
            [([[1.0]],)],
            None,
            r"example 0: expected a pair of inputs \(n, d\) and outputs \(m,\), got tuple",
        ),
        ([([[1.0]], [0]), 5], None, r"example 1: expected a pair of .* got int"),
        (
            [([[1.0]], [0]), ([[1.0, 2.0]], [0])],
            None,
            r"example 1: inputs: expected shape \(n, 1\)",
        ),
        ([([[1.0]], [0.0])], None, "example 0: outputs: expected a list of whole numbers"),
        ([([[1.0]], [[0], [0, 0]])], None, "example 0: outputs: expected a list of whole numbers"),
        ([{"inputs": [[1.0]], "outputs": [0]}], None, "example 0: expected a pair .* got dict"),
        ([{"trip": 1, "price": 2.5}], None, "^fit: expected set_id, the column"),
        ([([[1j]], [0])], None, "example 0: inputs: expected elements of 1 number each"),
        ([([[1.0]], [True])], None, "example 0: outputs: expected a list of whole numbers"),
        ([([[1.0]], [1])], None, "example 0: outputs: index 1: expected 0 to 0, got 1"),
        ([([[1.0], [2.0]], [0])], "permutation", "example 0: outputs: answer: expected all 2"),
        ([([[1.0]], [0])], "order", "unknown kind 'order'"),
        ([([[float("nan")]], [0])], None, "example 0: inputs: element 1, number 1: expected a fin"),
        ([([[1.0], [2.0, 3.0]], [0])], None, "example 0: "),
        ([([[1.0]], [0])], None, "1 example, all held out for validation; set valid_share to 0"),
    ],
)
def test_invalid_examples_are_refused(tmp_path, examples, kind, complaint):
    with pytest.raises(InputError, match=complaint):
        ptrnet.fit(examples, kind, output=tmp_path / "m", steps=1)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"stepz": 3}, "unknown recipe key 'stepz'; did you mean 'steps'"),
        ({"steps": "x"}, "steps: expected a whole number of 1 or more, got 'x'"),
        ({"steps": 0}, "steps: expected a whole number of 1 or more, got 0"),
        ({"task": "hull"}, "fit: task cannot be given, because it follows from the examples"),
        ({"data": "x.jsonl"}, "fit: data cannot be given, because it follows from the examples"),
        ({"devices": 2}, "fit: trains in one process"),
        ({"labeller": "qhull"}, "task custom has no labeller"),
        ({"center": (10**400,)}, "fit: center cannot be given"),
    ],
)
def test_invalid_fields_are_refused_before_a_folder_is_made(tmp_path, fields, complaint):
    with pytest.raises(InputError, match=complaint):
        ptrnet.fit(rows(20), output=tmp_path / "m", **fields)
    assert not (tmp_path / "m").exists()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=complaint):
        ptrnet.fit(rows(20), output=tmp_path, **fields)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["README.md", "data.txt", "examples", "model.safetensors"])
def test_existing_files_are_not_overwritten(tmp_path, mine, name):
    (tmp_path / name).write_text("precious")
    with pytest.raises(InputError, match=f"already holds a file {name}"):
        ptrnet.fit(rows(20), output=tmp_path, steps=2, **TINY)
    if name != "examples":
        with pytest.raises(InputError, match=f"already holds a file {name}"):
            train(infer_recipe(str(mine), {**TINY, "steps": 2})[0], tmp_path)
    assert (tmp_path / name).read_text() == "precious"
    assert not (tmp_path / "recipe.toml").exists()


def test_all_examples_can_be_used_for_training(tmp_path):
    """Then a single example is enough, and the last weights become the model."""
    model = ptrnet.fit([([[1.0], [2.0]], [1])], valid_share=0.0, steps=3, hidden_size=4)
    assert model.trained["steps"] == 3
    short = ptrnet.fit(rows(20), output=tmp_path / "m", steps=3, hidden_size=4)
    assert short.trained["steps"] == 3  # one validation, at the end
    assert "Measured on 10 examples" in (tmp_path / "m" / "README.md").read_text()


def test_a_file_that_contradicts_its_recipe_is_refused(tmp_path, mine):
    recipe, _, _ = infer_recipe(str(mine), {**TINY, "steps": 2})
    other = tmp_path / "other.jsonl"
    for line, complaint in (
        ('{"inputs": [[1, 2, 3]], "outputs": [0, 0]}', "other.jsonl:1: .*expected all 1 indices"),
        (
            '{"inputs": [[1, 2]], "outputs": [0]}',
            "other.jsonl: expected elements of 3",
        ),
    ):
        other.write_text(line + "\n")
        infer_recipe(str(other), {"constraint": "free"})  # writes the arrays of the examples
        with pytest.raises(InputError, match=complaint):
            train(Recipe.from_table({**recipe.table(), "data": str(other)}), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_folder_with_a_run_is_not_overwritten(tmp_path):
    examples = [*rows(20)]
    ptrnet.fit(examples, output=tmp_path / "m", steps=2, **TINY)
    before = (tmp_path / "m" / "examples" / "inputs.npy").read_bytes()
    with pytest.raises(InputError, match="already holds a run"):
        ptrnet.fit(examples[:9], output=tmp_path / "m", steps=2, **TINY)
    assert (tmp_path / "m" / "examples" / "inputs.npy").read_bytes() == before
