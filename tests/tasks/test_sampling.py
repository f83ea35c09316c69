"""Check the distributions of random instances by counting."""

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.geometry.sampling import sample_points

KINDS = ["uniform", "mixed", "gaussian", "clustered", "curves", "stretched", "grid", "duplicates"]


def sample(kind, features=2, n=40, count=200, seed=0):
    return sample_points(kind, np.random.default_rng(seed), (count, n, features))


@pytest.mark.parametrize("features", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_all_distributions_are_in_the_unit_cube(kind, features):
    for n in (1, 2, 40):
        points = sample(kind, features, n)
        assert points.shape == (200, n, features)
        assert (points >= 0).all() and (points <= 1).all()


@pytest.mark.parametrize("name", [name for name in tasks.names() if name != "reading-order"])
def test_all_tasks_of_points_have_all_distributions(name):
    for kind in KINDS:
        task = tasks.get(name, points=kind)
        instances = task.sample(np.random.default_rng(1), 3, 9)
        expected = sample(kind, task.facts.num_features, n=9, count=3, seed=1)
        assert np.array_equal(instances, expected)


def test_duplicates_repeats_points_and_other_distributions_do_not():
    distinct = {kind: len(np.unique(sample(kind)[0], axis=0)) for kind in KINDS}
    assert distinct["duplicates"] < 40
    assert all(distinct[kind] == 40 for kind in ("uniform", "gaussian", "curves", "stretched"))


def test_grid_has_equal_coordinates():
    ties = [len(np.unique(instance[:, 0])) < 40 for instance in sample("grid")]
    assert 0.1 < np.mean(ties) < 0.6


def test_stretched_instances_are_long_and_thin():
    def thickness(instance):
        spread = np.linalg.svd(instance - instance.mean(0), compute_uv=False)
        return spread[-1] / spread[0]

    median = {kind: np.median([*map(thickness, sample(kind))]) for kind in ("uniform", "stretched")}
    assert median["stretched"] < 0.4 < median["uniform"]


def test_clusters_are_dense():
    def nearest(instance):
        dist = np.linalg.norm(instance[:, None] - instance, axis=-1) + np.eye(len(instance))
        return np.median(dist.min(0)) / np.ptp(instance, axis=0).max()

    mean = {kind: np.mean([*map(nearest, sample(kind))]) for kind in ("uniform", "clustered")}
    assert mean["clustered"] < 0.6 * mean["uniform"]


def test_mixed_is_half_uniform_and_has_all_distributions():
    rng = np.random.default_rng(3)
    calls = [sample_points("mixed", rng, (2, 300, 2)) for _ in range(300)]
    filled = [np.histogramdd(c[0], bins=4, range=[(0, 1)] * 2)[0].min() > 4 for c in calls]
    assert 0.4 < np.mean(filled) < 0.65
    assert any(len(np.unique(c[0], axis=0)) < 300 for c in calls)
