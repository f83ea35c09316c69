"""Trainings on random cuts of answers learn, and can be resumed."""

import csv

import pytest
import torch

from ptrnet import InputError
from ptrnet.data.streams import BatchStream
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train

TABLE = {
    "task": "tsp",
    "model": "remaining-ptr-net",
    "n": "5,6",
    "cuts": 4,
    "batch_size": 16,
    "hidden_size": 16,
    "encoder_layers": 1,
    "learning_rate": 1e-2,
    "steps": 80,
    "checkpoint_every": 50,
    "valid_every": 40,
    "valid_batches": 4,
    "precision": "float32",
}


def test_a_stopped_run_ends_with_the_same_bits(tmp_path, monkeypatch):
    recipe = Recipe.from_table(TABLE)
    straight = train(recipe, tmp_path / "straight").model
    batch = BatchStream.batch

    def failing(self, k, **process):
        if k == 60:
            raise OSError("stopped")
        return batch(self, k, **process)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="stopped"):
        patch.setattr(BatchStream, "batch", failing)
        train(recipe, tmp_path / "stopped")
    resumed = train(recipe, tmp_path / "stopped", resume=True).model
    for a, b in zip(straight.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)
    (logs,) = (tmp_path / "straight" / "logs" / "csv").rglob("metrics.csv")
    with logs.open() as file:
        rows = [row["valid_accuracy"] for row in csv.DictReader(file)]
    assert max(map(float, filter(None, rows))) > 0.6  # a guess is right in about 0.3


def test_the_recipe_knows_whether_elements_repeat():
    for task, repeats in (("tsp", False), ("hull", False), ("delaunay", True)):
        recipe = Recipe.from_table({**TABLE, "task": task, "order": "lexicographic"})
        assert recipe.network.repeats is repeats and recipe.table()["repeats"] is repeats


def test_repeats_are_not_turned_off_where_answers_have_them():
    with pytest.raises(InputError, match="answers of task hull may repeat elements"):
        Recipe.from_table({**TABLE, "task": "hull", "closed": True, "repeats": False})


def test_only_cuts_of_tours_need_no_indices():
    with pytest.raises(
        InputError, match=r"does not see: .* \(order lexicographic\), or .* \(cuts\)"
    ):
        Recipe.from_table({**TABLE, "cuts": 0})
    with pytest.raises(InputError, match="depend on indices"):
        Recipe.from_table({**TABLE, "task": "delaunay"})
    assert Recipe.from_table(TABLE).data.cuts == 4
