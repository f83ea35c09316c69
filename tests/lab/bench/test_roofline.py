"""Counted operations are those of the formulas, forward and backward."""

import pytest
import torch
from torch import nn

from ptrnet import models, tasks
from ptrnet.data.streams import FreshStream
from ptrnet.training.losses import losses
from ptrnet_lab.bench.roofline import count_operations


@pytest.mark.parametrize("is_half", [False, True])
def test_linear_layer_has_three_products(is_half):
    layer, x = nn.Linear(5, 3), torch.rand(7, 5, requires_grad=True)

    def work():
        with torch.autocast("cpu", torch.bfloat16, enabled=is_half):
            layer(x).sum().backward()

    assert count_operations(work) == 3 * 2 * 7 * 5 * 3


def test_products_of_batches_are_counted_and_those_with_vectors_are_not():
    rows, batch = torch.rand(4, 6), torch.rand(2, 9, 5)

    def work():
        rows @ rows.T
        torch.baddbmm(torch.zeros(()), batch[:, ::2], batch[:, 3:4].transpose(1, 2))
        rows @ torch.rand(6, 0)
        rows @ torch.rand(6)

    assert count_operations(work) == 2 * 4 * 6 * 4 + 2 * 2 * 5 * 5


def test_operations_of_ptr_net_are_near_the_formula():
    n, batch_size, units, task = 9, 6, 32, tasks.get("hull")
    model = models.build(
        "ptr-net", task.facts.num_features, task.facts.num_specials, hidden_size=units
    )
    batch = FreshStream(task, [n], batch_size, 0).batch(0)
    counted = count_operations(lambda: losses(model, batch)[0].mean().backward())
    # Steps of two LSTMs, an H x 4H product each, and projections to keys and queries, H x H each;
    # a backward pass has twice as many.
    steps, slots = batch.targets.shape[1], n + task.facts.num_specials
    expected = 3 * 2 * batch_size * units**2 * (4 * (n + steps) + slots + steps)
    # The formula leaves out coordinates, and counts unneeded gradients of initial zeros.
    assert 0.85 * expected < counted < 1.15 * expected
