"""Trees against a walk in plain Python, in PyTorch and in ONNX."""

import numpy as np
import pytest
import torch

from ptrnet import models
from ptrnet.models.parts import trees as parts
from ptrnet.models.parts.trees import MANY_ELEMENTS, MAX_WALKS, NODES, Trees
from tests.support.small_models import random_trees


def walked(trees, x):
    """The sum of the values of the leaves that an element reaches."""
    total = 0.0
    for features, thresholds, branches, values in zip(
        *(part.tolist() for part in (trees.features, trees.thresholds, trees.branches)),
        trees.values.double().tolist(),
        strict=True,
    ):
        node = 0
        while branches[node] != [node, node]:
            node = branches[node][int(x[features[node]] > thresholds[node])]
        total += values[node]
    return total


def test_scores_are_the_sums_of_the_leaves_that_elements_reach():
    trees = random_trees(7, 4, seed=0)
    x = np.random.default_rng(1).normal(size=(3, 40, 4)).astype(np.float32)
    expected = [[walked(trees, row) for row in rows.tolist()] for rows in x]
    np.testing.assert_allclose(trees(torch.from_numpy(x)), expected, atol=1e-6)


@pytest.mark.parametrize("count", [1, 9])
def test_many_elements_are_scored_by_the_leaves_that_remain(monkeypatch, count):
    """Also if values equal thresholds, and if a tree is a single leaf."""
    trees = random_trees(count, 3, seed=1)
    trees.thresholds.copy_(trees.thresholds.round(decimals=1))
    trees.values[0, 0] = 0.5  # a tree whose root is a leaf
    trees.branches[0] = torch.arange(NODES)[:, None]
    assert trees.are_sound(3)
    x = torch.randn(MANY_ELEMENTS, 3).round(decimals=1)
    monkeypatch.setattr(trees, "walk", None)
    monkeypatch.setattr(parts, "MAX_WALKS", 300 * count)
    found = trees(x)
    np.testing.assert_allclose(found, [walked(trees, row) for row in x.tolist()], atol=1e-6)


def test_many_elements_walk_a_few_trees_at_a_time():
    trees = random_trees(9, 3, seed=1)
    x = torch.randn(MAX_WALKS // 4, 3)
    torch.testing.assert_close(trees.walk(x)[-5:], trees(x[-5:]))


def test_new_trees_score_zero_and_are_sound():
    trees = Trees(3)
    assert trees(torch.randn(2, 4)).tolist() == [0, 0] and trees.are_sound(1)


@pytest.mark.parametrize(("part", "value"), [("branches", 99), ("features", 4), ("features", -1)])
def test_nodes_that_do_not_exist_are_not_sound(part, value):
    trees = random_trees(2, 4, seed=0)
    assert trees.are_sound(4)
    getattr(trees, part)[1, 0] = value
    assert not trees.are_sound(4)


def test_a_child_before_its_parent_is_not_sound():
    trees = random_trees(1, 4, seed=0)
    trees.branches[0, 1] = 0
    assert not trees.are_sound(4)


def test_nodes_that_share_a_child_are_not_sound():
    trees = random_trees(1, 4, seed=0)
    trees.branches[0, 0] = torch.tensor([1, 1])
    assert not trees.are_sound(4)


def test_a_node_of_a_single_child_is_not_sound():
    trees = random_trees(1, 4, seed=0)
    trees.branches[0, 0, 0] = 0
    assert not trees.are_sound(4)


def test_gradients_and_vmap_agree_with_plain_calls():
    trees = random_trees(3, 2, seed=2)
    x = torch.randn(4, 5, 2)
    torch.testing.assert_close(torch.func.vmap(trees)(x), trees(x))
    network = models.build("set-ptr-net", 2, 1, hidden_size=8, answer="one").eval()
    network.set_others(trees)
    trees.share.fill_(1.0)
    scores = network.encode(x.requires_grad_()).scores
    (gradient,) = torch.autograd.grad(scores[:, 1:].sum(), x)
    assert not gradient.any()  # a step has the gradient 0
