"""Scores of prepared keys, as decoding computes them, against the formula in float64."""

import pytest
import torch

from ptrnet import kernels
from ptrnet.errors import ShapeError
from ptrnet.kernels.additive_cpu import PreparedScores
from ptrnet.kernels.additive_formula import naive_scores
from ptrnet.models.parts.score import Scorer


def draw(batch, n, m, units):
    torch.manual_seed(batch * n * m * units)
    tensors = (torch.randn(batch, n, units), torch.randn(batch, m, units), torch.randn(units))
    return [t.requires_grad_() for t in tensors]


@pytest.mark.parametrize("prepare", [PreparedScores, Scorer])
@pytest.mark.parametrize("largest", [1.0, 42.0, 60.0, 1000.0])
@pytest.mark.parametrize("size", [(3, 7, 5, 33), (5, 12, 1, 7), (64, 50, 2, 64)])
def test_scores_of_prepared_keys_equal_the_formula(prepare, largest, size):
    """Several batches of queries, of any magnitude, against the formula in float64."""
    keys, queries, v = (t.detach() for t in draw(*size))
    keys[0, 0], queries[0, 0] = largest, 10.0 - largest
    lengths = torch.arange(len(keys)) % (keys.shape[1] + 1)
    lengths[0] = keys.shape[1]
    with torch.no_grad():
        scores = prepare(keys, v, lengths)
        for part in (queries, queries[:, :1] / 2, queries):
            exact = naive_scores(keys.double(), part.double(), v.double(), lengths)
            torch.testing.assert_close(scores(part).double(), exact, rtol=1e-4, atol=1e-4)


def test_prepared_keys_refuse_queries_that_do_not_fit():
    keys, queries, v = (t.detach() for t in draw(2, 5, 3, 8))
    with pytest.raises(ShapeError, match=r"must be \(2, M, 8\).*got \(1, 3, 8\)"):
        PreparedScores(keys, v)(queries[:1])
    with pytest.raises(ShapeError, match=r"key_lengths must be \(2,\)"):
        PreparedScores(keys, v, torch.tensor([1]))
    with pytest.raises(ShapeError, match=r"expects keys \(B, N, H\)"):
        PreparedScores(keys[0], v)


def test_gradients_flow_whenever_they_are_enabled():
    """A scorer must not use its prepared keys then, because they give no gradients."""
    for batch in (2, 300):
        keys, queries, v = draw(batch, 9, 3, 32)
        with torch.no_grad():
            scores = Scorer(keys, v)
            plain = scores(queries)
        loss = scores(queries)
        torch.testing.assert_close(loss, plain)
        grads = torch.autograd.grad(loss.sum(), (keys, queries, v))
        expected = torch.autograd.grad(naive_scores(keys, queries, v).sum(), (keys, queries, v))
        for a, b in zip(grads, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_pytorch_computes_the_first_steps_of_a_process(monkeypatch):
    monkeypatch.setattr(kernels, "_steps", kernels.STEPS_BEFORE - 1)
    keys, queries, v = (t.detach() for t in draw(2, 5, 3, 8))
    scorer = Scorer(keys, v)
    first, second = scorer(queries), scorer(queries)
    assert torch.equal(first, naive_scores(keys, queries, v))
    torch.testing.assert_close(second, first)
    assert scorer._prepared is not None
