"""Precisions: trainings that have not run on a GPU do not use bfloat16 there."""

import pytest

from ptrnet import models
from ptrnet.errors import InputError
from ptrnet.training import hardware
from ptrnet.training.recipe import Recipe


@pytest.fixture
def newer_gpu(monkeypatch):
    monkeypatch.setattr(hardware, "_ampere", lambda: True)


def recipe(**table):
    return Recipe.from_table({"task": "sort", "n": "5", **table})


def test_auto_is_bfloat16_on_a_gpu_for_the_ptr_net_alone(newer_gpu):
    chosen = {name: hardware.precision_of(recipe(model=name), "cuda") for name in models.names()}
    assert {name for name, precision in chosen.items() if precision != "float32"} == {"ptr-net"}
    assert chosen["ptr-net"] == "bfloat16"


def test_auto_is_float32_on_a_gpu_for_a_training_from_costs(newer_gpu):
    learned = recipe(task="tsp", model="ptr-net", learning="reinforce")
    assert hardware.precision_of(learned, "cuda") == "float32"


@pytest.mark.parametrize("name", ["bfloat16", "tf32", "float32"])
def test_a_named_precision_is_kept(newer_gpu, name):
    asked = recipe(model="transformer-ptr-net", precision=name)
    assert hardware.precision_of(asked, "cuda") == name


def test_tf32_is_refused_on_a_cpu():
    with pytest.raises(InputError, match="tf32"):
        hardware.precision_of(recipe(precision="tf32"), "cpu")
