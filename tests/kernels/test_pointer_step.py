"""Compiled steps of a decoder and its pointer against the formulas in float64."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from ptrnet import decoding, models
from ptrnet.errors import ShapeError
from ptrnet.kernels import pointer_step
from ptrnet.kernels.additive import cpu, naive_scores
from ptrnet.kernels.lstm import Weights, naive_cell
from ptrnet.models.base import masked_log_softmax

pytestmark = pytest.mark.skipif(
    not pointer_step.can_serve(2, 64), reason="needs a processor with AVX-512"
)
# Instances, prefixes, keys, units, features: one slice and two; rows that do not fill tiles of 4.
POINTERS = [
    name
    for name in models.names()
    if {"cell", "score", "n"} & {*models.setting_names(name)} == {"cell", "score"}
]
SIZES = [
    (5, 1, 7, 64, 2),
    (64, 1, 50, 64, 2),
    (33, 3, 9, 128, 1),
    (40, 8, 11, 64, 16),
    (1, 64, 9, 64, 2),
]


def draw(batch, size, n, units, features, scale=1.0):
    torch.manual_seed(batch * size)
    weights = Weights(
        torch.randn(4 * units, features) * 0.3,
        torch.randn(4 * units, units) * units**-0.5,
        torch.randn(4 * units) * 0.3,
        torch.randn(4 * units) * 0.3,
    )
    query, v = torch.randn(units, units) * scale * units**-0.5, torch.randn(units)
    keys, lengths = torch.randn(batch, n, units), torch.randint(1, n + 1, (batch,))
    state = torch.randn(batch, size, units).tanh(), torch.randn(batch, size, units)
    return weights, query, v, keys, lengths, torch.rand(batch, size, features), state


def formulas(weights, query, v, keys, lengths, inputs, state):
    weights = Weights(*(w.double() for w in weights))
    rows = [t.double().flatten(0, 1) for t in (inputs, *state)]
    h, c = naive_cell(rows[0], (rows[1], rows[2]), weights)
    h, c = h.view(state[0].shape), c.view(state[0].shape)
    queries = h @ query.double().t()
    scores = naive_scores(keys.double(), queries, v.double(), lengths)
    return masked_log_softmax(scores, lengths), h, c


@pytest.mark.parametrize("size", SIZES)
def test_compiled_steps_equal_the_formulas(size):
    """Make three steps, each from the state before, and then a step with fewer prefixes."""
    weights, query, v, keys, lengths, inputs, state = draw(*size)
    step = pointer_step.PointerStep(weights, query, cpu.prepared_scores(keys, v, lengths))
    for prefixes in (size[1], size[1], 1):
        inputs, state = inputs[:, :prefixes], tuple(part[:, :prefixes] for part in state)
        expected = formulas(weights, query, v, keys, lengths, inputs, state)
        with torch.no_grad():
            log_probs, state = step(inputs, state)
        for found, exact in zip((log_probs, *state), expected, strict=True):
            torch.testing.assert_close(found.double(), exact, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("size", SIZES)
def test_ended_prefixes_are_skipped(size):
    """The other prefixes keep their bits, although their rows move to other tiles."""
    weights, query, v, keys, lengths, inputs, state = draw(*size)
    step = pointer_step.PointerStep(weights, query, cpu.prepared_scores(keys, v, lengths))
    expected, expected_state = step(inputs, state)
    for share in (0.0, 0.3, 0.9, 1.0):
        ended = torch.rand(size[:2]) < share
        poisoned = tuple(part.masked_fill(ended[..., None], torch.nan) for part in state)
        log_probs, found_state = step(inputs, poisoned, ended)
        for found, whole in zip(
            (log_probs, *found_state), (expected, *expected_state), strict=True
        ):
            assert torch.equal(found[~ended], whole[~ended])
        assert log_probs[ended].isnan().all()
        assert not any(part[ended].any() for part in found_state)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 8)])
def test_several_threads_may_step_at_the_same_time(sizes):
    weights, query, v, keys, lengths, inputs, state = draw(64, 8, 40, 64, 2)
    step = pointer_step.PointerStep(weights, query, cpu.prepared_scores(keys, v, lengths))

    def steps(size):
        arguments = inputs[:, :size], tuple(part[:, :size] for part in state)
        expected = step(*arguments)[0]
        return sum(not torch.equal(step(*arguments)[0], expected) for _ in range(100))

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(steps, sizes)) == 0


def test_the_default_type_does_not_matter():
    weights, query, v, keys, lengths, inputs, state = draw(5, 1, 7, 64, 2)
    expected = formulas(weights, query, v, keys, lengths, inputs, state)
    torch.set_default_dtype(torch.float64)
    try:
        step = pointer_step.PointerStep(weights, query, cpu.prepared_scores(keys, v, lengths))
        log_probs, _ = step(inputs, state)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(log_probs.double(), expected[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("scale", [1.0, 4000.0])
def test_numbers_too_large_for_prepared_keys_are_computed_by_tanh(scale):
    """Keys or queries whose exponentials overflow."""
    weights, query, v, keys, lengths, inputs, state = draw(64, 1, 50, 64, 2, scale)
    if scale == 1.0:
        keys[3, 0] = 500.0
    step = pointer_step.PointerStep(weights, query, cpu.prepared_scores(keys, v, lengths))
    expected = formulas(weights, query, v, keys, lengths, inputs, state)
    ended = torch.arange(64)[:, None] % 3 == 0
    with torch.no_grad():
        query.mul_(2)  # after it was made
        for left_out in (torch.zeros_like(ended), ended):
            log_probs, (h, c) = step(inputs, state, left_out)
            assert log_probs[left_out].isnan().all()
            kept = [(log_probs, 1e-3, 2e-3 * scale**0.5), (h, 2e-5, 2e-5), (c, 2e-5, 2e-5)]
            for (found, rtol, atol), exact in zip(kept, expected, strict=True):
                found, exact = found[~left_out].double(), exact[~left_out]
                torch.testing.assert_close(found, exact, rtol=rtol, atol=atol)


def test_shapes_that_do_not_fit_are_refused():
    weights, query, v, keys, lengths, inputs, state = draw(5, 1, 7, 64, 2)
    step = pointer_step.PointerStep(weights, query, cpu.prepared_scores(keys, v, lengths))
    with pytest.raises(ShapeError, match="expected ended of shape"):
        step(inputs, state, torch.zeros(5, dtype=torch.bool))
    for wrong in (
        (inputs[..., :1], state),
        (inputs, (state[0], state[1][:4])),
        (inputs[:4], tuple(part[:4] for part in state)),
    ):
        with pytest.raises(ShapeError, match="expected inputs"):
            step(*wrong)
    with pytest.raises(ShapeError, match="keys of 64 units"):
        pointer_step.PointerStep(weights, query, cpu.prepared_scores(keys[..., 1:], v[1:], lengths))


@pytest.fixture
def spied(monkeypatch):
    """Count the compiled steps."""
    calls, step = [], pointer_step.PointerStep.__call__

    def spy(self, *arguments):
        calls.append(len(arguments[0]))
        return step(self, *arguments)

    monkeypatch.setattr(pointer_step.PointerStep, "__call__", spy)
    return calls


def first_steps(model, batch=64):
    torch.manual_seed(2)
    encoded = model.encode(torch.rand(batch, 40, 2), torch.randint(3, 41, (batch,)))
    log_probs, state = model.step(encoded, encoded.state, torch.zeros(batch, 1, dtype=torch.int64))
    tokens = log_probs[..., 1:].argmax(-1) + 1  # because values after END are arbitrary
    return log_probs, model.step(encoded, state, tokens)[0]


@pytest.mark.parametrize("name", POINTERS)
def test_models_compute_the_same_with_and_without_compiled_steps(spied, name):
    """With gradients, models compute the decoder and the scores separately."""
    torch.manual_seed(1)
    model = models.build(name, 2, 1, hidden_size=64)
    expected = first_steps(model)
    assert not spied
    with torch.no_grad():
        found = first_steps(model)
    assert spied == [64, 64]
    for log_probs, plain in zip(found, expected, strict=True):
        torch.testing.assert_close(log_probs, plain, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_skipping_ended_prefixes_does_not_change_answers(monkeypatch):
    """Answers are equal bit for bit, whether ended prefixes are computed or skipped."""
    model = models.build("ptr-net", 2, 1, hidden_size=64)
    inputs, lengths = torch.rand(64, 40, 2), torch.randint(3, 41, (64,))
    decoders = [decoding.Greedy(), decoding.Beam(3)]
    found = [decoder.decode(model, inputs, lengths, lengths) for decoder in decoders]
    step, left_out = pointer_step.PointerStep.__call__, []

    def compute_all(self, inputs, state, ended):
        left_out.append(0 if ended is None else int(ended.sum()))
        return step(self, inputs, state)

    monkeypatch.setattr(pointer_step.PointerStep, "__call__", compute_all)
    for decoder, answers in zip(decoders, found, strict=True):
        for part, whole in zip(
            answers, decoder.decode(model, inputs, lengths, lengths), strict=True
        ):
            assert torch.equal(part, whole)
    assert left_out[0] == 0
    assert sum(left_out) > 100


class Twice(nn.Module):
    """An adapter that replaces a part."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return 2 * self.part(x)


def adapt(model):
    model.query = Twice(model.query)


CHANGES = {
    "adapter": adapt,
    "hook": lambda model: model.decoder.register_forward_hook(lambda *_: None),
    "forward": lambda model: setattr(model.query, "forward", model.query.forward),
    "type": lambda model: model.double(),
}


@pytest.mark.parametrize("modify", CHANGES.values(), ids=CHANGES)
@torch.no_grad()
def test_modified_modules_are_computed_without_compiled_steps(spied, modify):
    model = models.build("ptr-net", 2, 1, hidden_size=64)
    modify(model)
    encoded = model.encode(torch.rand(64, 40, 2, dtype=model.v.dtype))
    model.step(encoded, encoded.state, torch.zeros(64, 1, dtype=torch.int64))
    assert not spied


@pytest.mark.parametrize("settings", [{"cell": "gru"}, {"layers": 2}, {"score": "dot"}])
@torch.no_grad()
def test_other_decoders_and_scores_are_not_compiled(spied, settings):
    first_steps(models.build("ptr-net", 2, 1, hidden_size=64, **settings))
    first_steps(models.build("ptr-net", 2, 1, hidden_size=40))
    first_steps(models.build("ptr-net", 2, 1, hidden_size=64), batch=8)
    assert not spied
