"""Products with weights that were packed once, for the few rows that a recurrent step has.

PyTorch's product packs the weights anew in every call, rounds bfloat16's sums, and takes float32 at
half speed on processors that are not Intel's. Here sums are float32. A word is 32 bits: a float32,
or two bfloat16 of a column, one above the other, which the processor multiplies in pairs.
"""

from functools import cache

import numba
import numpy as np
import torch
from numba.core import config
from numba.core.codegen import get_host_cpu_features
from numba.extending import overload
from torch import Tensor

from ptrnet.kernels.numerics import array, jit
from ptrnet.kernels.packed.tile import COLUMNS, LINE, tile
from ptrnet.kernels.threads import over_slices

__all__ = ["COLUMNS", "add_product", "available", "linear", "pack", "product"]

ROWS = 4  # of a tile: with its columns 16 sums at a time, enough to keep the processor busy
# Multiplications for which a slice is worth a thread of its own: some 70 microseconds.
SERIAL = 2**23
_tile, _row = tile(ROWS), tile(1)


@cache
def available(dtype: torch.dtype) -> bool:
    """Whether the processor has the instructions, and numba may use them.

    bfloat16: not where there are matrix tiles (AMX) as well, which PyTorch takes.
    """
    another = config.CPU_NAME or config.CPU_FEATURES  # type: ignore[attr-defined]
    features = get_host_cpu_features().split(",")
    has = {
        torch.bfloat16: "+avx512bf16" in features and "+amx-bf16" not in features,
        torch.float32: "+avx512f" in features,
    }
    return not another and has.get(dtype, False)


@jit
def pack(matrix):
    """`(K, N)` float32, or bfloat16 as uint16 and K even: `(ceil(N / 64), words of K, 64)` uint32.

    Missing columns are zero.
    """
    columns = matrix.shape[1]
    packed = np.zeros((-(-columns // COLUMNS), _words(matrix), COLUMNS), np.uint32)
    for panel in range(packed.shape[0]):
        first = panel * COLUMNS
        for k in range(packed.shape[1]):
            for column in range(min(COLUMNS, columns - first)):
                packed[panel, k, column] = _word(matrix, k, first + column)
    return packed


def _words(matrix):
    """How many words a column has."""


def _word(matrix, k, column):
    """Word k of a column."""


@overload(_words, inline="always")
def _words_of(matrix):
    if matrix.dtype == numba.uint16:
        return lambda matrix: matrix.shape[0] // 2
    return lambda matrix: matrix.shape[0]


@overload(_word, inline="always")
def _word_of(matrix, k, column):
    if matrix.dtype == numba.uint16:

        def pair(matrix, k, column):
            low, high = matrix[2 * k, column], matrix[2 * k + 1, column]
            return np.uint32(low) | np.uint32(high) << 16

        return pair
    return lambda matrix, k, column: np.float32(matrix[k, column]).view(np.uint32)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """`x W'` for float32 x `(..., K)` and W `(N, K)`, without gradients; a slice on each core."""
    rows, columns = x.numel() // x.shape[-1], len(weight)
    packed = pack(array(weight).T)
    found = torch.empty(rows, COLUMNS * len(packed))
    a, out = array(x).reshape(rows, -1), array(found)
    slices = max(1, min(torch.get_num_threads(), rows * weight.numel() // SERIAL))

    def run(_: int, first: int, last: int) -> None:
        product(a[first:last], packed, out[first:last])

    over_slices(run, [rows * k // slices for k in range(slices + 1)])
    return found[:, :columns].view(*x.shape[:-1], columns)


@jit
def product(a, packed, out):
    """`out = a b`: `a` `(R, K)` of b's type, `b` packed, `out` `(R, 64 panels)` float32.

    Numbers of a row lie side by side; nothing is checked.
    """
    _over_tiles(a, packed, out, False)


@jit
def add_product(a, packed, out):
    """`out += a b`, as `product`."""
    _over_tiles(a, packed, out, True)


@jit
def _over_tiles(a, packed, out, adds):
    words, a_stride, out_stride = packed.shape[1], a.strides[0], out.strides[0]
    whole = a.shape[0] // ROWS * ROWS
    for k in range(packed.shape[0]):
        panel, sums = packed[k].ctypes.data, out.ctypes.data + k * LINE
        for r in range(0, whole, ROWS):
            at = a.ctypes.data + r * a_stride
            _tile(a, at, a_stride, panel, words, sums + r * out_stride, out_stride, adds)
        for r in range(whole, a.shape[0]):
            at = a.ctypes.data + r * a_stride
            _row(a, at, a_stride, panel, words, sums + r * out_stride, out_stride, adds)
