"""Check the gradients of a model's likelihood by finite differences."""

import torch


def check_gradients(model, points, targets, tolerance):
    """Compare the derivative along a random direction of all parameters, in float64."""

    def loss():
        return model.log_probs(points, None, targets).gather(2, targets[..., None]).sum()

    loss().backward()
    steps = [torch.randn_like(p) for p in model.parameters()]
    expected = sum((p.grad * s).sum() for p, s in zip(model.parameters(), steps, strict=True))
    ends = []
    with torch.no_grad():
        for length in (1e-6, -2e-6):
            for parameter, step in zip(model.parameters(), steps, strict=True):
                parameter += length * step
            ends.append(loss())
    torch.testing.assert_close((ends[0] - ends[1]) / 2e-6, expected, rtol=tolerance, atol=tolerance)
