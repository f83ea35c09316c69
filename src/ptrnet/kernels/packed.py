"""Matrix products with packed weights, in the widest vectors, for recurrent steps of few rows.

Packing reorders the weights for fast reading. PyTorch's product packs the weights again in every
call, and rounds sums to bfloat16 if the factors are bfloat16. On processors that are not Intel's,
PyTorch's product reaches half to two thirds of the processor's float32 rate. Here we pack the
weights once, and sums are float32.

We compute a product `a b` in tiles, where `a` is `(rows, depth)` and `b` is `(depth, columns)`. A
tile is the product of a few rows of `a` and a panel, which is a few columns of `b`. With AVX-512 a
tile has 4 rows and 64 columns: 16 vectors of sums, enough to keep the processor's multipliers busy.
With AVX2, which has half as many registers of half the size, a tile has 6 rows and 16 columns. Each
row that remains at the end has separate tiles. Missing columns of the last panel are packed as
zeros.

A packed panel consists of lines. Step k of a tile reads line k, and word k (32 bits) of each row.
With AVX-512:

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

Each cell of sums is a vector of float32. The sums stay in registers through all steps, and are
written to `out` once, after the last step.

A line has one word for each column of the panel. A word has 32 bits:

    float32     a number            word k = b[k, column]
    bfloat16    a pair of numbers   word k = b[2k + 1, column] << 16 | b[2k, column]

A row of `a` needs no packing: the numbers of a row are next to each other in memory, so the words
already have this form. float32 takes as many steps as the depth, bfloat16 half as many.

We write a tile in LLVM's intermediate language, because numba compiles no Python loop to such code.
numba also never uses the instruction for bfloat16 (VDPBF16PS). In each of 16 lanes, VDPBF16PS
multiplies two pairs of numbers, and adds both products to a float32.
"""

from functools import cache

import numba
import numpy as np
import torch
from llvmlite import ir
from numba.core import config, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic, overload
from torch import Tensor

from ptrnet.kernels.numerics import as_array, reassociating_inline, reassociating_jit
from ptrnet.kernels.threads import even_cuts, run_slices

FEATURES = frozenset(get_host_cpu_features().split(","))
# The number of words in a vector, of vectors in a line of a panel, and of rows in a tile.
LANES, VECTORS, TILE_ROWS = (16, 4, 4) if "+avx512f" in FEATURES else (8, 2, 6)
PANEL_COLUMNS = VECTORS * LANES
_LINE_BYTES = 4 * PANEL_COLUMNS  # bytes of a panel's line, and of a row of a tile's sums

# A slice with fewer multiplications than this (about 70 microseconds) is not worth a thread.
MIN_MULTIPLICATIONS = 2**23

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_WORDS, _FLOATS = ir.VectorType(_I32, LANES), ir.VectorType(ir.FloatType(), LANES)
_VECTOR_BYTES = 4 * LANES


@cache
def can_multiply(dtype: torch.dtype) -> bool:
    """Whether these kernels are the fastest for products of a type on this processor.

    False in these cases:

    - bfloat16, on a processor with AMX tiles, which PyTorch uses
    - a type other than float32 and bfloat16
    - a processor without the instructions of the type: AVX2 and FMA for float32, AVX512-BF16 for
      bfloat16
    - numba was told to compile for another processor, or not at all
    """
    if is_restricted():
        return False
    if dtype == torch.bfloat16:
        return "+avx512bf16" in FEATURES and "+amx-bf16" not in FEATURES
    return dtype == torch.float32 and {"+avx2", "+fma"} <= FEATURES


