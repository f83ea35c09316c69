"""Products with packed weights against float64, and their packing number by number."""

import numpy as np
import pytest
import torch
from numba.core import config

from ptrnet.kernels import packed
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
    found = pack(array(matrix))
    panels, words = -(-columns // 64), 6 // each
    assert found.shape == (panels, words, 64)
    numbers = torch.from_numpy(found.view(np.int32)).view(dtype).view(panels, words, 64, each)
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
    weights = pack(array(b))
    width = 64 * len(weights)
    room = np.full((rows + 2, width + 5), np.nan, np.float32)
    out, part = room[1 : rows + 1, 2 : width + 2], array(a)[1 : rows + 1, 3 : depth + 3]
    exact = (a[1 : rows + 1, 3 : depth + 3].double() @ b.double()).numpy()
    allowed = 1e-6 * depth**0.5 * np.abs(exact).max(initial=1)

    product(part, weights, out)
    assert np.abs(out[:, :columns] - exact).max(initial=0) <= allowed
    assert not out[:, columns:].any()
    add_product(part, weights, out)
    assert np.abs(out[:, :columns] - 2 * exact).max(initial=0) <= 2 * allowed
    out[:] = np.nan
    assert np.isnan(room).all()  # nothing was written beside it


@pytest.mark.parametrize(
    "name, value", [("CPU_NAME", "generic"), ("CPU_FEATURES", "+sse2"), ("DISABLE_JIT", 1)]
)
def test_what_numba_was_told_is_heeded(monkeypatch, name, value):
    monkeypatch.setattr(config, name, value)
    assert not any(available.__wrapped__(dtype) for dtype in DTYPES)


@pytest.mark.parametrize(
    "features, expected",
    [
        ("-avx512f,-avx512bf16", (False, False)),
        ("+avx512f,-avx512bf16", (True, False)),
        ("+avx512f,+avx512bf16,-amx-bf16", (True, True)),
        ("+avx512f,+avx512bf16,+amx-bf16", (True, False)),
    ],
)
def test_what_the_processor_has_decides(monkeypatch, features, expected):
    for name in ("CPU_NAME", "CPU_FEATURES", "DISABLE_JIT"):
        monkeypatch.setattr(config, name, None)
    monkeypatch.setattr(packed, "get_host_cpu_features", lambda: features)
    assert tuple(available.__wrapped__(dtype) for dtype in DTYPES) == expected
    assert not available.__wrapped__(torch.float64)
