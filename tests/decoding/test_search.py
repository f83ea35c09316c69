"""The search loop: it keeps every tensor on the model's device."""

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ptrnet.constraints.base import gather_prefixes
from ptrnet.decoding import Beam, Greedy, Sample
from tests.contract.cases import EVERY_SETTING, MODELS


class OnOneDevice(TorchDispatchMode):
    """Refuses operations on tensors of the processor where all should be on another device."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        outputs = operation(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves((args, kwargs, outputs)):
            is_number = not isinstance(leaf, torch.Tensor) or not leaf.dim()
            assert is_number or leaf.is_meta, f"{operation}: on the processor"
        return outputs


@pytest.mark.parametrize(("name", "settings"), EVERY_SETTING)
@MODELS
def test_a_step_stays_on_the_device(small, monkeypatch, name, settings, model):
    """Tensors of the device "meta", which have no values, stand for those of a GPU."""
    autocast = torch.autocast
    monkeypatch.setattr(torch, "autocast", lambda device, **options: autocast("cpu", **options))
    solver = small(name, model, **settings)
    network, constraint = solver.model.to("meta"), solver.task.build_constraint()
    n = network.n or 5
    inputs = torch.from_numpy(solver.task.sample(np.random.default_rng(1), 2, n)).float().to("meta")
    lengths = torch.full((2,), n, device="meta")
    for decoder in (Greedy(), Beam(3), Sample(3, seed=5)):
        with torch.no_grad(), OnOneDevice():
            encoded, selector = network.encode(inputs, lengths), decoder.selector(inputs, lengths)
            model_state = encoded.state
            specials, num_tokens = network.num_specials, encoded.num_tokens
            state = constraint.initial_state(lengths, specials, num_tokens)
            scores = torch.zeros(2, 1, device="meta")
            tokens = torch.zeros(2, 1, dtype=torch.int64, device="meta")
            for step in range(3):
                log_probs, model_state = network.step(encoded, model_state, tokens)
                log_probs = torch.where(constraint.allowed(state), log_probs, -torch.inf)
                scores, parents, tokens = selector.select(step, scores, log_probs)
                model_state = tuple(gather_prefixes(part, parents) for part in model_state)
                state = constraint.advance(state, parents, tokens)
            assert scores.is_meta
