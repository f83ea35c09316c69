"""Recorded searches against the plain loop; which searches are recorded.

All but one test write operations down on the processor, in the place of a GPU's graphs.
"""

import gc
import sys
import threading
import weakref
from subprocess import PIPE, Popen

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ptrnet.constraints import Subset
from ptrnet.decoding import Beam, Greedy, Sample, graphs, search
from ptrnet.decoding.trace import Traced
from ptrnet.errors import ModelError, NotFiniteError
from ptrnet.training.hardware import matmul_precision
from tests.contract.cases import EVERY_SETTING, MODELS, covering
from tests.support.written_graphs import use_written_graphs

DECODERS = [Greedy(), Beam(3), Sample(3, seed=5)]
SIZES = (5, 3, 5, 4)


@pytest.fixture
def written(monkeypatch):
    use_written_graphs(monkeypatch)


def batch_of(solver, seed, sizes=SIZES):
    """A batch of the instances' sizes, in float64, padded with garbage."""
    network, task = solver.model, solver.task
    sizes = [network.n] * len(sizes) if network.n is not None else sizes
    rng = np.random.default_rng(seed)
    inputs = torch.rand(
        len(sizes), max(sizes), task.num_features, dtype=torch.float64, generator=_generator(seed)
    )
    for row, n in zip(inputs, sizes, strict=True):
        row[:n] = torch.from_numpy(task.sample(rng, 1, n)[0])
    max_lengths = torch.tensor([task.max_length(n) for n in sizes])
    return inputs, torch.tensor(sizes), max_lengths


def _generator(seed):
    return torch.Generator().manual_seed(seed)


def plain(decoder, model, batch, constraint):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "can_record", lambda *tensors: False)
        return decoder.decode(model, *batch, constraint)


def check(actual, expected):
    assert torch.equal(actual.tokens, expected.tokens)
    assert torch.equal(actual.lengths, expected.lengths)
    torch.testing.assert_close(actual.log_probs, expected.log_probs, rtol=1e-9, atol=1e-9)


def searches_of(model):
    return graphs._graphs[model].searches


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


def hulls(small, scale=8.0):
    solver = small("hull", "ptr-net", scale=scale)
    solver.model.double()
    return solver.model, [batch_of(solver, seed) for seed in range(5)]


def test_the_second_batch_of_a_shape_is_recorded(small, written):
    network, (batch, *_) = hulls(small)
    shorter = tuple(tensor[:3] for tensor in batch)
    calls = [(batch, 0), (shorter, 0), (batch, 1), (batch, 1), (shorter, 2)]
    for questions, count in calls:
        Greedy().decode(network, *questions)
        assert len(searches_of(network)) == count
    for decoder, constraint, count in (
        (Beam(1), None, 2),  # equal to no greedy decoder
        (Beam(1), None, 3),
        (Greedy(), Subset(), 3),
        (Greedy(), Subset(), 4),
        (Greedy(), Subset(), 4),
        (Sample(2), None, 4),  # draws anew each time
        (Sample(2), None, 4),
        (Traced(Beam(2)), None, 4),  # tells of its steps
        (Traced(Beam(2)), None, 4),
    ):
        decoder.decode(network, *batch, constraint)
        assert len(searches_of(network)) == count


def test_samples_without_a_seed_differ(small, written):
    network, (batch, *_) = hulls(small, scale=1.0)
    drawn = {str(Sample(4).decode(network, *batch).tokens.tolist()) for _ in range(4)}
    assert len(drawn) > 1


def test_a_search_ends_where_the_plain_loop_does(small, written):
    """The tokens have as many columns, however many steps were recorded together."""
    network, batches = hulls(small)
    widths = set()
    for seed in range(40):
        network.special_states.data[0] = torch.randn(16, dtype=torch.float64) * (seed % 5)
        for decoder in (Greedy(), Beam(3)):
            batch = batches[seed % 5]
            expected = plain(decoder, network, batch, None)
            check(decoder.decode(network, *batch), expected)
            widths.add(expected.tokens.shape[2])
    assert len(widths) > 3


