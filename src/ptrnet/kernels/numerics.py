"""What compiled kernels share: an exponential that vectorises, and bfloat16 in NumPy arrays.

NumPy has no bfloat16: such a tensor is handed over as uint16, the upper half of a float32's bits.
"""

import math

import numba
import numpy as np
import torch
from numba.extending import overload
from torch import Tensor

# Reassociation lets sums vectorise. "ninf" and "nnan" stay out: infinities are legal here.
jit = numba.njit(
    nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"}
)

# exp(x) = 2^k * exp(r), |r| <= ln(2) / 2; exp(r) = 1 + r + r^2 p(r) with that p of degree 3 whose
# largest error is least, 1.05e-7 of exp(r) (solved as a linear program; the series needs degree 5).
# ln(2) is taken off in two parts, the first short enough that its products with k are exact.
_LOG2E = np.float32(1 / math.log(2))
_LN2_HIGH = np.float32(355 / 512)
_LN2_LOW = np.float32(math.log(2) - 355 / 512)
_P = (0.49999231495724683, 0.16667114650680534, 0.04189015679335552, 0.008312520093813917)
_P0, _P1, _P2, _P3 = (np.float32(p) for p in _P)
_HALF, _ONE = np.float32(0.5), np.float32(1)
_RANGE = np.float32(87)  # exp(87) is finite in float32, and exp(-87) is no denormal


# Without reassociation, which would join the two parts of ln(2) again.
@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def exp32(x):
    """exp of a float32 in -87..87 (clipped there), in operations that vectorise."""
    x = min(max(x, -_RANGE), _RANGE)
    k = np.floor(x * _LOG2E + _HALF)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _P2 + r * _P3
    p = _P1 + r * p
    p = _P0 + r * p
    p = _ONE + r * (_ONE + r * p)
    return p * np.int32((np.int32(k) + 127) << 23).view(np.float32)


def exp(x):
    """exp of a float32 as `exp32`, of a float64 as it is."""


@overload(exp, inline="always")
def _exp(x):
    if x == numba.float32:
        return lambda x: exp32(x)
    return lambda x: math.exp(x)


def array(tensor: Tensor) -> np.ndarray:
    """The tensor's memory, bfloat16 as uint16; made contiguous where it is not."""
    tensor = tensor.detach().contiguous()
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def load(x):
    """A stored number as it is computed with: bfloat16 as float32, others as they are."""


@overload(load, inline="always")
def _load(x):
    if x == numba.uint16:
        return lambda x: np.uint32(np.uint32(x) << 16).view(np.float32)
    return lambda x: x


def store(x, like):
    """A float32 as arrays of `like`'s type store it; bfloat16 is rounded to even."""


@overload(store, inline="always")
def _store(x, like):
    if like == numba.uint16:

        def rounded(x, like):
            bits = np.float32(x).view(np.uint32)
            odd = (bits >> 16) & 1
            return np.uint16((bits + 0x7FFF + odd) >> 16)

        return rounded
    return lambda x, like: x
