"""The compiled LSTM against PyTorch's own, sequence by sequence, in float64."""

import pytest
import torch

from ptrnet.kernels import lstm as lstm_module
from ptrnet.kernels import lstm_cpu
from ptrnet.kernels.lstm import cell, lstm, torch_lstm
from ptrnet.kernels.lstm_cpu import compiled_lstm
from ptrnet.kernels.lstm_formula import Weights, naive_lstm

CASES = [(1, 1, 1, 1), (3, 6, 2, 5), (40, 9, 3, 24), (33, 4, 20, 8), (2, 1, 1, 3)]


def draw(batch, n, features, units, dtype=torch.float64):
    torch.manual_seed(batch + n)
    shapes = [(4 * units, features), (4 * units, units), (4 * units,), (4 * units,)]
    tensors = [torch.randn(batch, n, features)]
    tensors += [torch.randn(batch, units) for _ in range(2)]
    tensors += [torch.randn(shape) * 0.3 for shape in shapes]
    lengths = torch.randint(0, n + 1, (batch,))
    lengths[0] = n
    return [t.to(dtype) for t in tensors], lengths


def outcome(layer, tensors, lengths, dtype):
    """Return outputs without padding, last states, and the gradients of a weighted sum of both."""
    tensors = [t.to(dtype).requires_grad_() for t in tensors]
    x, h0, c0, *weights = tensors
    outputs, (h, c) = layer(x, lengths, (h0, c0), Weights(*weights))
    real = (torch.arange(x.shape[1]) < lengths[:, None])[..., None]
    outputs = torch.where(real, outputs.to(dtype), 0)
    torch.manual_seed(9)
    weights_of_parts = [
        torch.randn(part.shape, dtype=torch.float64).to(dtype) for part in (outputs, h, c)
    ]
    score = sum((a * b).sum() for a, b in zip((outputs, h, c), weights_of_parts, strict=True))
    parts = [outputs, h, c, *torch.autograd.grad(score, tensors)]
    return [t.detach().double() for t in parts]


def one_by_one(x, lengths, state, weights):
    """Run each sequence alone through `nn.LSTM`, without padding."""
    layer = torch.nn.LSTM(x.shape[2], state[0].shape[1], batch_first=True).to(x.dtype)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    parameters = dict(zip(names, weights, strict=True))
    outputs, hs, cs = [], [], []
    for b, length in enumerate(lengths.tolist()):
        start = (state[0][None, b : b + 1], state[1][None, b : b + 1])
        if length:
            inputs = (x[b : b + 1, :length], start)
            out, (h, c) = torch.func.functional_call(layer, parameters, inputs)
        else:
            out, (h, c) = x.new_zeros(1, 0, state[0].shape[1]), start
        outputs.append(torch.nn.functional.pad(out[0], (0, 0, 0, x.shape[1] - length)))
        hs.append(h[0, 0])
        cs.append(c[0, 0])
    return torch.stack(outputs), (torch.stack(hs), torch.stack(cs))


@pytest.mark.parametrize("case", CASES)
def test_reference_stops_each_sequence_at_its_length(case):
    tensors, lengths = draw(*case)
    expected = outcome(one_by_one, tensors, lengths, torch.float64)
    actual = outcome(torch_lstm, tensors, lengths, torch.float64)
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("case", CASES)
def test_compiled_is_as_good_as_pytorch_in_float32(case):
    tensors, lengths = draw(*case)
    exact = outcome(torch_lstm, tensors, lengths, torch.float64)
    plain = outcome(torch_lstm, tensors, lengths, torch.float32)
    actual = outcome(compiled_lstm, tensors, lengths, torch.float32)
    for truth, a, b in zip(exact, actual, plain, strict=True):
        tolerated = 4 * (b - truth).abs().max() + 2e-6 * truth.abs().max()
        assert (a - truth).abs().max() <= tolerated


