"""Which searches are recorded, and what becomes of them. None of it needs a GPU."""

import gc
import threading
import weakref
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.nn.modules.module import register_module_forward_hook

from ptrnet.constraints import Permutation, Subset
from ptrnet.constraints.base import one_hot_mask
from ptrnet.decoding import Beam, Greedy, Hypotheses, Sample, graphs, search
from ptrnet.decoding.trace import Traced
from ptrnet.errors import ModelError, NotFiniteError
from ptrnet.kernels import cuda_graph
from ptrnet.training.hardware import matmul_precision
from tests.support.searches import batch_of, check, hulls, plain, searches_of


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
    ):
        decoder.decode(network, *batch, constraint)
        assert len(searches_of(network)) == count


def test_what_draws_anew_or_tells_of_its_steps_is_not_recorded(small, written):
    network, (batch, *_) = hulls(small, scale=1.0)
    drawn = {str(Sample(4).decode(network, *batch).tokens.tolist()) for _ in range(4)}
    assert len(drawn) > 1
    traced = Traced(Beam(2))
    for _ in range(4):
        traced.decode(network, *batch)
        assert len(traced.steps) > 1
    assert not searches_of(network)


def test_a_search_ends_where_the_plain_loop_does(small, written):
    """The tokens have as many columns, however many steps were recorded together."""
    network, batches = hulls(small)
    widths = set()
    for seed in range(40):
        network.special_states.data[0] = torch.randn(16, dtype=torch.float64) * (seed % 5)
        for decoder in (Greedy(), Beam(3)):
            batch = batches[seed % 5]
            expected = plain(decoder, network, batch)
            check(decoder.decode(network, *batch), expected)
            widths.add(expected.tokens.shape[2])
    assert len(widths) > 3


@pytest.mark.parametrize("what", ["moved", "replaced", "flag", "number", "precision", "inference"])
def test_a_model_that_changed_is_recorded_anew(small, written, what):
    """And so is it in another mode; what was recorded of former weights is dropped."""
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
    precise = matmul_precision("tf32", "cuda" if what == "precision" else "cpu")
    with precise, torch.inference_mode(what == "inference"):
        for _ in range(3):
            check(Greedy().decode(network, *batch), plain(Greedy(), network, batch))
    check(Greedy().decode(network, *batch), plain(Greedy(), network, batch))
    last = list(searches_of(network).values())[-1]
    assert last is not None
    assert last is not first
    assert len(searches_of(network)) == (1 if what in ("moved", "replaced") else 2)


def by_hook(network):
    network.query.register_forward_hook(lambda *arguments: None)


def by_global_hook(network):
    return register_module_forward_hook(lambda *arguments: None)


def by_method(network):
    network.step = partial(type(network).step, network)


def by_module(network):
    class Other(type(network.query)):
        pass

    network.query.__class__ = Other


def by_tensor(network):
    class Other(torch.Tensor):
        pass

    network.query.weight = torch.nn.Parameter(network.query.weight.detach().as_subclass(Other))


@pytest.mark.parametrize("alter", [by_hook, by_global_hook, by_method, by_module, by_tensor])
def test_other_code_in_a_model_is_not_recorded(small, written, alter):
    network, (batch, *_) = hulls(small)
    handle = alter(network)
    try:
        for _ in range(3):
            check(Greedy().decode(network, *batch), plain(Greedy(), network, batch))
    finally:
        if handle is not None:
            handle.remove()
    assert not searches_of(network)


class From(Permutation):
    """A constraint that equals others, as it inherits that."""

    def __init__(self, first):
        super().__init__()
        object.__setattr__(self, "first", first)

    def allowed(self, state):
        first = one_hot_mask(torch.full_like(state.tokens[..., 0], self.first, dtype=int), 6)
        return super().allowed(state) if state.started else first.expand_as(state.tokens)


