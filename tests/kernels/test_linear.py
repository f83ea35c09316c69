"""The linear map gives PyTorch's numbers and gradients, packed or not."""

import pytest
import torch
from torch.nn import functional

from ptrnet.kernels.linear import linear


def draw(dtype):
    torch.manual_seed(0)
    return torch.randn(2000, 128).to(dtype), torch.randn(128, 128).to(dtype)


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


# The last three are packed, of two slices.
@pytest.mark.parametrize("shape", [(0, 24), (100, 24), (1100, 256), (2, 600, 250), (600, 2, 251)])
@pytest.mark.parametrize("columns", [64, 70])
def test_the_error_is_as_small_as_pytorchs(shape, columns):
    torch.manual_seed(columns)
    x, weight = torch.randn(shape), torch.randn(columns, shape[-1])
    exact = functional.linear(x.double(), weight.double())
    with torch.no_grad():
        product = linear(x, weight)
        of_transposed = linear(x.transpose(0, -2), weight)  # rows that are not contiguous
    assert product.shape == exact.shape
    if exact.numel():
        error = (functional.linear(x, weight) - exact).abs().max()
        assert (product - exact).abs().max() <= 2 * error + 1e-6 * exact.abs().max()
    torch.testing.assert_close(of_transposed.transpose(0, -2), product, rtol=1e-4, atol=1e-4)


def test_gradients_flow_when_they_are_enabled():
    x, weight = draw(torch.float32)
    x.requires_grad_(), weight.requires_grad_()
    linear(x, weight).sum().backward()
    torch.testing.assert_close(x.grad, weight.detach().sum(0).expand_as(x), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        weight.grad, x.detach().sum(0).expand_as(weight), rtol=1e-4, atol=1e-3
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_are_kept(dtype):
    x, weight = draw(dtype)
    with torch.no_grad():
        assert torch.equal(linear(x, weight), functional.linear(x, weight))


def test_autocast_and_the_default_type_are_respected():
    x, weight = draw(torch.float32)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
    expected = functional.linear(x, weight)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            torch.testing.assert_close(linear(x, weight), expected)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("shape", [(70, 250), (70, 254)])
def test_another_width_is_refused(shape):
    with torch.no_grad(), pytest.raises(RuntimeError):
        linear(torch.randn(2000, 252), torch.randn(shape))
