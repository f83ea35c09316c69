"""Products of float32 and bfloat16 by vectors of 512 bits (AVX-512), compiled.

A product `a b` of a `(rows, depth)` and b `(depth, columns)` is computed in tiles: 4 rows of `a` by
64 columns of `b`. The 64 columns are a panel, which packing has laid out line by line, in the order
in which they are read. In step k:

                      columns  0..15      16..31     32..47     48..63
                            ┌──────────┬──────────┬──────────┬──────────┐
    line k of the panel     │ vector 0 │ vector 1 │ vector 2 │ vector 3 │   loaded once for all rows
                            └──────────┴──────────┴──────────┴──────────┘
                                 x          x          x          x
    word k of row r         ┌──────────┬──────────┬──────────┬──────────┐
    of a, 16 times   ──>    │ sums 0,0 │ sums 0,1 │ sums 0,2 │ sums 0,3 │   row r     of out
    word k of row r+1 ─>    │ sums 1,0 │ sums 1,1 │ sums 1,2 │ sums 1,3 │   row r + 1
    word k of row r+2 ─>    │ sums 2,0 │ sums 2,1 │ sums 2,2 │ sums 2,3 │   row r + 2
    word k of row r+3 ─>    │ sums 3,0 │ sums 3,1 │ sums 3,2 │ sums 3,3 │   row r + 3
                            └──────────┴──────────┴──────────┴──────────┘

Each of the 16 sums is a vector of 16 float32. They stay in registers through all steps and are
written to `out` once, after the last. Rows that are left over, fewer than 4, go one by one through
a tile of one row. Columns that a last panel lacks are packed as zeros.

A word is 32 bits. A line has 64 of them, one for each column:

    float32     a number            word k = b[k, column]
    bfloat16    a pair of numbers   word k = b[2k + 1, column] << 16 | b[2k, column]

A row of `a` has its pairs in that order without being packed: its numbers are next to each other.
So float32 takes as many steps as the depth, bfloat16 half as many.

No loop of Python's is compiled to this, nor to the instruction for bfloat16 (VDPBF16PS), which
adds the products of two pairs to each of 16 float32: so a tile is written in LLVM's own terms.
All of it is one file because numba caches by the text of a function's own file: in another file,
callers of a changed tile would keep the old one.
"""

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from ptrnet.kernels.numerics import reassociating_inline, reassociating_jit

LANES = 16  # words in a vector
VECTORS = 4  # vectors in a line of a panel
PANEL_COLUMNS = VECTORS * LANES
TILE_ROWS = 4  # with 4 vectors 16 sums, enough to keep the processor's multipliers busy
_VECTOR_BYTES = 4 * LANES
_LINE_BYTES = 4 * PANEL_COLUMNS  # of a panel, and of a row of a tile's sums


class _BFloat(ir.Type):
    """LLVM's type, which llvmlite has no name for."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


_I32, _I64 = ir.IntType(32), ir.IntType(64)
_WORDS = ir.VectorType(_I32, LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_PAIRS = ir.VectorType(_BFloat(), 2 * LANES)


def _multiply_tile(rows: int):
    """The product of so many rows and one panel of 64 columns, as an intrinsic.

    Its arguments: an array of a's type; the address of a's first row and the bytes from row to
    row; the address of a panel and the number of its lines, at least 1; the address of the sums in
    `out` and the bytes from row to row; whether to add to what is in `out` instead of replacing it.
    """

    def generate(context, builder, signature, arguments):
        _, a, a_stride, panel, lines, out, out_stride, adds = arguments
        multiply_add = _multiply_add(builder, signature.args[0].dtype)
        entry = builder.block
        loop, done = builder.append_basic_block("loop"), builder.append_basic_block("done")

        outputs = {}  # pointers to a vector of `out`, by its row and vector in the tile
        for r in range(rows):
            row = builder.add(out, builder.mul(out_stride, _I64(r)))
            for v in range(VECTORS):
                outputs[r, v] = _pointer(builder, row, _I64(_VECTOR_BYTES * v), _FLOATS)
        zeros = ir.Constant(_FLOATS, None)
        first_sums = {
            cell: builder.select(adds, builder.load(output, align=4), zeros)
            for cell, output in outputs.items()
        }
        rows_of_a = [builder.add(a, builder.mul(a_stride, _I64(r))) for r in range(rows)]
        builder.branch(loop)

        builder.position_at_end(loop)
        k = builder.phi(_I64)
        sums = {cell: builder.phi(_FLOATS) for cell in outputs}
        line = builder.add(panel, builder.mul(k, _I64(_LINE_BYTES)))
        vectors = [
            builder.load(_pointer(builder, line, _I64(_VECTOR_BYTES * v), _WORDS), align=4)
            for v in range(VECTORS)
        ]
        next_sums = {}
        for r, row_of_a in enumerate(rows_of_a):
            word = _broadcast_word(builder, row_of_a, k)
            for v, vector in enumerate(vectors):
                next_sums[r, v] = multiply_add(sums[r, v], vector, word)
        next_k = builder.add(k, _I64(1))
        for phi, at_entry, after_step in [(k, _I64(0), next_k)] + [
            (sums[cell], first_sums[cell], next_sums[cell]) for cell in outputs
        ]:
            phi.add_incoming(at_entry, entry)
            phi.add_incoming(after_step, loop)
        builder.cbranch(builder.icmp_signed("<", next_k, lines), loop, done)

        builder.position_at_end(done)
        for cell, output in outputs.items():
            builder.store(next_sums[cell], output, align=4)
        return context.get_dummy_value()

    @intrinsic
    def tile(typing, array, a, a_stride, panel, lines, out, out_stride, adds):
        return types.void(array, *[types.intp] * 6, types.boolean), generate

    return tile


def _multiply_add(builder, dtype):
    """A function that emits the sums plus the products of two vectors of words."""
    if dtype == types.uint16:
        instruction, factor = "llvm.x86.avx512bf16.dpbf16ps.512", _PAIRS
        parameters = [_FLOATS, _PAIRS, _PAIRS]
    else:
        instruction, factor = f"llvm.fma.v{LANES}f32", _FLOATS
        parameters = [_FLOATS] * 3
    function = builder.module.globals.get(instruction)
    if function is None:
        kind = ir.FunctionType(_FLOATS, parameters)
        function = ir.Function(builder.module, kind, instruction)

    def multiply_add(sums, vector, word):
        factors = [builder.bitcast(vector, factor), builder.bitcast(word, factor)]
        # The instruction for pairs takes the sums first, the other one last.
        return builder.call(function, [sums, *factors] if factor is _PAIRS else [*factors, sums])

    return multiply_add


def _pointer(builder, address, offset, kind):
    return builder.inttoptr(builder.add(address, offset), kind.as_pointer())


def _broadcast_word(builder, row, k):
    """Word k of a row in all 16 lanes of a vector."""
    word = builder.load(_pointer(builder, row, builder.mul(k, _I64(4)), _I32), align=2)
    undefined = ir.Constant(_WORDS, ir.Undefined)
    first_lane = builder.insert_element(undefined, word, _I32(0))
    return builder.shuffle_vector(first_lane, undefined, ir.Constant(_WORDS, None))


_multiply_4x64, _multiply_1x64 = _multiply_tile(TILE_ROWS), _multiply_tile(1)


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
    _multiply_tiles(a, panels, out, False)


@reassociating_jit
def multiply_add(a, panels, out):
    """`out += a b`; the arguments are those of `multiply`."""
    _multiply_tiles(a, panels, out, True)


@reassociating_inline
def _multiply_tiles(a, panels, out, adds):
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
