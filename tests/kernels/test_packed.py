"""Products with packed weights against float64, and their packing number by number."""

import numpy as np
import pytest
import torch
from numba.core import config

from ptrnet.kernels import packed
from ptrnet.kernels.numerics import as_array
from ptrnet.kernels.packed import can_multiply

DTYPES = (torch.float32, torch.bfloat16)
PANEL = packed.PANEL_COLUMNS


def draw(*shape, dtype=torch.float32):
    torch.manual_seed(sum(shape))
    return torch.randn(shape).to(dtype)


@pytest.mark.parametrize("columns", [1, 64, 70])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_word_holds_consecutive_numbers_of_a_column(dtype, columns):
    matrix, numbers_in_word = draw(6, columns, dtype=dtype), 4 // dtype.itemsize
    packed_matrix = packed.pack(as_array(matrix))
    panels, words = -(-columns // PANEL), 6 // numbers_in_word
    assert packed_matrix.shape == (panels, words, PANEL)
    numbers = torch.from_numpy(packed_matrix.view(np.int32)).view(dtype)
    numbers = numbers.view(panels, words, PANEL, numbers_in_word)
    rows = numbers.permute(1, 3, 0, 2).reshape(6, panels * PANEL)
    assert torch.equal(rows[:, :columns], matrix)
    assert not rows[:, columns:].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_packing_reads_a_transposed_matrix(dtype):
    matrix = draw(70, 6, dtype=dtype)
    assert np.array_equal(packed.pack(as_array(matrix).T), packed.pack(as_array(matrix.t())))


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 9, 12, 17])
@pytest.mark.parametrize("depth, columns", [(2, 1), (256, 64), (34, 200)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_equal_float64(dtype, rows, depth, columns, needs_instructions):
    needs_instructions(dtype)
    a, b = draw(rows + 2, depth + 6, dtype=dtype), draw(depth, columns, dtype=dtype)
    panels = packed.pack(as_array(b))
    width = PANEL * len(panels)
    room = np.full((rows + 2, width + 5), np.nan, np.float32)
    out, part = room[1 : rows + 1, 2 : width + 2], as_array(a)[1 : rows + 1, 3 : depth + 3]
    exact = (a[1 : rows + 1, 3 : depth + 3].double() @ b.double()).numpy()
    tolerated = 1e-6 * depth**0.5 * np.abs(exact).max(initial=1)

    packed.multiply(part, panels, out, False)
    assert np.abs(out[:, :columns] - exact).max(initial=0) <= tolerated
    assert not out[:, columns:].any()
    packed.multiply(part, panels, out, True)
    assert np.abs(out[:, :columns] - 2 * exact).max(initial=0) <= 2 * tolerated
    out[:] = np.nan
    assert np.isnan(room).all()  # no value around it was written


@pytest.mark.parametrize(
    "name, value", [("CPU_NAME", "generic"), ("CPU_FEATURES", "+sse2"), ("DISABLE_JIT", 1)]
)
def test_numbas_own_settings_are_respected(monkeypatch, name, value):
    monkeypatch.setattr(config, name, value)
    assert not any(can_multiply.__wrapped__(dtype) for dtype in DTYPES)


@pytest.mark.parametrize(
    "features, expected",
    [
        ("+avx2 -fma", [False, False]),
        ("+avx2 +fma -avx512f", [True, False]),
        ("+avx2 +fma +avx512f -avx512bf16", [True, False]),
        ("+avx2 +fma +avx512f +avx512bf16", [True, True]),
        ("+avx2 +fma +avx512f +avx512bf16 +amx-bf16", [True, False]),  # PyTorch uses the tiles
    ],
)
def test_can_multiply_follows_the_processors_instructions(monkeypatch, features, expected):
    for name in ("CPU_NAME", "CPU_FEATURES", "DISABLE_JIT"):
        monkeypatch.setattr(config, name, None)
    monkeypatch.setattr(packed, "FEATURES", frozenset(features.split()))
    assert [can_multiply.__wrapped__(dtype) for dtype in DTYPES] == expected
    assert not can_multiply.__wrapped__(torch.float64)
