"""The comparison of graphs with PyTorch, and its instances."""

from copy import deepcopy

import numpy as np
import torch

from ptrnet import tasks
from ptrnet.decoding import Greedy
from ptrnet.export.agreement import FLOAT32_ERRORS, Agreement, compare, fresh_instances
from ptrnet.models.base import PointerModel
from tests.export.cases import SETTINGS, build


def test_only_differences_beyond_rounding_are_disagreements():
    assert Agreement(9, 9, 0, 1e-5, 0.0).error() is None
    assert Agreement(9, 8, 1, 1e-5, 0.0).error() is None
    assert "1 of 9 greedy answers differ" in Agreement(9, 8, 0, 1e-5, 0.0).error()
    assert "differ from PyTorch's by 0.00011" in Agreement(9, 9, 0, 1.1e-4, 0.0).error()
    assert Agreement(9, 9, 0, 1.1e-4, 1.1e-4 / FLOAT32_ERRORS).error() is None
    assert "by nan" in Agreement(9, 9, 0, float("nan"), 0.0).error()


def test_instances_are_of_the_models_sizes():
    solver = build("ptr-net")
    instances = fresh_instances(solver, 200, seed=0)
    assert {len(instance) for instance in instances} == set(range(3, 17))
    assert np.array_equal(instances[7], fresh_instances(solver, 200, seed=0)[7])
    custom = tasks.get("custom", center=(100.0, -5.0), spread=(3.0, 0.1), kind="subset")
    solver.task, solver.trained = custom, {}
    features = np.concatenate(fresh_instances(solver, 300, seed=0))
    assert np.allclose(features.mean(0), custom.center, rtol=0.01)
    assert np.allclose(features.std(0), custom.spread, rtol=0.1)


def test_a_choice_by_rounding_inside_the_network_is_no_difference():
    """A network that looks along the edge to the likeliest token jumps between equal ones."""
    solver = build(*next(case for case in SETTINGS if "frame_edge" in case[3]))
    model, task, lengths = solver.model, solver.task, torch.tensor([6])
    torch.manual_seed(0)
    before, after = torch.rand(2, 1, 6, 2)
    for points in (before, after):  # of the unit square whatever is between them
        points[0, :2] = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    max_lengths = torch.tensor([task.max_length(6)])
    answer = Greedy().decode(model, before, lengths, max_lengths, task)

    @torch.no_grad()
    def log_probs(points):
        return PointerModel.log_probs(model, points, lengths, answer.tokens[:, 0])

    def distance(one, other):
        return float((one - other).abs().max())

    ends = [log_probs(before), log_probs(after)]
    while (before - after).abs().max() > 1e-7:  # the half in which there is a jump
        middle = (before + after) / 2
        between = log_probs(middle)
        if distance(ends[0], between) > distance(between, ends[1]):
            after, ends[1] = middle, between
        else:
            before, ends[0] = middle, between
    assert distance(*ends) > 1

    rounded = deepcopy(model)
    rounded.encode = lambda inputs, lengths: model.encode(after, lengths)
    agreement = compare(model, rounded, task, [before[0].double().numpy()])
    assert (agreement.same_answers, agreement.ties) == (0, 1) and agreement.error() is None
