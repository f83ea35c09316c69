"""Compare every recurrent model with its formula, in plain loops and float64.

The formulas use nothing of a model but its weights, by their names in the state.
"""

import math

import pytest
import torch

from ptrnet import models
from tests.models.gradients import check_gradients

OPTIONS = [
    {},
    {"cell": "gru", "layers": 2, "bidirectional": True, "score": "dot"},
    {"layers": 3, "bidirectional": True, "score": "general"},
    {"cell": "gru", "score": "general"},
]
NAMES = [name for name in models.names() if "cell" in models.setting_names(name)]
N, TARGETS = 5, [3, 6, 2, 0]  # with a second special slot: token 2 is the first element


def build(name, options, **settings):
    torch.manual_seed(3)
    known = models.setting_names(name)
    options = {key: value for key, value in options.items() if key in known}
    if "n" in known:
        settings["n"] = N
    model = models.build(name, 2, 2, hidden_size=6, **options, **settings).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)
    return model


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def times(matrix, vector):
    return [dot(row, vector) for row in matrix]


def plus(*vectors):
    return [sum(entries) for entries in zip(*vectors, strict=True)]


def softmax(u):
    total = sum(map(math.exp, u))
    return [math.exp(x) / total for x in u]


class Formulas:
    """The formulas on the weights of a model as lists."""

    def __init__(self, name, model):
        self.name, self.settings = name, model.settings()
        self.w = {key: value.tolist() for key, value in model.state_dict().items()}

    def cell(self, layer, x, state):
        w_x, w_h, b_x, b_h = (
            self.w[f"{layer}.{key}"] for key in ("w_input", "w_hidden", "b_input", "b_hidden")
        )
        h = state[0]
        of_x, of_h, k = plus(times(w_x, x), b_x), plus(times(w_h, h), b_h), len(h)
        if self.settings["cell"] == "gru":
            r = [sigmoid(s) for s in plus(of_x[:k], of_h[:k])]
            z = [sigmoid(s) for s in plus(of_x[k : 2 * k], of_h[k : 2 * k])]
            new = [
                math.tanh(a + q * b)
                for a, q, b in zip(of_x[2 * k :], r, of_h[2 * k :], strict=True)
            ]
            return [[(1 - p) * q + p * s for p, q, s in zip(z, new, h, strict=True)]]
        sums = plus(of_x, of_h)
        i, f, o = ([sigmoid(s) for s in sums[a * k : (a + 1) * k]] for a in (0, 1, 3))
        g = [math.tanh(s) for s in sums[2 * k : 3 * k]]
        c = [p * q + r * s for p, q, r, s in zip(f, state[1], i, g, strict=True)]
        return [[p * math.tanh(q) for p, q in zip(o, c, strict=True)], c]

    def layers(self, network):
        count = self.settings["layers"]
        return [network] if count == 1 else [f"{network}.layers.{k}" for k in range(count)]

    def read(self, network, rows):
        """The outputs of the top layer, and the last state of each layer from bottom to top."""
        states, parts = [], 1 if self.settings["cell"] == "gru" else 2
        for layer in self.layers(network):
            if self.settings["bidirectional"]:
                zero = [[0.0] * (self.settings["hidden_size"] // 2)] * parts
                forth, last = self.along(f"{layer}.forwards", rows, zero)
                back, first = self.along(f"{layer}.backwards", rows[::-1], zero)
                rows = [a + b for a, b in zip(forth, back[::-1], strict=True)]
                states.append([a + b for a, b in zip(last, first, strict=True)])
            else:
                zero = [[0.0] * self.settings["hidden_size"]] * parts
                rows, last = self.along(layer, rows, zero)
                states.append(last)
        return rows, states

    def along(self, layer, rows, state):
        outputs = []
        for row in rows:
            state = self.cell(layer, row, state)
            outputs.append(state[0])
        return outputs, state

    def decode(self, x, states):
        after = []
        for layer, state in zip(self.layers("decoder"), states, strict=True):
            after.append(self.cell(layer, x, state))
            x = after[-1][0]
        return x, after

    def score(self, e, d):
        kind = self.settings["score"]
        if kind == "dot":
            return dot(d, e)
        if kind == "general":
            return dot(d, times(self.w["key.weight"], e))
        both = plus(times(self.w["key.weight"], e), times(self.w["query.weight"], d))
        return dot(self.w["v"], [math.tanh(s) for s in both])

    def log_probs(self, points, targets, free_running):
        formula = self.over_a_dictionary if "embedding.weight" in self.w else self.over_inputs
        logs = [[math.log(p) for p in row] for row in formula(points, targets, free_running)]
        return torch.tensor(logs, dtype=torch.float64)

    def over_inputs(self, points, targets, free_running):
        outputs, states = self.read("encoder", points)
        if self.name == "memory-ptr-net":
            outputs, _ = self.read("memory", points)
        slots = self.w["special_states"] + outputs
        inputs = self.w["special_inputs"] + points
        x = inputs[0]
        for target in targets:
            d, states = self.decode(x, states)
            a = softmax([self.score(e, d) for e in slots])
            yield a
            x = self.mixture(a, inputs) if free_running else inputs[target]

    def mixture(self, a, inputs):
        columns = list(zip(*inputs, strict=True))
        if self.name == "soft-ptr-net":
            return [dot(a, column) for column in columns]
        likely = [j for j, p in enumerate(a) if p >= self.settings.get("threshold", 2)]
        likely = likely or [a.index(max(a))]
        return [sum(column[j] for j in likely) / len(likely) for column in columns]

    def over_a_dictionary(self, points, targets, free_running):
        outputs, states = self.read("encoder", points)
        attends, last = self.name == "seq2seq-attention", 0
        d, mixed = states[-1][0], [0.0] * self.settings["hidden_size"]
        for target in targets:
            x = self.w["embedding.weight"][last]
            d, states = self.decode(x + d + mixed if attends else x, states)
            seen = d
            if attends:
                a = softmax([self.score(e, d) for e in outputs])
                mixed = [dot(a, column) for column in zip(*outputs, strict=True)]
                seen = d + mixed
            yield softmax(plus(times(self.w["output.weight"], seen), self.w["output.bias"]))
            last = target


FREE_RUNNING = ["soft-ptr-net", "hard-ptr-net", "multi-ptr-net"]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())) or "-")
@pytest.mark.parametrize("name", NAMES)
def test_log_probs_equal_the_formula(name, options):
    model = build(name, options).eval()
    points = torch.rand(1, N, 2, dtype=torch.float64)
    log_probs = model.log_probs(points, None, torch.tensor([TARGETS]))[0]
    expected = Formulas(name, model).log_probs(
        points[0].tolist(), TARGETS, free_running=name in FREE_RUNNING
    )
    torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("options", OPTIONS[1:], ids=lambda o: "-".join(map(str, o.values())))
