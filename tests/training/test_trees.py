"""Trees against LightGBM's own predictions, and their objective against autograd."""

import lightgbm
import numpy as np
import pytest
import torch

from ptrnet import tasks
from ptrnet.models.parts.trees import DEPTH, LEAVES
from ptrnet.training import trees as grown
from ptrnet.training.sets import Sets
from ptrnet.training.trees import grow, read_by_trees, rounded_down, trees_of
from ptrnet.types import Dataset, Example


def drawn_sets(count, seed, jump=2.0):
    """Draw choices by utilities that jump at 0.3, among 2 to 5 elements of 3 features."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, count)
    x = rng.normal(size=(sizes.sum(), 3)).astype(np.float32)
    x[:, 2] = x[:, 2] > 0
    utilities = jump * (x[:, 0] > 0.3) * x[:, 2] + rng.gumbel(size=len(x))
    targets = np.zeros(len(x))
    stops = np.cumsum(sizes)
    for start, stop in zip(stops - sizes, stops, strict=True):
        targets[start + utilities[start:stop].argmax()] = 1
    return Sets(x, sizes, targets, np.ones(count))


def all_trees(*arguments, **options):
    """Return the last trees that `grow` yields."""
    (*_, last) = grow(*arguments, **{"compared": True, **options})
    return last


def test_predictions_are_those_of_lightgbm():
    """Also those of elements whose features equal a threshold, or lie next to one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 4)) * [1, 1e-3, 1e4, 1e-37]
    x[::3, 1] = np.round(x[::3, 1], 3)
    x = x.astype(np.float32)
    y = np.sin(2 * x[:, 0]) + x[:, 1] * 1e3 * (x[:, 2] > 0) + np.sign(x[:, 3])
    settings = {"num_leaves": LEAVES, "max_depth": DEPTH, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(x, y), 60)
    trees = trees_of(booster, 60)
    thresholds = trees.thresholds[trees.branches[..., 0] > torch.arange(2 * LEAVES - 1)].numpy()
    features = trees.features[trees.branches[..., 0] > torch.arange(2 * LEAVES - 1)].numpy()
    near = x[rng.integers(len(x), size=3 * len(thresholds))]
    at = (thresholds, np.nextafter(thresholds, np.float32(-9e9)), np.nextafter(thresholds, 9e9))
    near[np.arange(len(near)), np.tile(features, 3)] = np.concatenate(at, dtype=np.float32)
    for elements in (x, near):
        expected = booster.predict(elements)
        np.testing.assert_allclose(trees(torch.from_numpy(elements)), expected, atol=1e-6)


def test_fewer_trees_are_the_first_ones():
    sets = drawn_sets(50, 0)
    settings = {"verbosity": -1, "num_leaves": 4, "num_threads": 1}
    data = lightgbm.Dataset(sets.features, sets.targets)
    booster = lightgbm.train(settings, data, 20)
    trees = trees_of(booster, 5)
    assert len(trees) == 5
    expected = booster.predict(sets.features, num_iteration=5)
    np.testing.assert_allclose(trees(torch.from_numpy(sets.features)), expected, atol=1e-6)


@pytest.mark.parametrize("threshold", [0.1, 0.5, -0.1, 1e-35, 1.0000000180025095e-35, 0.0])
def test_a_rounded_threshold_decides_like_the_threshold(threshold):
    rounded = np.float32(rounded_down(threshold))
    for x in (rounded, np.nextafter(rounded, np.float32(9)), np.nextafter(rounded, np.float32(-9))):
        assert (float(x) <= threshold) == (x <= rounded)


def test_gradients_are_those_of_the_likelihood():
    sets = drawn_sets(6, 1)
    rng = np.random.default_rng(1)
    sets = sets._replace(weights=rng.random(6), targets=rng.random(len(sets.targets)))
    sums = np.add.reduceat(sets.targets, np.cumsum(sets.sizes) - sets.sizes)
    sets = sets._replace(targets=sets.targets / np.repeat(sums, sets.sizes))
    scores = torch.randn(len(sets.targets), dtype=torch.float64, requires_grad=True)

    def loss(scores):
        parts = zip(
            *(
                torch.split(torch.as_tensor(x), sets.sizes.tolist())
                for x in (scores, torch.from_numpy(sets.targets))
            ),
            sets.weights,
            strict=True,
        )
        return -sum(w * (t * s.log_softmax(0)).sum() for s, t, w in parts)

    value = loss(scores)
    (gradient,) = torch.autograd.grad(value, scores)
    hessian = torch.autograd.functional.hessian(loss, scores)
    first, second = sets.gradients(scores.detach().numpy())
    np.testing.assert_allclose(-sets.log_likelihood(scores.detach().numpy()), value.item())
    np.testing.assert_allclose(first, gradient, rtol=1e-9)
    floor = 1e-3 * np.repeat(sets.weights, sets.sizes)
    np.testing.assert_allclose(second, np.maximum(hessian.diagonal(), floor), rtol=1e-9)


def test_targets_of_grades_are_their_softmax_and_weights_are_those_of_sets():
    task = tasks.get("custom", kind="grades", center=(0.0,), spread=(2.0,))
    graded = Example(np.array([[2.0], [4.0]]), np.array([1, 0]), grades=np.array([0.0, 1.0]))
    sets = Sets.of(Dataset.of([graded.replace(weight=3.0)]), task)
    np.testing.assert_allclose(sets.targets, [1 / (1 + np.e), np.e / (1 + np.e)])
    assert sets.weights.tolist() == [3] and sets.features.ravel().tolist() == [1, 2]


