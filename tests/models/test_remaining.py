"""Compare `remaining-ptr-net` with its formula, in plain loops and float64.

The formula uses nothing of the model but its weights, by their names in the state.
"""

import math

import pytest
import torch

from ptrnet import InputError, models
from ptrnet.models.parts.remaining import DistanceBias

N, TARGETS = 5, [3, 6, 2, 0]  # with a second special slot: token 2 is the first element


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def times(matrix, vector):
    return [dot(row, vector) for row in matrix]


def plus(*vectors):
    return [sum(entries) for entries in zip(*vectors, strict=True)]


def softmax(u):
    total = sum(map(math.exp, u))
    return [math.exp(x) / total for x in u]


def norm(x):
    mean = sum(x) / len(x)
    deviation = math.sqrt(sum((a - mean) ** 2 for a in x) / len(x) + 1e-5)
    return [(a - mean) / deviation for a in x]


class Formula:
    """The formula on the weights of a model as lists."""

    def __init__(self, model):
        self.settings = model.settings()
        self.w = {key: value.tolist() for key, value in model.state_dict().items()}

    def log_probs(self, points, targets):
        seen, last_token, rows = [], 0, []
        for target in targets:
            rows.append(self.next_log_probs(points, seen, last_token))
            last_token = target
            if target >= 2:
                seen.append(target - 2)
        return rows

    def next_log_probs(self, points, seen, last_token):
        remaining = [j for j in range(len(points)) if self.settings["repeats"] or j not in seen]
        positions = [points[j] for j in remaining]
        mean = [sum(column) / len(remaining) for column in zip(*positions, strict=True)]
        current, goal = (points[seen[-1]], points[seen[0]]) if seen else (mean, mean)
        places = [current, goal, goal, *positions]
        rows = self.read(places, current, goal)
        rows[0] = plus(rows[0], self.w["last_marks"][min(last_token, 2)])
        rows[1:3] = [plus(r, m) for r, m in zip(rows[1:3], self.w["slot_marks"], strict=True)]
        for k, j in enumerate(remaining):
            if j in seen:
                rows[3 + k] = plus(rows[3 + k], self.w["seen_mark"])
        states = self.encode(rows, self.biases(places))
        query = times(self.w["query.weight"], states[0])
        keys = [times(self.w["key.weight"], state) for state in states[1:]]
        probabilities = softmax([dot(query, key) / math.sqrt(len(key)) for key in keys])
        log_probs = [-math.inf] * (2 + len(points))
        for token, p in zip([0, 1, *(2 + j for j in remaining)], probabilities, strict=True):
            log_probs[token] = math.log(p)
        return log_probs

    def read(self, points, current, goal):
        if self.settings["align"]:
            # Complex numbers rotate and mirror.
            z = [complex(*p) - complex(*current) for p in points]
            to_goal = complex(*goal) - complex(*current)
            axis = to_goal if abs(to_goal) > 1e-9 else sum(z)
            unit = axis / abs(axis) if abs(axis) > 1e-9 else 1
            z, to_goal = [x / unit for x in z], to_goal / unit
            if sum(z).imag < -1e-9:
                z, to_goal = [x.conjugate() for x in z], to_goal.conjugate()
            points, current = [(x.real, x.imag) for x in z], (0, 0)
            goal = (to_goal.real, to_goal.imag)
        size = max(abs(a - b) for p in points for a, b in zip(p, current, strict=True))
        rows = []
        for p in points:
            r, g = ([(a - b) / size for a, b in zip(p, q, strict=True)] for q in (current, goal))
            waves = [
                wave(2**k * math.pi * x)
                for k in range(self.settings["octaves"])
                for wave in (math.sin, math.cos)
                for x in r
            ]
            numbers = [*p, *r, math.hypot(*r), *g, math.hypot(*g), math.log(size), *waves]
            rows.append(self.affine("places.map", numbers))
        return rows

    def biases(self, points):
        """The score of each pair of points from their distance, for each head."""
        heads = self.settings["heads"]
        if not self.settings["see_distances"]:
            return [[[0.0] * len(points) for _ in points] for _ in range(heads)]
        rows = [[math.dist(p, q) for q in points] for p in points]
        spacing = sum(min(d for d in row if d > 0) for row in rows) / len(rows)
        return [
            [[slope * math.log(1 + d / spacing) for d in row] for row in rows]
            for slope in self.w["distances.slopes"]
        ]

    def affine(self, name, x):
        return plus(times(self.w[f"{name}.weight"], x), self.w[f"{name}.bias"])

    def encode(self, rows, biases):
        for number in range(self.settings["encoder_layers"]):
            layer = f"layers.{number}"
            projections = [self.affine(f"{layer}.attention.inward", norm(row)) for row in rows]
            attended = [
                self.attend(row, projections, [bias[k] for bias in biases])
                for k, row in enumerate(projections)
            ]
            attended = [self.affine(f"{layer}.attention.outward", row) for row in attended]
            rows = [plus(*pair) for pair in zip(rows, attended, strict=True)]
            inner = [self.affine(f"{layer}.feed_forward.0", norm(row)) for row in rows]
            inner = [[max(0.0, x) for x in row] for row in inner]
            after = [self.affine(f"{layer}.feed_forward.2", row) for row in inner]
            rows = [plus(*pair) for pair in zip(rows, after, strict=True)]
        return [norm(row) for row in rows]

    def attend(self, row, projections, biases):
        units = len(row) // 3
        size = units // self.settings["heads"]
        attended = []
        for h, bias in zip(range(0, units, size), biases, strict=True):
            query = row[h : h + size]
            keys, values = (
                [other[start + h : start + h + size] for other in projections]
                for start in (units, 2 * units)
            )
            scores = [dot(query, key) / math.sqrt(size) for key in keys]
            weights = softmax(plus(scores, bias))
            attended += [dot(weights, column) for column in zip(*values, strict=True)]
        return attended


