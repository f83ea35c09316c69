"""The training step is timed as a whole, waiting for data included."""

from time import perf_counter, sleep

import pytest
import torch

from ptrnet import models
from ptrnet.data.batches import Batch
from ptrnet.training.recipe import Recipe
from ptrnet_lab import bench
from ptrnet_lab.bench import train

SMALL = {"n": 6, "batch_size": 4, "hidden_size": 8}


def test_training_step_includes_waiting_for_data():
    def slow_batches():
        batch = Batch(torch.rand(2, 3, 2), *[torch.ones(2, 1, dtype=torch.int64)] * 3)
        while True:
            sleep(0.02)
            yield batch

    trained_on = []
    step = train.TrainingStep(trained_on.append, slow_batches(), "cpu")
    start = perf_counter()
    for _ in range(3):
        step()
    assert len(trained_on) == 3 and step.batch.inputs.shape == (2, 3, 2)
    assert 20 <= step.waiting_ms <= 1000 * (perf_counter() - start) / 2


@pytest.mark.parametrize(("task", "labeller"), [("tsp", "a1"), ("hull", None)])
def test_fresh_tours_are_labelled_by_a_fast_algorithm(monkeypatch, task, labeller):
    used = []
    monkeypatch.setattr(
        train, "FreshStream", lambda *_, labeller, **__: used.append(labeller) or []
    )
    train.TrainingStep.on_fresh_examples(lambda recipe: None, Recipe.from_table(task=task))
    assert used == [labeller]


def test_ptr_net_is_compared_with_the_naive_one(quick):
    (row,) = train.rows(model="ptr-net", **SMALL, precision="float32", repeats=3)
    table = row.to_dict()
    assert table["step_ms"] == table["median_ms"] and table["waiting_ms"] > 0
    assert table["rate"] == pytest.approx(4000 / table["step_ms"])
    assert table["runs"] == 3 and table["precision"] == "float32"
    assert table["other"]["name"] == "naive float32"


@pytest.mark.parametrize("model", models.names())
def test_every_model_has_a_roofline_of_its_products(quick, model):
    (row,) = train.rows(model=model, **SMALL, repeats=2)
    table = row.to_dict()
    assert table["model"] == model and table["step_ms"] == table["median_ms"] > 0
    assert table["roofline_ms"] > 0 and table["roofline_share"] > 0
    assert (table["other"] is not None) == (model == "ptr-net")
    assert (table["task"], table.get("cuts")) == (
        ("tsp", 1) if model == "remaining-ptr-net" else ("hull", None)
    )


def test_default_recipes_are_those_of_the_shipped_architectures(quick, monkeypatch):
    recipe_for = train.recipe_for

    def planned(**options):
        recipes = []
        monkeypatch.setattr(
            train, "recipe_for", lambda *args: recipes.append(recipe_for(*args)) or recipes[-1]
        )
        bench.plan("train", options)
        return recipes

    recipes = planned()
    assert [(r.model, r.task.name, r.network.hidden_size) for r in recipes] == [
        ("ptr-net", "hull", 256),
        ("ptr-net", "hull", 512),
        ("transformer-ptr-net", "hull", 256),
        ("remaining-ptr-net", "tsp", 256),
    ]
    assert {(str(r.data.n), r.data.batch_size, r.optimiser.optimizer) for r in recipes} == {
        ("50", 128, "adamw")
    }
    # Elements are sorted if answers depend on indices that the model does not see.
    assert [r.task.order for r in planned(task="delaunay")] == ["given"] * 2 + ["lexicographic"] * 2
