"""The compiled exponential, logarithm and rounding to bfloat16 against float64 and PyTorch."""

import numpy as np
import torch

from ptrnet.kernels.numerics import as_array, exp32, log32, reassociating_jit, store


@reassociating_jit
def exponentials(x, out):
    for k in range(len(x)):
        out[k] = exp32(x[k])


@reassociating_jit
def logarithms(x, out):
    for k in range(len(x)):
        out[k] = log32(x[k])


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


def test_logarithm_is_within_two_units_in_the_last_place():
    bits = np.linspace(np.float32(1e-37).view(np.int32), np.float32(1e38).view(np.int32), 1_000_003)
    x = bits.astype(np.int32).view(np.float32)
    out = np.empty_like(x)
    logarithms(x, out)
    exact = np.log(x.astype(np.float64))
    assert (np.abs(out - exact) <= 2 * np.spacing(np.abs(exact).astype(np.float32))).all()
    assert log32(np.float32(1)) == 0


def test_rounding_to_bfloat16_equals_pytorchs():
    x = torch.cat([torch.randn(100_000), torch.tensor([1 + 2**-8, 1 + 3 * 2**-8, 0.0, -0.0])])
    out = torch.empty(len(x), dtype=torch.bfloat16)
    rounded(as_array(x), as_array(out))
    assert torch.equal(out, x.bfloat16())
