"""Numbers from a generator equal those of torch's global generator, which does not change."""

import threading

import torch
from torch import nn

from ptrnet.models.parts import DrawFrom, Dropout


def drawn():
    """Draw numbers as the constructors of networks do."""
    weights = [p.detach() for layer in (nn.GRU(3, 4), nn.Linear(5, 7)) for p in layer.parameters()]
    weights += [torch.empty(20).normal_(), torch.randn(3), nn.init.orthogonal_(torch.empty(3, 3))]
    whole = [torch.randint(9, (5,)), torch.randint(3, 9, (5,)), torch.randperm(7)]
    return torch.cat([part.double().ravel() for part in [*weights, *whole]])


def test_all_numbers_come_from_the_generator():
    torch.manual_seed(9)
    expected = drawn()
    before = torch.get_rng_state()
    with DrawFrom(torch.Generator().manual_seed(9)):
        numbers = drawn()
    assert torch.equal(numbers, expected)
    assert torch.equal(torch.get_rng_state(), before)


def test_other_threads_draw_from_the_global_generator():
    torch.manual_seed(9)
    expected = torch.rand(4)
    torch.manual_seed(9)
    numbers = []
    with DrawFrom(torch.Generator().manual_seed(9)):
        first = torch.rand(2)
        thread = threading.Thread(target=lambda: numbers.append(torch.rand(4)))
        thread.start()
        thread.join()
        own = torch.cat([first, torch.rand(2)])
    assert torch.equal(numbers[0], expected) and torch.equal(own, expected)


def test_dropout_has_the_masks_of_torch():
    dropout, x = Dropout(0.3), torch.randn(7, 5, requires_grad=True)
    torch.manual_seed(9)
    expected = nn.functional.dropout(x, 0.3)
    (slope,) = torch.autograd.grad(expected.sum(), x)
    torch.manual_seed(9)
    assert torch.equal(dropout(x), expected)
    before = torch.get_rng_state()
    dropout.generator = torch.Generator().manual_seed(9)
    actual = dropout(x)
    assert torch.equal(actual, expected)
    assert torch.equal(torch.autograd.grad(actual.sum(), x)[0], slope)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(dropout.eval()(x), x)
