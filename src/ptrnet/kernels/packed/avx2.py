"""Products of float32 by vectors of 256 bits (AVX2 with FMA), compiled.

Tiles are 6 rows by a panel of 16 columns (`vectors.py` draws one): 12 sums, two vectors of the
panel and a number of `a` take 15 of the 16 registers. Rows that are left over go by fours, twos and
one by one. Columns that a last panel lacks are packed as zeros.
"""

import numpy as np

from ptrnet.kernels.numerics import reassociating_inline, reassociating_jit
from ptrnet.kernels.packed.vectors import multiply_tile

LANES = 8  # numbers in a vector
VECTORS = 2  # vectors in a line of a panel
PANEL_COLUMNS = VECTORS * LANES
_LINE_BYTES = 4 * PANEL_COLUMNS  # of a panel, and of a row of a tile's sums

_multiply_6x16, _multiply_4x16, _multiply_2x16, _multiply_1x16 = (
    multiply_tile(rows, VECTORS, LANES) for rows in (6, 4, 2, 1)
)


@reassociating_jit
def pack(matrix):
    """The panels of a matrix: `(ceil(columns / 16), depth, 16)` float32.

    The matrix is `(depth, columns)` float32; any strides.
    """
    depth, columns = matrix.shape
    panels = np.zeros((-(-columns // PANEL_COLUMNS), depth, PANEL_COLUMNS), np.float32)
    for panel in range(panels.shape[0]):
        first = panel * PANEL_COLUMNS
        for k in range(depth):
            for column in range(min(PANEL_COLUMNS, columns - first)):
                panels[panel, k, column] = matrix[k, first + column]
    return panels


@reassociating_jit
def multiply(a, panels, out):
    """`out = a b`, where `panels` are b packed.

    `a` is `(rows, depth)` and `out` `(rows, 16 len(panels))`, both float32 with the numbers of a
    row next to each other. Nothing is checked: other shapes would read and write beyond the arrays.
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
    for p in range(panels.shape[0]):
        panel, sums = panels[p].ctypes.data, out.ctypes.data + p * _LINE_BYTES
        r = 0
        while r < a.shape[0]:
            row, out_row = a.ctypes.data + r * a_stride, sums + r * out_stride
            left = a.shape[0] - r
            if left >= 6:
                _multiply_6x16(a, row, a_stride, panel, lines, out_row, out_stride, adds)
                r += 6
            elif left >= 4:
                _multiply_4x16(a, row, a_stride, panel, lines, out_row, out_stride, adds)
                r += 4
            elif left >= 2:
                _multiply_2x16(a, row, a_stride, panel, lines, out_row, out_stride, adds)
                r += 2
            else:
                _multiply_1x16(a, row, a_stride, panel, lines, out_row, out_stride, adds)
                r += 1