@pytest.mark.parametrize("what", ["moved", "replaced", "flag", "number", "precision"])
def test_a_model_that_changed_is_recorded_anew(small, written, what):
    network, (batch, *_) = hulls(small)
    for _ in range(3):
        Greedy().decode(network, *batch)
    (first,) = searches_of(network).values()
    if what == "moved":
        network.special_states.data = torch.randn_like(network.special_states)
    if what == "replaced":
        network.query = type(network.query)(16, 16).double()
    if what == "flag":
        network.key.training = not network.key.training
    if what == "number":
        network.key.in_features += 1
    with matmul_precision("tf32", "cuda" if what == "precision" else "cpu"):
        for _ in range(3):
            check(Greedy().decode(network, *batch), plain(Greedy(), network, batch, None))
    last = list(searches_of(network).values())[-1]
    assert last is not None
    assert last is not first
    assert len(searches_of(network)) == (2 if what == "precision" else 1)


def test_a_model_with_hooks_is_not_recorded(small, written):
    network, (batch, *_) = hulls(small)
    calls = []
    network.query.register_forward_hook(lambda *arguments: calls.append(1))
    for _ in range(3):
        Greedy().decode(network, *batch)
    assert len(calls) % 3 == 0
    assert network not in graphs._graphs


class Asking(Subset):
    """A constraint that asks for a value."""

    def allowed(self, state):
        return super().allowed(state) if state.tokens.sum() > 0 else state.tokens


def test_what_cannot_be_recorded_takes_the_plain_loop(small, written):
    """With one warning, of which the user learns why."""
    network, (batch, *_) = hulls(small)
    expected = plain(Greedy(), network, batch, Asking())
    check(Greedy().decode(network, *batch, Asking()), expected)
    with pytest.warns(UserWarning, match="without CUDA graphs.*not permitted"):
        check(Greedy().decode(network, *batch, Asking()), expected)
    check(Greedy().decode(network, *batch, Asking()), expected)  # warnings are errors here
    assert list(searches_of(network).values()) == [None]


def test_a_recording_that_reads_no_input_is_refused(small, written, monkeypatch):
    network, (batch, *_) = hulls(small)
    encode, other = type(network).encode, batch[0].flip(0)

    def encode_other(self, inputs, lengths):
        return encode(self, inputs if inputs is batch[0] else other, lengths)

    monkeypatch.setattr(type(network), "encode", encode_other)
    Greedy().decode(network, *batch)
    with pytest.warns(UserWarning, match="they answer . of 4 instances alike"):
        Greedy().decode(network, *batch)
    check(Greedy().decode(network, *batch), plain(Greedy(), network, batch, None))


def test_limits(small, written, monkeypatch):
    network, (batch, *_) = hulls(small)
    monkeypatch.setattr(graphs, "MAX_SHAPES", 1)
    for decoder in (Greedy(), Beam(2), Beam(3)):
        for _ in range(2):
            check(decoder.decode(network, *batch), plain(decoder, network, batch, None))
    assert len(searches_of(network)) == 1
    monkeypatch.setattr(graphs, "MAX_TOKENS", 1)
    monkeypatch.setattr(graphs._RecordedSearch, "run", lambda *arguments: 1 / 0)
    check(Greedy().decode(network, *batch), plain(Greedy(), network, batch, None))


def test_a_recorded_search_refuses_what_the_plain_loop_refuses(small, written):
    network, (batch, *_) = hulls(small)
    for _ in range(3):
        Greedy().decode(network, *batch)
    batch[0][1] = torch.nan
    with pytest.raises(NotFiniteError, match="not finite"):
        Greedy().decode(network, *batch)
    solver = small("hull", "seq2seq")
    network = solver.model.double()
    inputs, lengths, max_lengths = batch_of(solver, 1)
    for _ in range(3):
        Greedy().decode(network, inputs, lengths, max_lengths)
    lengths[2] -= 1
    with pytest.raises(ModelError, match="got one of"):
        Greedy().decode(network, inputs, lengths, max_lengths)


def test_threads_do_not_mix_their_batches(small, written):
    network, batches = hulls(small)
    expected = [plain(Beam(2), network, batch, None) for batch in batches]
    for _ in range(2):
        Beam(2).decode(network, *batches[0])
    failures = []

    def decode(k):
        for _ in range(5):
            try:
                check(Beam(2).decode(network, *batches[k]), expected[k])
            except AssertionError as error:
                failures.append(error)

    threads = [threading.Thread(target=decode, args=(k,)) for k in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_graphs_go_with_their_model(small, written):
    network, (batch, *_) = hulls(small)
    for _ in range(3):
        Greedy().decode(network, *batch)
    model, search = weakref.ref(network), weakref.ref(next(iter(searches_of(network).values())))
    del network
    gc.collect()
    assert model() is None
    assert search() is None
