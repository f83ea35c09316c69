"""Products with packed weights against float64, and their packing number by number."""

import numpy as np
import pytest
import torch

from ptrnet.kernels.numerics import array
from ptrnet.kernels.packed import add_product, available, pack, product

DTYPES = (torch.float32, torch.bfloat16)


def draw(*shape, dtype):
    torch.manual_seed(sum(shape))
    return torch.randn(shape).to(dtype)


@pytest.mark.parametrize("columns", [1, 64, 70])
@pytest.mark.parametrize("dtype", DTYPES)
def test_packing_puts_what_is_one_above_the_other_into_one_word(dtype, columns):
    matrix, each = draw(6, columns, dtype=dtype), 4 // dtype.itemsize
    packed = pack(array(matrix))
    panels, words = -(-columns // 64), 6 // each
    assert packed.shape == (panels, words, 64)
    numbers = torch.from_numpy(packed.view(np.int32)).view(dtype).view(panels, words, 64, each)
    rows = numbers.permute(1, 3, 0, 2).reshape(6, panels * 64)
    assert torch.equal(rows[:, :columns], matrix)
    assert not rows[:, columns:].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_packing_reads_a_transposed_matrix(dtype):
    matrix = draw(70, 6, dtype=dtype)
    assert np.array_equal(pack(array(matrix).T), pack(array(matrix.t())))


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("depth, columns", [(2, 1), (256, 64), (34, 200)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_are_those_of_float64(dtype, rows, depth, columns):
    if not available(dtype):
        pytest.skip(f"this processor has no instructions for {dtype}")
    a, b = draw(rows + 2, depth + 6, dtype=dtype), draw(depth, columns, dtype=dtype)
    packed = pack(array(b))
    width = 64 * len(packed)
    room = np.full((rows + 2, width + 5), np.nan, np.float32)
    out, part = room[1 : rows + 1, 2 : width + 2], array(a)[1 : rows + 1, 3 : depth + 3]
    exact = (a[1 : rows + 1, 3 : depth + 3].double() @ b.double()).numpy()
    allowed = 1e-6 * depth**0.5 * np.abs(exact).max(initial=1)

    product(part, packed, out)
    assert np.abs(out[:, :columns] - exact).max(initial=0) <= allowed
    assert not out[:, columns:].any()
    add_product(part, packed, out)
    assert np.abs(out[:, :columns] - 2 * exact).max(initial=0) <= 2 * allowed
    out[:] = np.nan
    assert np.isnan(room).all()  # nothing was written beside it