class Late(Beam):
    """A decoder that equals others."""

    def __init__(self, size, rank):
        super().__init__(size)
        object.__setattr__(self, "rank", rank)

    def finalize(self, hypotheses):
        return Hypotheses(*(tensor[:, self.rank : self.rank + 1] for tensor in hypotheses))


def test_other_constraints_and_decoders_are_not_recorded(small, written):
    network, (batch, *_) = hulls(small)
    assert From(2) == From(3)
    assert Late(2, 0) == Late(2, 1)
    for _ in range(3):
        for first in (2, 3):
            tokens = Greedy().decode(network, *batch, From(first)).tokens
            assert (tokens[:, 0, 0] == first).all()
        best, second = (Late(2, rank).decode(network, *batch).log_probs for rank in (0, 1))
        assert (best > second).any()
    assert not searches_of(network)


def test_where_recording_fails_the_plain_loop_answers(small, written, monkeypatch):
    """With one warning; then nothing more is recorded, as PyTorch may not be able to."""
    monkeypatch.setattr(graphs, "_has_failed", False)
    network, (batch, *_) = hulls(small)

    def fail(run, pool):
        raise RuntimeError("operation not permitted\nwhen stream is capturing")

    monkeypatch.setattr(cuda_graph, "record", fail)
    expected = plain(Greedy(), network, batch)
    check(Greedy().decode(network, *batch), expected)
    with pytest.warns(UserWarning, match="without CUDA graphs: RuntimeError: operation not perm"):
        check(Greedy().decode(network, *batch), expected)
    for decoder in (Greedy(), Beam(2), Beam(2)):
        check(decoder.decode(network, *batch), plain(decoder, network, batch))


def test_a_recording_that_reads_no_input_is_refused(small, written, monkeypatch):
    network, (batch, *_) = hulls(small)
    encode, other = type(network).encode, batch[0].flip(0)

    def encode_other(self, inputs, lengths):
        return encode(self, inputs if inputs is batch[0] else other, lengths)

    monkeypatch.setattr(type(network), "encode", encode_other)
    Greedy().decode(network, *batch)
    with pytest.warns(UserWarning, match="answered otherwise"):
        Greedy().decode(network, *batch)
    check(Greedy().decode(network, *batch), plain(Greedy(), network, batch))
    assert list(searches_of(network).values()) == [None]


def test_a_model_that_answers_elsewhere_keeps_no_graphs(small, written, monkeypatch):
    network, (batch, *_) = hulls(small)
    for _ in range(2):
        Greedy().decode(network, *batch)
    assert searches_of(network)
    monkeypatch.setattr(search, "can_record", cuda_graph.can_record)
    Greedy().decode(network, *batch)
    assert network not in graphs._searches


def test_the_environment_switches_them_off(monkeypatch):
    on_gpu = SimpleNamespace(is_cuda=True)
    monkeypatch.setattr(cuda_graph, "is_eager", lambda *tensors: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert cuda_graph.can_record(on_gpu)
    assert not cuda_graph.can_record(on_gpu, torch.zeros(1))
    monkeypatch.setenv("PTRNET_CUDA_GRAPHS", "0")
    assert not cuda_graph.can_record(on_gpu)


@pytest.mark.parametrize("limit", ["MAX_TOKENS", "MAX_STEPS"])
def test_limits(small, written, monkeypatch, limit):
    network, (batch, *_) = hulls(small)
    monkeypatch.setattr(graphs, "MAX_SHAPES", 1)
    for decoder in (Greedy(), Beam(2), Beam(3)):
        for _ in range(2):
            check(decoder.decode(network, *batch), plain(decoder, network, batch))
    assert len(searches_of(network)) == 1
    monkeypatch.setattr(graphs, limit, 1)
    monkeypatch.setattr(graphs._RecordedSearch, "run", lambda *arguments: 1 / 0)
    check(Greedy().decode(network, *batch), plain(Greedy(), network, batch))


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
    expected = [plain(Beam(2), network, batch) for batch in batches]
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
