"""Products of bfloat16 with sums in float32, by the processor's own instruction (AVX512-BF16).

For what a recurrent step multiplies: a few rows by weights that are packed once for all steps.
PyTorch's product packs them anew in every call, and rounds the sums.
"""

from functools import cache

import numpy as np
from numba.core import config
from numba.core.codegen import get_host_cpu_features

from ptrnet.kernels.bfloat16.tile import COLUMNS, LANES, LINE, VECTORS, tile
from ptrnet.kernels.numerics import jit

__all__ = ["COLUMNS", "LANES", "add_product", "available", "pack", "product"]

ROWS = 4  # of a tile: with its columns 16 sums at a time, enough to keep the processor busy
_tile, _row = tile(ROWS), tile(1)


@cache
def available() -> bool:
    """Whether the processor has the instruction, and numba may use it.

    Not where there are matrix tiles (AMX) as well: PyTorch takes those, which are faster still.
    """
    another = config.CPU_NAME or config.CPU_FEATURES  # type: ignore[attr-defined]
    features = get_host_cpu_features().split(",")
    return not another and "+avx512bf16" in features and "+amx-bf16" not in features


@jit
def pack(matrix):
    """`(K, N)` bfloat16 as uint16, K even, for `product`: `(ceil(N / 64), K / 2, 64)` uint32.

    Two numbers of a column, one above the other, are one of 32 bits. Missing columns are zero.
    """
    depth, columns = matrix.shape
    packed = np.zeros((-(-columns // COLUMNS), depth // 2, COLUMNS), np.uint32)
    for panel in range(packed.shape[0]):
        first = panel * COLUMNS
        for k in range(packed.shape[1]):
            for column in range(min(COLUMNS, columns - first)):
                low, high = matrix[2 * k, first + column], matrix[2 * k + 1, first + column]
                packed[panel, k, column] = np.uint32(low) | np.uint32(high) << 16
    return packed


@jit
def product(a, packed, out):
    """`out = a b`: `a` is `(R, K)` bfloat16 as uint16, `b` packed, `out` `(R, 64 panels)` float32.

    Numbers of a row lie side by side; nothing is checked.
    """
    _over_tiles(a, packed, out, False)


@jit
def add_product(a, packed, out):
    """`out += a b`, as `product`."""
    _over_tiles(a, packed, out, True)


@jit
def _over_tiles(a, packed, out, adds):
    pairs, a_stride, out_stride = packed.shape[1], a.strides[0], out.strides[0]
    whole = a.shape[0] // ROWS * ROWS
    for k in range(packed.shape[0]):
        panel, sums = packed[k].ctypes.data, out.ctypes.data + k * VECTORS * LINE
        for r in range(0, whole, ROWS):
            at = a.ctypes.data + r * a_stride
            _tile(at, a_stride, panel, pairs, sums + r * out_stride, out_stride, adds)
        for r in range(whole, a.shape[0]):
            at = a.ctypes.data + r * a_stride
            _row(at, a_stride, panel, pairs, sums + r * out_stride, out_stride, adds)
