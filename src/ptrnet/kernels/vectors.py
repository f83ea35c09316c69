"""Vectors of eight numbers in compiled functions, and sums of products from them.

LLVM vectorises loops that pass over an array once. A product of matrices is fast only if a block of
the result stays in the processor's registers while the loop passes over the factors. LLVM does not
find such blocks, so `add_product` names them: its variables are vectors.

After a change in this file, remove numba's cache, see `numerics`.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from ptrnet.kernels.numerics import in_order_inner

LANES = 8  # numbers of a vector, 256 bits. LLVM splits vectors for processors with shorter ones
COLUMNS = 2 * LANES  # the numbers of columns in `add_product` are multiples of this

_VECTOR = ir.VectorType(ir.FloatType(), LANES)


class _Vector(types.Type):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(name=f"float32x{LANES}")


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager, numba_type):
        super().__init__(manager, numba_type, _VECTOR)


_vector = _Vector()


@intrinsic
def load_vector(typing, array, row, column):
    """Return the numbers from `array[row, column]` on."""

    def generate(context, builder, signature, arguments):
        return builder.load(_pointer(context, builder, signature, arguments), align=4)

    return _vector(array, types.intp, types.intp), generate


@intrinsic
def store_vector(typing, array, row, column, vector):
    """Write a vector to `array[row, column]` and the numbers after it."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments)
        builder.store(arguments[3], pointer, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, _vector), generate


@intrinsic
def spread(typing, number):
    """Return a vector of equal numbers."""

    def generate(context, builder, signature, arguments):
        return _spread(builder, arguments[0])

    return _vector(types.float32), generate


@intrinsic
def multiply_add(typing, number, vector, addend):
    """Return `number * vector + addend`, rounded once if the processor can."""

    def generate(context, builder, signature, arguments):
        number, vector, addend = arguments
        product = builder.fmul(_spread(builder, number), vector, flags=["contract"])
        return builder.fadd(product, addend, flags=["contract"])

    return _vector(types.float32, _vector, _vector), generate


def _spread(builder, number):
    undefined, first = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    indices = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(
        builder.insert_element(undefined, number, first), undefined, indices
    )


def _pointer(context, builder, signature, arguments):
    """The address of `array[row, column]`, where `arguments` begin with array, row and column."""
    array_type = signature.args[0]
    array = context.make_array(array_type)(context, builder, arguments[0])
    pointer = cgutils.get_item_pointer(
        context, builder, array_type, array, arguments[1:3], wraparound=False
    )
    return builder.bitcast(pointer, _VECTOR.as_pointer())


@in_order_inner
def add_product(weight, x, out):
    """Add `weight @ x` to `out`, in blocks of four rows and two vectors.

    Args:
        weight: `(M, K)` with any strides. A row beyond M is not read.
        x: `(K, W)`, rows without gaps, W a multiple of `COLUMNS`.
        out: `(M, W)`, rows without gaps.
    """
    last = len(out) - 1
    for a in range(0, len(out), 4):
        # The last block may have fewer than four rows. It computes its last row repeatedly.
        b, c, d = min(a + 1, last), min(a + 2, last), min(a + 3, last)
        for j in range(0, out.shape[1], COLUMNS):
            a0, a1 = load_vector(out, a, j), load_vector(out, a, j + LANES)
            b0, b1 = load_vector(out, b, j), load_vector(out, b, j + LANES)
            c0, c1 = load_vector(out, c, j), load_vector(out, c, j + LANES)
            d0, d1 = load_vector(out, d, j), load_vector(out, d, j + LANES)
            for k in range(len(x)):
                x0, x1 = load_vector(x, k, j), load_vector(x, k, j + LANES)
                a0, a1 = multiply_add(weight[a, k], x0, a0), multiply_add(weight[a, k], x1, a1)
                b0, b1 = multiply_add(weight[b, k], x0, b0), multiply_add(weight[b, k], x1, b1)
                c0, c1 = multiply_add(weight[c, k], x0, c0), multiply_add(weight[c, k], x1, c1)
                d0, d1 = multiply_add(weight[d, k], x0, d0), multiply_add(weight[d, k], x1, d1)
            store_vector(out, a, j, a0)
            store_vector(out, a, j + LANES, a1)
            store_vector(out, b, j, b0)
            store_vector(out, b, j + LANES, b1)
            store_vector(out, c, j, c0)
            store_vector(out, c, j + LANES, c1)
            store_vector(out, d, j, d0)
            store_vector(out, d, j + LANES, d1)
