"""Compare knapsacks with all subsets of their items."""

from itertools import combinations

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.types import Example

KNAPSACK = tasks.get("knapsack")


def every_subset(n):
    return [np.array(s, np.int64) for k in range(n + 1) for s in combinations(range(n), k)]


@pytest.mark.parametrize("seed", range(5))
def test_labels_have_the_value_of_the_best_subset(seed):
    (inputs,) = KNAPSACK.sample(np.random.default_rng(seed), 1, 10)
    weight, value, capacity = inputs.T
    best = max(value[s].sum() for s in every_subset(10) if weight[s].sum() <= capacity[0])
    (label,) = KNAPSACK.label(inputs[None]).rows()
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
    inputs = KNAPSACK.from_fields({"weight": [0.1, 0.2], "value": [1, 1], "capacity": 0.3}, "here")
    (label,) = KNAPSACK.label(inputs[None]).rows()
    assert sorted(label) == [0, 1]
    assert KNAPSACK.costs(Example(inputs), [np.array([0, 1])]) == -2


def test_answers_have_the_most_value_by_weight_first():
    inputs = KNAPSACK.sample(np.random.default_rng(2), 5, 12)
    for instance, answer in zip(inputs, KNAPSACK.label(inputs).rows(), strict=True):
        density = [instance[k, 1] / instance[k, 0] for k in answer]
        assert density == sorted(density, reverse=True)
