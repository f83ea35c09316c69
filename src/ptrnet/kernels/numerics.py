"""What compiled kernels share: decorators, an exponential that vectorises, and bfloat16.

NumPy has no bfloat16: a tensor of that type becomes an array of uint16, which holds the upper half
of a float32's bits.

numba caches a compiled function by the text of its own file alone: after a change here, callers
in other files stay as they were compiled until the cache is removed.
"""

import math
from functools import partial

import numba
import numpy as np
import torch
from numba.core import types
from numba.extending import intrinsic, overload
from torch import Tensor

from ptrnet.jit import cached

# Sums may be added up in any order, which lets them vectorise. "ninf" and "nnan" stay out:
# infinities are legal here.
_REASSOCIATING = {"reassoc", "contract", "arcp", "nsz"}

# A kernel: what Python calls.
reassociating_jit = cached(nogil=True, error_model="numpy", fastmath=_REASSOCIATING)

# A function that kernels call. It is compiled into each of them: called, it would exist twice, in
# its own module and in the kernel's, and be optimised and so rounded differently in the two; which
# one runs would depend on whether the kernel was compiled now or loaded from the cache.
_inlined = partial(numba.njit, nogil=True, error_model="numpy", forceinline=True)
reassociating_inline = _inlined(fastmath=_REASSOCIATING)

# Every operation is rounded as it is written; but zero has no sign. Without any flag numba would
# give them those of the kernel.
exact_inline = _inlined(fastmath={"nsz"})

# Operations stay in the order in which they are written; a product and a sum may become one FMA.
in_order_inline = _inlined(fastmath={"contract"})

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


@_inlined(fastmath=_REASSOCIATING | {"ninf"})
def divide(x, y):
    """x / y of finite numbers, within two units in the last place.

    Without infinities LLVM multiplies vectors of float32 by the processor's estimate of 1 / y, once
    refined by Newton's method, which takes less time than a division.
    """
    return x / y


@intrinsic
def widest_vectors(typing):
    """To be called in a kernel: its loops take the widest vectors that the processor has.

    LLVM takes half of them on Intel's processors, of which older ones slowed down for whole ones.
    """

    def generate(context, builder, signature, arguments):
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')  # unknown to llvmlite
        return context.get_dummy_value()

    return types.void(), generate


@in_order_inline  # reassociation would join the two parts of ln(2) again
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


# log(x) = k ln(2) + log(1 + r), 1 + r in sqrt(1/2)..sqrt(2); log(1 + r) = r - r^2 / 2 + r^3 q(r)
# with the q of degree 6 whose largest relative error is least (solved as a linear program).
_Q = (
    0.3333429258127292,
    -0.2500269767693408,
    0.19949996080121538,
    -0.1652614524463366,
    0.14986094754172397,
    -0.14694162495040458,
    0.09067854393381725,
)
_Q0, _Q1, _Q2, _Q3, _Q4, _Q5, _Q6 = (np.float32(q) for q in _Q)
_SQRT2, _LN2 = np.float32(math.sqrt(2)), np.float32(math.log(2))


@in_order_inline
def log32(x):
    """log of a normal float32 above 0, in operations that vectorise."""
    bits = np.float32(x).view(np.int32)
    k = np.float32((bits >> 23) - 127)
    m = np.int32((bits & 0x7FFFFF) | 0x3F800000).view(np.float32)
    is_upper = m > _SQRT2
    m = m * _HALF if is_upper else m
    k = k + _ONE if is_upper else k
    r = m - _ONE
    q = _Q5 + r * _Q6
    q = _Q4 + r * q
    q = _Q3 + r * q
    q = _Q2 + r * q
    q = _Q1 + r * q
    q = _Q0 + r * q
    return k * _LN2 + (r + r * r * (r * q - _HALF))


def exp(x):
    """exp of a number: `exp32` of a float32, `math.exp` of a float64."""


@overload(exp, inline="always")
def _exp(x):
    if x == numba.float32:
        return lambda x: exp32(x)
    return lambda x: math.exp(x)


def as_array(tensor: Tensor) -> np.ndarray:
    """The memory of a tensor on the CPU, bfloat16 as uint16; a copy if it is not contiguous."""
    return as_strided_array(tensor.contiguous())


def as_strided_array(tensor: Tensor) -> np.ndarray:
    """The memory of a tensor on the CPU with its strides, bfloat16 as uint16; never a copy."""
    tensor = tensor.detach()
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def load(x):
    """A number of an array in the type to compute with: bfloat16 as float32, others unchanged."""


@overload(load, inline="always")
def _load(x):
    if x == numba.uint16:
        return lambda x: np.uint32(np.uint32(x) << 16).view(np.float32)
    return lambda x: x


def store(x, element):
    """A float32 in the type of `element`, a number of the array that it is stored in.

    bfloat16 is rounded to even.
    """


@overload(store, inline="always")
def _store(x, element):
    if element == numba.uint16:

        def rounded(x, element):
            bits = np.float32(x).view(np.uint32)
            odd = (bits >> 16) & 1
            return np.uint16((bits + 0x7FFF + odd) >> 16)

        return rounded
    return lambda x, element: x
