"""The linear map: packed or not, the numbers and gradients are PyTorch's."""

import pytest
import torch
from torch.nn import functional

from ptrnet.kernels.linear import MANY, linear


@pytest.mark.parametrize("shape", [(MANY - 1, 24), (MANY, 24), (3, 50, 24), (700, 256)])
@pytest.mark.parametrize("columns", [1, 64, 70])
def test_as_good_as_pytorchs(shape, columns):
    torch.manual_seed(columns)
    x, weight = torch.randn(shape), torch.randn(columns, shape[-1])
    exact = functional.linear(x.double(), weight.double())
    with torch.no_grad():
        found = linear(x, weight)
        turned = linear(x.transpose(0, -2), weight)  # no row stands behind the one before
    error = (functional.linear(x, weight) - exact).abs().max()
    assert found.shape == exact.shape
    assert (found - exact).abs().max() <= 2 * error + 1e-6 * exact.abs().max()
    assert torch.equal(turned.transpose(0, -2), found)


def test_gradients_are_there_when_asked_for():
    x, weight = torch.randn(2 * MANY, 8, requires_grad=True), torch.randn(5, 8, requires_grad=True)
    linear(x, weight).sum().backward()
    assert torch.allclose(x.grad, weight.sum(0).expand_as(x))
    assert torch.allclose(weight.grad, x.sum(0).expand_as(weight))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_stay_what_they_are(dtype):
    x, weight = torch.randn(2 * MANY, 8).to(dtype), torch.randn(5, 8).to(dtype)
    with torch.no_grad():
        assert torch.equal(linear(x, weight), functional.linear(x, weight))
