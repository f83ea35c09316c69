"""Recorded searches against the plain loop, over every task, model and decoder.

Without a GPU operations are written down on the processor, in the place of its graphs.
"""

import sys
from subprocess import PIPE, Popen

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ptrnet.decoding import Beam, Greedy, Sample
from tests.contract.cases import EVERY_SETTING, MODELS, covering
from tests.support.searches import SIZES, batch_of, check, plain, searches_of

DECODERS = [Greedy(), Beam(3), Sample(3, seed=5)]


@covering(decoder=DECODERS)
def test_a_recorded_search_answers_as_the_plain_loop(
    small, written, name, settings, model, decoder
):
    """Other instances and lengths, other weights, of a shape that came before."""
    solver = small(name, model, scale=8.0, **settings)
    network, constraint = solver.model.double(), solver.task.build_constraint()
    batches = [batch_of(solver, seed, SIZES[seed % 2 :] + SIZES[: seed % 2]) for seed in range(4)]
    expected = [plain(decoder, network, batch, constraint) for batch in batches]
    for k, batch in enumerate(batches):
        check(decoder.decode(network, *batch, constraint), expected[k])
        assert len(searches_of(network)) == (k > 0)
    assert all(found is not None for found in searches_of(network).values())
    with torch.no_grad():
        for p in network.parameters():
            p.mul_(0.9)
    check(
        decoder.decode(network, *batches[0], constraint),
        plain(decoder, network, batches[0], constraint),
    )
    assert len(searches_of(network)) == 1


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@needs_gpu
@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
@MODELS
def test_on_a_gpu(small, model, decoder):
    solver = small("hull", model, scale=8.0)
    network, constraint = solver.model.cuda(), solver.task.build_constraint()
    for seed in range(5):
        inputs, lengths, max_lengths = (part.cuda() for part in batch_of(solver, seed))
        batch = inputs.float(), lengths, max_lengths
        expected = plain(decoder, network, batch, constraint)
        actual = decoder.decode(network, *batch, constraint)
        assert torch.equal(actual.tokens, expected.tokens)
        torch.testing.assert_close(actual.log_probs, expected.log_probs, rtol=1e-4, atol=1e-4)
        with torch.no_grad():
            for p in network.parameters():
                p.mul_(0.95)
    (found,) = searches_of(network).values()
    assert found is not None


ANSWERS = """
import numpy, ptrnet
model = ptrnet.load("sort")
model.model.to("cuda")
for seed in range(30):
    sets = numpy.random.default_rng(seed).random((64, 10, 1))
    print([answer.tolist() for answer in model.solve(sets, ptrnet.Beam(4))])
"""


@needs_gpu
def test_processes_share_a_gpu():
    command = [sys.executable, "-c", ANSWERS]
    processes = [Popen(command, stdout=PIPE, text=True) for _ in range(3)]
    first, *others = [process.communicate()[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert len(first.splitlines()) == 30
    assert others == [first, first]


class OnOneDevice(TorchDispatchMode):
    """Refuses tensors on the processor, where all should be elsewhere."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        outputs = operation(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves((args, kwargs, outputs)):
            is_number = not isinstance(leaf, torch.Tensor) or not leaf.dim()
            assert is_number or leaf.is_meta, f"{operation}: on the processor"
        return outputs


@pytest.mark.parametrize(("name", "settings"), EVERY_SETTING)
@MODELS
def test_a_step_stays_on_the_device(small, monkeypatch, name, settings, model):
    """Shown by tensors without values, whose device is not the processor."""
    autocast = torch.autocast
    monkeypatch.setattr(torch, "autocast", lambda device, **options: autocast("cpu", **options))
    solver = small(name, model, **settings)
    network = solver.model.to("meta")
    batch = [torch.as_tensor(part).to("meta") for part in batch_of(solver, 1)]
    batch[0] = batch[0].float()
    for decoder in DECODERS:
        with torch.no_grad(), OnOneDevice():
            steps = decoder._begin(network, solver.task.build_constraint(), *batch)
            prefixes = steps.start()
            for _ in range(4):
                prefixes = steps.extend(prefixes)
            assert steps.selector.is_finished(prefixes.ended).is_meta
