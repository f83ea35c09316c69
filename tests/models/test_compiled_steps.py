"""Compiled decoder steps of the transformer: their results, and when PyTorch must compute them."""

import pytest
import torch

from ptrnet import kernels
from ptrnet.errors import ShapeError
from tests.models.test_transformer import CASES, OPTIONS, POINTS, N, build


@pytest.fixture(autouse=True)
def loaded(monkeypatch):
    """Use compiled code from the first step."""
    monkeypatch.setattr(kernels, "STEPS_BEFORE", 0)


@CASES
def test_compiled_steps_equal_those_of_pytorch(options):
    model, lengths = build(options), torch.tensor([N, 2 * N])
    points = torch.rand(2, 2 * N, 2, generator=torch.Generator().manual_seed(2))
    targets = torch.tensor([[2, 4, 3, 1, 5, 0], [8, 2, 1, 6, 3, 0]])
    expected = model.log_probs(points.double(), lengths, targets)
    with torch.no_grad():
        encoded = model.float().encode(points, lengths)
        state, last = encoded.state, torch.zeros(2, 1, dtype=torch.int64)
        for i in range(targets.shape[1]):
            row, state = model.step(encoded, state, last)
            torch.testing.assert_close(row[:, 0].double(), expected[:, i], atol=1e-4, rtol=1e-5)
            last = targets[:, i : i + 1]
    (compiled,) = encoded.compiled
    assert len(compiled.layers) == len(model.decoder) and None not in compiled.layers
    assert (compiled.frames is not None) == ("edge_frames" in options)


@CASES
def test_pytorch_computes_steps_with_gradients_or_in_other_dtypes(options):
    model, points = build(options), torch.tensor([POINTS] * 20)
    start = torch.zeros(20, 1, dtype=torch.int64)
    with torch.no_grad():
        encoded = model.encode(points.double())
        model.step(encoded, encoded.state, start)
    assert not encoded.compiled
    encoded = model.float().encode(points)
    model.step(encoded, encoded.state, start)
    assert not encoded.compiled
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        encoded = model.encode(points)
        _, state = model.step(encoded, encoded.state, start)
    assert not encoded.compiled
    with torch.no_grad():  # the kernels cannot read a bfloat16 state, so PyTorch computes the step
        model.step(model.encode(points), state, start)


@torch.no_grad()
def test_pytorch_computes_layers_with_hooks_or_replaced_parts():
    """Compiled code would ignore both."""
    model, points = build(OPTIONS[2]).float(), torch.tensor([POINTS])
    calls = []
    handles = [
        model.decoder[0].cross.query.register_forward_hook(lambda *a: calls.append(1)),
        model.frames.looks[1].register_forward_pre_hook(lambda *a: calls.append(1)),
    ]
    encoded = model.encode(points)
    model.step(encoded, encoded.state, torch.zeros(1, 1, dtype=torch.int64))
    assert len(calls) == 2 and encoded.compiled == [((None,), None)]
    for handle in handles:
        handle.remove()
    model.decoder[0].feed_forward[1] = torch.nn.GELU()
    encoded = model.encode(points)
    model.step(encoded, encoded.state, torch.zeros(1, 1, dtype=torch.int64))
    assert encoded.compiled[0].layers == (None,) and encoded.compiled[0].frames is not None


@torch.no_grad()
def test_pytorch_calls_forward_if_the_user_replaced_it():
    """Compiled code would ignore the user's function."""
    model, points, calls = build(OPTIONS[2]).float(), torch.tensor([POINTS]), []
    for part in (model.decoder[0].cross.query, model.frames.looks[1]):

        def count(*tensors, part=part, forward=part.forward):
            calls.append(part)
            return forward(*tensors)

        part.forward = count
    encoded = model.encode(points)
    model.step(encoded, encoded.state, torch.zeros(1, 1, dtype=torch.int64))
    assert len(calls) == 2 and encoded.compiled == [((None,), None)]


@torch.no_grad()
def test_state_of_another_shape_is_refused():
    model, points = build(OPTIONS[2]).float(), torch.tensor([POINTS] * 3)
    encoded = model.encode(points)
    with pytest.raises(ShapeError, match="expected keys and values of 3 x 4 prefixes"):
        model.step(encoded, encoded.state, torch.zeros(3, 4, dtype=torch.int64))
    alone = model.encode(points[:1])
    with pytest.raises(ShapeError, match="expected keys and values of 3 x 1 prefixes"):
        model.step(encoded, alone.state, torch.zeros(1, 1, dtype=torch.int64))


@torch.no_grad()
def test_state_may_have_any_strides():
    model, points = build(OPTIONS[0]).float(), torch.rand(3, N, 2)
    encoded, tokens = model.encode(points), torch.tensor([[2], [3], [4]])
    _, state = model.step(encoded, encoded.state, torch.zeros_like(tokens))
    other = tuple(s.expand(-1, 4, -1, -1).to(memory_format=torch.channels_last) for s in state)
    expected, after = model.step(encoded, state, tokens)
    log_probs, other_after = model.step(encoded, other, tokens.expand(-1, 4))
    torch.testing.assert_close(log_probs, expected.expand(-1, 4, -1))
    for s, t in zip(after, other_after, strict=True):
        assert torch.equal(s.expand_as(t), t)
