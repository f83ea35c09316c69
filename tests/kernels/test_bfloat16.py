"""Products by AVX512-BF16 against float64, and their packing number by number."""

import numpy as np
import pytest
import torch

from ptrnet.kernels import bfloat16
from ptrnet.kernels.numerics import array


def draw(*shape):
    torch.manual_seed(sum(shape))
    return torch.randn(shape).bfloat16()


@pytest.mark.parametrize("columns", [1, 64, 70])
def test_packing_puts_two_of_a_column_into_one_word(columns):
    matrix = draw(6, columns)
    packed = bfloat16.pack(array(matrix))
    assert packed.shape == (-(-columns // 64), 3, 64)
    halves = torch.from_numpy(packed.view(np.uint16).reshape(-1, 3, 64, 2)).view(torch.bfloat16)
    rows = halves.permute(1, 3, 0, 2).flatten(2).flatten(0, 1)  # (6, columns and padding)
    assert torch.equal(rows[:, :columns], matrix)
    assert not rows[:, columns:].any()


def test_packing_reads_a_transposed_matrix():
    matrix = draw(70, 6)
    expected = bfloat16.pack(array(matrix.t()))
    assert np.array_equal(bfloat16.pack(array(matrix).T), expected)


@pytest.mark.skipif(not bfloat16.available(), reason="needs AVX512-BF16")
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("depth, columns", [(2, 1), (256, 64), (34, 200)])
def test_products_are_those_of_float64(rows, depth, columns):
    a, b = draw(rows + 2, depth + 6), draw(depth, columns)
    packed = bfloat16.pack(array(b))
    width = 64 * len(packed)
    room = np.full((rows + 2, width + 5), np.nan, np.float32)
    out, part = room[1 : rows + 1, 2 : width + 2], array(a)[1 : rows + 1, 3 : depth + 3]
    exact = (a[1 : rows + 1, 3 : depth + 3].double() @ b.double()).numpy()
    allowed = 1e-6 * depth**0.5 * np.abs(exact).max(initial=1)

    bfloat16.product(part, packed, out)
    assert np.abs(out[:, :columns] - exact).max(initial=0) <= allowed
    assert not out[:, columns:].any()
    bfloat16.add_product(part, packed, out)
    assert np.abs(out[:, :columns] - 2 * exact).max(initial=0) <= 2 * allowed
    room[1 : rows + 1, 2 : width + 2] = np.nan
    assert np.isnan(room).all()  # nothing was written beside it
