"""Plain formulas replace kernels while PyTorch records or transforms operations."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch._subclasses import FakeTensorMode

import ptrnet
from ptrnet import kernels as conditions
from ptrnet.kernels.additive import additive_scores
from ptrnet.kernels.additive_cpu import compiled_scores
from ptrnet.kernels.additive_formula import chunked_scores, naive_scores
from ptrnet.kernels.lstm import cell, lstm, torch_lstm
from ptrnet.kernels.lstm_cpu import compiled_lstm
from ptrnet.kernels.lstm_formula import Weights, naive_lstm
from ptrnet.models.parts.score import Scorer
from ptrnet.solver.predict import Predictor
from tests.kernels.test_additive import GPU, INTERPRETED, kernels
from tests.kernels.test_lstm import draw as draw_lstm

# Shapes are checked once, when a trace is recorded.
pytestmark = pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")

KEY_LENGTHS, QUERY_LENGTHS = torch.tensor([3, 2]), torch.tensor([1, 2])


class Marked(torch.Tensor):
    """A subclass whose behaviour ptrnet cannot know."""


def draw(dtype=torch.float64, rows=2):
    torch.manual_seed(rows)
    shapes = [(rows, 3, 4), (rows, 2, 4), (4,)]
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def states_of(layer, lengths):
    """Return a function from a layer's float tensors to its last states and the sum of outputs."""

    def states(x, h0, c0, *weights):
        outputs, (h, c) = layer(x, lengths, (h0, c0), Weights(*weights))
        mask = (torch.arange(x.shape[1]) < lengths[:, None])[..., None]
        return torch.where(mask, outputs, 0).sum(1), h, c

    return states


def test_is_eager_is_false_while_pytorch_records_or_transforms():
    (tensor, *_), answers = draw(), []

    def ask(x):
        answers.append(conditions.is_eager(x))
        return x * 1

    ask(tensor)
    assert answers == [True]
    torch.jit.trace(ask, tensor.detach(), check_trace=False)
    torch.func.vmap(ask)(tensor)
    torch.func.grad(lambda x: ask(x).sum())(tensor)
    torch.func.jvp(ask, (tensor,), (tensor,))
    with torch.autograd.forward_ad.dual_level():
        ask(torch.autograd.forward_ad.make_dual(tensor, tensor))
    with FakeTensorMode():
        ask(torch.zeros(2))
    ask(torch.zeros(2).as_subclass(Marked))
    torch.export.export(torch.nn.ReLU().requires_grad_(False), (tensor.detach(),), strict=False)
    torch.compile(ask, backend="eager")(tensor)
    assert answers[1:] and not any(answers[1:])
    ask(torch.nn.Parameter(tensor.detach()))
    with torch.inference_mode():
        ask(torch.zeros(2))
    assert answers[-2:] == [True, True]


@kernels(compiled_scores, chunked_scores, *(GPU if INTERPRETED else []))
def test_scores_can_be_differentiated_twice(kernel):
    """Also if queries are computed from the keys: each gets its own part of the gradient."""
    lengths = KEY_LENGTHS, QUERY_LENGTHS
    tensors = draw()

    def product(keys, queries, v):
        return kernel(keys, queries + keys[:, :2].tanh() * v, v, *lengths)

    assert torch.autograd.gradgradcheck(product, tensors)


@kernels(compiled_scores, chunked_scores)
def test_batched_gradients_of_scores_equal_single_ones(kernel):
    tensors = draw()
    scores = kernel(*tensors, KEY_LENGTHS, QUERY_LENGTHS)
    basis = torch.eye(scores.numel(), dtype=scores.dtype).view(-1, *scores.shape)
    options = {"retain_graph": True}
    batched = torch.autograd.grad(scores, tensors, basis, is_grads_batched=True, **options)
    rows = [torch.autograd.grad(scores, tensors, row, **options) for row in basis]
    for actual, expected in zip(batched, zip(*rows, strict=True), strict=True):
        torch.testing.assert_close(actual, torch.stack(expected))


