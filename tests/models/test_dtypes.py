"""Models in float64, and their derivatives with respect to the points."""

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import models
from tests.models.test_transforms import build, draw, likelihood

SHIPPED = ["hull", "delaunay", "tsp", "sort", "hull-ptr-net"]


@pytest.mark.parametrize("name", SHIPPED)
def test_float64_model_supports_all_methods_of_solver(name):
    single, double = ptrnet.load(name), ptrnet.load(name)
    double.model.double()
    instances = ptrnet.generate(double.task, 10, 8)
    for solver in (single, double):
        assert len(solver.solve([x for x, _ in instances])) == 8
        assert len(solver.sample(instances[0][0], 2)[0][0]) == 2
        assert np.isfinite(solver.attention(instances[0][0])[0]).all()
    expected, actual = single.log_likelihoods(instances), double.log_likelihoods(instances)
    np.testing.assert_allclose(actual, expected, rtol=1e-2, atol=1e-3)


def of_shipped(name):
    solver = ptrnet.load(name)
    module = solver.model.double()
    torch.manual_seed(0)
    inputs = torch.rand(2, 9, solver.model.features, dtype=torch.float64)
    targets = torch.tensor([[1, 3, 5, 2, 0], [4, 2, 1, 7, 0]])

    def total(inputs):
        return likelihood(module.log_probs(inputs, None, targets), targets)

    return total, inputs


def of_small(small, name):
    module, (inputs, lengths, targets) = build(small, name), draw(0)
    targets = (
        torch.rand(inputs.shape[:2]).argsort(1)[:, : targets.shape[1]] + 1
    )  # distinct elements
    return lambda inputs: likelihood(module(inputs, lengths, targets), targets), inputs


@pytest.mark.parametrize("name", [*SHIPPED, *models.names()])
def test_derivatives_by_points_equal_finite_differences(small, name):
    """Edge frames take roots of distances of 0, whose plain derivative would be NaN."""
    total, inputs = of_shipped(name) if name in SHIPPED else of_small(small, name)
    inputs.requires_grad_()
    (gradient,) = torch.autograd.grad(total(inputs), inputs)
    direction = torch.randn_like(inputs)
    with torch.no_grad():
        ends = [total(inputs + length * direction) for length in (1e-7, -1e-7)]
    difference = (ends[0] - ends[1]) / 2e-7
    torch.testing.assert_close((gradient * direction).sum(), difference, rtol=1e-4, atol=1e-5)
