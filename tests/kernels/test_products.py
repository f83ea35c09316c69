"""The four classes of an LSTM's products against float64, through their one interface."""

import pytest
import torch

from ptrnet.kernels import packed
from ptrnet.kernels.lstm.products import (
    AmxProducts,
    Avx2Products,
    Avx512Products,
    TorchProducts,
    can_use_amx,
    products_class,
)
from ptrnet.kernels.packed import avx2, avx512

DTYPES = (torch.float32, torch.bfloat16)
N, BATCH = 3, 9
FIRST, LAST = 2, 8  # the rows of a slice: 4 and 2 more


@pytest.fixture(params=[Avx512Products, Avx2Products, AmxProducts, TorchProducts])
def kind(request):
    return request.param


def skip_unless_served(kind, depths, dtype, needs_instructions):
    if kind in (Avx512Products, Avx2Products):
        needs_instructions(kind.kernel, dtype)
    if kind is AmxProducts:
        if dtype != torch.bfloat16 or any(depth % 32 for depth in depths):
            pytest.skip("no whole tiles of bfloat16")
        if not packed.has_amx():
            pytest.skip("this processor has no AMX")


def draw(d_in, d_out, dtype):
    torch.manual_seed(d_in * d_out)
    return torch.randn(N, BATCH, d_in).to(dtype), torch.randn(d_in, d_out).to(dtype)


def tolerance(kind, dtype):
    """Of numbers of about 10: float32's sums, or sums that are rounded once or twice."""
    return 0.1 if kind is TorchProducts and dtype == torch.bfloat16 else 1e-4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d_in, d_out", [(16, 64), (34, 128), (64, 16), (32, 70), (2, 3)])
def test_products_of_a_slice(kind, dtype, d_in, d_out, needs_instructions):
    skip_unless_served(kind, (d_in, 2 * d_in), dtype, needs_instructions)
    sequence, matrix = draw(d_in, d_out, dtype)
    other_sequence, other = draw(2 * d_in, d_out, dtype)
    both = [kind(sequence, matrix), kind(other_sequence, other.t().contiguous().t())]
    out = both[0].buffer(LAST - FIRST)
    assert not out.tensor.any()
    for t in (1, 0, 2):
        expected = sequence[t, FIRST:LAST].double() @ matrix.double()
        both[0].multiply(t, FIRST, LAST, out)
        error = (out.tensor[:, :d_out] - expected).abs().max()
        assert error <= tolerance(kind, dtype)
        expected += other_sequence[t, FIRST:LAST].double() @ other.double()
        both[1].multiply_add(t, FIRST, LAST, out)
        error = (out.tensor[:, :d_out] - expected).abs().max()
        assert error <= 2 * tolerance(kind, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sequence_is_read_when_it_is_multiplied(kind, dtype, needs_instructions):
    """As the states are, of which each step writes the next."""
    skip_unless_served(kind, (32,), dtype, needs_instructions)
    sequence, matrix = draw(32, 64, dtype)
    one = kind(sequence, matrix)
    before, after = one.buffer(BATCH), one.buffer(BATCH)
    one.multiply(1, 0, BATCH, before)
    sequence[1] *= 2
    one.multiply(1, 0, BATCH, after)
    assert before.tensor.any() and torch.equal(after.tensor, 2 * before.tensor)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_buffer_is_one_memory(kind, dtype, needs_instructions):
    skip_unless_served(kind, (32,), dtype, needs_instructions)
    sequence, matrix = draw(32, 64, dtype)
    out = kind(sequence, matrix).buffer(5)
    out.tensor[1, 2] = 1
    assert out.array[1, 2] and out.array.shape == out.tensor.shape
    assert out.tensor.dtype == (dtype if kind is TorchProducts else torch.float32)


def serve_by(monkeypatch, single, half, tiles):
    """Lets this processor prefer these kernels, for float32 and bfloat16."""
    kernels = {torch.float32: single, torch.bfloat16: half}
    monkeypatch.setattr(packed, "vector_kernel", kernels.get)
    monkeypatch.setattr(packed, "has_amx", lambda: tiles)


def test_sizes_type_and_processor_decide(monkeypatch):
    single, half = torch.float32, torch.bfloat16
    serve_by(monkeypatch, avx512, avx512, False)
    assert products_class(16, 0, half) is Avx512Products
    assert products_class(32, 3, single) is Avx512Products  # an odd number of features
    assert products_class(16, 3, half) is TorchProducts  # no pairs
    assert products_class(24, 0, single) is TorchProducts  # 96 columns are no panels of 64
    serve_by(monkeypatch, avx2, None, False)
    assert products_class(24, 3, single) is Avx2Products
    assert products_class(16, 0, half) is TorchProducts
    assert products_class(6, 0, single) is TorchProducts  # 24 columns are no panels of 16
    serve_by(monkeypatch, None, None, False)
    assert products_class(16, 0, single) is TorchProducts


def test_amx_decides(monkeypatch):
    serve_by(monkeypatch, avx512, avx512, True)
    assert products_class(32, 64, torch.bfloat16) is AmxProducts
    assert not can_use_amx(32, 0, torch.float32)
    assert not can_use_amx(16, 0, torch.bfloat16) and not can_use_amx(32, 8, torch.bfloat16)
    assert products_class(16, 0, torch.bfloat16) is Avx512Products
