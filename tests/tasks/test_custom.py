"""The task `custom`: its metrics against other definitions, and settings that are refused."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from ptrnet import labellers, tasks
from ptrnet.errors import InputError
from ptrnet.metrics import summary
from ptrnet.types import Example

ONE = {"center": (0.0,), "spread": (1.0,)}


def custom(kind="sequence", d=1, **settings):
    scaling = {"center": (0.0,) * d, "spread": (1.0,) * d}
    return tasks.get("custom", kind=kind, **{**scaling, **settings})


def measured(task, truth, answer):
    """Return the values of the metrics for one answer."""
    example = Example(np.zeros((6, 1)), np.array(truth, np.int64))
    measures = summary.measure(task, [example], [np.array(answer, np.int64)])
    return {name: measure.value for name, measure in measures.items()}


def test_custom_is_not_listed_among_the_named_tasks():
    assert "custom" not in tasks.names()
    with pytest.raises(InputError, match="task custom has no labeller"):
        labellers.label(custom(), np.zeros((1, 3, 1)))


@pytest.mark.parametrize("seed", range(20))
def test_kendalls_tau_is_scipys(seed):
    rng = np.random.default_rng(seed)
    truth, answer = rng.permutation(6), rng.permutation(6)
    expected = kendalltau(np.argsort(truth), np.argsort(answer)).statistic
    assert measured(custom("permutation"), truth, answer)["kendall_tau"] == pytest.approx(expected)


@pytest.mark.parametrize("answer", [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 4], [], [5]])
def test_answers_that_are_not_an_order_have_kendall_tau_minus_1(answer):
    values = measured(custom("permutation"), range(6), answer)
    assert values["kendall_tau"] == -1 and values["accuracy"] == 0


@pytest.mark.parametrize(
    ("truth", "answer", "accuracy", "same_set", "f1"),
    [
        ([1, 2], [1, 2], 1, 1, 1),
        ([1, 2], [2, 1], 0, 1, 1),
        ([1, 2, 3], [3], 0, 0, 2 * (1 * 1 / 3) / (1 + 1 / 3)),  # precision 1, recall 1/3
        ([0], [1, 2], 0, 0, 0),
        ([], [], 1, 1, 1),
        ([], [1], 0, 0, 0),
        ([1], [1, 1], 0, 0, 2 / 3),
    ],
)
def test_subsets_are_measured_in_order_and_as_sets(truth, answer, accuracy, same_set, f1):
    values = measured(custom("subset"), truth, answer)
    assert (values["accuracy"], values["same_set"]) == (accuracy, same_set)
    assert values["f1"] == pytest.approx(f1)


@pytest.mark.parametrize(
    ("truth", "answer", "share"),
    [([1, 1, 2], [1, 1, 2], 1), ([1, 2, 3, 4], [1, 3, 3], 0.5), ([1], [1, 2], 0.5), ([], [], 1)],
)
def test_in_place_is_the_share_of_equal_positions(truth, answer, share):
    assert measured(custom("sequence"), truth, answer)["in_place"] == share


def test_each_kind_accepts_only_its_answers():
    cases = {
        "permutation": ([1, 0, 2], [1, 0]),
        "grades": ([1, 0, 2], [1, 0]),
        "subset": ([2], [2, 2]),
        "set": ([], [2, 2]),
        "choice": ([2], []),
    }
    for kind, (good, bad) in cases.items():
        assert custom(kind).answer_error(3, np.array(good)) is None
        assert custom(kind).answer_error(3, np.array(bad)) is not None
    assert custom("sequence").answer_error(3, np.array([2, 2, 2, 2])) is None
    assert custom("permutation", longest_share=9.0).max_length(3) == 3
    assert custom("sequence", longest_answer=4, longest_share=1.5).max_length(2) == 4
    assert custom("sequence", longest_answer=4, longest_share=1.5).max_length(5) == 8


def test_features_are_scaled_each_by_itself():
    task = tasks.get("custom", center=(1.0, 100.0), spread=(2.0, 1e-3))
    normalized = task.normalize(np.array([[1.0, 100.001], [3, 100], [-1, 99.999]]))
    np.testing.assert_allclose(normalized, [[0, 1], [1, 0], [-1, -1]], atol=1e-9)
    large = tasks.get("custom", center=(1e308,), spread=(1e308,))
    np.testing.assert_allclose(large.normalize(np.array([[-1e308], [1.5e308]])), [[-2], [0.5]])
    assert custom().normalize(np.array([[1e308], [-1e308]])).tolist() == [[1000], [-1000]]
    tiny = tasks.get("custom", center=(0.0,), spread=(1e-290,))
    assert tiny.normalize(np.array([[1e308], [-1e308], [0]])).tolist() == [[1000], [-1000], [0]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "unknown task 'custom'"),
        ({"spread": (1.0,)}, "task custom: center: expected a number for each feature"),
        ({"center": (0.0,)}, "spread: expected a number for each feature"),
        ({"center": (0.0,), "spread": (1.0, 2.0)}, "spread: expected a number for each feature"),
        (
            {"center": (float("nan"),), "spread": (1.0,)},
            "expected a list of finite numbers",
        ),
        (
            {"center": (0.0,), "spread": (0.0,)},
            "spread: expected a list of numbers of 1e-290 or more",
        ),
        ({"center": (0.0,), "spread": ("1",)}, "spread: expected a list of numbers"),
        (
            {"center": 3, "spread": (1.0,)},
            "center: expected a list of numbers, got 3",
        ),
        ({**ONE, "kind": "subst"}, "task custom: unknown kind 'subst'; did you mean"),
        ({**ONE, "unknown": "keep"}, "unknown value of unknown 'keep' .known: missing, refuse"),
        ({**ONE, "longest_answer": -1}, "longest_answer: expected .* from 0 to 100000"),
        (
            {**ONE, "longest_answer": 10**30},
            "longest_answer: expected .* from 0 to 100000",
        ),
        (
            {**ONE, "longest_share": float("inf")},
            "longest_share: expected a finite number from 0 to",
        ),
        (
            {**ONE, "longest_share": 10**400},
            "longest_share: expected a finite number from 0 to",
        ),
        ({**ONE, "center": (10**400,)}, "expected a list of finite numbers"),
        ({**ONE, "spread": (5e-324,)}, "spread: expected a list of numbers of 1e-290 or more"),
        ({**ONE, "order": "hilbert"}, "hilbert takes elements of 2 numbers, got 1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        tasks.get("custom", **settings)


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_pictures_keep_distances_as_well_as_a_plane_can(d):
    """With three or more features, points in a plane are drawn at their true distances."""
    rng = np.random.default_rng(d)
    flat = rng.random((5, 2)) @ rng.random((2, d)) if d > 2 else rng.random((5, d))
    drawing = custom("subset", d).draw(flat, np.array([3, 1]))
    assert drawing.points.shape == (5, 2)
    assert drawing.lines[0].tolist() == drawing.points[[3, 1]].tolist()
    if d > 1:
        drawn, real = (
            np.linalg.norm(p[:, None] - p[None], axis=-1) for p in (drawing.points, flat)
        )
        np.testing.assert_allclose(drawn, real, atol=1e-9)
    assert custom("sequence", d).draw(flat[:1], np.array([0])).points.shape == (1, 2)
