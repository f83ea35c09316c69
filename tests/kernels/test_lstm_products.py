"""Compare the two classes of an LSTM's products with float64, through their common interface."""

import pytest
import torch

from ptrnet.kernels import packed
from ptrnet.kernels.lstm.cpu import PackedProducts, TorchProducts, products_class

DTYPES = (torch.float32, torch.bfloat16)
N, BATCH = 3, 9
FIRST, LAST = 2, 8  # the rows of a slice: 4 and 2 more


@pytest.fixture(params=[PackedProducts, TorchProducts])
def kind(request):
    return request.param


def skip_unless_served(kind, dtype, needs_instructions):
    if kind is PackedProducts:
        needs_instructions(dtype)


def draw(d_in, d_out, dtype):
    torch.manual_seed(d_in * d_out)
    return torch.randn(N, BATCH, d_in).to(dtype), torch.randn(d_in, d_out).to(dtype)


def tolerance(kind, dtype):
    """Return the tolerance of numbers of about 10: float32's sums, rounded once or twice."""
    return 0.1 if kind is TorchProducts and dtype == torch.bfloat16 else 1e-4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d_in, d_out", [(16, 64), (34, 128), (64, 16), (32, 70), (2, 3)])
def test_products_of_a_slice_equal_float64(kind, dtype, d_in, d_out, needs_instructions):
    skip_unless_served(kind, dtype, needs_instructions)
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
        both[1].multiply(t, FIRST, LAST, out, adds=True)
        error = (out.tensor[:, :d_out] - expected).abs().max()
        assert error <= 2 * tolerance(kind, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_later_changes_of_the_sequence_are_seen(kind, dtype, needs_instructions):
    """Each step of a layer writes the states that the next step multiplies."""
    skip_unless_served(kind, dtype, needs_instructions)
    sequence, matrix = draw(32, 64, dtype)
    one = kind(sequence, matrix)
    before, after = one.buffer(BATCH), one.buffer(BATCH)
    one.multiply(1, 0, BATCH, before)
    sequence[1] *= 2
    one.multiply(1, 0, BATCH, after)
    assert before.tensor.any() and torch.equal(after.tensor, 2 * before.tensor)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_and_array_of_a_buffer_share_memory(kind, dtype, needs_instructions):
    skip_unless_served(kind, dtype, needs_instructions)
    sequence, matrix = draw(32, 64, dtype)
    out = kind(sequence, matrix).buffer(5)
    out.tensor[1, 2] = 1
    assert out.array[1, 2] and out.array.shape == out.tensor.shape
    assert out.tensor.dtype == (dtype if kind is TorchProducts else torch.float32)


def test_sizes_type_and_processor_decide_on_the_class(monkeypatch):
    single, half = torch.float32, torch.bfloat16
    monkeypatch.setattr(packed, "can_multiply", lambda dtype: True)
    assert products_class(16, 0, half) is PackedProducts
    assert products_class(32, 3, single) is PackedProducts  # an odd number of features
    assert products_class(16, 3, half) is TorchProducts  # no pairs
    assert products_class(18, 0, single) is TorchProducts  # 72 columns do not fill panels
    monkeypatch.setattr(packed, "can_multiply", lambda dtype: False)
    assert products_class(16, 0, single) is TorchProducts
