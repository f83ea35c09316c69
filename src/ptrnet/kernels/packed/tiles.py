"""Packing, and products tile by tile: compiled, and in one file because it is cached by that.

A tile's sums stay in registers throughout. No loop of Python's becomes that, nor the instruction
for bfloat16 (VDPBF16PS), which adds the product of two pairs to each of 16 float32: so a tile is
written in LLVM's own terms.
"""

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from ptrnet.kernels.numerics import jit

LANES, VECTORS = 16, 4  # words in a vector, vectors of a tile's row
COLUMNS = VECTORS * LANES
ROWS = 4  # of a tile: with its vectors 16 sums at a time, enough to keep the processor busy
_LINE = 4 * COLUMNS  # bytes of a tile's row


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


def _tile(rows: int):
    """An intrinsic `(like, a, its stride, panel, words, out, its stride, adds)`.

    Puts the product of `rows` rows of a and a panel, of so many words each, into `out`, or adds it
    to what is there. `like` is an array of a's type; memory is given as addresses and bytes; there
    is at least one word.
    """

    def generate(context, builder, signature, arguments):
        _, a, a_stride, panel, words, out, out_stride, adds = arguments
        multiply = _multiply(builder, signature.args[0].dtype)
        before = builder.block
        loop, done = builder.append_basic_block("loop"), builder.append_basic_block("done")

        places = {}
        for r in range(rows):
            row = builder.add(out, builder.mul(out_stride, _I64(r)))
            for v in range(VECTORS):
                places[r, v] = _at(builder, row, _I64(4 * LANES * v), _FLOATS)
        zeros = ir.Constant(_FLOATS, None)
        given = {
            place: builder.select(adds, builder.load(where, align=4), zeros)
            for place, where in places.items()
        }
        starts = [builder.add(a, builder.mul(a_stride, _I64(r))) for r in range(rows)]
        builder.branch(loop)

        builder.position_at_end(loop)
        k = builder.phi(_I64)
        sums = {place: builder.phi(_FLOATS) for place in places}
        line = builder.add(panel, builder.mul(k, _I64(_LINE)))
        columns = [
            builder.load(_at(builder, line, _I64(4 * LANES * v), _WORDS), align=4)
            for v in range(VECTORS)
        ]
        after = {}
        for r, start in enumerate(starts):
            row = _everywhere(builder, start, k)
            for v, column in enumerate(columns):
                after[r, v] = multiply(sums[r, v], column, row)
        following = builder.add(k, _I64(1))
        for phi, first, then in [(k, _I64(0), following)] + [
            (sums[place], given[place], after[place]) for place in places
        ]:
            phi.add_incoming(first, before)
            phi.add_incoming(then, loop)
        builder.cbranch(builder.icmp_signed("<", following, words), loop, done)

        builder.position_at_end(done)
        for place, where in places.items():
            builder.store(after[place], where, align=4)
        return context.get_dummy_value()

    @intrinsic
    def kernel(typing, like, a, a_stride, panel, words, out, out_stride, adds):
        return types.void(like, *[types.intp] * 6, types.boolean), generate

    return kernel


def _multiply(builder, dtype):
    """Of sums and two vectors of words, the next sums."""
    if dtype == types.uint16:
        name, kind = "llvm.x86.avx512bf16.dpbf16ps.512", _PAIRS
    else:
        name, kind = f"llvm.fma.v{LANES}f32", _FLOATS
    order = [_FLOATS, _PAIRS, _PAIRS] if kind is _PAIRS else [_FLOATS] * 3
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(_FLOATS, order), name)

    def multiply(sums, column, row):
        factors = [builder.bitcast(column, kind), builder.bitcast(row, kind)]
        # One instruction takes the sums first, the other last.
        return builder.call(function, [sums, *factors] if kind is _PAIRS else [*factors, sums])

    return multiply


def _at(builder, base, offset, kind):
    return builder.inttoptr(builder.add(base, offset), kind.as_pointer())


def _everywhere(builder, start, k):
    """Word k of a row, 16 times."""
    word = builder.load(_at(builder, start, builder.mul(k, _I64(4)), _I32), align=2)
    nothing = ir.Constant(_WORDS, ir.Undefined)
    one = builder.insert_element(nothing, word, _I32(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(_WORDS, None))


_rows, _row = _tile(ROWS), _tile(1)


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
        panel, sums = packed[k].ctypes.data, out.ctypes.data + k * _LINE
        for r in range(0, whole, ROWS):
            at = a.ctypes.data + r * a_stride
            _rows(a, at, a_stride, panel, words, sums + r * out_stride, out_stride, adds)
        for r in range(whole, a.shape[0]):
            at = a.ctypes.data + r * a_stride
            _row(a, at, a_stride, panel, words, sums + r * out_stride, out_stride, adds)
