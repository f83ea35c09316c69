"""Reconstruction of tours, with untrained models: any improvement comes from the decoder."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ptrnet import InputError
from ptrnet.decoding import Reconstruct
from ptrnet.decoding import reconstruct as module
from ptrnet.metrics.tour import length
from ptrnet.types import is_permutation


@pytest.mark.parametrize("model", ["remaining-ptr-net", "ptr-net"])
def test_more_rounds_are_never_worse(small, model):
    solver = small("tsp", model, scale=4.0)
    rng = np.random.default_rng(2)
    instances = [rng.random((n, 2)) for n in (1, 2, 5, 6, 9, 20, 30)]
    answers = solver.solve(instances, improve=False)
    greedy = [length(p, t) for p, t in zip(instances, answers, strict=True)]
    best = greedy
    for count in (0, 1, 4, 30):
        tours = solver.solve(instances, Reconstruct(rounds=count, part=12), improve=False)
        assert all(is_permutation(t, len(p)) for p, t in zip(instances, tours, strict=True))
        lengths = [length(p, t) for p, t in zip(instances, tours, strict=True)]
        assert all(a <= b + 1e-9 for a, b in zip(lengths, best, strict=True))
        best = lengths
    assert sum(best) < 0.95 * sum(greedy)


def test_a_seed_and_a_number_of_rounds_give_the_same_tours(small, monkeypatch):
    """A time limit gives the same tours too: the test's clock advances by 1 s at each reading."""
    solver, points = small("tsp", "ptr-net", scale=4.0), np.random.default_rng(2).random((3, 40, 2))
    tours = [t.tolist() for t in solver.solve(points, Reconstruct(rounds=6))]
    assert [t.tolist() for t in solver.solve(points, Reconstruct(rounds=6))] == tours
    assert [t.tolist() for t in solver.solve(points, Reconstruct(rounds=6, seed=2))] != tours
    clock = SimpleNamespace(monotonic=iter(range(100)).__next__)
    monkeypatch.setattr(module, "time", clock)
    assert [t.tolist() for t in solver.solve(points, Reconstruct(7))] == tours
    assert Reconstruct().seconds == 1.0 and Reconstruct(rounds=3).seconds is None


def test_an_instance_gets_the_same_tour_alone_and_in_a_batch(small):
    solver, rng = small("tsp", "ptr-net", scale=4.0), np.random.default_rng(4)
    points = [rng.random((n, 2)) for n in (30, 40, 40, 7, 25)]
    together = solver.solve(points, Reconstruct(rounds=8, part=12))
    assert [t.tolist() for t in together] != [t.tolist() for t in solver.solve(points)]
    for p, tour in zip(points, together, strict=True):
        assert solver.solve(p, Reconstruct(rounds=8, part=12)).tolist() == tour.tolist()


def test_log_probabilities_are_the_models_own_for_both_tours(small):
    model = small("tsp", "remaining-ptr-net", scale=4.0).model
    inputs, lengths = torch.rand(3, 12, 2), torch.tensor([12, 7, 10])
    hypotheses = Reconstruct(rounds=5, part=12).decode(model, inputs, lengths, lengths)
    assert hypotheses.tokens.shape == (3, 2, 13)
    assert not torch.equal(*hypotheses.tokens.unbind(1))
    for tokens, log_probs in zip(
        hypotheses.tokens.unbind(1), hypotheses.log_probs.unbind(1), strict=True
    ):
        rows = model.log_probs(inputs, lengths, tokens).gather(2, tokens[..., None])[..., 0]
        expected = torch.where(torch.arange(13) <= lengths[:, None], rows, 0).sum(1)
        torch.testing.assert_close(log_probs, expected, rtol=1e-4, atol=1e-4)


def test_other_tasks_and_invalid_settings_are_refused(small):
    with pytest.raises(InputError, match="reconstruct decoding cannot be used with task hull"):
        small("hull").solve(np.random.default_rng(0).random((9, 2)), Reconstruct())
    bad = {
        "seconds": [-1, float("nan"), float("inf"), "1"],
        "rounds": [-1, 2.0],
        "part": [3, 5.0],
        "seed": [-1, "a", None],
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(InputError, match=f"{name}: expected"):
                Reconstruct(**{name: value})