def build(**settings):
    torch.manual_seed(3)
    small = {"hidden_size": 6, "heads": 2, "feed_forward": 5, "encoder_layers": 2, "octaves": 2}
    model = models.build("remaining-ptr-net", 2, 2, **{**small, **settings}).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"repeats": True},
        {"heads": 3, "octaves": 0},
        {"encoder_layers": 1},
        {"align": True},
        {"see_distances": True},
        {"align": True, "see_distances": True, "repeats": True},
    ],
    ids=str,
)
def test_log_probs_equal_the_formula(settings):
    model = build(**settings)
    points = torch.rand(1, N, 2, dtype=torch.float64)
    actual = model.log_probs(points, None, torch.tensor([TARGETS]))[0]
    expected = Formula(model).log_probs(points[0].tolist(), TARGETS)
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-11)


def test_elements_of_the_answer_have_probability_zero():
    """The distribution depends on the set of seen elements, the first and the last one."""
    model = build()
    points = torch.rand(1, N, 2, dtype=torch.float64)
    targets = torch.tensor([[2, 4, 5, 3, 6, 0], [2, 5, 4, 3, 6, 0]])
    rows = model.log_probs(points.expand(2, -1, -1), None, targets).exp()
    assert (rows[0, 3, targets[0, :3]] == 0).all() and rows[0, 3, 3] > 0
    torch.testing.assert_close(rows[0, 4:], rows[1, 4:])
    assert (rows[0, 5, 2:] == 0).all()  # only special slots remain


def test_autocast_does_not_round_coordinates():
    """bfloat16 would round all these points to the same one."""
    torch.manual_seed(3)
    model = models.build("remaining-ptr-net", 2, 1, hidden_size=16, octaves=8).eval()
    points, targets = 0.5 + torch.rand(1, 6, 2) * 2**-12, torch.tensor([[1, 2, 3]])
    assert len(points.bfloat16().unique(dim=1)[0]) == 1
    exact = model.log_probs(points, None, targets).exp()
    with torch.autocast("cpu", torch.bfloat16):
        lowered = model.log_probs(points, None, targets).exp()
    assert lowered.dtype == torch.float32
    torch.testing.assert_close(lowered, exact, rtol=0, atol=4e-3)
    assert (exact[0, 0, 1:].max() - exact[0, 0, 1:].min()) > 0.02


