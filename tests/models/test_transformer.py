"""The transformer against its formula written out with plain loops, in float64.

Weights are read by their names in the model's files; nothing else of the model is used.
"""

import cmath
import math

import numpy as np
import pytest
import torch

from ptrnet import models, tasks
from ptrnet.constraints.open_edges import FrontEdge
from ptrnet.decoding import Beam, Greedy, Incremental, Sample
from ptrnet.errors import InputError
from ptrnet.models.base import shift_right
from ptrnet.models.parts.elements import Elements
from ptrnet.models.parts.frames import EdgeFrames
from ptrnet.models.parts.open_edge_frames import OpenEdgeFeatures, OpenEdgeFrames
from ptrnet.solver import Solver
from tests.models.gradients import check_gradients

OPTIONS = [
    {"heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 5},
    {"heads": 3, "encoder_layers": 2, "decoder_layers": 2, "octaves": 2, "see_indices": True},
    {"heads": 1, "encoder_layers": 1, "decoder_layers": 1, "edge_frames": True},
    {"heads": 1, "decoder_layers": 1, "edge_frames": True, "frame_edge": "open"},
]
CASES = pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
UNITS, N, NUM_SPECIALS = 6, 5, 2  # so token 2 is the first element
POINTS = [(0.1, 0.2), (0.9, 0.3), (0.9, 0.3), (0.5, 0.7), (0.4, 0.1)]  # two in one place
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


def minus(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


def softmax(u):
    total = sum(math.exp(x - max(u)) for x in u)
    return [math.exp(x - max(u)) / total for x in u]


def norm(x):
    mean = sum(x) / len(x)
    variance = sum((s - mean) ** 2 for s in x) / len(x)
    return [(s - mean) / math.sqrt(variance + 1e-5) for s in x]


def dist(v):
    return max(math.hypot(*v), 1e-6)


def cosine_sine(edge, v):
    """Of the angle from an edge to a vector; zeros where one has no length."""
    if math.hypot(*edge) == 0 or math.hypot(*v) == 0:
        return [0.0, 0.0]
    angle = math.atan2(v[1], v[0]) - math.atan2(edge[1], edge[0])
    return [math.cos(angle), math.sin(angle)]


def signed_logs(x):
    return [math.copysign(math.log(1 + abs(x) / scale), x) for scale in (1e-3, 1e-5, 1e-7)]


class LastEdge:
    """What is seen along the last edge of an answer that has these tokens."""

    def __init__(self, points, tokens):
        elements = [t for t in tokens if t >= NUM_SPECIALS]
        positions = [None] * NUM_SPECIALS + list(points)
        self.begun = bool(elements)
        first, last = (positions[elements[k]] if elements else (0, 0) for k in (0, -1))
        self.vectors = [minus(first if p is None else p, last) for p in positions]
        self.edge = minus(last, positions[elements[-2]]) if len(elements) > 1 else (0, -1)
        self.flags = [[float(self.begun and p == end) for end in (first, last)] for p in positions]

    def first_features(self, sine):
        return []

    def further_features(self, t):
        return []


class OpenEdge(LastEdge):
    """The same along the edge that is answered for next, in a sequence of apexes."""

    def __init__(self, points, tokens):
        tokens = [t for t in tokens if t != 0]
        edge = front_edge(tokens)
        super().__init__(points, edge)
        self.known = [float(k) for k in (len(edge) == 2, len(edge) > 0, len(tokens) > 0)]
        if len(edge) < 2:
            return
        u, v = (complex(*points[t - NUM_SPECIALS]) for t in edge)
        self.vectors, self.edge = [(1, 0)] * NUM_SPECIALS, (1, 0)
        for p in (complex(*point) for point in points):
            size = math.sqrt(abs(u - p) * abs(v - p)) / max(abs(v - u), 1e-6)
            angle = cmath.phase((v - p) / (u - p)) if size else 0.0
            self.vectors.append((size * math.cos(angle / 2), -size * math.sin(angle / 2)))

    def first_features(self, sine):
        return [*signed_logs(sine), *self.known]

    def further_features(self, t):
        return [self.known[0], float(t < NUM_SPECIALS)]


def front_edge(tokens):
    """The edge that is answered for next, by a plain queue; its first end alone, or nothing."""
    if len(tokens) < 2:
        return tokens
    queue = [tuple(tokens[:2])]
    for token in tokens[2:]:
        u, v = queue.pop(0)
        if token >= NUM_SPECIALS:
            sides = [(v, token), (token, u)]
            joining = [(end, start) for start, end in sides if (start, end) not in queue]
            queue = [side for side in queue if side not in sides] + joining
    return list(queue[0]) if queue else []


class Formulas:
    """A model's numbers as lists, and the formulas."""

    def __init__(self, model):
        self.settings = model.settings()
        self.w = {key: value.tolist() for key, value in model.state_dict().items()}

    def map(self, name, x):
        product = [dot(row, x) for row in self.w[f"{name}.weight"]]
        return plus(product, self.w[f"{name}.bias"]) if f"{name}.bias" in self.w else product

    def attention(self, query, keys, values):
        """One query's mean of the values, head by head."""
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

    def element(self, j, point):
        features = list(point)
        for k in range(self.settings["octaves"]):
            for wave in (math.sin, math.cos):
                features += [wave(2**k * math.pi * x) for x in point]
        x = self.map("elements.map", features)
        if self.settings["see_indices"]:
            angles = [j / 10_000 ** (2 * k / UNITS) for k in range(UNITS // 2)]
            x = plus(x, [*map(math.sin, angles), *map(math.cos, angles)])
        return x

    def encode(self, points):
        rows = self.w["special_inputs"] + [self.element(j, p) for j, p in enumerate(points)]
        for k in range(self.settings["encoder_layers"]):
            layer = f"encoder.{k}"
            rows = [self.feed_forward(layer, x) for x in self.self_attention(layer, rows)]
        return [norm(row) for row in rows]

    def decode(self, tokens, states):
        """The decoder's state after tokens, the start symbol first: all anew for every step."""
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
        """The scores with what four rounds add, in angles."""
        vectors, begun, query, added = view.vectors, view.begun, self.map("frames.query", d), []
        for t, v in enumerate(vectors):
            angle = cosine_sine(view.edge, v) if begun else [0.0] * 2
            features = [*angle, math.log(dist(v)) if begun else 0.0, *view.flags[t]]
            x = plus(query, self.map("frames.key", states[t]))
            added.append(self.frame_score(0, features + view.first_features(angle[1]), x))
        scores = plus(scores, added)
        for k in (1, 2, 3):
            best, added = scores.index(max(scores)), []
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
def test_equals_the_formula(options, features):
    if features != 2 and "edge_frames" in options:
        with pytest.raises(InputError, match="expected elements of 2 numbers, here they are of 3"):
            build(options, features)
        return
    model = build(options, features)
    points = [(*p, 0.5)[:features] for p in POINTS]
    actual = model.log_probs(
        torch.tensor([points], dtype=torch.float64), None, torch.tensor([TARGETS])
    )[0]
    expected = Formulas(model).log_probs(points, TARGETS)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


@CASES
def test_padding_and_steps_change_nothing(options):
    """With every option, as the contracts have it for the defaults; prefixes side by side."""
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
def test_gradients_are_those_of_small_differences(options):
    model = build(options)
    points = torch.tensor([POINTS] * 2, dtype=torch.float64)
    targets = torch.tensor([TARGETS] * 2)

    check_gradients(model, points, targets, 1e-5)


@pytest.mark.parametrize("options", [{}, {"octaves": 8}, {"edge_frames": True}])
def test_an_order_that_is_not_seen_changes_nothing(options):
    model = build(options | {"heads": 2})
    points = torch.rand(1, N, 2, dtype=torch.float64)
    order = torch.tensor([3, 0, 4, 1, 2])
    shuffled = model.log_probs(points[:, order], None, torch.tensor([[2, 4, 0]]))
    expected = model.log_probs(points, None, torch.tensor([[5, 6, 0]]))
    columns = torch.cat([torch.arange(NUM_SPECIALS), order + NUM_SPECIALS])
    torch.testing.assert_close(shuffled, expected[..., columns], rtol=1e-10, atol=1e-10)


HULL, APEXES = tasks.get("hull"), tasks.get("delaunay", sequence="apexes")


@pytest.mark.parametrize(
    ("task", "decoder"),
    [(HULL, d) for d in (Greedy(), Beam(3), Sample(3), Incremental(4))]
    + [(APEXES, d) for d in (Greedy(), Beam(3), Sample(3))],
)
@pytest.mark.parametrize("constrained", [True, False], ids=["constrained", "free"])
def test_with_edge_frames_a_batch_answers_as_its_members_alone(task, decoder, constrained):
    """What the standing contracts say of models without."""
    torch.manual_seed(5)
    options = {"hidden_size": 16, "encoder_layers": 1, "edge_frames": True}
    edge = "open" if task is APEXES else "last"
    model = models.build("transformer-ptr-net", 2, task.num_specials, frame_edge=edge, **options)
    solver = Solver(model, task)
    rng = torch.Generator().manual_seed(1)
    sizes = (n for n in (1, 2, 3, 5, 8, 13) if n >= task.min_elements)
    instances = [torch.rand(n, 2, generator=rng).double().numpy() for n in sizes]
    together = solver.solve(instances, decoder, constrained=constrained)
    for instance, answer in zip(instances, together, strict=True):
        alone = solver.solve(instance, decoder, constrained=constrained)
        assert answer.tolist() == alone.tolist()
        assert not constrained or task.answer_error(len(instance), answer) is None


@pytest.mark.parametrize("kind", [EdgeFrames, OpenEdgeFrames])
def test_coordinates_stay_exact_under_autocast(kind):
    torch.manual_seed(5)
    points, tokens = torch.rand(3, 6, 2), torch.randint(0, 8, (3, 4))
    elements, frames = Elements(2, 16, 4, True), kind(16)
    arguments = torch.randn(3, 4, 8), points, frames.all_ends(tokens, 2), torch.randn(3, 4, 16)
    keys = torch.randn(3, 8, 16)
    exact = elements(points), frames(*arguments, frames.project_keys(keys))
    with torch.autocast("cpu", torch.bfloat16):
        lowered = elements(points), frames(*arguments, frames.project_keys(keys))
    for a, b in zip(lowered, exact, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("points", ["uniform", "clustered", "stretched"])
def test_along_an_open_edge_the_apex_is_the_rightmost(points):
    """NONE among the candidates: every token of a true sequence after the first two, in float32."""
    task = tasks.get("delaunay", sequence="apexes", points=points)
    inputs = task.sample(np.random.default_rng(4), 50, 10)
    targets = torch.from_numpy(task.to_tokens(task.label(inputs)).indices)
    frames = OpenEdgeFrames(8)
    front = FrontEdge(*frames.all_ends(shift_right(targets), 2))
    view = OpenEdgeFeatures(torch.from_numpy(inputs).float(), 2, front)
    angles = torch.atan2(view.y, view.x)
    angles = angles.masked_fill(sum(view.is_end) > 0, torch.inf)
    angles[..., 0] = torch.inf  # END
    has_edge = front.head > 0
    assert has_edge.sum() > 500
    assert torch.equal(angles.argmin(-1)[has_edge], targets[has_edge])


@pytest.mark.parametrize(
    ("features", "num_specials", "options", "message"),
    [
        (2, 2, {"frame_edge": "open"}, "frame_edge: expected edge_frames with it"),
        (2, 1, {"frame_edge": "open", "edge_frames": True}, "sequences are of apexes"),
        (3, 2, {"frame_edge": "open", "edge_frames": True}, "elements of 2 numbers"),
    ],
)
def test_frames_without_such_an_edge_are_refused(features, num_specials, options, message):
    with pytest.raises(InputError, match=message):
        models.build("transformer-ptr-net", features, num_specials, **options)
