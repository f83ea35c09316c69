"""Compare our optimisers with PyTorch's."""

import pytest
import torch

from ptrnet import models
from ptrnet.training import optimizers
from ptrnet.training.optimizers.muon import Muon, MuonAndAdamW, orthogonal
from ptrnet.training.recipe import Recipe


@pytest.mark.parametrize("shape", [(6, 40), (40, 6)], ids=str)
def test_orthogonal_keeps_singular_vectors_and_equalises_singular_values(shape):
    matrix = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    u, before, v = torch.linalg.svd(matrix, full_matrices=False)
    within = u.T @ orthogonal(matrix) @ v.T
    after = within.diagonal()
    torch.testing.assert_close(within, after.diag())
    assert before[0] / before[-1] > 1.5 and (after > 0.65).all() and (after < 1.25).all()


@pytest.mark.parametrize("shape", [(6, 40), (40, 6)], ids=str)
def test_muon_equals_pytorchs_up_to_its_lower_precision(shape):
    torch.manual_seed(2)
    start = torch.randn(shape)
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    muon = Muon([ours], 0.1, weight_decay=0.3)
    expected = torch.optim.Muon([theirs], 0.1, weight_decay=0.3, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        ours.grad = theirs.grad = torch.randn(shape)
        muon.step()
        expected.step()
    change = (theirs - start).norm()
    assert (ours - theirs).norm() < 0.01 * change


def small_network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.LayerNorm(5), torch.nn.Linear(5, 2))


def train(network, optimizer, steps):
    for step in steps:
        torch.manual_seed(step)
        optimizer.zero_grad()
        network(torch.randn(7, 3)).square().sum().backward()
        optimizer.step()


def test_muon_trains_matrices_of_layers_and_adamw_all_others():
    network, reference = small_network(), small_network()
    optimizer = MuonAndAdamW(network, 0.01, 0.1, (0.9, 0.98))
    train(network, optimizer, range(1))
    adamw = torch.optim.AdamW(reference.parameters(), 0.01, betas=(0.9, 0.98), weight_decay=0.1)
    train(reference, adamw, range(1))
    both = zip(network.named_parameters(), reference.parameters(), strict=True)
    for (name, parameter), expected in both:
        is_matrix = name in ("0.weight", "2.weight")
        assert torch.allclose(parameter, expected, atol=1e-7) != is_matrix, name


def test_muon_resumes_to_the_same_weights():
    network, stopped = small_network(), small_network()
    train(network, MuonAndAdamW(network, 0.01, 0.1, (0.9, 0.98)), range(6))
    optimizer = MuonAndAdamW(stopped, 0.01, 0.1, (0.9, 0.98))
    train(stopped, optimizer, range(3))
    resumed = small_network()
    resumed.load_state_dict(stopped.state_dict())
    again = MuonAndAdamW(resumed, 0.5, 0.1, (0.9, 0.98))  # the state has the rate
    again.load_state_dict(optimizer.state_dict())
    train(resumed, again, range(3, 6))
    for parameter, expected in zip(resumed.parameters(), network.parameters(), strict=True):
        assert torch.equal(parameter, expected)


def test_the_schedule_applies_to_muon_and_to_adamw():
    network = small_network()
    before = [parameter.detach().clone() for parameter in network.parameters()]
    optimizer = MuonAndAdamW(network, 1.0, 0.1, (0.9, 0.98))
    for group in optimizer.param_groups:  # as the loop does
        group["lr"] = 0.0
    train(network, optimizer, range(2))
    for parameter, expected in zip(network.parameters(), before, strict=True):
        assert torch.equal(parameter, expected)


def test_a_network_without_linear_layers_is_trained_by_adamw():
    recipe = Recipe.from_table(task="hull", optimizer="muon", score="dot", hidden_size=8)
    network = models.for_task(recipe.model, recipe.task, recipe.network)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    optimizer = optimizers.optimizer(recipe, network)
    network.log_probs(torch.rand(2, 3, 2), None, torch.tensor([[1, 2], [2, 3]])).sum().backward()
    optimizer.step()
    for parameter, old in zip(network.parameters(), before, strict=True):
        assert parameter.grad is None or not torch.equal(parameter, old)


def test_a_network_of_matrices_only_is_trained_by_muon():
    torch.manual_seed(3)
    network = torch.nn.Linear(3, 5, bias=False)
    expected = torch.nn.Parameter(network.weight.detach().clone())
    train(network, MuonAndAdamW(network, 0.01, 0.1, (0.9, 0.98)), range(3))
    muon = Muon([expected], 0.01, weight_decay=0.1)
    train(lambda x: x @ expected.T, muon, range(3))
    assert torch.equal(network.weight, expected)
