"""Compare recurrent models with their formulas, in plain loops and float64.

The formulas use nothing of a model but its weights, by their names in the state.
`tests/lab` has the formulas of the lab's models.
"""

import math

import pytest
import torch

from ptrnet import models

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
    """The formula of the Ptr-Net, on the weights of a model as lists."""

    def __init__(self, model):
        self.settings = model.settings()
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

    def log_probs(self, points, targets):
        logs = [[math.log(p) for p in row] for row in self.probabilities(points, targets)]
        return torch.tensor(logs, dtype=torch.float64)

    def probabilities(self, points, targets):
        """Yield the probabilities of all tokens for each step."""
        outputs, states = self.read("encoder", points)
        outputs = self.remembered(points, outputs)
        slots = self.w["special_states"] + outputs
        inputs = self.w["special_inputs"] + points
        x = inputs[0]
        for target in targets:
            d, states = self.decode(x, states)
            a = softmax([self.score(e, d) for e in slots])
            yield a
            x = self.next_input(a, inputs, target)

    def remembered(self, points, outputs):
        """Return the vectors that the decoder's states are compared with."""
        return outputs

    def next_input(self, a, inputs, target):
        return inputs[target]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())) or "-")
def test_log_probs_of_ptr_net_equal_the_formula(options):
    model = build("ptr-net", options).eval()
    points = torch.rand(1, N, 2, dtype=torch.float64)
    log_probs = model.log_probs(points, None, torch.tensor([TARGETS]))[0]
    expected = Formulas(model).log_probs(points[0].tolist(), TARGETS)
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
