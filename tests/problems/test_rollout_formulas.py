"""The formulas in PyTorch against the compiled rollouts, at random states of random instances."""

import numpy as np
import pytest
import torch

from ptrnet import tasks
from ptrnet.problems import rollout_formulas, rollouts


def states(task, inputs, seed):
    """Yield the states on the way to random answers of a batch."""
    rng, state = np.random.default_rng(seed), task.problem.start(inputs)
    while (allowed := task.problem.allowed(state)).any(1).all():
        yield state
        state = task.problem.step(state, (allowed * rng.random(allowed.shape)).argmax(1))


def assert_equal(name, *arrays):
    tensors = [torch.from_numpy(np.ascontiguousarray(rows)) for rows in arrays]
    compiled, formula = getattr(rollouts, name), getattr(rollout_formulas, name)
    np.testing.assert_allclose(formula(*tensors).numpy(), compiled(*arrays), rtol=1e-12)


def test_makespans():
    task = tasks.get("job-shop", machines="2-6")
    for seed in range(4):
        inputs = task.sample(np.random.default_rng(seed), 3, 5)
        inputs[0, :, 20:] %= 3  # ties and durations of 0
        inputs[1, 2, 1:20], inputs[1, 2, 21:] = -1, 0  # a job of one operation
        for state in states(task, inputs, seed):
            names = ("machine", "duration", "done", "job_free", "machine_free")
            assert_equal("makespans", *(state[k] for k in names), task.problem.allowed(state))


def test_values():
    task = tasks.get("knapsack", points="mixed")
    for seed in range(8):
        inputs = task.sample(np.random.default_rng(seed), 3, 9)
        inputs[0, :, :2] = np.ceil(3 * inputs[0, :, :2])  # ties
        for state in states(task, inputs, seed):
            weight = np.where(state["taken"], np.inf, state["weight"])
            density = state["value"] / weight
            assert_equal("values", weight, state["value"], density, state["left"])


@pytest.mark.parametrize("rounded", [0, 1])
def test_prizes_and_ways_back(rounded):
    """Distances of about 5 are rounded so much that a direct way is often not the shortest."""
    task = tasks.get("orienteering", points="mixed")
    for seed in range(8):
        inputs = task.sample(np.random.default_rng(seed), 3, 9)
        if rounded:
            inputs[..., :2] *= 5
            inputs[..., 3] *= 5
            inputs[:2, :, 4] = 1
        for state in states(task, inputs, seed):
            names = ("position", "prize", "rounded", "unvisited", "last", "left")
            assert_equal("prizes", *(state[k] for k in names), task.problem.allowed(state))
            assert_equal("ways_back", state["position"], state["rounded"], state["unvisited"])
