"""Compare knapsacks with all subsets of their items."""

from itertools import combinations

import numpy as np
import pytest
import torch

from ptrnet import labellers, models, tasks
from ptrnet.data.batches import batch_of
from ptrnet.errors import InputError
from ptrnet.models.settings import LayerSettings
from ptrnet.problems.base import ProblemTask
from ptrnet.problems.cvrp import Cvrp
from ptrnet.problems.knapsack import Knapsack
from ptrnet.training.losses import losses
from ptrnet.types import Dataset, Example

KNAPSACK = tasks.get("knapsack")


def every_subset(n):
    return [np.array(s, np.int64) for k in range(n + 1) for s in combinations(range(n), k)]


@pytest.mark.parametrize("seed", range(5))
def test_labels_have_the_value_of_the_best_subset(seed):
    (inputs,) = KNAPSACK.sample(np.random.default_rng(seed), 1, 10)
    weight, value, capacity = inputs.T
    best = max(value[s].sum() for s in every_subset(10) if weight[s].sum() <= capacity[0])
    (label,) = labellers.label(KNAPSACK, inputs[None])
    assert -KNAPSACK.costs(Example(inputs), [label])[0] == pytest.approx(best, abs=1e-12)


def test_subsets_that_fit_and_are_full_are_the_answers():
    """When an answer ends, no other item fits. Other subsets have infinite cost."""
    (inputs,) = KNAPSACK.sample(np.random.default_rng(1), 1, 7)
    weight, _, (capacity, *_) = inputs.T
    subsets = every_subset(7)
    for subset, cost in zip(subsets, KNAPSACK.costs(Example(inputs), subsets), strict=True):
        left = capacity - weight[subset].sum()
        is_full = (np.delete(weight, subset) > left).all()
        assert np.isfinite(cost) == (left >= 0 and is_full)


def test_decimal_fractions_fill_a_knapsack():
    inputs = KNAPSACK.problem.from_fields(
        {"weight": [0.1, 0.2], "value": [1, 1], "capacity": 0.3}, "here"
    )
    (label,) = labellers.label(KNAPSACK, inputs[None])
    assert sorted(label) == [0, 1]
    assert KNAPSACK.costs(Example(inputs), [np.array([0, 1])]) == -2


def test_answers_have_the_most_value_by_weight_first():
    inputs = KNAPSACK.sample(np.random.default_rng(2), 5, 12)
    for instance, answer in zip(inputs, labellers.label(KNAPSACK, inputs), strict=True):
        density = [instance[k, 1] / instance[k, 0] for k in answer]
        assert density == sorted(density, reverse=True)


def value_by_rule(weight, value, room):
    total = 0.0
    for k in np.argsort(-value / weight):
        if weight[k] <= room:
            total, room = total + value[k], room - weight[k]
    return total


def test_network_sees_what_the_rule_loses_with_each_item():
    """After three choices, compare the feature with the rule, applied to each possible choice."""
    (inputs,) = KNAPSACK.sample(np.random.default_rng(3), 1, 15)
    state = KNAPSACK.problem.start(inputs[None])
    for item in (4, 0, 7):
        assert KNAPSACK.problem.allowed(state)[0, item]
        state = KNAPSACK.problem.step(state, np.array([item]))
    fits = KNAPSACK.problem.allowed(state)[0]
    weight, value, room = state["weight"][0], state["value"][0], state["left"][0]
    totals = np.full(15, np.nan)
    for k in np.flatnonzero(fits):
        others = fits & (np.arange(15) != k)
        totals[k] = value[k] + value_by_rule(weight[others], value[others], room - weight[k])
    lost = (np.nanmax(totals) - totals) / value[fits].max()
    np.testing.assert_allclose(
        KNAPSACK.problem.features(state)[0][0, fits, 3], lost[fits], atol=1e-12
    )


def grades_of_members(self, n, outputs, in_order):
    """All items of the answer are right next choices until they have been taken."""
    return np.isin(np.arange(n), outputs).astype(float)


class InAnyOrder(Knapsack):
    grades = grades_of_members


class RoutesInAnyOrder(Cvrp):
    grades = grades_of_members


def test_a_problem_may_have_several_right_next_choices():
    """`Problem.grades` says which; the loss is -log of the sum of their probabilities."""
    torch.manual_seed(0)
    task = ProblemTask(InAnyOrder())
    (inputs,) = task.sample(np.random.default_rng(2), 1, 8)
    (label,) = labellers.label(task, inputs[None])
    model = models.for_task("state-ptr-net", task, LayerSettings(hidden_size=8, heads=2))
    batch = batch_of(Dataset.of([Example(inputs, label)]), task)
    log_probs = model.log_probs(*batch[:4])[0].double().detach().numpy()
    order = task.from_tokens(batch.targets[0].numpy())
    terms = [-np.logaddexp.reduce(log_probs[k, 1 + order[k:]]) for k in range(len(order))]
    terms.append(-log_probs[len(order), 0])  # the end of the answer
    loss, _ = losses(model, batch)
    assert loss.item() == pytest.approx(np.mean(terms), rel=1e-5)
    assert len(order) > 2 and np.mean(terms) > 0


def test_grades_are_refused_if_elements_have_two_ways():
    """A token is then not an element, so grades of elements do not say which tokens are right."""
    with pytest.raises(InputError, match="`grades` can be defined only if ways is 1"):
        RoutesInAnyOrder()
