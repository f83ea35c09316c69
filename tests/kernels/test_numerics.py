"""The compiled exponential and the rounding to bfloat16 against float64 and PyTorch."""

import numpy as np
import torch

from ptrnet.kernels.numerics import as_array, exp32, reassociating_jit, store


@reassociating_jit
def exponentials(x, out):
    for k in range(len(x)):
        out[k] = exp32(x[k])


@reassociating_jit
def rounded(x, out):
    for k in range(len(x)):
        out[k] = store(x[k], out[k])


def test_exponential_is_within_two_units_in_the_last_place():
    x = np.linspace(-87, 87, 1_000_003).astype(np.float32)
    out = np.empty_like(x)
    exponentials(x, out)
    assert np.abs(out / np.exp(x.astype(np.float64)) - 1).max() <= 2 * 2.0**-23
    assert (np.diff(out) >= 0).all()
    assert exp32(np.float32(0)) == 1


def test_exponential_is_clipped_to_finite_numbers():
    x = np.array([-np.inf, -1e30, 1e30, np.inf], np.float32)
    out = np.empty_like(x)
    exponentials(x, out)
    assert np.allclose(out, np.exp(np.array([-87, -87, 87, 87.0])), rtol=1e-6)


def test_rounding_is_pytorchs():
    x = torch.cat([torch.randn(100_000), torch.tensor([1 + 2**-8, 1 + 3 * 2**-8, 0.0, -0.0])])
    out = torch.empty(len(x), dtype=torch.bfloat16)
    rounded(as_array(x), as_array(out))
    assert torch.equal(out, x.bfloat16())
