"""A tile of a product with packed weights, in vectors of float32, as LLVM has it.

A product `a b` of a `(rows, depth)` and b `(depth, columns)` is computed in tiles: a few rows of
`a` by a panel of b's columns, as many as a few vectors hold. Packing has laid out a panel line by
line, in the order in which they are read. In step k of a tile of 4 rows and 4 vectors of 16:

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

Each of the sums is a vector of float32. They stay in registers through all steps and are written to
`out` once, after the last.

A word is 32 bits. A line has one for each column of the panel:

    float32     a number            word k = b[k, column]
    bfloat16    a pair of numbers   word k = b[2k + 1, column] << 16 | b[2k, column]

A row of `a` has its pairs in that order without being packed: its numbers are next to each other.
So float32 takes as many steps as the depth, bfloat16 half as many.

No loop of Python's is compiled to this, nor to the instruction for bfloat16 (VDPBF16PS), which
adds the products of two pairs to each of 16 float32: so a tile is written in LLVM's own terms.
numba caches by the text of a function's own file: after a change here, functions of other files
stay as they were compiled until the cache is removed.
"""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_I32, _I64 = ir.IntType(32), ir.IntType(64)


class _BFloat(ir.Type):
    """LLVM's type, which llvmlite has no name for."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


def multiply_tile(rows: int, vectors: int, lanes: int):
    """The product of so many rows and one panel, as an intrinsic for compiled functions.

    Its arguments: an array of a's type; the address of a's first row and the bytes from row to
    row; the address of a panel and the number of its lines, at least 1; the address of the sums in
    `out` and the bytes from row to row; whether to add to what is in `out` instead of replacing it.

    Args:
        rows: of a and of `out`.
        vectors: in a line of the panel. Rows times vectors are the sums in registers.
        lanes: words in a vector; 16 where they are pairs of bfloat16.
    """
    words, floats = ir.VectorType(_I32, lanes), ir.VectorType(ir.FloatType(), lanes)
    vector_bytes, line_bytes = 4 * lanes, 4 * lanes * vectors

    def generate(context, builder, signature, arguments):
        _, a, a_stride, panel, lines, out, out_stride, adds = arguments
        multiply_add = _multiply_add(builder, signature.args[0].dtype, lanes)
        entry = builder.block
        loop, done = builder.append_basic_block("loop"), builder.append_basic_block("done")

        outputs = {}  # pointers to a vector of `out`, by its row and vector in the tile
        for r in range(rows):
            row = builder.add(out, builder.mul(out_stride, _I64(r)))
            for v in range(vectors):
                outputs[r, v] = _pointer(builder, row, _I64(vector_bytes * v), floats)
        zeros = ir.Constant(floats, None)
        first_sums = {
            cell: builder.select(adds, builder.load(output, align=4), zeros)
            for cell, output in outputs.items()
        }
        rows_of_a = [builder.add(a, builder.mul(a_stride, _I64(r))) for r in range(rows)]
        builder.branch(loop)

        builder.position_at_end(loop)
        k = builder.phi(_I64)
        sums = {cell: builder.phi(floats) for cell in outputs}
        line = builder.add(panel, builder.mul(k, _I64(line_bytes)))
        factors = [
            builder.load(_pointer(builder, line, _I64(vector_bytes * v), words), align=4)
            for v in range(vectors)
        ]
        next_sums = {}
        for r, row_of_a in enumerate(rows_of_a):
            word = _broadcast_word(builder, row_of_a, k, words)
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


def _multiply_add(builder, dtype, lanes):
    """A function that emits the sums plus the products of two vectors of words."""
    floats = ir.VectorType(ir.FloatType(), lanes)
    if dtype == types.uint16:
        pairs = ir.VectorType(_BFloat(), 2 * lanes)
        instruction, factor = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}", pairs
        parameters = [floats, pairs, pairs]
    else:
        instruction, factor = f"llvm.fma.v{lanes}f32", floats
        parameters = [floats] * 3
    function = builder.module.globals.get(instruction)
    if function is None:
        kind = ir.FunctionType(floats, parameters)
        function = ir.Function(builder.module, kind, instruction)

    def multiply_add(sums, vector, word):
        factors = [builder.bitcast(vector, factor), builder.bitcast(word, factor)]
        # The instruction for pairs takes the sums first, the other one last.
        return builder.call(function, factors + [sums] if factor is floats else [sums, *factors])

    return multiply_add


def _pointer(builder, address, offset, kind):
    return builder.inttoptr(builder.add(address, offset), kind.as_pointer())


def _broadcast_word(builder, row, k, words):
    """Word k of a row in all lanes of a vector."""
    word = builder.load(_pointer(builder, row, builder.mul(k, _I64(4)), _I32), align=2)
    undefined = ir.Constant(words, ir.Undefined)
    first_lane = builder.insert_element(undefined, word, _I32(0))
    return builder.shuffle_vector(first_lane, undefined, ir.Constant(words, None))
