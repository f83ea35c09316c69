from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from ptrnet import tasks
from ptrnet.errors import InputError
from ptrnet.metrics.ranking import (
    average_precision,
    kendall_tau,
    ndcg,
    reciprocal_rank,
    score_chosen,
    score_grades,
    score_members,
    score_permutations,
)
from ptrnet.types import Example

GRADES = np.array([3.0, 2, 3, 0, 1, 2])


def graded(count, highest=4, seed=0):
    """Random grades with ties, and orders of their elements."""
    rng = np.random.default_rng(seed)
    for n in rng.integers(2, 15, count):
        yield rng.integers(0, highest + 1, n).astype(float), rng.permutation(n)


def scored(grades, orders):
    example = Example(np.zeros((len(grades), 1)), np.argsort(-grades), grades=grades)
    return score_grades([example] * len(orders), orders)


def test_ndcg_of_a_published_example():
    """The example of Wikipedia's article on DCG, with gains `2^grade - 1`: computed by hand."""
    gains, discounts = [7, 3, 7, 0, 1, 3], [1 / np.log2(place + 1) for place in range(1, 7)]
    dcg = sum(g * d for g, d in zip(gains, discounts, strict=True))
    ideal = sum(g * d for g, d in zip([7, 7, 3, 3, 1, 0], discounts, strict=True))
    assert ndcg(GRADES, np.arange(6), 10) == pytest.approx(dcg / ideal)
    assert ndcg(GRADES, np.arange(6), 1) == 1
    assert ndcg(GRADES, np.array([1, 0, 2, 3, 4, 5]), 1) == pytest.approx(3 / 7)


@pytest.mark.parametrize("k", [1, 3, 5, 10])
def test_ndcg_is_scikit_learns_if_that_is_given_the_gains(k):
    metrics = pytest.importorskip("sklearn.metrics")
    for grades, order in graded(100):
        if grades.any():
            gains, scores = 2**grades - 1, -np.argsort(order).astype(float)
            expected = metrics.ndcg_score([gains], [scores], k=k)
            assert ndcg(grades, order, k) == pytest.approx(expected)


def test_average_precision_is_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    for grades, order in graded(100, highest=1):
        if grades.any():
            expected = metrics.average_precision_score(grades > 0, -np.argsort(order))
            assert average_precision(grades, order) == pytest.approx(expected)


def test_kendall_tau_is_scipys():
    for grades, order in graded(100):
        if np.ptp(grades):
            expected = stats.kendalltau(grades, -np.argsort(order)).statistic
            assert kendall_tau(grades, order) == pytest.approx(expected)


def test_reciprocal_rank_is_that_of_the_first_relevant_element():
    assert reciprocal_rank(np.array([0.0, 0, 2, 1]), np.array([0, 3, 1, 2])) == 1 / 2
    assert reciprocal_rank(np.array([0.0, 0, 2, 1]), np.array([0, 1, 3, 2])) == 1 / 3


def test_right_orders_have_the_best_scores_of_all_orders():
    """By brute force over the orders of five elements; tau-b with ties stays below 1."""
    grades = np.array([0.0, 2, 1, 2, 0])
    orders = [np.array(order) for order in permutations(range(5))]
    scores = scored(grades, orders)
    best = [k for k, order in enumerate(orders) if (np.diff(grades[order]) <= 0).all()]
    for name, values in scores.items():
        assert np.allclose(values[best], values.max()), name
        assert values.max() == pytest.approx(np.sqrt(8 / 10) if name == "kendall_tau" else 1)


def test_every_order_of_equal_grades_is_right():
    for grades in (np.zeros(3), np.full(1, 2.0), np.zeros(1)):
        orders = [np.array(order) for order in permutations(range(len(grades)))]
        for values in scored(grades, orders).values():
            assert (values == 1).all()


def test_an_answer_that_is_no_order_of_all_elements_has_the_worst_values():
    answers = [np.array(answer, np.int64) for answer in ([0, 1], [0, 1, 1], [], [0, 1, 2, 0])]
    scores = scored(np.array([2.0, 1, 0]), answers)
    assert all(
        (values == (-1 if name == "kendall_tau" else 0)).all() for name, values in scores.items()
    )


