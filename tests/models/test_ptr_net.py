"""Compare the Ptr-Net with the formulas of V 2.3, in plain loops and float64."""

import math

import pytest
import torch

from ptrnet import models
from ptrnet.errors import InputError


def build(units=6, features=2, num_specials=1, seed=0):
    torch.manual_seed(seed)
    model = models.build("ptr-net", features, num_specials, hidden_size=units).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6)
    return model


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def times(matrix, vector):
    return [sum(w * x for w, x in zip(row, vector, strict=True)) for row in matrix]


def cell(layer, x, h, c):
    """One LSTM step."""
    lists = [p.tolist() for p in (layer.w_input, layer.w_hidden, layer.b_input, layer.b_hidden)]
    sums = [
        a + b + p + q
        for a, b, p, q in zip(times(lists[0], x), times(lists[1], h), *lists[2:], strict=True)
    ]
    n = len(h)
    i, f = map(sigmoid, sums[:n]), map(sigmoid, sums[n : 2 * n])
    g, o = map(math.tanh, sums[2 * n : 3 * n]), map(sigmoid, sums[3 * n :])
    c = [fk * ck + ik * gk for ik, fk, gk, ck in zip(i, f, g, c, strict=True)]
    return [ok * math.tanh(ck) for ok, ck in zip(o, c, strict=True)], c


def slow_log_probs(model, points, targets):
    """Log-probabilities of all tokens (special slots, then points) at each step."""
    units = model.settings()["hidden_size"]
    h = c = [0.0] * units
    states = [row.tolist() for row in model.special_states]
    for point in points:
        h, c = cell(model.encoder, point, h, c)
        states.append(h)
    inputs = [row.tolist() for row in model.special_inputs] + points
    w1, w2, v = (p.tolist() for p in (model.key.weight, model.query.weight, model.v))
    rows, last = [], 0
    for target in targets:
        h, c = cell(model.decoder, inputs[last], h, c)
        d = times(w2, h)
        u = [
            sum(vk * math.tanh(a + b) for vk, a, b in zip(v, times(w1, e), d, strict=True))
            for e in states
        ]
        total = math.log(sum(map(math.exp, u)))
        rows.append([score - total for score in u])
        last = target
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize(("n", "num_specials"), [(1, 1), (4, 1), (5, 2)])
def test_log_probs_equal_the_formula(n, num_specials):
    model = build(num_specials=num_specials)
    points = torch.rand(1, n, 2, dtype=torch.float64)
    targets = [num_specials, *([num_specials + n - 1, 1] if n > 1 else []), 0]
    log_probs = model.log_probs(points, None, torch.tensor([targets]))[0]
    expected = slow_log_probs(model, points[0].tolist(), targets)
    torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-12)


def test_float32_gradients_are_near_float64_ones():
    model = build(units=32)
    points = torch.rand(5, 7, 2, dtype=torch.float64)
    targets = torch.randint(0, 8, (5, 6))
    lengths, ends = torch.tensor([7, 3, 7, 5, 4]), torch.tensor([6, 2, 1, 6, 3])
    targets = targets.clamp(max=lengths[:, None])

    def gradients(net, inputs):
        net.zero_grad()
        log_probs = net.log_probs(inputs, lengths, targets, ends)
        real = torch.arange(6) < ends[:, None]
        (log_probs.gather(2, targets[..., None])[..., 0][real]).sum().backward()
        return {name: p.grad.double() for name, p in net.named_parameters()}

    exact = gradients(model, points)
    single = build(units=32).float()
    for name, grad in gradients(single, points.float()).items():
        assert (grad - exact[name]).norm() < 1e-5 * exact[name].norm(), name


def test_initial_weights_are_uniform_as_in_the_paper():
    for name, parameter in models.build("ptr-net", 2, 1, hidden_size=32).named_parameters():
        assert parameter.abs().max() <= 0.08, name
        assert parameter.numel() < 10 or parameter.std() > 0.03, name


def test_unknown_models_and_settings_are_refused():
    with pytest.raises(InputError, match="did you mean 'ptr-net'"):
        models.build("ptrnet", 2, 1)
    with pytest.raises(InputError, match="did you mean 'hidden_size'"):
        models.build("ptr-net", 2, 1, hidden=3)
    with pytest.raises(InputError, match="whole number from 1 to 65536, got 0"):
        models.build("ptr-net", 2, 1, hidden_size=0)
