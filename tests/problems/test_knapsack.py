"""Knapsacks against every subset of their items."""

from itertools import combinations

import numpy as np
import pytest
import torch

from ptrnet import models, tasks
from ptrnet.data.streams import ExampleStream
from ptrnet.training.losses import losses
from ptrnet.training.recipe import Recipe
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
    """Nothing fits any more when an answer ends; all else costs infinitely much."""
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


def test_every_item_of_the_best_knapsack_may_come_next():
    """The loss of an answer is that of all its items that are left, at each of its steps."""
    recipe = Recipe.from_table(task="knapsack", learning="answers", n="6", batch_size=4)
    batch = ExampleStream(recipe.task, recipe.n, 4, 1).batch(0)
    model = models.for_task(recipe.model, recipe.task, recipe.network)
    loss, _ = losses(model, batch)
    log_probs = model.log_probs(*batch[:4])
    expected = []
    for b, (tokens, length) in enumerate(zip(batch.targets, batch.target_lengths, strict=True)):
        answer = tokens[: length - 1].tolist()
        assert sorted(answer, key=lambda t: -density(batch.inputs[b, t - 1])) == answer
        left = [answer[t:] or [0] for t in range(len(answer) + 1)]  # token 0 is END
        expected += [-log_probs[b, t, right].exp().sum().log() for t, right in enumerate(left)]
    assert loss.item() == pytest.approx(torch.stack(expected).mean().item(), abs=1e-5)


def density(item):
    return float(item[1] / item[0])