def test_ndcg_stays_finite_for_grades_whose_gains_are_not():
    grades = np.array([5000.0, 4999, 0])
    assert ndcg(grades, np.array([1, 0, 2]), 1) == pytest.approx(1 / 2)
    assert ndcg(grades, np.array([0, 1, 2]), 10) == 1


def test_every_metric_is_there_without_instances():
    names = ["accuracy", "ndcg@1", "ndcg@5", "ndcg@10", "mrr", "map", "kendall_tau"]
    assert [*score_grades([], [])] == names
    assert score_grades([], [])["accuracy"].dtype == bool


def test_orders_without_ties_are_graded_by_their_places():
    order = np.array([2, 0, 1])
    scores = score_permutations(
        [Example(np.zeros((3, 1)), order)] * 3, [order, order[::-1], np.array([2, 2, 0])]
    )
    assert scores["kendall_tau"].tolist() == [1, -1, -1]
    assert scores["accuracy"].tolist() == [True, False, False]


def test_places_of_choices_by_hand():
    """The chosen elements are first, third and fifth of five."""
    scores = np.log([0.1, 0.4, 0.05, 0.25, 0.2])
    measured = score_chosen([1, 4, 2], [scores] * 3)
    assert measured["mrr"].tolist() == [1, 1 / 3, 1 / 5]
    assert measured["top@3"].tolist() == [True, True, False]
    assert measured["top@5"].tolist() == [True, True, True]
    assert measured["confidence"] == pytest.approx([0.4] * 3)


def test_the_first_of_equal_scores_is_ahead():
    assert score_chosen([0, 1], [np.zeros(2)] * 2)["mrr"].tolist() == [1, 1 / 2]


def test_members_are_ranked_by_their_scores():
    grades = np.array([1.0, 0, 2])
    assert score_members([grades], [np.array([3.0, 2, 1])])["map"] == pytest.approx(
        [(1 + 2 / 3) / 2]
    )
    assert score_members([], [])["map"].shape == (0,)


def test_own_gains_are_those_of_the_formula():
    """NDCG with gains g is `sum g / log2(1 + place)`, divided by that of the best order."""
    gains, grades, order = [0, 1, 3, 10], np.array([1.0, 3, 0, 2]), np.array([3, 0, 1, 2])
    example = Example(np.zeros((4, 1)), None, grades=grades)
    in_order = np.array(gains)[grades[order].astype(int)]
    discounts = 1 / np.log2(np.arange(2, 6))
    for k in (1, 3, 20):
        best = np.sort(in_order)[::-1][:k] @ discounts[:k]
        measured = score_grades([example], [order], cutoffs=(k,), gains=gains)
        assert measured[f"ndcg@{k}"] == pytest.approx([in_order[:k] @ discounts[:k] / best])
    with pytest.raises(InputError, match="grades 0 to 1, because there are 2 gains, got grade 3"):
        score_grades([example], [order], gains=[0, 1])


@pytest.mark.parametrize(("irrelevant", "value"), [("1", 0.75), ("0", 0.25), ("out", 0.5)])
def test_sets_without_relevant_elements_count_as_chosen(irrelevant, value):
    """One set has its relevant element second; in the other, no element is relevant."""
    task = tasks.get("custom", kind="grades", center=[0], spread=[1], irrelevant=irrelevant)
    sets = [Example(np.zeros((2, 1)), None, grades=np.array(g)) for g in ([0.0, 1], [0.0, 0])]
    scores = task.score(sets, [np.array([0, 1])] * 2)
    assert np.nanmean(scores["mrr"]) == np.nanmean(scores["map"]) == value
    assert np.isnan(scores["ndcg@5"]).sum() == (irrelevant == "out")
    assert scores["kendall_tau"].tolist() == [-1, 1]


def test_gains_that_fall_are_refused():
    with pytest.raises(InputError, match="none less than the one before"):
        tasks.get("custom", kind="grades", center=[0], spread=[1], gains=[0, 2, 1])
