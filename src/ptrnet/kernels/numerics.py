"""Helpers of compiled kernels: decorators, exp and log that vectorise, and support for bfloat16.

NumPy has no bfloat16, so a bfloat16 tensor becomes an array of uint16. Each number of this array is
the upper half of a float32's bits.

numba compiles a cached function again only if the function's file changes. After a change in this
file, remove the cache. Otherwise kernels in other files keep the old code.
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

# Flags for LLVM: allow sums in any order, so that LLVM can vectorise sums. Leave out "ninf" (no
# infinities) and "nnan" (no NaN), because kernels compute with infinities.
_REASSOCIATING = {"reassoc", "contract", "arcp", "nsz"}

# Decorator of a kernel, which Python calls.
reassociating_jit = cached(nogil=True, error_model="numpy", fastmath=_REASSOCIATING)

# Decorators of a function that kernels call. The function is inlined into each kernel. Otherwise
# there would be two copies, in the function's module and in the kernel's module. LLVM would
# optimise the copies differently, and the copies would round differently. A result would then
# depend on whether the kernel was just compiled or loaded from the cache.
_inlined = partial(numba.njit, nogil=True, error_model="numpy", forceinline=True)
reassociating_inline = _inlined(fastmath=_REASSOCIATING)

# Round every operation as written. We pass "nsz" (the sign of zero does not matter), because numba
# would apply the kernel's flags to a function without flags.
exact_inline = _inlined(fastmath={"nsz"})

# Keep the order of operations as written. Only a product and a sum may become one FMA.
_IN_ORDER = {"contract"}
in_order_inline = _inlined(fastmath=_IN_ORDER)
in_order_jit = cached(nogil=True, error_model="numpy", fastmath=_IN_ORDER)
# Decorator of a function that kernels call and that is compiled once, because inlining would
# multiply the time of compilation. Its copies round alike, because they keep the order.
in_order_inner = cached(
    nogil=True, error_model="numpy", fastmath=_IN_ORDER, no_cpython_wrapper=True
)

# exp(x) = 2^k * exp(r) with |r| <= ln(2) / 2, and exp(r) = 1 + r + r^2 p(r). p is the polynomial of
# degree 3 with the smallest maximum error, 1.05e-7 of exp(r). A linear program found p. The Taylor
# series would need degree 5. r = x - k ln(2) is computed with ln(2) in two parts. The first part
# has so few bits that its products with k are exact.
_LOG2E = np.float32(1 / math.log(2))
_LN2_HIGH = np.float32(355 / 512)
_LN2_LOW = np.float32(math.log(2) - 355 / 512)
_P = (0.49999231495724683, 0.16667114650680534, 0.04189015679335552, 0.008312520093813917)
_P0, _P1, _P2, _P3 = (np.float32(p) for p in _P)
_HALF, _ONE = np.float32(0.5), np.float32(1)
_RANGE = np.float32(87)  # exp(87) is finite in float32, and exp(-87) is a normal number


@_inlined(fastmath=_REASSOCIATING | {"ninf"})
def divide(x, y):
    """Return x / y for finite numbers, within two units in the last place.

    If LLVM may assume finite numbers, it replaces divisions of float32 vectors by a faster method.
    This method multiplies by the processor's estimate of 1 / y, refined once by Newton's method.
    """
    return x / y


@intrinsic
def widest_vectors(typing):
    """Let the loops of the calling kernel use the widest vectors that the processor has.

    On Intel's processors, LLVM by default uses vectors of half the width, because older processors
    reduce their clock rate for the widest vectors.
    """

    def generate(context, builder, signature, arguments):
        # `attributes.add` would refuse a name that llvmlite does not know.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


@in_order_inline  # reassociation would join the two parts of ln(2) again
def exp32(x):
    """Return exp(x) of a float32, in operations that vectorise. x is clipped to -87..87."""
    x = min(max(x, -_RANGE), _RANGE)
    k = np.floor(x * _LOG2E + _HALF)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _P2 + r * _P3
    p = _P1 + r * p
    p = _P0 + r * p
    p = _ONE + r * (_ONE + r * p)
    return p * np.int32((np.int32(k) + 127) << 23).view(np.float32)


# log(x) = k ln(2) + log(1 + r) with 1 + r in sqrt(1/2)..sqrt(2), and
# log(1 + r) = r - r^2 / 2 + r^3 q(r). q is the polynomial of degree 6 with the smallest maximum
# relative error. A linear program found q.
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
    """Return log of a normal float32 above 0, in operations that vectorise."""
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
    """Return exp of a number: `exp32` for a float32, `math.exp` for a float64."""


@overload(exp, inline="always")
def _exp(x):
    if x == numba.float32:
        return lambda x: exp32(x)
    return lambda x: math.exp(x)


def as_array(tensor: Tensor) -> np.ndarray:
    """Return a CPU tensor as an array, bfloat16 as uint16. Copies non-contiguous tensors."""
    tensor = tensor.detach().contiguous()
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def load(x):
    """Convert a bfloat16 number of an array to float32. Return other numbers unchanged."""


@overload(load, inline="always")
def _load(x):
    if x == numba.uint16:
        return lambda x: np.uint32(np.uint32(x) << 16).view(np.float32)
    return lambda x: x


def store(x, element):
    """Return x in the type of `element`, which is any number of the array to write to.

    bfloat16 is rounded to nearest, ties to even.
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
