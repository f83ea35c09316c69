"""Trainings that start with another model's weights."""

import pytest
import torch

from ptrnet import weights
from ptrnet.errors import InputError
from ptrnet.model_folder import load
from ptrnet.training.recipe import Recipe
from ptrnet.training.reports import Hooks
from ptrnet.training.run import train

SMALL = {"n": "3", "steps": 4, "hidden_size": 8, "batch_size": 4, "valid_batches": 0}


def parameters(folder):
    return torch.cat([p.ravel() for p in load(folder).model.parameters()])


def test_training_begins_with_the_given_weights(tmp_path):
    train(Recipe.from_table(task="sort", **SMALL), tmp_path / "first")
    begun = Recipe.from_table(
        task="sort", **SMALL, weights=str(tmp_path / "first"), learning_rate=1e-9, seed=5
    )
    train(begun, tmp_path / "second")
    first, second = parameters(tmp_path / "first"), parameters(tmp_path / "second")
    torch.testing.assert_close(first, second, rtol=0, atol=1e-7)
    train(Recipe.from_table(task="sort", **SMALL, learning_rate=1e-9, seed=5), tmp_path / "fresh")
    assert (parameters(tmp_path / "fresh") - first).abs().max() > 1e-2


def test_a_resumed_training_does_not_load_the_given_weights_again(tmp_path):
    train(Recipe.from_table(task="sort", **SMALL), tmp_path / "first")
    recipe = Recipe.from_table(
        task="sort", **SMALL, weights=str(tmp_path / "first"), checkpoint_every=2
    )
    whole = train(recipe, tmp_path / "whole").model.state_dict()

    def stop(step, metrics):
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "stopped", hooks=Hooks((stop,)))
    (tmp_path / "first" / "model.safetensors").unlink()  # no longer needed
    resumed = train(recipe, tmp_path / "stopped", resume=True).model.state_dict()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 16}, "has hidden_size 8, the recipe has 16"),
        ({"model": "set-ptr-net"}, "has model ptr-net, the recipe has set-ptr-net"),
        ({"task": "hull"}, "has features 1, the recipe has 2"),
        ({"weights": "nothing"}, "unknown model 'nothing'"),
    ],
)
def test_weights_of_another_network_are_refused_before_a_folder_is_made(tmp_path, changes, message):
    train(Recipe.from_table(task="sort", **SMALL), tmp_path / "first")
    table = {"task": "sort", **SMALL, "weights": str(tmp_path / "first"), **changes}
    with pytest.raises(InputError, match=message):
        train(Recipe.from_table(table), tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_a_shipped_model_can_be_fine_tuned(tmp_path):
    table = {"task": "hull", "weights": "hull-ptr-net", "n": "5", "steps": 1, "batch_size": 2}
    saved = train(Recipe.from_table({**table, "valid_batches": 0}), tmp_path / "more")
    before = weights.load("hull-ptr-net").model.state_dict()
    after = saved.model.state_dict()
    assert all((before[name] - after[name]).abs().max() < 0.01 for name in before)
