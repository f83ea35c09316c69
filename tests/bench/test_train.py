"""The training step is timed as a whole, and its description names the code that runs."""

from importlib import import_module

import pytest
import torch

from ptrnet import bench, models
from ptrnet.bench import train
from ptrnet.kernels import packed
from ptrnet.training.recipe import Recipe

SMALL = {"n": 6, "batch_size": 4, "hidden_size": 8}


def test_training_step_includes_waiting_for_data(quick):
    (row,) = train.rows(model="ptr-net", **SMALL, precision="float32", repeats=3)
    table = row.table()
    assert table["step_ms"] == table["median_ms"] > table["waiting_ms"] > 0
    assert table["rate"] == pytest.approx(4000 / table["step_ms"])
    assert table["runs"] == 3 and table["precision"] == "float32"
    assert table["other"]["name"] == "naive float32"


@pytest.mark.parametrize("model", models.names())
def test_every_model_has_a_roofline_of_its_products(quick, model):
    (row,) = train.rows(model=model, **SMALL, repeats=2)
    table = row.table()
    assert table["model"] == model and table["step_ms"] == table["median_ms"] > 0
    assert table["roofline_ms"] > 0 and table["roofline_share"] > 0
    assert (table["other"] is not None) == (model == "ptr-net")
    assert (table["task"], table.get("cuts")) == (
        ("tsp", 1) if model == "remaining-ptr-net" else ("hull", None)
    )


def test_default_recipes_are_those_of_the_shipped_architectures(quick, monkeypatch):
    monkeypatch.setattr(train, "measure", lambda measurement, cases: iter(cases))
    recipes = [case.recipe for case in bench.plan("train", {})["train"]]
    assert [(r.model, r.task.name, r.network.hidden_size) for r in recipes] == [
        ("ptr-net", "hull", 256),
        ("ptr-net", "hull", 512),
        ("transformer-ptr-net", "hull", 256),
        ("remaining-ptr-net", "tsp", 256),
    ]
    assert {(str(r.n), r.batch_size, r.optimizer) for r in recipes} == {("50", 128, "adamw")}
    # Elements are sorted if answers depend on indices that the model does not see.
    recipes = [case.recipe for case in bench.plan("train", {"task": "delaunay"})["train"]]
    assert [r.task.order for r in recipes] == ["given"] * 2 + ["lexicographic"] * 2


def test_code_paths_name_the_instructions_of_the_processor(monkeypatch):
    def products(dtype, units=256, restricted=False, instruction=""):
        packed.can_multiply.cache_clear()
        monkeypatch.setattr(packed, "get_host_cpu_features", lambda: instruction)
        monkeypatch.setattr(train, "get_host_cpu_features", lambda: instruction)
        monkeypatch.setattr(packed, "is_restricted", lambda: restricted)
        return train._products(units, 0, dtype)

    half, single = torch.bfloat16, torch.float32
    assert "has AMX tiles" in products(half, instruction="+avx512bf16,+amx-bf16")
    assert "as the processor has avx512_bf16" in products(half, instruction="+avx512bf16")
    assert "as the processor has avx512f" in products(single, instruction="+avx512f")
    assert "PyTorch's, as the processor has no avx512_bf16" in products(half)
    assert "PyTorch's, as the processor has no avx512f" in products(single)
    assert "do not fill whole panels" in products(single, 6, instruction="+avx512f")
    assert "another processor" in products(single, restricted=True, instruction="+avx512f")
    packed.can_multiply.cache_clear()
    for model in models.names():
        sizes = {"n": "6"} if "n" in models.setting_names(model) else {}
        paths = train.code_paths(Recipe.from_table({"task": "hull", "model": model, **sizes}))
        assert ("attention" in paths) != bool({"layers", "recurrent products"} & paths.keys())
        assert "large products" in paths


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_code_paths_agree_with_the_lstm_layer_that_runs(precision, monkeypatch):
    """In float32 compiled layers are used only without gradients."""
    called = []
    package = import_module("ptrnet.kernels.lstm")
    for module, name in (
        (import_module("ptrnet.kernels.lstm.cpu"), "lstm"),
        (package, "torch_lstm"),
    ):
        layer = getattr(module, name)

        def counted(*args, name=name, layer=layer):
            called.append(name)
            return layer(*args)

        monkeypatch.setattr(module, name, counted)
    model = models.build("ptr-net", 2, 1, hidden_size=8)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        model.log_probs(torch.rand(64, 5, 2), None, torch.zeros(64, 3, dtype=torch.int64))
    recipe = Recipe.from_table({"task": "hull", "precision": precision, "hidden_size": 8})
    described = "torch_lstm" if "layers" in train.code_paths(recipe) else "lstm"
    assert set(called) == {described}
