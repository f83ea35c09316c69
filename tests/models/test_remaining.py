"""The network that encodes what remains, against its formula with plain loops, in float64.

Weights are read by their names in the model's files; nothing else of the model is used.
"""

import math

import pytest
import torch

from ptrnet import InputError, models

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


def normed(x):
    mean = sum(x) / len(x)
    spread = math.sqrt(sum((a - mean) ** 2 for a in x) / len(x) + 1e-5)
    return [(a - mean) / spread for a in x]


class Remaining:
    """A model's numbers as lists, and the formula."""

    def __init__(self, model):
        self.settings = model.settings()
        self.w = {key: value.tolist() for key, value in model.state_dict().items()}

    def log_probs(self, points, targets):
        seen, fed, rows_of_all = [], 0, []
        for target in targets:
            again = self.settings["repeats"]
            left = [j for j in range(len(points)) if again or j not in seen]
            chosen = [points[j] for j in left]
            middle = [sum(column) / len(left) for column in zip(*chosen, strict=True)]
            here, goal = (points[seen[-1]], points[seen[0]]) if seen else (middle, middle)
            rows = self.look([here, goal, goal, *chosen], here, goal)
            rows[0] = plus(rows[0], self.w["last_marks"][min(fed, 2)])
            rows[1:3] = [plus(r, m) for r, m in zip(rows[1:3], self.w["slot_marks"], strict=True)]
            for k, j in enumerate(left):
                if j in seen:
                    rows[3 + k] = plus(rows[3 + k], self.w["seen_mark"])
            states = self.transformed(rows)
            asked = times(self.w["query.weight"], states[0])
            keys = [times(self.w["key.weight"], state) for state in states[1:]]
            p = softmax([dot(asked, key) / math.sqrt(len(key)) for key in keys])
            found = [-math.inf] * (2 + len(points))
            for place, x in zip([0, 1, *(2 + j for j in left)], p, strict=True):
                found[place] = math.log(x)
            rows_of_all.append(found)
            fed = target
            if target >= 2:
                seen.append(target - 2)
        return rows_of_all

    def look(self, points, here, goal):
        size = max(abs(a - b) for p in points for a, b in zip(p, here, strict=True))
        rows = []
        for p in points:
            r, g = ([(a - b) / size for a, b in zip(p, q, strict=True)] for q in (here, goal))
            waves = [
                wave(2**k * math.pi * x)
                for k in range(self.settings["octaves"])
                for wave in (math.sin, math.cos)
                for x in r
            ]
            seen = [*p, *r, math.hypot(*r), *g, math.hypot(*g), math.log(size), *waves]
            rows.append(self.affine("places.map", seen))
        return rows

    def affine(self, name, x):
        return plus(times(self.w[f"{name}.weight"], x), self.w[f"{name}.bias"])

    def transformed(self, rows):
        heads, units = self.settings["heads"], len(rows[0])
        part = units // heads
        for k in range(self.settings["encoder_layers"]):
            layer = f"layers.{k}"
            maps = [self.affine(f"{layer}.attention.inward", normed(row)) for row in rows]
            after = []
            for row, asking in zip(rows, maps, strict=True):
                found = []
                for h in range(0, units, part):
                    q = asking[h : h + part]
                    keys, values = (
                        [m[o + h : o + h + part] for m in maps] for o in (units, 2 * units)
                    )
                    a = softmax([dot(q, key) / math.sqrt(part) for key in keys])
                    found += [dot(a, column) for column in zip(*values, strict=True)]
                row = plus(row, self.affine(f"{layer}.attention.outward", found))
                inner = self.affine(f"{layer}.feed_forward.0", normed(row))
                inner = [max(0.0, x) for x in inner]
                after.append(plus(row, self.affine(f"{layer}.feed_forward.2", inner)))
            rows = after
        return [normed(row) for row in rows]


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
    [{}, {"repeats": True}, {"heads": 3, "octaves": 0}, {"encoder_layers": 1}],
    ids=str,
)
def test_equals_the_formula(settings):
    model = build(**settings)
    points = torch.rand(1, N, 2, dtype=torch.float64)
    found = model.log_probs(points, None, torch.tensor([TARGETS]))[0]
    slow = Remaining(model).log_probs(points[0].tolist(), TARGETS)
    torch.testing.assert_close(found, torch.tensor(slow, dtype=torch.float64), rtol=0, atol=1e-11)


def test_what_was_pointed_at_is_not_pointed_at_again():
    """And where one stands, comes from and has been is all that counts: not the way there."""
    model = build()
    points = torch.rand(1, N, 2, dtype=torch.float64)
    ways = torch.tensor([[2, 4, 5, 3, 6, 0], [2, 5, 4, 3, 6, 0]])
    found = model.log_probs(points.expand(2, -1, -1), None, ways).exp()
    assert (found[0, 3, ways[0, :3]] == 0).all() and found[0, 3, 3] > 0
    torch.testing.assert_close(found[0, 4:], found[1, 4:])
    assert (found[0, 5, 2:] == 0).all()  # nothing remains but the special slots


def test_coordinates_keep_their_digits_under_autocast():
    """Points that bfloat16 would put in one place are told from each other."""
    torch.manual_seed(3)
    model = models.build("remaining-ptr-net", 2, 1, hidden_size=16).eval()
    points, targets = 0.5 + torch.rand(1, 6, 2) * 2**-12, torch.tensor([[1, 2, 3]])
    assert len(points.bfloat16().unique(dim=1)[0]) == 1
    exact = model.log_probs(points, None, targets).exp()
    with torch.autocast("cpu", torch.bfloat16):
        found = model.log_probs(points, None, targets).exp()
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact, rtol=0, atol=4e-3)
    assert (exact[0, 0, 1:].max() - exact[0, 0, 1:].min()) > 0.02


def test_heads_share_the_units_evenly():
    with pytest.raises(InputError, match="hidden_size: expected a multiple of 4 heads, got 6"):
        build(heads=4)


def test_only_the_nearest_are_encoded():
    """Tokens within reach are as likely as where all the others are gone; none is impossible."""
    near, whole = build(nearest=3), build()
    points = torch.rand(2, 9, 2, dtype=torch.float64)
    prefix = torch.tensor([[2, 4, 3], [5, 2, 9]])
    found = near.log_probs(points, None, torch.cat([prefix, prefix[:, :1]], 1))[:, 3].exp()
    for b in range(2):
        left = [j for j in range(9) if j + 2 not in prefix[b]]
        last = points[b, prefix[b, -1] - 2]
        left.sort(key=lambda j: float((points[b, j] - last).norm()))
        kept = [*(prefix[b] - 2).tolist(), *left[:3]]
        small = whole.log_probs(points[b : b + 1, kept], None, torch.tensor([[2, 3, 4, 0]]))[0, 3]
        reach = torch.cat([found[b, :2], found[b, [j + 2 for j in left[:3]]]])
        torch.testing.assert_close(reach / reach.sum(), small.exp()[[0, 1, 5, 6, 7]])
        assert (found[b, [j + 2 for j in left[3:]]] > 0).all()
    torch.testing.assert_close(
        near.log_probs(points, None, prefix).exp().sum(-1), torch.ones(2, 3).double()
    )
