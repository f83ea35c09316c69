"""Ensembles: probabilities are means of their members', in memory, on disk and in ONNX."""

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import Beam, models, tasks
from ptrnet.data.batches import batch_of
from ptrnet.solver import Solver
from ptrnet.training.losses import losses
from ptrnet.training.recipe import Recipe
from ptrnet.types import Dataset, Example

NAMES = ["set-ptr-net", "ptr-net", "transformer-ptr-net", "remaining-ptr-net"]


@pytest.fixture
def ensemble():
    def build(name, members=3):
        torch.manual_seed(4)
        task = tasks.get("custom", kind="subset", center=(0.5, 0.5), spread=(0.3, 0.3))
        network = models.build(name, 2, 1, hidden_size=8, ensemble=members).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(4)
        return Solver(network, task, {"n": "2-5"})

    return build


def pairs(seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.random((n, 2)), rng.permutation(n)[: n // 2]) for n in (2, 3, 5, 5)]


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_are_the_means_of_the_members(ensemble, name):
    solver = ensemble(name)
    batch = batch_of(Dataset.of(Example(*pair) for pair in pairs()), solver.task)
    members = solver.model.networks()
    assert len(members) == 3 and not torch.equal(*(m.log_probs(*batch[:4]) for m in members[:2]))
    expected = torch.stack([m.log_probs(*batch[:4]).exp() for m in members]).mean(0)
    actual = solver.model.log_probs(*batch[:4])
    torch.testing.assert_close(actual.exp(), expected)
    step_by_step = ptrnet.models.base.PointerModel.log_probs(solver.model, *batch[:4])
    real = torch.arange(batch.targets.shape[1]) < batch.target_lengths[:, None]
    torch.testing.assert_close(step_by_step[real], actual[real], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_and_loaded_model_gives_the_same_answers(ensemble, tmp_path, name):
    solver = ensemble(name)
    solver.save_pretrained(tmp_path / "m")
    loaded = ptrnet.load(str(tmp_path / "m"))
    instances = [inputs for inputs, _ in pairs()]
    for decoder in (None, Beam(3)):
        answers = solver.solve(instances, decoder)
        again = loaded.solve(instances, decoder)
        assert [a.tolist() for a in answers] == [a.tolist() for a in again]


@pytest.mark.parametrize("name", ["set-ptr-net", "transformer-ptr-net"])
def test_an_exported_model_gives_the_same_answers(ensemble, tmp_path, name):
    manifest = ptrnet.export_onnx(ensemble(name, 2), tmp_path, instances=5)
    assert manifest["model"]["settings"]["ensemble"] == 2
    assert manifest["checked"]["same_answers"] + manifest["checked"]["ties"] == 5


def test_the_gradient_of_the_mean_is_finite(ensemble):
    solver = ensemble("set-ptr-net")
    of_each, _ = losses(
        solver.model, batch_of(Dataset.of(Example(*pair) for pair in pairs()), solver.task)
    )
    of_each.mean().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in solver.model.parameters())


def test_ensemble_members_are_trained_independently(tmp_path):
    """An ensemble trains on its members' mean loss. Members get different weights."""
    examples = [(inputs, outputs) for seed in range(20) for inputs, outputs in pairs(seed)]
    model = ptrnet.fit(
        examples, "subset", steps=3, hidden_size=8, ensemble=2, model="set-ptr-net", dropout=0.0
    )
    first, second = (dict(m.named_parameters()) for m in model.model.networks())
    assert all(not torch.equal(first[key], second[key]) for key in first if "weight" in key)


def test_an_ensemble_answers_problems_of_several_sizes_like_its_members():
    """Networks of problems read float64, and instances of one size at a time."""
    recipe = Recipe.from_table(task="knapsack", learning="answers", ensemble=2, hidden_size=8)
    torch.manual_seed(2)
    network = models.for_task(recipe.model, recipe.task, recipe.network).float().eval()
    task = recipe.task
    rng = np.random.default_rng(1)
    instances = [task.sample(rng, 1, n)[0] for n in (6, 9, 6)]
    together = Solver(network, task, {}).solve(instances)
    alone = [Solver(network, task, {}).solve([x])[0] for x in instances]
    assert [a.tolist() for a in together] == [a.tolist() for a in alone]
    assert network.exact_inputs and network.one_size