def test_gradient_penalty_of_scores_has_a_gradient():
    """The kernel's own backward pass leaves no graph, so the penalty would be constant silently."""
    outcomes = []
    for kernel in (additive_scores, naive_scores):
        keys, queries, v = draw()
        (grad,) = torch.autograd.grad(kernel(keys, queries, v).sum(), keys, create_graph=True)
        outcomes.append(torch.autograd.grad(grad.square().sum(), (keys, queries, v)))
    for actual, expected in zip(*outcomes, strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("prepare", [False, True])
@torch.no_grad()
def test_scores_work_under_vmap_tracing_and_forward_mode(prepare):
    def scores(keys, queries, v):
        if prepare:
            return Scorer(keys, v)(queries)
        return additive_scores(keys, queries, v)

    keys, queries, v = (t.detach() for t in draw(rows=5))
    expected = naive_scores(keys, queries, v)

    mapped = torch.func.vmap(lambda k, q: scores(k[None], q[None], v)[0])(keys, queries)
    torch.testing.assert_close(mapped, expected)
    traced = torch.jit.trace(scores, [t.roll(1, 0) for t in (keys, queries, v)], check_trace=False)
    torch.testing.assert_close(traced(keys, queries, v), expected)
    tangents = tuple(torch.randn_like(t) for t in (keys, queries, v))
    actual, along = torch.func.jvp(scores, (keys, queries, v), tangents)
    torch.testing.assert_close(actual, expected)
    pairs = list(zip((keys, queries, v), tangents, strict=True))
    after, before = (naive_scores(*(t + length * d for t, d in pairs)) for length in (1e-6, -1e-6))
    torch.testing.assert_close(along, (after - before) / 2e-6, rtol=1e-6, atol=1e-6)


def test_keys_prepared_outside_vmap_work_inside_it():
    keys, queries, v = (t.detach() for t in draw())
    scores = Scorer(keys, v)
    mapped = torch.func.vmap(scores)(torch.stack([queries, 2 * queries]))
    torch.testing.assert_close(mapped[1], scores(2 * queries))


@pytest.mark.parametrize("layer", [naive_lstm, torch_lstm])
def test_the_layers_formula_equals_nn_lstm(layer):
    """Compare with `nn.LSTM`'s cell step by step."""
    (x, h0, c0, *weights), lengths = draw_lstm(3, 6, 2, 5)
    outputs, (h, c) = layer(x, lengths, (h0, c0), Weights(*weights))
    for b, length in enumerate(lengths.tolist()):
        state = h0[b : b + 1], c0[b : b + 1]
        for t in range(length):
            state = torch.lstm_cell(x[b : b + 1, t], state, *weights)
            torch.testing.assert_close(outputs[b, t], state[0][0])
        torch.testing.assert_close((h[b], c[b]), (state[0][0], state[1][0]))


def test_the_compiled_layer_can_be_differentiated_twice():
    """Compare gradients, and gradients of their squares, with the formula in float64."""
    tensors, lengths = draw_lstm(3, 4, 2, 5)
    outcomes = []
    for layer, dtype in ((naive_lstm, torch.float64), (compiled_lstm, torch.float32)):
        copies = [t.to(dtype).requires_grad_() for t in tensors]
        total = sum(part.square().sum() for part in states_of(layer, lengths)(*copies))
        grads = torch.autograd.grad(total, copies, create_graph=True)
        penalty = sum(grad.square().sum() for grad in grads)
        outcomes.append([*grads, *torch.autograd.grad(penalty, copies)])
    for expected, actual in zip(*outcomes, strict=True):
        torch.testing.assert_close(actual.double(), expected, rtol=1e-4, atol=1e-4)


def test_a_second_backward_pass_uses_the_formula():
    tensors, lengths = draw_lstm(3, 4, 2, 5, torch.float32)
    copies = [t.requires_grad_() for t in tensors]
    total = sum(part.square().sum() for part in states_of(compiled_lstm, lengths)(*copies))
    first = torch.autograd.grad(total, copies, retain_graph=True)
    second = torch.autograd.grad(total, copies)
    torch.testing.assert_close(second, first, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("autocast", [False, True])
def test_layers_work_under_vmap(autocast):
    """Also under autocast, which would use the compiled layer without vmap."""
    (x, h0, c0, *weights), lengths = draw_lstm(40, 4, 2, 16, torch.float32)
    states = states_of(lstm, lengths[:1].expand(1))

    def one(x, h0, c0):
        return [part[0] for part in states(x[None], h0[None], c0[None], *weights)]

    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        mapped = torch.func.vmap(one)(x, h0, c0)
    for part, expected in zip(
        mapped,
        states_of(naive_lstm, lengths[:1].expand(40))(x, h0, c0, *weights),
        strict=True,
    ):
        tolerance = 0.05 if autocast else 1e-5
        torch.testing.assert_close(part.float(), expected, rtol=tolerance, atol=tolerance)


@torch.no_grad()
def test_cells_work_under_vmap_and_tracing():
    (x, h0, c0, *weights), _ = draw_lstm(256, 1, 256, 256, torch.float32)
    weights = Weights(*weights)

    def step(x, h, c):
        return cell(x, (h, c), weights)

    expected = torch.lstm_cell(x[:, 0], (h0, c0), *weights)
    tensors = x[:, 0], h0, c0
    traced = torch.jit.trace(step, [t.roll(1, 0) for t in tensors], check_trace=False)
    mapped = torch.func.vmap(lambda *rows: step(*(row[None] for row in rows)))(*tensors)
    for a, b, c in zip(expected, traced(*tensors), mapped, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(c[:, 0], a, rtol=1e-4, atol=1e-4)


@pytest.fixture
def new_process(monkeypatch):
    monkeypatch.setattr(conditions, "_steps", 0)


def test_first_steps_are_computed_by_pytorch(new_process, monkeypatch):
    monkeypatch.setattr(conditions, "STEPS_BEFORE", 3)
    assert [conditions.may_use_compiled(4) for _ in range(5)] == [False, False, False, True, True]


def test_steps_of_many_prefixes_count_for_more(new_process, monkeypatch):
    monkeypatch.setattr(conditions, "STEPS_BEFORE", 10)
    rows = 4 * conditions.ROWS_OF_A_STEP
    assert [conditions.may_use_compiled(rows) for _ in range(4)] == [False, False, True, True]


def test_resumed_work_uses_compiled_kernels_at_once(new_process):
    conditions.use_compiled_kernels()
    assert conditions.may_use_compiled(1)


def test_long_work_and_trainings_use_compiled_kernels_at_once(new_process, tmp_path):
    examples = ptrnet.generate("hull", n=4, count=4)
    model = ptrnet.models.build("transformer-ptr-net", 2, 1, hidden_size=8, edge_frames=True)
    predictor = Predictor(
        model.eval(), ptrnet.tasks.get("hull"), ptrnet.Greedy(), always_compiled=True
    )
    predictor(examples[:0])
    assert conditions.may_use_compiled(1)
    conditions._steps = 0
    ptrnet.fit(examples, steps=1, batch_size=2, hidden_size=4, output=tmp_path / "run")
    assert conditions.may_use_compiled(1)


def test_modes_of_other_threads_are_not_seen_and_leave_no_trace():
    """PyTorch's own flag stays set if two threads leave their modes in the order of entering."""
    in_order = [threading.Barrier(2, timeout=30) for _ in range(3)]
    seen = []

    def enter(is_first):
        if not is_first:
            in_order[0].wait()
        with FakeTensorMode():
            if is_first:
                in_order[0].wait()
            in_order[1].wait()
            seen.append(conditions.is_recorded())
            if not is_first:
                in_order[2].wait()
        if is_first:
            in_order[2].wait()

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(enter, [True, False]))
    assert results == [None, None] and seen == [True, True]
    assert not conditions.is_recorded()
