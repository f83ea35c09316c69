"""The network for sets, against its formula with plain loops, in float64."""

import math

import numpy as np
import pytest
import torch

from ptrnet import InputError, models
from ptrnet.models.settings import SetSettings
from ptrnet.tasks.custom import Custom
from tests.models.test_remaining import dot, norm, plus, softmax, times


@pytest.fixture
def network():
    def build(**settings):
        torch.manual_seed(2)
        small = {"hidden_size": 4, "heads": 2, "encoder_layers": 2, "feed_forward": 6}
        model = models.build("set-ptr-net", 3, 2, **{**small, **settings}).double().eval()
        torch.nn.init.normal_(model.linear.weight)  # a new network has zeros here
        return model

    return build


def attention(w, name, rows, heads):
    both = [
        plus(times(w[f"{name}.inward.weight"], norm(r)), w[f"{name}.inward.bias"]) for r in rows
    ]
    units = len(rows[0])
    size = units // heads
    attended = [[] for _ in rows]
    for head in range(heads):
        q, k, v = ([row[part * units + head * size :][:size] for row in both] for part in range(3))
        for i, query in enumerate(q):
            shares = softmax([dot(query, key) / math.sqrt(size) for key in k])
            attended[i] += [dot(shares, column) for column in zip(*v, strict=True)]
    return [
        plus(times(w[f"{name}.outward.weight"], a), w[f"{name}.outward.bias"]) for a in attended
    ]


def layer(w, name, row):
    return plus(times(w[f"{name}.weight"], row), w[f"{name}.bias"])


def relu(row):
    return [max(x, 0) for x in row]


def scores_of(model, points, logs=()):
    """The scores of the special slots and of the points, of the model's weights.

    `logs` are more features of the points, without waves.
    """
    w = {key: value.tolist() for key, value in model.state_dict().items()}
    features = [[*p, *log] for p, log in zip(points, logs or [[]] * len(points), strict=True)]
    means = [sum(column) / len(points) for column in zip(*features, strict=True)]
    read = [[*f, *(x - mean for x, mean in zip(f, means, strict=True))] for f in features]
    waves = [
        [
            wave(2**k * math.pi / 4 * x) / 2
            for k in range(model.octaves)
            for wave in (math.sin, math.cos)
            for x in p
        ]
        for p in points
    ]
    encoded = [layer(w, "elements.map", [*r, *v]) for r, v in zip(read, waves, strict=True)]
    rows = [*w["special_inputs"], *encoded]
    for k in range(2):
        attended = attention(w, f"encoder.{k}.attention", rows, 2)
        rows = [plus(row, a) for row, a in zip(rows, attended, strict=True)]
        name = f"encoder.{k}.feed_forward"
        rows = [
            plus(row, layer(w, f"{name}.2", relu(layer(w, f"{name}.0", norm(row))))) for row in rows
        ]
    scores = [layer(w, "head.3", relu(layer(w, "head.0", norm(row))))[0] for row in rows]
    factor = 20 / math.sqrt(len(read[0]))
    linear = [
        *(0.0 for _ in w["special_inputs"]),
        *(factor * dot(w["linear.weight"][0], row) for row in read),
    ]
    return plus(scores, linear)


@pytest.mark.parametrize("octaves", [0, 3])
def test_scores_are_the_formula(network, octaves):
    model = network(octaves=octaves)
    points = np.random.default_rng(0).normal(size=(5, 3)).tolist()
    actual = model.encode(torch.tensor([points], dtype=torch.float64)).scores[0]
    np.testing.assert_allclose(actual.tolist(), scores_of(model, points), rtol=1e-9)


def test_logarithms_are_those_of_features_that_are_positive_in_all_examples():
    """The first feature may be negative. The others count as at least 0.5 and 100."""
    task = Custom(center=(0.1, 2.0, 300.0), spread=(1.0, 1.5, 90.0), lowest=(-1.0, 0.5, 100.0))
    settings = SetSettings(hidden_size=4, heads=2, feed_forward=6, see_logs=True)
    torch.manual_seed(2)
    model = models.for_task("set-ptr-net", task, settings).double().eval()
    torch.nn.init.normal_(model.linear.weight)
    elements = np.array([[-0.7, 0.5, 150.0], [2.0, 3.0, 90.0], [1.0, 0.2, 500.0]])
    logs = [[0, math.log(max(x, 0.5) / 2), math.log(max(y, 100) / 300)] for _, x, y in elements]
    points = task.normalize(elements).tolist()
    actual = model.encode(torch.tensor([points], dtype=torch.float64)).scores[0]
    expected = scores_of(model, points, logs)
    np.testing.assert_allclose(actual.tolist(), expected, rtol=1e-6)  # the task's numbers: float32


@pytest.mark.parametrize("answer", ["any", "all", "one"])
@pytest.mark.parametrize("repeats", [False, True])
def test_steps_are_softmaxes_over_allowed_tokens(network, answer, repeats):
    model = network(answer=answer, repeats=repeats)
    points = np.random.default_rng(1).normal(size=(3, 3)).tolist()
    weights = [math.exp(u) for u in scores_of(model, points)]
    targets = [3, 2, 4, 0]
    rows = model.log_probs(
        torch.tensor([points], dtype=torch.float64), None, torch.tensor([targets])
    ).exp()
    for step, row in enumerate(rows[0].tolist()):
        elements = [k for k in (2, 3, 4) if repeats or k not in targets[:step]]
        allowed = {"any": [0, 1, *elements], "all": elements or [0, 1], "one": elements}[answer]
        if answer == "one" and step:
            allowed = [0, 1]
        total = sum(weights[k] for k in allowed)
        expected = [weights[k] / total if k in allowed else 0 for k in range(5)]
        np.testing.assert_allclose(row, expected, rtol=1e-9)


def test_the_order_of_the_elements_is_not_seen(network):
    model, points = network(), torch.randn(1, 6, 3).double()
    order = torch.randperm(6)
    scores, shuffled = (model.encode(x).scores for x in (points, points[:, order]))
    torch.testing.assert_close(scores[:, 2:][:, order], shuffled[:, 2:])
    torch.testing.assert_close(scores[:, :2], shuffled[:, :2])


def test_dropout_is_for_training_alone(network):
    model, points = network(dropout=0.5), torch.randn(1, 6, 3).double()
    assert torch.equal(model.encode(points).scores, model.encode(points).scores)
    model.train()
    assert not torch.equal(model.encode(points).scores, model.encode(points).scores)


def test_units_that_heads_do_not_divide_are_refused():
    with pytest.raises(InputError, match="hidden_size: expected a multiple of 4 heads, got 10"):
        models.build("set-ptr-net", 2, 1, hidden_size=10)
