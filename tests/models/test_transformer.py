"""Compare the transformer with its formula, in plain loops and float64.

The formula uses nothing of the model but its weights, by their names in the state.
"""

import math

import pytest
import torch

from ptrnet import kernels, models
from ptrnet.errors import InputError
from ptrnet.kernels.frames_cpu import CompiledFrames
from ptrnet.models.parts import attention
from tests.models.gradients import check_gradients
from tests.models.plain_frames import (
    NUM_SPECIALS,
    LastEdge,
    OpenEdge,
    cosine_sine,
    dist,
    minus,
    signed_logs,
)

OPTIONS = [
    {"heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 5},
    {"heads": 3, "encoder_layers": 2, "decoder_layers": 2, "octaves": 2, "see_indices": True},
    {"heads": 1, "encoder_layers": 1, "decoder_layers": 1, "edge_frames": True},
    {"heads": 1, "decoder_layers": 1, "edge_frames": True, "frame_edge": "open"},
    {"heads": 2, "encoder_layers": 1, "decoder_layers": 1, "octaves": 1, "see_deviations": True},
]
CASES = pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
UNITS, N = 6, 5
POINTS = [(0.1, 0.2), (0.9, 0.3), (0.9, 0.3), (0.5, 0.7), (0.4, 0.1)]  # two are equal
TARGETS = [3, 6, 2, 1, 4, 3, 0]


def build(options, features=2):
    torch.manual_seed(3)
    sizes = {"hidden_size": UNITS, "feed_forward": 7}
    model = models.build(
        "transformer-ptr-net", features, NUM_SPECIALS, **{**sizes, **options}
    ).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model.eval()


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def plus(*vectors):
    return [sum(entries) for entries in zip(*vectors, strict=True)]


def softmax(u):
    total = sum(math.exp(x - max(u)) for x in u)
    return [math.exp(x - max(u)) / total for x in u]


def norm(x):
    mean = sum(x) / len(x)
    variance = sum((s - mean) ** 2 for s in x) / len(x)
    return [(s - mean) / math.sqrt(variance + 1e-5) for s in x]


class Formulas:
    """The formulas on the weights of a model as lists.

    Rounding decides which of two elements in one place is the likeliest. `likeliest` chooses the
    first (0) or the last (-1) of the elements with nearly equal scores.
    """

    def __init__(self, model, likeliest=0):
        self.likeliest = likeliest
        self.settings = model.settings()
        self.w = {key: value.tolist() for key, value in model.state_dict().items()}

    def map(self, name, x):
        product = [dot(row, x) for row in self.w[f"{name}.weight"]]
        return plus(product, self.w[f"{name}.bias"]) if f"{name}.bias" in self.w else product

    def attention(self, query, keys, values):
        """The weighted mean of the values for one query, head by head."""
        width, heads = UNITS // self.settings["heads"], []
        for a in range(0, UNITS, width):
            part = slice(a, a + width)
            weights = softmax([dot(query[part], k[part]) / math.sqrt(width) for k in keys])
            heads += [dot(weights, column) for column in list(zip(*values, strict=True))[part]]
        return heads

    def self_attention(self, layer, rows):
        inward = [self.map(f"{layer}.attention.inward", norm(row)) for row in rows]
        q, k, v = ([row[a : a + UNITS] for row in inward] for a in (0, UNITS, 2 * UNITS))
        added = [self.map(f"{layer}.attention.outward", self.attention(one, k, v)) for one in q]
        return [plus(row, x) for row, x in zip(rows, added, strict=True)]

    def feed_forward(self, layer, x):
        hidden = [max(0.0, s) for s in self.map(f"{layer}.feed_forward.0", norm(x))]
        return plus(x, self.map(f"{layer}.feed_forward.2", hidden))

    def element(self, j, point, points):
        read = list(point)
        if self.settings["see_deviations"]:
            means = [sum(column) / len(points) for column in zip(*points, strict=True)]
            read += [x - mean for x, mean in zip(point, means, strict=True)]
        features = list(read)
        for k in range(self.settings["octaves"]):
            for wave in (math.sin, math.cos):
                features += [wave(2**k * math.pi * x) for x in read]
        x = self.map("elements.map", features)
        if self.settings["see_indices"]:
            angles = [j / 10_000 ** (2 * k / UNITS) for k in range(UNITS // 2)]
            x = plus(x, [*map(math.sin, angles), *map(math.cos, angles)])
        return x

    def encode(self, points):
        rows = self.w["special_inputs"] + [self.element(j, p, points) for j, p in enumerate(points)]
        for k in range(self.settings["encoder_layers"]):
            layer = f"encoder.{k}"
            rows = [self.feed_forward(layer, x) for x in self.self_attention(layer, rows)]
        return [norm(row) for row in rows]

    def decode(self, tokens, states):
        """The decoder's state after tokens, beginning with the start symbol; without a cache."""
        rows = [states[t] for t in tokens]
        for k in range(self.settings["decoder_layers"]):
            layer = f"decoder.{k}"
            rows = [self.self_attention(layer, rows[: i + 1])[-1] for i in range(len(rows))]
            others = [self.map(f"{layer}.cross.others", e) for e in states]
            keys, values = [o[:UNITS] for o in others], [o[UNITS:] for o in others]
            for i, x in enumerate(rows):
                query = self.map(f"{layer}.cross.query", norm(x))
                added = self.map(f"{layer}.cross.outward", self.attention(query, keys, values))
                rows[i] = self.feed_forward(layer, plus(x, added))
        return norm(rows[-1])

    def log_probs(self, points, targets):
        states, rows = self.encode(points), []
        for i in range(len(targets)):
            tokens = [0, *targets[:i]]
            d = self.decode(tokens, states)
            scores = [dot(d, self.map("pointer", e)) / math.sqrt(UNITS) for e in states]
            if self.settings["edge_frames"]:
                view = OpenEdge if self.settings["frame_edge"] == "open" else LastEdge
                scores = self.edge_frames(scores, view(points, tokens), d, states)
            rows.append([math.log(p) for p in softmax(scores)])
        return torch.tensor(rows, dtype=torch.float64)

    def frame_score(self, k, features, x):
        layer = f"frames.looks.{k}"
        hidden = [max(0.0, s) for s in plus(self.map(f"{layer}.features", features), x)]
        return dot(self.w[f"{layer}.score.weight"][0], hidden)

    def edge_frames(self, scores, view, d, states):
        """The scores after four rounds of edge frames, computed from angles."""
        vectors, begun, query, added = view.vectors, view.begun, self.map("frames.query", d), []
        for t, v in enumerate(vectors):
            angle = cosine_sine(view.edge, v) if begun else [0.0] * 2
            features = [*angle, math.log(dist(v)) if begun else 0.0, *view.flags[t]]
            x = plus(query, self.map("frames.key", states[t]))
            added.append(self.frame_score(0, features + view.first_features(angle[1]), x))
        scores = plus(scores, added)
        for k in (1, 2, 3):
            equal = [t for t, score in enumerate(scores) if score > max(scores) - 1e-9]
            best, added = equal[self.likeliest], []
            for t, v in enumerate(vectors):
                across, along = minus(v, vectors[best])
                if begun:
                    along, across = cosine_sine(vectors[best], v)
                line_dist = across * dist(v) if begun else 0.0
                ratio = math.log(dist(v) / dist(vectors[best])) if begun else 0.0
                logs = [log for x in (along, across, line_dist) for log in signed_logs(x)]
                flags = [*view.flags[t], float(t == best), float(begun), *view.further_features(t)]
                features = [along, across, *logs, ratio, *flags]
                added.append(self.frame_score(k, features, [0.0] * 32))
            scores = plus(scores, added)
        return scores


@CASES
@pytest.mark.parametrize("features", [2, 3])
def test_log_probs_equal_the_formula(options, features):
    if features != 2 and "edge_frames" in options:
        with pytest.raises(InputError, match="expected elements of 2 numbers, got 3"):
            build(options, features)
        return
    model = build(options, features)
    points = [(*p, 0.5)[:features] for p in POINTS]
    actual = model.log_probs(
        torch.tensor([points], dtype=torch.float64), None, torch.tensor([TARGETS])
    )[0]
    first, last = (Formulas(model, k).log_probs(points, TARGETS) for k in (0, -1))
    is_first = torch.isclose(actual, first, rtol=1e-10, atol=1e-10).all(1, keepdim=True)
    expected = torch.where(is_first, first, last)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


@CASES
def test_padding_and_single_steps_change_nothing(options):
    """Like the standing contracts, but with every option, and several prefixes at once."""
    model = build(options)
    lengths = [2, N, 1]
    points = torch.rand(3, N + 2, 2, dtype=torch.float64)
    targets = torch.tensor([[2, 1, 2, 0]] * 3)
    ends = torch.tensor([4, 2, 3])
    together = model.log_probs(points, torch.tensor(lengths), targets, ends)
    encoded = model.encode(points, torch.tensor(lengths))
    state, last = encoded.state, torch.zeros(3, 1, dtype=torch.int64)
    for i in range(4):
        row, state = model.step(encoded, state, last)
        for b in torch.nonzero(ends > i)[:, 0].tolist():
            torch.testing.assert_close(row[b, 0], together[b, i], rtol=1e-10, atol=1e-10)
            torch.testing.assert_close(row[b, -1], together[b, i], rtol=1e-10, atol=1e-10)
        last = targets[:, i : i + 1].expand(-1, 3)
        state = tuple(s[:, :1].expand(-1, 3, *s.shape[2:]) for s in state)
    for b, n in enumerate(lengths):
        alone = model.log_probs(points[b : b + 1, :n], None, targets[b : b + 1])[0]
        real = together[b, : ends[b], : n + 2]
        torch.testing.assert_close(real, alone[: ends[b]], rtol=1e-10, atol=1e-10)
        assert (together[b, :, n + 2 :] == -torch.inf).all()


@CASES
def test_gradients_equal_finite_differences(options):
    """The points are distinct: of two equal ones, rounding would choose the frame's edge."""
    model = build(options)
    points = torch.tensor([[*POINTS[:2], (0.7, 0.9), *POINTS[3:]]] * 2, dtype=torch.float64)
    targets = torch.tensor([TARGETS] * 2)

    check_gradients(model, points, targets, 1e-5)


@pytest.mark.parametrize("options", [{}, {"octaves": 8}, {"edge_frames": True}])
def test_order_of_elements_does_not_matter_without_indices(options):
    model = build(options | {"heads": 2})
    points = torch.rand(1, N, 2, dtype=torch.float64)
    order = torch.tensor([3, 0, 4, 1, 2])
    shuffled = model.log_probs(points[:, order], None, torch.tensor([[2, 4, 0]]))
    expected = model.log_probs(points, None, torch.tensor([[5, 6, 0]]))
    columns = torch.cat([torch.arange(NUM_SPECIALS), order + NUM_SPECIALS])
    torch.testing.assert_close(shuffled, expected[..., columns], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("steps", [1, 9])
@pytest.mark.parametrize("bias_shape", [(5, 1, 1, 13), (1, 13), (5, 2, 1, 13), ()])
def test_fused_attention_equals_the_formula(steps, bias_shape):
    rng = torch.Generator().manual_seed(0)
    queries, keys, values = (torch.randn(5, 2, n, 4, generator=rng) for n in (steps, 13, 13))
    bias = torch.randn(bias_shape, generator=rng)
    if bias_shape:
        bias[..., 10:] = -torch.inf
    with torch.no_grad():
        attended = attention.attend(queries, keys, values, bias)
    scores = torch.einsum("bhmd,bhld->bhml", queries, keys).double() / 2 + bias
    expected = torch.einsum("bhml,bhld->bmhd", scores.softmax(-1), values.double())
    torch.testing.assert_close(attended.double(), expected.flatten(2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("edge", ["last", "open"])
def test_log_probs_use_compiled_frames_without_gradients(monkeypatch, edge):
    """For 250 hulls of 50 points, PyTorch needs 75 MB more than the kernel."""
    model = build({"heads": 1, "edge_frames": True, "frame_edge": edge}).float()
    points, targets = torch.rand(3, N, 2), torch.tensor([TARGETS] * 3)
    arguments = points, torch.tensor([5, 5, 4]), torch.where(targets == 6, 5, targets)
    expected, calls, score = model.log_probs(*arguments), [], CompiledFrames.__call__
    monkeypatch.setattr(CompiledFrames, "__call__", lambda *a: calls.append(len(a)) or score(*a))
    kernels.use_compiled_kernels()
    with torch.no_grad():
        torch.testing.assert_close(model.log_probs(*arguments), expected, rtol=1e-4, atol=1e-4)
    assert calls == [4]
