"""Products with packed weights against float64, and their packing number by number."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from numba.core import config

from ptrnet.kernels import packed
from ptrnet.kernels.numerics import as_array
from ptrnet.kernels.packed import amx, avx2, avx512, vector_kernel

DTYPES = (torch.float32, torch.bfloat16)
KERNELS = [(avx512, torch.float32), (avx512, torch.bfloat16), (avx2, torch.float32)]


def draw(*shape, dtype=torch.float32):
    torch.manual_seed(sum(shape))
    return torch.randn(shape).to(dtype)


@pytest.mark.parametrize("columns", [1, 64, 70])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_word_has_the_numbers_of_a_column_that_follow_each_other(dtype, columns):
    matrix, numbers_in_word = draw(6, columns, dtype=dtype), 4 // dtype.itemsize
    packed_matrix = avx512.pack(as_array(matrix))
    panels, words = -(-columns // 64), 6 // numbers_in_word
    assert packed_matrix.shape == (panels, words, 64)
    numbers = torch.from_numpy(packed_matrix.view(np.int32)).view(dtype)
    numbers = numbers.view(panels, words, 64, numbers_in_word)
    rows = numbers.permute(1, 3, 0, 2).reshape(6, panels * 64)
    assert torch.equal(rows[:, :columns], matrix)
    assert not rows[:, columns:].any()


@pytest.mark.parametrize("columns", [1, 16, 40])
def test_a_panel_of_avx2_has_sixteen_columns(columns):
    matrix = draw(5, columns)
    panels = avx2.pack(as_array(matrix))
    assert panels.shape == (-(-columns // 16), 5, 16)
    lines = np.concatenate(panels, axis=1)
    assert np.array_equal(lines[:, :columns], as_array(matrix)) and not lines[:, columns:].any()


@pytest.mark.parametrize("kernel, dtype", KERNELS)
def test_packing_reads_a_transposed_matrix(kernel, dtype):
    matrix = draw(70, 6, dtype=dtype)
    assert np.array_equal(kernel.pack(as_array(matrix).T), kernel.pack(as_array(matrix.t())))


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 9, 12, 17])
@pytest.mark.parametrize("depth, columns", [(2, 1), (256, 64), (34, 200)])
@pytest.mark.parametrize("kernel, dtype", KERNELS)
def test_products_are_those_of_float64(kernel, dtype, rows, depth, columns, needs_instructions):
    needs_instructions(kernel, dtype)
    a, b = draw(rows + 2, depth + 6, dtype=dtype), draw(depth, columns, dtype=dtype)
    panels = kernel.pack(as_array(b))
    width = kernel.PANEL_COLUMNS * len(panels)
    room = np.full((rows + 2, width + 5), np.nan, np.float32)
    out, part = room[1 : rows + 1, 2 : width + 2], as_array(a)[1 : rows + 1, 3 : depth + 3]
    exact = (a[1 : rows + 1, 3 : depth + 3].double() @ b.double()).numpy()
    tolerated = 1e-6 * depth**0.5 * np.abs(exact).max(initial=1)

    kernel.multiply(part, panels, out)
    assert np.abs(out[:, :columns] - exact).max(initial=0) <= tolerated
    assert not out[:, columns:].any()
    kernel.multiply_add(part, panels, out)
    assert np.abs(out[:, :columns] - 2 * exact).max(initial=0) <= 2 * tolerated
    out[:] = np.nan
    assert np.isnan(room).all()  # nothing around it was written


@pytest.mark.parametrize(
    "name, value", [("CPU_NAME", "generic"), ("CPU_FEATURES", "+sse2"), ("DISABLE_JIT", 1)]
)
def test_numbas_own_settings_are_respected(monkeypatch, name, value):
    monkeypatch.setattr(config, name, value)
    assert [vector_kernel.__wrapped__(dtype) for dtype in DTYPES] == [None, None]


@pytest.mark.parametrize(
    "features, expected",
    [
        ("-avx2,+fma,-avx512f", [None, None]),
        ("+avx2,-fma,-avx512f", [None, None]),
        ("+avx2,+fma,-avx512f,-avx512bf16", [avx2, None]),
        ("+avx2,+fma,+avx512f,-avx512bf16", [avx512, None]),
        ("+avx2,+fma,+avx512f,+avx512bf16", [avx512, avx512]),
    ],
)
def test_the_processors_instructions_decide(monkeypatch, features, expected):
    monkeypatch.setattr(amx, "is_permitted", lambda: False)
    for name in ("CPU_NAME", "CPU_FEATURES", "DISABLE_JIT"):
        monkeypatch.setattr(config, name, None)
    monkeypatch.setattr(packed, "get_host_cpu_features", lambda: features)
    assert [vector_kernel.__wrapped__(dtype) for dtype in DTYPES] == expected
    assert vector_kernel.__wrapped__(torch.float64) is None


def test_amx_goes_first(monkeypatch):
    for name in ("CPU_NAME", "CPU_FEATURES", "DISABLE_JIT"):
        monkeypatch.setattr(config, name, None)
    monkeypatch.setattr(amx, "is_permitted", lambda: True)
    monkeypatch.setattr(packed, "get_host_cpu_features", lambda: "+avx512f,+avx512bf16")
    assert packed.has_amx()
    assert vector_kernel.__wrapped__(torch.bfloat16) is None
    assert vector_kernel.__wrapped__(torch.float32) is avx512
    monkeypatch.setattr(config, "CPU_NAME", "generic")
    assert not packed.has_amx()


def test_amx_needs_the_processor_and_the_system(monkeypatch):
    monkeypatch.setattr(amx, "get_host_cpu_features", lambda: "+avx512f,-amx-bf16")
    assert not amx.is_permitted.__wrapped__()
    monkeypatch.setattr(amx, "get_host_cpu_features", lambda: "+amx-bf16")
    monkeypatch.setattr(amx.sys, "platform", "win32")
    assert not amx.is_permitted.__wrapped__()


@pytest.mark.parametrize("columns", [1, 32, 70])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_row_of_a_matrix_tile_has_a_pair_of_each_column(columns, transposed):
    matrix = draw(64, columns, dtype=torch.bfloat16)
    stored = as_array(matrix.t()).T if transposed else as_array(matrix)
    panels = -(-columns // 32)
    packed_matrix = amx.pack(stored)
    assert packed_matrix.shape == (panels, 2, 2, 16, 16)
    pairs = torch.from_numpy(packed_matrix.view(np.int32)).view(torch.bfloat16)
    pairs = pairs.view(panels, 2, 2, 16, 16, 2)  # panel, step, half, pair, column, which
    numbers = pairs.permute(1, 3, 5, 0, 2, 4).reshape(64, panels * 32)
    assert torch.equal(numbers[:, :columns], matrix)
    assert not numbers[:, columns:].any()


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 31, 32, 33, 64, 75])
@pytest.mark.parametrize("depth, columns", [(32, 1), (256, 64), (96, 200)])
def test_products_by_amx_are_those_of_float64(rows, depth, columns, needs_amx):
    a, b = (
        draw(*shape, dtype=torch.bfloat16) for shape in [(rows + 2, depth + 6), (depth, columns)]
    )
    panels = amx.pack(as_array(b))
    width = 32 * len(panels)
    room = np.full((rows + 2, width + 5), np.nan, np.float32)
    out, part = room[1 : rows + 1, 2 : width + 2], as_array(a)[1 : rows + 1, 3 : depth + 3]
    exact = (a[1 : rows + 1, 3 : depth + 3].double() @ b.double()).numpy()
    tolerated = 1e-6 * depth**0.5 * np.abs(exact).max(initial=1)

    amx.multiply(part, panels, out)
    assert np.abs(out[:, :columns] - exact).max(initial=0) <= tolerated
    assert not out[:, columns:].any()
    amx.multiply_add(part, panels, out)
    assert np.abs(out[:, :columns] - 2 * exact).max(initial=0) <= 2 * tolerated
    out[:] = np.nan
    assert np.isnan(room).all()  # nothing around it was written


def test_threads_have_tiles_of_their_own(needs_amx):
    """Each configures its tiles anew, whatever another has done in between."""
    torch.manual_seed(1)
    shapes = [(rows, depth) for rows in (3, 16, 40) for depth in (32, 128)]
    work = [
        (draw(*shape, dtype=torch.bfloat16), draw(shape[1], 64, dtype=torch.bfloat16))
        for shape in shapes
    ]
    expected = [(a.double() @ b.double()).numpy() for a, b in work]
    panels = [amx.pack(as_array(b)) for _, b in work]

    def errors(k):
        out = np.empty((len(work[k % 6][0]), 64), np.float32)
        amx.multiply(as_array(work[k % 6][0]), panels[k % 6], out)
        return np.abs(out - expected[k % 6]).max()

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(errors, range(600))) < 1e-3