@pytest.mark.parametrize("name", NAMES)
def test_padding_and_single_steps_change_nothing(name, options):
    """Like the standing contracts, but with every option, and with random padding."""
    model = build(name, options).eval()
    lengths = [N] * 3 if model.n else [2, N, 1]
    points = torch.rand(3, N + 2, 2, dtype=torch.float64)
    targets = torch.tensor([[2, 1, 2, 0]] * 3)
    ends = torch.tensor([4, 2, 3])
    log_probs = model.log_probs(points, torch.tensor(lengths), targets, ends)
    encoded = model.encode(points, torch.tensor(lengths))
    state, last = encoded.state, torch.zeros(3, 1, dtype=torch.int64)
    for i in range(4):
        row, state = model.step(encoded, state, last)
        for b in torch.nonzero(ends > i)[:, 0].tolist():
            torch.testing.assert_close(row[b, 0], log_probs[b, i], rtol=1e-10, atol=1e-10)
        last = targets[:, i : i + 1]
    for b, n in enumerate(lengths):
        alone = model.log_probs(points[b : b + 1, :n], None, targets[b : b + 1])[0]
        real = log_probs[b, : ends[b], : n + 2]
        torch.testing.assert_close(real, alone[: ends[b]], rtol=1e-10, atol=1e-10)
        assert (log_probs[b, :, n + 2 :] == -torch.inf).all()


@pytest.mark.parametrize("teacher_forcing", [True, False])
@pytest.mark.parametrize("name", FREE_RUNNING)
def test_decoder_reads_true_elements_only_in_training_with_teacher_forcing(name, teacher_forcing):
    model = build(name, {}, teacher_forcing=teacher_forcing).train()
    points = torch.rand(1, N, 2, dtype=torch.float64)
    log_probs = model.log_probs(points, None, torch.tensor([TARGETS]))[0]
    formulas = Formulas(name, model)
    rows = {
        free_running: formulas.log_probs(points[0].tolist(), TARGETS, free_running)
        for free_running in (True, False)
    }
    torch.testing.assert_close(log_probs, rows[not teacher_forcing], rtol=0, atol=1e-11)
    assert (rows[True] - rows[False]).abs().max() > 1e-3


@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.9])
def test_multi_ptr_net_equals_the_formula_at_other_thresholds(threshold):
    model = build("multi-ptr-net", {}, threshold=threshold).eval()
    points = torch.rand(1, N, 2, dtype=torch.float64)
    log_probs = model.log_probs(points, None, torch.tensor([TARGETS]))[0]
    expected = Formulas("multi-ptr-net", model).log_probs(
        points[0].tolist(), TARGETS, free_running=True
    )
    torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", [*FREE_RUNNING, "seq2seq-attention", "memory-ptr-net"])
def test_gradients_equal_finite_differences(name):
    """Choices of elements without a gradient do not change by a small step, either."""
    settings = {"teacher_forcing": False} if name in FREE_RUNNING else {}
    model = build(name, {}, **settings).train()
    points, targets = torch.rand(3, N, 2, dtype=torch.float64), torch.tensor([TARGETS] * 3)

    check_gradients(model, points, targets, 1e-6)
