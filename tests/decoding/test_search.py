"""The search loop stays on the model's device, and refuses scores that are not finite."""

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ptrnet import models
from ptrnet.decoding import Beam, Greedy, Incremental, Sample
from ptrnet.errors import ModelError, NotFiniteError
from ptrnet.masks import gather_prefixes
from tests.contract.cases import APEXES, EVERY_SETTING


class OnOneDevice(TorchDispatchMode):
    """Fails if an operation reads or makes a CPU tensor with dimensions."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        outputs = operation(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves((args, kwargs, outputs)):
            is_number = not isinstance(leaf, torch.Tensor) or not leaf.dim()
            assert is_number or leaf.is_meta, f"{operation}: on the CPU"
        return outputs


# A network reads only the features of a task, a constraint nothing of the network, and a selector
# nothing of both. So we run each setting with one model, each model with two tasks, and each
# decoder once.
ON_DEVICE = [
    *((name, settings, "ptr-net", Beam(3)) for name, settings in EVERY_SETTING),
    *(
        (*setting, model, Beam(3))
        for setting in (("hull", {}), *APEXES)
        for model in models.names()
        if model != "ptr-net"
    ),
    *(("hull", {}, "ptr-net", decoder) for decoder in (Greedy(), Sample(3, seed=5))),
]


@pytest.mark.parametrize(("name", "settings", "model", "decoder"), ON_DEVICE)
def test_a_step_stays_on_the_device(small, monkeypatch, name, settings, model, decoder):
    """Run on the device "meta", which has shapes but no values, in place of a GPU."""
    autocast = torch.autocast  # it does not know the device "meta"
    monkeypatch.setattr(torch, "autocast", lambda device, **options: autocast("cpu", **options))
    solver = small(name, model, **settings)
    network, constraint = solver.model.to("meta"), solver.task
    n = network.n or 5
    inputs = torch.from_numpy(solver.task.sample(np.random.default_rng(1), 2, n)).float().to("meta")
    lengths = torch.full((2,), n, device="meta")
    with torch.no_grad(), OnOneDevice():
        encoded, selector = network.encode(inputs, lengths), decoder.selector(inputs, lengths)
        model_state = encoded.state
        state = constraint.begin(inputs, lengths)
        scores = torch.zeros(2, 1, device="meta")
        tokens = torch.zeros(2, 1, dtype=torch.int64, device="meta")
        for step in range(2):
            log_probs, model_state = network.step(encoded, model_state, tokens)
            log_probs = torch.where(constraint.mask(state), log_probs, -torch.inf)
            scores, parents, tokens = selector.select(step, scores, log_probs)
            model_state = tuple(gather_prefixes(part, parents) for part in model_state)
            state = constraint.advance(state, parents, tokens)
        assert scores.is_meta


DECODERS = [Greedy(), Beam(3), Sample(4, seed=0), Incremental(2)]


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
@pytest.mark.parametrize("task", ["hull", "delaunay", "tsp", "sort"])
@pytest.mark.parametrize("size", [1e20, 1e30, 3e38])
def test_weights_that_overflow_give_a_valid_answer_or_an_error(small, task, decoder, size):
    solver = small(task)
    with torch.no_grad():
        for parameter in solver.model.parameters():
            parameter.copy_(size * parameter.sign())
    if decoder.needs_decomposable and not solver.task.facts.decomposable:
        pytest.skip("no task for it")
    inputs = np.random.default_rng(0).random((6, solver.task.facts.num_features))
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
def test_nan_or_infinity_from_the_third_step_on_is_refused(small, monkeypatch, decoder, value):
    solver = small("sort")
    step, steps = type(solver.model).step, []

    def broken(self, *arguments):
        log_probs, state = step(self, *arguments)
        steps.append(1)
        return (log_probs if len(steps) < 3 else torch.full_like(log_probs, value)), state

    monkeypatch.setattr(type(solver.model), "step", broken)
    with pytest.raises(ModelError, match="are not finite"):
        solver.solve(np.array([[0.3], [0.1], [0.2]]), decoder)


@pytest.mark.parametrize("door", ["greedy", "beam", "sample", "log-likelihoods"])
def test_nan_weights_in_half_precision_are_refused_with_one_message(small, door):
    solver = small("hull")
    with torch.no_grad():
        for parameter in solver.model.parameters():
            parameter.copy_(torch.full_like(parameter, torch.nan))
    solver.model.half()
    points = np.random.default_rng(0).random((6, 2))
    decoders = {decoder.name: decoder for decoder in DECODERS}
    with pytest.raises(NotFiniteError) as raised:
        if door in decoders:
            solver.solve(points, decoders[door])
        else:
            solver.log_likelihoods((points, [0, 1, 2]))
    assert str(raised.value).startswith(f"{door}: the model's log-probabilities of answers are not")
