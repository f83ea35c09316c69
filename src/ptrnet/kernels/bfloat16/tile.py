"""A tile of a product, whose sums stay in registers: in LLVM's own terms.

No loop of Python's becomes the instruction (VDPBF16PS), which adds the product of two pairs of
bfloat16 to each of 16 float32.
"""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

LANES, VECTORS = 16, 4  # numbers in a vector, vectors of a tile's row
COLUMNS = VECTORS * LANES
LINE = 4 * LANES  # bytes of a vector


class _BFloat(ir.Type):
    """LLVM's type, which llvmlite has no name for."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


_I32, _I64 = ir.IntType(32), ir.IntType(64)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_WORDS = ir.VectorType(_I32, LANES)
_PAIRS = ir.VectorType(_BFloat(), 2 * LANES)
_DOT = ir.FunctionType(_FLOATS, [_FLOATS, _PAIRS, _PAIRS])


def tile(rows: int):
    """An intrinsic `(a, its stride, panel, pairs, out, its stride, adds)`.

    Puts the product of `rows` rows of a and a panel, over so many pairs, into `out`, or adds it to
    what is there. Memory is given as addresses and bytes; at least one pair.
    """

    def generate(context, builder, signature, arguments):
        a, a_stride, panel, pairs, out, out_stride, adds = arguments
        name = "llvm.x86.avx512bf16.dpbf16ps.512"
        dot = builder.module.globals.get(name) or ir.Function(builder.module, _DOT, name)
        before = builder.block
        loop, done = builder.append_basic_block("loop"), builder.append_basic_block("done")

        places = {}
        for r in range(rows):
            row = builder.add(out, builder.mul(out_stride, _I64(r)))
            for v in range(VECTORS):
                places[r, v] = _at(builder, row, _I64(v * LINE), _FLOATS)
        zeros = ir.Constant(_FLOATS, None)
        given = {
            place: builder.select(adds, builder.load(where, align=4), zeros)
            for place, where in places.items()
        }
        starts = [builder.add(a, builder.mul(a_stride, _I64(r))) for r in range(rows)]
        builder.branch(loop)

        builder.position_at_end(loop)
        pair = builder.phi(_I64)
        sums = {place: builder.phi(_FLOATS) for place in places}
        line = builder.add(panel, builder.mul(pair, _I64(VECTORS * LINE)))
        columns = [_pairs(builder, line, v) for v in range(VECTORS)]
        after = {}
        for r, start in enumerate(starts):
            row = _everywhere(builder, start, pair)
            for v, column in enumerate(columns):
                after[r, v] = builder.call(dot, [sums[r, v], column, row])
        following = builder.add(pair, _I64(1))
        for phi, first, then in [(pair, _I64(0), following)] + [
            (sums[place], given[place], after[place]) for place in places
        ]:
            phi.add_incoming(first, before)
            phi.add_incoming(then, loop)
        builder.cbranch(builder.icmp_signed("<", following, pairs), loop, done)

        builder.position_at_end(done)
        for place, where in places.items():
            builder.store(after[place], where, align=4)
        return context.get_dummy_value()

    @intrinsic
    def kernel(typing, a, a_stride, panel, pairs, out, out_stride, adds):
        return types.void(*[types.intp] * 6, types.boolean), generate

    return kernel


def _at(builder, base, offset, kind):
    return builder.inttoptr(builder.add(base, offset), kind.as_pointer())


def _pairs(builder, line, v):
    """Vector v of a panel's line: a pair of each of 16 columns."""
    words = builder.load(_at(builder, line, _I64(v * LINE), _WORDS), align=4)
    return builder.bitcast(words, _PAIRS)


def _everywhere(builder, start, pair):
    """That pair of a row, 16 times."""
    word = builder.load(_at(builder, start, builder.mul(pair, _I64(4)), _I32), align=2)
    nothing = ir.Constant(_WORDS, ir.Undefined)
    one = builder.insert_element(nothing, word, _I32(0))
    return builder.bitcast(builder.shuffle_vector(one, nothing, ir.Constant(_WORDS, None)), _PAIRS)
