"""Re-construction: tours that only get shorter. The model is one that knows nothing."""

import numpy as np
import pytest
import torch

from ptrnet import InputError
from ptrnet.decoding import Reconstruct
from ptrnet.decoding import reconstruct as module
from ptrnet.metrics.sequence import is_permutation
from ptrnet.metrics.tour import length


@pytest.fixture
def rounds(monkeypatch):
    """A function that lets a number of rounds go by, whatever the machine's speed."""

    def allow(count):
        ticks = iter(range(count + 2))
        monkeypatch.setattr(module.time, "monotonic", lambda: next(ticks))
        return Reconstruct(count, part=12)

    return allow


@pytest.mark.parametrize("model", ["remaining-ptr-net", "ptr-net"])
def test_more_rounds_are_never_worse(small, rounds, model):
    solver = small("tsp", model, scale=4.0)
    rng = np.random.default_rng(2)
    instances = [rng.random((n, 2)) for n in (1, 2, 5, 6, 9, 20, 30)]
    greedy = [length(p, t) for p, t in zip(instances, solver.solve(instances), strict=True)]
    best = greedy
    for count in (0, 1, 4, 30):
        tours = solver.solve(instances, rounds(count))
        assert all(is_permutation(t, len(p)) for p, t in zip(instances, tours, strict=True))
        lengths = [length(p, t) for p, t in zip(instances, tours, strict=True)]
        assert all(a <= b + 1e-9 for a, b in zip(lengths, best, strict=True))
        best = lengths
    assert sum(best) < 0.95 * sum(greedy)


def test_the_likelihoods_are_those_of_the_tours(small, rounds):
    model = small("tsp", "remaining-ptr-net", scale=4.0).model
    inputs, lengths = torch.rand(3, 12, 2), torch.tensor([12, 7, 10])
    hypotheses = rounds(5).decode(model, inputs, lengths, lengths)
    assert hypotheses.tokens.shape == (3, 2, 13)
    assert not torch.equal(*hypotheses.tokens.unbind(1))
    for tokens, log_probs in zip(
        hypotheses.tokens.unbind(1), hypotheses.log_probs.unbind(1), strict=True
    ):
        rows = model.log_probs(inputs, lengths, tokens).gather(2, tokens[..., None])[..., 0]
        expected = torch.where(torch.arange(13) <= lengths[:, None], rows, 0).sum(1)
        torch.testing.assert_close(log_probs, expected, rtol=1e-4, atol=1e-4)


def test_what_is_no_tour_is_refused(small):
    with pytest.raises(InputError, match="reconstruct decoding does not serve hull"):
        small("hull").solve(np.random.default_rng(0).random((9, 2)), Reconstruct())
    for wrong in ({"seconds": -1}, {"seconds": float("nan")}, {"part": 3}, {"part": 5.0}):
        with pytest.raises(InputError):
            Reconstruct(**wrong)
