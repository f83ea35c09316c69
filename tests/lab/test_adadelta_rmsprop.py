"""Compare the optimizer of Wang and Wang (2016) with PyTorch's."""

import pytest
import torch

from ptrnet.training import optimizers
from ptrnet.training.recipe import Recipe
from ptrnet_lab.adadelta_rmsprop import AdadeltaThenRMSprop


def gradient(parameter, step):
    parameter.grad = torch.sin(torch.arange(6.0) + step).reshape(2, 3) * parameter.detach()


@pytest.mark.parametrize("stop", [2, 5, 8])
def test_adadelta_is_followed_by_rmsprop_also_after_a_resume(stop):
    """Adadelta for five steps, then RMSprop for five; and the same with a stop in between."""
    start = torch.linspace(-1, 1, 6).reshape(2, 3)
    parameter = torch.nn.Parameter(start.clone())
    expected = torch.nn.Parameter(start.clone())
    adadelta = torch.optim.Adadelta([expected], lr=0.7)
    rmsprop = torch.optim.RMSprop([expected], lr=0.7e-3)
    optimizer = AdadeltaThenRMSprop([parameter], 0.7, switch=5)
    for step in range(10):
        if step == stop:
            state = optimizer.state_dict()
            parameter = torch.nn.Parameter(parameter.detach().clone())
            optimizer = AdadeltaThenRMSprop([parameter], 0.7, switch=5)
            optimizer.load_state_dict(state)
        for p, o in ((parameter, optimizer), (expected, adadelta if step < 5 else rmsprop)):
            gradient(p, step)
            o.step()
        assert torch.equal(parameter, expected)


def test_the_schedule_applies_to_both_optimizers():
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = AdadeltaThenRMSprop([parameter], 1.0, switch=1)
    optimizer.param_groups[0]["lr"] = 0.0
    for _ in range(3):
        parameter.grad = torch.ones(2)
        optimizer.step()
    assert torch.equal(parameter, torch.ones(2))


def test_a_recipe_gives_each_of_the_two_half_of_its_steps():
    recipe = Recipe.from_table(
        task="sort", optimizer="adadelta-rmsprop", learning_rate=1.0, steps=4
    )
    layer = torch.nn.Linear(1, 1, bias=False)
    optimizer = optimizers.optimizer(recipe, layer)
    steps = []
    for _ in range(4):
        before = layer.weight.item()
        layer.weight.grad = torch.ones(1, 1)
        optimizer.step()
        steps.append(before - layer.weight.item())
    adadelta, rmsprop = steps[:2], steps[2:]
    assert max(adadelta) < 0.006 and rmsprop == pytest.approx([0.01, 0.0071], rel=0.01)