def is_restricted() -> bool:
    """Whether numba was told to compile for another processor, or not at all."""
    return bool(config.CPU_NAME or config.CPU_FEATURES or config.DISABLE_JIT)  # type: ignore[attr-defined]


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """Return `x W'`, `(..., d_out)`, for float32 x `(..., d_in)` and W `(d_out, d_in)` on the CPU.

    Each thread takes a slice of the rows. The function has no gradients and does not check its
    arguments. Call it only if `can_multiply(torch.float32)`.
    """
    rows, columns = x.numel() // x.shape[-1], len(weight)
    panels = pack(as_array(weight).T)
    product = x.new_empty(rows, PANEL_COLUMNS * len(panels), dtype=torch.float32)
    a, out = as_array(x).reshape(rows, -1), as_array(product)

    def run(_: int, first: int, last: int) -> None:
        multiply(a[first:last], panels, out[first:last], False)

    run_slices(run, even_cuts(rows, rows * weight.numel() // MIN_MULTIPLICATIONS))
    return product[:, :columns].view(*x.shape[:-1], columns)


class _BFloat(ir.Type):
    """LLVM's type of a bfloat16 number, which llvmlite does not define."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


def _multiply_tile(rows: int):
    """Return an intrinsic that multiplies rows by one panel, for use in compiled functions.

    The arguments of the intrinsic:

    - the matrix `a`, of which only the type is used
    - the address of the tile's first row of `a`, and the bytes from row to row
    - the address of a panel, and the number of its lines, at least 1
    - the address of the tile's sums in `out`, and the bytes from row to row
    - whether to add to `out` instead of replacing it
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
        factors = [
            builder.load(_pointer(builder, line, _I64(_VECTOR_BYTES * v), _WORDS), align=4)
            for v in range(VECTORS)
        ]
        next_sums = {}
        for r, row_of_a in enumerate(rows_of_a):
            word = _broadcast_word(builder, row_of_a, k)
            for v, factor in enumerate(factors):
                next_sums[r, v] = multiply_add(sums[r, v], factor, word)
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
    """Return a function that emits code. The code adds products of two vectors of words to sums."""
    if dtype == types.uint16:
        pairs = ir.VectorType(_BFloat(), 2 * LANES)
        instruction, factor = f"llvm.x86.avx512bf16.dpbf16ps.{32 * LANES}", pairs
        parameters = [_FLOATS, pairs, pairs]
    else:
        instruction, factor = f"llvm.fma.v{LANES}f32", _FLOATS
        parameters = [_FLOATS] * 3
    function = builder.module.globals.get(instruction)
    if function is None:
        kind = ir.FunctionType(_FLOATS, parameters)
        function = ir.Function(builder.module, kind, instruction)

    def multiply_add(sums, vector, word):
        factors = [builder.bitcast(vector, factor), builder.bitcast(word, factor)]
        # The sums are the first argument for bfloat16, and the last argument for float32.
        return builder.call(function, factors + [sums] if factor is _FLOATS else [sums, *factors])

    return multiply_add


def _pointer(builder, address, offset, kind):
    return builder.inttoptr(builder.add(address, offset), kind.as_pointer())


def _broadcast_word(builder, row, k):
    """Emit code that copies word k of a row to all lanes of a vector."""
    word = builder.load(_pointer(builder, row, builder.mul(k, _I64(4)), _I32), align=2)
    undefined = ir.Constant(_WORDS, ir.Undefined)
    first_lane = builder.insert_element(undefined, word, _I32(0))
    return builder.shuffle_vector(first_lane, undefined, ir.Constant(_WORDS, None))


_multiply_rows, _multiply_row = _multiply_tile(TILE_ROWS), _multiply_tile(1)


@reassociating_jit
def pack(matrix):
    """Return the panels of a matrix: `(ceil(columns / c), words in a column, c)` uint32.

    c is PANEL_COLUMNS. The matrix is `(depth, columns)` float32, or bfloat16 as uint16 with an even
    depth. The matrix may have any strides.
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
    """Return the number of words in a matrix's column."""


def _word(matrix, k, column):
    """Return word k of a column of a matrix."""


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
def multiply(a, panels, out, adds):
    """Compute `out = a b`, or `out += a b` if `adds` is True, where `panels` are b packed.

    `a` is `(rows, depth)` of b's type, and `out` is `(rows, c len(panels))` float32. In both, the
    numbers of a row are next to each other in memory. Shapes are not checked: other shapes would
    read and write beyond the arrays.
    """
    multiply_tiles(a, panels, out, adds)


@reassociating_inline
def multiply_tiles(a, panels, out, adds):
    """Compute what `multiply` computes, inside another compiled kernel."""
    lines, a_stride, out_stride = panels.shape[1], a.strides[0], out.strides[0]
    rows_in_tiles = a.shape[0] // TILE_ROWS * TILE_ROWS
    for p in range(panels.shape[0]):
        panel, sums = panels[p].ctypes.data, out.ctypes.data + p * _LINE_BYTES
        for r in range(0, rows_in_tiles, TILE_ROWS):
            row, out_row = a.ctypes.data + r * a_stride, sums + r * out_stride
            _multiply_rows(a, row, a_stride, panel, lines, out_row, out_stride, adds)
        for r in range(rows_in_tiles, a.shape[0]):
            row, out_row = a.ctypes.data + r * a_stride, sums + r * out_stride
            _multiply_row(a, row, a_stride, panel, lines, out_row, out_stride, adds)