def test_hidden_size_must_be_a_multiple_of_heads():
    with pytest.raises(InputError, match="hidden_size: expected a multiple of 4 heads, got 6"):
        build(heads=4)


def test_only_nearest_elements_are_encoded():
    """Near tokens have the odds of an instance without the others, which stay possible."""
    near, full = build(nearest=3), build()
    points = torch.rand(2, 9, 2, dtype=torch.float64)
    prefix = torch.tensor([[2, 4, 3], [5, 2, 9]])
    rows = near.log_probs(points, None, torch.cat([prefix, prefix[:, :1]], 1))[:, 3].exp()
    for b in range(2):
        remaining = [j for j in range(9) if j + 2 not in prefix[b]]
        last = points[b, prefix[b, -1] - 2]
        remaining.sort(key=lambda j: float((points[b, j] - last).norm()))
        elements = [*(prefix[b] - 2).tolist(), *remaining[:3]]
        targets = torch.tensor([[2, 3, 4, 0]])
        expected = full.log_probs(points[b : b + 1, elements], None, targets)[0, 3].exp()
        encoded = torch.cat([rows[b, :2], rows[b, [j + 2 for j in remaining[:3]]]])
        torch.testing.assert_close(encoded / encoded.sum(), expected[[0, 1, 5, 6, 7]])
        assert (rows[b, [j + 2 for j in remaining[3:]]] > 0).all()
    torch.testing.assert_close(
        near.log_probs(points, None, prefix).exp().sum(-1), torch.ones(2, 3).double()
    )


def test_aligned_points_do_not_change_if_all_are_moved_rotated_or_mirrored():
    """The first element has no frame. After it, the mean gives an axis, but no side to mirror."""
    model = build(align=True, see_distances=True)
    points = torch.rand(1, N, 2, dtype=torch.float64)
    targets = torch.tensor([TARGETS])
    expected = model.log_probs(points, None, targets)
    cos, sin = math.cos(0.7), math.sin(0.7)
    for turn, first in (([[cos, sin], [-sin, cos]], 1), ([[cos, sin], [sin, -cos]], 2)):
        moved = points @ torch.tensor(turn, dtype=torch.float64) + torch.tensor([0.3, -2.0])
        actual = model.log_probs(moved, None, targets)
        torch.testing.assert_close(actual[:, first:], expected[:, first:], rtol=0, atol=1e-10)


def test_rounding_does_not_turn_symmetric_points():
    """A regular polygon has its mean at its center, where only rounding gives a direction."""
    model = build(align=True).float()
    angles = torch.arange(12) * (2 * math.pi / 12)
    points = torch.stack([angles.cos(), angles.sin()], -1)[None]
    padded = torch.nn.functional.pad(points, (0, 0, 0, 5))
    lengths, targets = torch.tensor([12]), torch.tensor([[2, 8, 3]])
    alone = model.log_probs(points, lengths, targets)
    with_padding = model.log_probs(padded, lengths, targets)
    torch.testing.assert_close(with_padding[..., :14], alone, rtol=0, atol=1e-4)
    assert (with_padding[..., 14:] == -torch.inf).all()


def test_units_of_length_do_not_change_the_attention_to_near_points():
    points = torch.rand(2, 7, 2, dtype=torch.float64)
    mask = torch.ones(2, 7, dtype=torch.bool)
    bias = DistanceBias(3).double()
    expected = bias(points, mask)
    torch.testing.assert_close(bias(1000 * points, mask), expected)
    assert (expected[:, 0] == 0).all() and (expected[:, 2] <= 0).all()
    same = bias(torch.ones(1, 4, 2), torch.ones(1, 4, dtype=torch.bool))
    assert (same == 0).all()  # all points are equal


def test_only_points_in_the_plane_can_be_aligned():
    with pytest.raises(InputError, match="align: expected points in the plane, got 3 features"):
        models.build("remaining-ptr-net", 3, 1, align=True)
