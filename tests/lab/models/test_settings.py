"""The settings of the lab's models, alone and in recipes."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from ptrnet import fit, models
from ptrnet.errors import InputError, ModelError
from ptrnet.training.recipe import Data, Recipe

ONE_N = ["seq2seq", "seq2seq-attention"]


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("soft-ptr-net", {"teacher_forcin": False}, "did you mean 'teacher_forcing'"),
        ("multi-ptr-net", {"threshold": 0.0}, "expected a number from 1e-06 to 1, got 0.0"),
        (
            "multi-ptr-net",
            {"threshold": float("nan")},
            "a finite number from 1e-06 to 1, got nan",
        ),
        ("seq2seq", {"n": 5, "score": "dot"}, "unknown setting of model seq2seq 'score'"),
        ("seq2seq", {}, "setting n of model seq2seq is missing"),
        (
            "seq2seq-attention",
            {"n": 10**9},
            "n: expected .* from 1 to 65536, got 1000000000",
        ),
    ],
)
def test_bad_settings_are_refused_in_one_line(name, settings, words):
    with pytest.raises(InputError, match=words) as error:
        models.build(name, 2, 1, **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ONE_N)
def test_error_about_another_size_names_both(small, name):
    solver = small("hull", name)
    other = torch.rand(9, 2).numpy()
    with pytest.raises(ModelError, match=r"n = 6 answers .* got one of 9") as error:
        solver.solve([torch.rand(6, 2).numpy(), other])
    assert "\n" not in str(error.value)
    assert len(solver.solve(other[:6])) >= 1
    padded = torch.rand(2, 8, 2)
    log_probs = solver.model.log_probs(padded, torch.tensor([6, 6]), torch.tensor([[3, 0], [6, 0]]))
    alone = solver.model.log_probs(padded[:, :6], None, torch.tensor([[3, 0], [6, 0]]))
    assert torch.equal(log_probs, alone)


def test_a_setting_of_a_plug_in_is_known_before_the_plug_in_is_used():
    code = (
        "from ptrnet.training.recipe import Recipe\n"
        "try: Recipe.from_table(task='hull', threshold=0.3)\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("unknown setting of model ptr-net 'threshold'"), done.stderr


def test_a_recipe_keeps_the_settings(tmp_path):
    table = {"task": "sort", "model": "multi-ptr-net", "threshold": 0.3, "teacher_forcing": False}
    recipe = Recipe.from_table({**table, "cell": "gru", "layers": 2, "hidden_size": 8})
    (tmp_path / "r.toml").write_text(recipe.toml())
    again = Recipe.read(tmp_path / "r.toml")
    assert again.table() == recipe.table() and again.table().items() >= table.items()


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"model": "seq2seq"}, "model seq2seq needs a single n, such as 5; got 5-50"),
        ({"model": "seq2seq-attention", "n": "5,7"}, "needs a single n, such as 5; got 5,7"),
        ({"threshold": 0.3}, "unknown setting of model ptr-net 'threshold'"),
    ],
)
def test_settings_that_the_model_lacks_are_refused(table, complaint):
    with pytest.raises(InputError, match=complaint):
        Recipe.from_table({"task": "hull", **table})


def test_a_model_of_fixed_size_takes_n_from_the_recipe():
    recipe = Recipe.from_table({"task": "sort", "model": "seq2seq", "n": "7", "hidden_size": 8})
    assert (recipe.network.hidden_size, recipe.network.n) == (8, 7)
    with pytest.raises(InputError, match="the network only works for n = 7, got 8"):
        replace(recipe, data=Data(n="8"))


def test_a_model_of_one_n_cannot_learn_own_examples_of_several_sizes(tmp_path):
    examples = [(torch.rand(3 + k % 2, 1).numpy(), [k % 3]) for k in range(20)]
    with pytest.raises(InputError, match="model seq2seq needs a single n"):
        fit(examples, output=tmp_path / "m", model="seq2seq")
    assert not (tmp_path / "m").exists()