def test_trees_find_jumps_and_stop_before_they_overfit():
    (trees,) = all_trees([drawn_sets(600, 0)], [drawn_sets(200, 1)], 200, seed=1)
    new = drawn_sets(2000, 2)
    actual = new.log_likelihood(trees(torch.from_numpy(read_by_trees(new))).double().numpy())
    x = new.features
    best = new.log_likelihood(2.0 * (x[:, 0] > 0.3) * x[:, 2])
    equal = new.log_likelihood(np.zeros(len(x)))
    assert len(trees) < 200
    assert equal + 0.8 * (best - equal) < actual < best


def test_trees_know_the_lowest_element_of_a_set(monkeypatch):
    """Unless there are too many numbers to compare elements."""

    def with_a_lowest(sets):
        starts = np.cumsum(sets.sizes) - sets.sizes
        lowest = np.repeat(np.minimum.reduceat(sets.features[:, 0], starts), sets.sizes)
        return sets._replace(targets=(sets.features[:, 0] == lowest).astype(float))

    learned, held_out, new = (with_a_lowest(drawn_sets(n, n)) for n in (600, 200, 400))

    def right():
        (trees,) = all_trees([learned], [held_out], 60, seed=1)
        read = torch.from_numpy(read_by_trees(new))
        return new.log_likelihood(trees(read).double().numpy()) / len(new.sizes)

    assert right() > -0.05
    monkeypatch.setattr(grown, "MOST_COMPARED", 600)
    assert right() < -0.3


def test_features_with_a_sign_are_not_compared():
    sets = drawn_sets(100, 0)._replace(signs=np.array([0, -1, 0]))
    read = read_by_trees(sets)
    assert not read[:, [4, 7]].any()
    plain = read_by_trees(sets._replace(signs=np.zeros(0, int)))
    np.testing.assert_array_equal(np.delete(read, [4, 7], 1), np.delete(plain, [4, 7], 1))


@pytest.mark.parametrize(("many", "sees_all"), [(100, True), (10_000, False)])
def test_trees_of_many_rows_see_all_features(monkeypatch, many, sees_all):
    """The first splits use the two features that count, unless a tree does not see them."""
    monkeypatch.setattr(grown, "MANY_ROWS", many)
    monkeypatch.setattr(grown, "FEATURE_SHARE", 0.25)
    monkeypatch.setattr(grown, "MOST_COMPARED", 0)

    def widened(sets):
        noise = np.random.default_rng(0).normal(size=(len(sets.features), 5))
        return sets._replace(features=np.append(sets.features, noise, 1).astype(np.float32))

    (trees,) = all_trees([widened(drawn_sets(600, 0))], [widened(drawn_sets(200, 1))], 10, seed=1)
    assert len(trees) == 10
    assert (set(trees.features[:, 0].tolist()) <= {0, 2}) == sees_all


def test_the_first_trees_are_there_early(monkeypatch):
    monkeypatch.setattr(grown, "FIRST", 5)
    learned, held_out = [drawn_sets(600, k) for k in (0, 1)], [drawn_sets(160, k) for k in (2, 3)]
    early, last = grow(learned, held_out, 20, seed=1, compared=True)
    assert [*map(len, early)] == [5, 5] and [*map(len, last)] == [20, 20]
    for first, every in zip(early, last, strict=True):
        assert torch.equal(first.values, every.values[:5]) and first.values.any()


def test_the_seed_decides_the_trees():
    parts = [drawn_sets(100, 0)], [drawn_sets(40, 1)], 10
    first, again, other = (all_trees(*parts, seed=seed)[0].state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not torch.equal(first["thresholds"], other["thresholds"])


def test_all_parts_get_equally_many_trees_which_differ():
    learned, held_out = [drawn_sets(100, k) for k in (0, 1)], [drawn_sets(30, k) for k in (2, 3)]
    trees = all_trees(learned, held_out, 30, seed=1)
    assert len(trees[0]) == len(trees[1]) > 0
    assert not torch.equal(trees[0].values, trees[1].values)


def test_no_tree_is_grown_if_the_first_one_predicts_worse():
    noise = drawn_sets(60, 0, jump=0.0)
    unlike = noise._replace(targets=1 - np.minimum(noise.targets, 1))
    (trees,) = all_trees([noise], [unlike], 30, seed=1)
    assert len(trees) == 0


def test_a_weight_counts_like_repeated_sets():
    sets = drawn_sets(40, 0)
    doubled = Sets(*(np.concatenate([part, part]) for part in sets))
    heavy = sets._replace(weights=np.full(40, 2.0))
    scores = np.random.default_rng(0).normal(size=len(sets.targets))
    both = np.concatenate([scores, scores])
    assert heavy.log_likelihood(scores) == pytest.approx(doubled.log_likelihood(both))
    np.testing.assert_allclose(heavy.gradients(scores)[0], 2 * sets.gradients(scores)[0])


def test_no_trees_grow_where_none_could_split():
    """Constant features, and fewer rows than two leaves need."""
    constant = drawn_sets(50, 0)._replace(
        features=np.ones((len(drawn_sets(50, 0).features), 3), "f4")
    )
    few = drawn_sets(4, 0)
    for learned in (constant, few):
        assert [len(trees) for trees in all_trees([learned], [drawn_sets(20, 1)], 50, 1)] == [0]
