"""Models whose scores overflow: an answer obeys its constraint, or there is an error."""

import numpy as np
import pytest
import torch

from ptrnet.decoding import Beam, Greedy, Incremental, Sample
from ptrnet.errors import ModelError

DECODERS = [Greedy(), Beam(3), Sample(4, seed=0), Incremental(2)]


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
@pytest.mark.parametrize("task", ["hull", "delaunay", "tsp", "sort"])
@pytest.mark.parametrize("size", [1e20, 1e30, 3e38])
def test_weights_that_overflow(small, task, decoder, size):
    solver = small(task)
    with torch.no_grad():
        for parameter in solver.model.parameters():
            parameter.copy_(size * parameter.sign())
    if decoder.needs_decomposable and not solver.task.decomposable:
        pytest.skip("no task for it")
    inputs = np.random.default_rng(0).random((6, solver.task.num_features))
    try:
        answer = solver.solve(inputs, decoder)
    except ModelError as error:
        assert str(error).startswith(f"{getattr(decoder, 'inner', decoder).name}: the model's log-")
        assert "are not finite" in str(error)
        return
    assert is_valid(task, answer)


def is_valid(task, answer):
    flat = np.ravel(answer).tolist()
    if task in ("tsp", "sort"):
        return sorted(flat) == list(range(6))
    return set(flat) <= set(range(6)) and (task == "delaunay" or len(set(flat)) == len(flat) >= 1)


@pytest.mark.parametrize("decoder", DECODERS[:3], ids=lambda decoder: decoder.name)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_log_probabilities_that_are_none(small, monkeypatch, decoder, value):
    """From the third step on."""
    solver = small("sort")
    step, steps = type(solver.model).step, []

    def broken(self, *arguments):
        log_probs, state = step(self, *arguments)
        steps.append(1)
        return (log_probs if len(steps) < 3 else torch.full_like(log_probs, value)), state

    monkeypatch.setattr(type(solver.model), "step", broken)
    with pytest.raises(ModelError, match="are not finite"):
        solver.solve(np.array([[0.3], [0.1], [0.2]]), decoder)