@pytest.mark.parametrize("units", [24, 16, 80])
@pytest.mark.parametrize("features", [3, 17, 24])
def test_compiled_is_as_good_as_pytorch_under_autocast(features, units):
    """Compare with the formula if oneDNN has no bfloat16 layer for the processor."""
    onednn = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    tensors, lengths = draw(40, 9, features, units)
    exact = outcome(torch_lstm, tensors, lengths, torch.float64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain = outcome(torch_lstm if onednn else naive_lstm, tensors, lengths, torch.float32)
        actual = outcome(compiled_lstm, tensors, lengths, torch.float32)
    for truth, a, b in zip(exact, actual, plain, strict=True):
        assert (a - truth).abs().max() <= 3 * (b - truth).abs().max() + 1e-3


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("case", [*CASES, (40, 9, 24, 32)])
def test_results_are_the_same_without_gradients(case, autocast):
    """Without gradients only the latest gates and cells are stored."""
    (x, h0, c0, *weights), lengths = draw(*case, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        outputs, (h, c) = compiled_lstm(x, lengths, (h0, c0), Weights(*weights))
        with torch.no_grad():
            again, last = compiled_lstm(x, lengths, (h0, c0), Weights(*weights))
    real = torch.arange(x.shape[1]) < lengths[:, None]
    assert torch.equal(outputs[real], again[real])
    assert torch.equal(h, last[0]) and torch.equal(c, last[1])


@pytest.mark.parametrize("has_onednn", [False, True])
def test_the_fastest_implementation_is_chosen(has_onednn, monkeypatch):
    calls = []
    monkeypatch.setattr(lstm_module, "has_onednn", lambda: has_onednn)
    for module, name in ((lstm_cpu, "compiled_lstm"), (lstm_module, "torch_lstm")):
        monkeypatch.setattr(module, name, lambda *arguments, name=name: calls.append(name))
    (x, h0, c0, *weights), lengths = draw(40, 9, 2, 18, torch.float32)
    arguments = x, lengths, (h0, c0), Weights(*weights)
    lstm(*arguments)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        lstm(*arguments)
    lstm(x[:31], lengths[:31], (h0[:31], c0[:31]), Weights(*weights))
    with torch.no_grad():
        lstm(*arguments)
    without = "torch_lstm" if has_onednn else "compiled_lstm"
    assert calls == ["compiled_lstm", "compiled_lstm", without, without]


def test_last_state_is_a_copy_and_the_default_type_is_ignored():
    (x, h0, c0, *weights), lengths = draw(40, 9, 2, 16, torch.float32)
    arguments = x, lengths, (h0, c0), Weights(*weights)
    expected = torch_lstm(*arguments)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            outputs, (h, c) = compiled_lstm(*arguments)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close((h, c), expected[1])
    before = outputs.clone()
    h.add_(1), c.add_(1)
    real = torch.arange(x.shape[1]) < lengths[:, None]
    assert torch.equal(outputs[real], before[real])


@pytest.mark.parametrize("part", range(1, 7))
def test_shapes_that_do_not_fit_are_refused(part):
    tensors, lengths = draw(40, 9, 2, 16, torch.float32)
    tensors[part] = torch.cat([tensors[part]] * 2, -1)
    x, h0, c0, *weights = tensors
    with torch.no_grad(), pytest.raises(ValueError, match="expected"):
        compiled_lstm(x, lengths, (h0, c0), Weights(*weights))


@pytest.mark.parametrize("size", [1, 39, 41])
def test_lengths_of_another_batch_are_refused(size):
    (x, h0, c0, *weights), _ = draw(40, 9, 2, 16, torch.float32)
    with torch.no_grad(), pytest.raises(ValueError, match="lengths"):
        compiled_lstm(x, torch.full((size,), 3), (h0, c0), Weights(*weights))


def test_bfloat16_products_do_not_blur_the_inputs():
    """Coordinates that are equal in bfloat16 still give different states."""
    tensors, _ = draw(1, 1, 2, 16, torch.float32)
    h0, c0, *weights = tensors[1:]
    close = torch.tensor([[[0.7, 0.2]]]), torch.tensor([[[0.7005, 0.2]]])
    assert torch.equal(*(p.bfloat16() for p in close))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cells = [lstm(p, torch.tensor([1]), (h0, c0), Weights(*weights))[1][1] for p in close]
    assert not torch.equal(*cells)


def test_large_sums_saturate_without_nan():
    tensors, lengths = draw(4, 3, 2, 8, torch.float32)
    tensors[0] *= 1e4
    for part in outcome(compiled_lstm, tensors, lengths, torch.float32):
        assert part.isfinite().all()


@pytest.mark.parametrize("layer", [lstm, compiled_lstm, torch_lstm])
@pytest.mark.parametrize("shape", [(0, 4, 2), (3, 0, 2)])
def test_empty_sequences_leave_the_state_and_give_no_gradient(layer, shape):
    x = torch.randn(shape, requires_grad=True)
    state = torch.randn(shape[0], 5, requires_grad=True)
    weights = [torch.randn(s, requires_grad=True) for s in ((20, 2), (20, 5), (20,), (20,))]
    lengths = torch.full(shape[:1], shape[1])
    outputs, (h, c) = layer(x, lengths, (state, state), Weights(*weights))
    assert outputs.shape == (*shape[:2], 5)
    assert torch.equal(h, state) and torch.equal(c, state)
    (h.sum() + c.sum()).backward()
    assert (state.grad == 2).all()
    assert not any(w.grad is not None and w.grad.any() for w in weights)


@pytest.mark.parametrize("layer", [lstm, compiled_lstm, torch_lstm])
@pytest.mark.parametrize("bad", [1e5, torch.nan, torch.inf])
def test_padding_may_hold_nan_and_infinity(layer, bad):
    """Compares outputs, states and all gradients except that of the padding itself."""
    tensors, lengths = draw(5, 6, 2, 8, torch.float32)
    clean = outcome(layer, tensors, lengths, torch.float32)
    padding = torch.arange(6) >= lengths[:, None]
    tensors[0] = tensors[0].masked_fill(padding[..., None], bad)
    dirty = outcome(layer, tensors, lengths, torch.float32)
    for k, (a, b) in enumerate(zip(clean, dirty, strict=True)):
        if k == 3:  # the inputs' gradient
            a, b = a[~padding], b[~padding]
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 70])
def test_cells_are_not_rounded_under_autocast(rows):
    """A large cell grows by a small amount at each step, which bfloat16 would round away."""
    units = 4
    weights = Weights(*(torch.zeros(s) for s in ((16, 2), (16, units), (16,), (16,))))
    weights.input_bias[:] = 30.0  # every gate open
    state = torch.zeros(rows, units), torch.full((rows, units), 300.0)
    with torch.autocast("cpu", torch.bfloat16):
        for _ in range(50):
            state = cell(torch.zeros(rows, 2), state, weights)
    assert state[1].dtype == torch.float32 and torch.allclose(state[1], torch.tensor(350.0))


@pytest.mark.parametrize("rows", [1, 70])
def test_a_cell_equals_a_layer_of_one_step(rows):
    """Compare states and gradients with float64."""
    tensors, _ = draw(rows, 1, 3, 16)
    outcomes = []
    for dtype in (torch.float64, torch.float32):
        x, h, c, *weights = (t.to(dtype).requires_grad_() for t in tensors)
        if dtype == torch.float64:
            states = torch.lstm_cell(x[:, 0], (h, c), *weights)
        else:
            states = cell(x[:, 0], (h, c), Weights(*weights))
        grads = torch.autograd.grad(states[0].sum() + states[1].square().sum(), (x, h, c, *weights))
        outcomes.append([t.detach().double() for t in (*states, *grads)])
    for expected, actual in zip(*outcomes, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
