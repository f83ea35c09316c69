"""Recipes, runs and models of a time when task `custom` was `own` and `train_feed` an option."""

import json

import numpy as np
import pytest
import torch

from ptrnet.cli import run
from ptrnet.data.streams.file_stream import FileStream
from ptrnet.errors import InputError
from ptrnet.pretrained.model_folder import load
from ptrnet.training.infer_recipe import infer_recipe
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train

FORMER = """task = "own"
data = "f.jsonl"
valid_batches = 0
center = [0.5]
spread = [0.3]
model = "soft-ptr-net"
"""


def rename(path, *pairs):
    """Puts the former names into a file, each of which must stand there by its present one."""
    text = path.read_text()
    for present, former in pairs:
        assert text.count(present) == 1, (path, present)
        text = text.replace(present, former)
    path.write_text(text)


@pytest.fixture
def data(tmp_path):
    path, rng = tmp_path / "mine.jsonl", np.random.default_rng(0)
    rows = [{"inputs": x.tolist(), "outputs": np.argsort(x).tolist()} for x in rng.random((40, 3))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(("value", "teacher_forcing"), [("own", False), ("truth", True)])
def test_a_recipe(tmp_path, value, teacher_forcing):
    path = tmp_path / "recipe.toml"
    path.write_text(f'{FORMER}train_feed = "{value}"\n')
    recipe = Recipe.read(path)
    assert recipe.task == "custom" and recipe.settings == {"center": [0.5], "spread": [0.3]}
    assert recipe.model_settings == {"teacher_forcing": teacher_forcing}
    assert 'task = "custom"\n' in recipe.toml()
    assert f"teacher_forcing = {teacher_forcing}\n".lower() in recipe.toml()
    assert "train_feed" not in recipe.toml()


def test_options_overrule_a_recipe_by_either_name(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(FORMER + 'train_feed = "own"\n')
    assert Recipe.read(path, teacher_forcing=True).model_settings == {"teacher_forcing": True}
    path.write_text(FORMER + "teacher_forcing = true\n")
    assert Recipe.read(path, train_feed="own").model_settings == {"teacher_forcing": False}


@pytest.mark.parametrize("value", ['"none"', "true", "[1]"])
def test_a_value_that_was_never_known(tmp_path, value):
    path = tmp_path / "recipe.toml"
    path.write_text(f"{FORMER}train_feed = {value}\n")
    with pytest.raises(InputError, match=r"unknown setting train_feed .*\(known: own, truth\)"):
        Recipe.read(path)


def test_a_run_resumes_to_the_same_weights(tmp_path, data, monkeypatch, capsys):
    options = {"steps": 12, "hidden_size": 8, "batch_size": 8, "checkpoint_every": 5}
    options |= {"model": "soft-ptr-net", "train_feed": "own"}
    recipe, _ = infer_recipe(str(data), options)
    straight = train(recipe, tmp_path / "straight").model.state_dict()
    make_batch, folder = FileStream.batch, tmp_path / "stopped"

    def stopping(stream, k, **part):
        if k == 8:
            raise InterruptedError
        return make_batch(stream, k, **part)

    with monkeypatch.context() as patch:
        patch.setattr(FileStream, "batch", stopping)
        with pytest.raises(InterruptedError):
            train(recipe, folder)
    rename(
        folder / "recipe.toml",
        ('task = "custom"', 'task = "own"'),
        ("teacher_forcing = false", 'train_feed = "own"'),
    )
    stat = data.stat()  # files were known by size and time
    (folder / "data.txt").write_text(f"own-v1-{stat.st_size}-{stat.st_mtime_ns}\n")
    (arrays,) = data.with_name("mine.jsonl.packed").iterdir()
    arrays.rename(arrays.with_name(arrays.name.replace("custom-", "own-")))

    assert run(["train", "--output", str(folder), "--resume"]) == 0
    assert capsys.readouterr().out == f"{folder}\n"
    weights = load(folder).model.state_dict()
    assert all(torch.equal(straight[name], weights[name]) for name in straight)
    data.write_text(data.read_text() * 2)
    with pytest.raises(InputError, match="has changed since the run began"):
        train(Recipe.read(folder / "recipe.toml"), folder, resume=True)


def test_a_models_folder(tmp_path, data):
    options = {"steps": 2, "hidden_size": 8, "batch_size": 8, "model": "hard-ptr-net"}
    saved = train(infer_recipe(str(data), options)[0], tmp_path / "model")
    rename(
        tmp_path / "model" / "config.json",
        ('"task": "custom"', '"task": "own"'),
        ('"teacher_forcing": true', '"train_feed": "truth"'),
        ('"config_sha256"', '"former"'),
    )
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    del config["former"]  # a checksum that former versions did not write
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    loaded = load(tmp_path / "model")
    assert loaded.task == saved.task and loaded.trained == saved.trained
    assert loaded.model.settings() == saved.model.settings()
    assert loaded.model.settings()["teacher_forcing"] is True
    assert run(["evaluate", "--model", str(tmp_path / "model"), str(data)]) == 0
