"""Products of float32 and bfloat16 by vectors of 512 bits (AVX-512), compiled.

Tiles are 4 rows by a panel of 64 columns, as `vectors.py` draws one: 16 sums, enough to keep the
processor's multipliers busy. Rows that are left over, fewer than 4, go one by one through a tile of
one row. Columns that a last panel lacks are packed as zeros.
"""

import numba
import numpy as np
from numba.extending import overload

from ptrnet.kernels.numerics import reassociating_inline, reassociating_jit
from ptrnet.kernels.packed.vectors import multiply_tile

LANES = 16  # words in a vector
VECTORS = 4  # vectors in a line of a panel
PANEL_COLUMNS = VECTORS * LANES
TILE_ROWS = 4
_LINE_BYTES = 4 * PANEL_COLUMNS  # of a panel, and of a row of a tile's sums

_multiply_4x64 = multiply_tile(TILE_ROWS, VECTORS, LANES)
_multiply_1x64 = multiply_tile(1, VECTORS, LANES)


@reassociating_jit
def pack(matrix):
    """The panels of a matrix: `(ceil(columns / 64), words in a column, 64)` uint32.

    The matrix is `(depth, columns)` float32, or bfloat16 as uint16 with an even depth; any strides.
    """
    columns = matrix.shape[1]
    panels = np.zeros((-(-columns // PANEL_COLUMNS), _words(matrix), PANEL_COLUMNS), np.uint32)
    for panel in range(panels.shape[0]):
        first = panel * PANEL_COLUMNS
        for k in range(panels.shape[1]):
            for column in range(min(PANEL_COLUMNS, columns - first)):
                panels[panel, k, column] = _word(matrix, k, first + column)
    return panels


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
            lower, upper = matrix[2 * k, column], matrix[2 * k + 1, column]
            return np.uint32(lower) | np.uint32(upper) << 16

        return pair
    return lambda matrix, k, column: np.float32(matrix[k, column]).view(np.uint32)


@reassociating_jit
def multiply(a, panels, out):
    """`out = a b`, where `panels` are b packed.

    `a` is `(rows, depth)` of b's type and `out` `(rows, 64 len(panels))` float32, both with the
    numbers of a row next to each other. Nothing is checked: other shapes would read and write
    beyond the arrays.
    """
    multiply_tiles(a, panels, out, False)


@reassociating_jit
def multiply_add(a, panels, out):
    """`out += a b`; the arguments are those of `multiply`."""
    multiply_tiles(a, panels, out, True)


@reassociating_inline
def multiply_tiles(a, panels, out, adds):
    """`out = a b`, or `out += a b` if it `adds`, for kernels; as `multiply`."""
    lines, a_stride, out_stride = panels.shape[1], a.strides[0], out.strides[0]
    rows_in_fours = a.shape[0] // TILE_ROWS * TILE_ROWS
    for p in range(panels.shape[0]):
        panel, sums = panels[p].ctypes.data, out.ctypes.data + p * _LINE_BYTES
        for r in range(0, rows_in_fours, TILE_ROWS):
            row, out_row = a.ctypes.data + r * a_stride, sums + r * out_stride
            _multiply_4x64(a, row, a_stride, panel, lines, out_row, out_stride, adds)
        for r in range(rows_in_fours, a.shape[0]):
            row, out_row = a.ctypes.data + r * a_stride, sums + r * out_stride
            _multiply_1x64(a, row, a_stride, panel, lines, out_row, out_stride, adds)
