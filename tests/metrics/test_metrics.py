import numpy as np
import pytest
from scipy import stats

from ptrnet.metrics import Measure, Moments

NINE_TENTHS = Measure(0.9034, 0.8836, 0.92, 1000)


def share(flags):
    return Moments.of(np.array(flags, bool)).measure()


def mean(values):
    return Moments.of(np.array(values, float)).measure()


@pytest.mark.parametrize(("right", "count"), [(0, 1), (1, 1), (0, 20), (7, 9), (9035, 10_000)])
def test_wilson_is_scipys(right, count):
    measure = share(np.arange(count) < right)
    expected = stats.binomtest(right, count).proportion_ci(method="wilson")
    assert (measure.low, measure.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert measure.value == right / count and measure.count == count


def test_normal_is_scipys():
    values = np.random.default_rng(0).exponential(size=50)
    measure = mean(values)
    expected = stats.norm.interval(0.95, values.mean(), stats.sem(values))
    assert (measure.low, measure.high) == pytest.approx(expected)


def test_one_instance_has_no_interval():
    assert mean([]).value is None and share([]).value is None
    assert (mean([3.0]).value, mean([3.0]).low) == (3.0, None)
    assert mean([3.0]).to_dict() == {"value": 3.0, "low": None, "high": None, "count": 1}


@pytest.mark.parametrize(
    ("measure", "digits", "scale", "value", "interval"),
    [
        (NINE_TENTHS, 4, 1, "0.9034", "0.8836 to 0.9200"),
        (NINE_TENTHS, 1, 100, "90.3", "88.4 to 92.0"),
        (Measure(-0.5, -1.0, 0.0, 9), 2, 100, "-50.00", "-100.00 to 0.00"),
        (Measure(-4e-5, -6e-5, -1e-5, 9), 4, 1, "0.0000", "-0.0001 to 0.0000"),
        (mean([3.0]), 3, 1, "3.000", ""),
        (mean([]), 4, 1, "-", ""),
        (Measure(None, None, None, 7, fail=True), 1, 100, "FAIL", ""),
    ],
)
def test_text_shows_value_and_interval(measure, digits, scale, value, interval):
    assert measure.value_and_interval(digits, scale) == (value, interval)
    assert measure.text(digits, scale) == (f"{value} ({interval})" if interval else value)


def test_from_dict_reverses_to_dict():
    for measure in (NINE_TENTHS, mean([]), Measure(None, None, None, 7, fail=True)):
        assert Measure(**measure.to_dict()) == measure


@pytest.mark.parametrize("cuts", [[], [0, 50], [1, 2, 3, 49], [7, 20, 33]])
def test_moments_of_parts_add_up_to_those_of_all(cuts):
    rng = np.random.default_rng(0)
    for scores in (1e6 + rng.random(50), rng.random(50) < 0.9):
        of_parts = [Moments.of(part) for part in np.split(scores, cuts)]
        whole, added = Moments.of(scores), sum(of_parts, start=Moments(scores.dtype == bool))
        assert (added.is_flag, added.count) == (whole.is_flag, 50)
        assert added.total == pytest.approx(whole.total, rel=1e-15)
        assert added.squares == pytest.approx(scores.astype(float).var() * 50, rel=1e-9)


def test_scores_whose_squares_overflow_have_no_interval():
    low, high = (Moments(False, 2, total, 0.0) for total in (-2e200, 2e200))
    assert (low + high).measure() == Measure(0.0, -np.inf, np.inf, 4)
    assert mean([np.inf]) == Measure(np.inf, None, None, 1)
    assert mean([np.inf, 1.0]).to_dict() == {"value": None, "low": None, "high": None, "count": 2}


def test_nan_scores_are_not_counted():
    assert mean([1.0, np.nan, 2.0]) == mean([1.0, 2.0])
    assert mean([np.nan]).count == 0


def by_group(scores, groups):
    """Return a mean and its standard error by group, written out (Liang and Zeger 1986)."""
    average = sum(scores) / len(scores)
    sums = {}
    for score, group in zip(scores, groups, strict=True):
        sums[group] = sums.get(group, 0) + score - average
    squares = sum(s**2 for s in sums.values())
    return average, (len(sums) / (len(sums) - 1) * squares) ** 0.5 / len(scores)


def test_the_standard_error_by_group_is_that_of_the_groups_sums():
    rng = np.random.default_rng(0)
    groups = rng.integers(12, size=200)
    scores = rng.normal(size=12)[groups] + rng.normal(size=200)
    moments = Moments.of(scores, groups)
    average, error = by_group(scores.tolist(), groups.tolist())
    assert moments.standard_error() == pytest.approx(error)
    assert moments.standard_error() > 1.5 * Moments.of(scores).standard_error()
    measure = moments.measure()
    expected = stats.norm.interval(0.95, average, error)
    assert (measure.low, measure.high) == pytest.approx(expected) and measure.count == 200


def test_intervals_by_group_cover_the_mean_of_all_groups():
    """Half of the variance is between groups, so intervals by set are much too narrow."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(40), 10)
    covered = {"by group": 0, "by set": 0}
    for _ in range(400):
        scores = rng.normal(size=40)[groups] + rng.normal(size=400)
        for name, codes in (("by group", groups), ("by set", None)):
            measure = Moments.of(scores, codes).measure()
            covered[name] += measure.low < 0 < measure.high
    assert 0.91 < covered["by group"] / 400 < 0.975 and covered["by set"] / 400 < 0.7


@pytest.mark.parametrize("dtype", [bool, float])
def test_groups_of_one_change_nothing(dtype):
    scores = (np.random.default_rng(2).random(50) < 0.7).astype(dtype)
    alone, grouped = (Moments.of(scores, g).measure() for g in (None, np.arange(50)))
    assert (grouped.low, grouped.high) == pytest.approx((alone.low, alone.high))


@pytest.mark.parametrize("right", [0, 8, 30])
def test_repeated_flags_are_as_certain_as_one_of_each(right):
    flags, groups = np.repeat(np.arange(30) < right, 20), np.repeat(np.arange(30), 20)
    expected = stats.binomtest(right, 30).proportion_ci(method="wilson")
    measure = Moments.of(flags, groups).measure()
    assert (measure.low, measure.high) == pytest.approx((expected.low, expected.high), abs=0.006)
    assert (measure.value, measure.count) == (right / 30, 600)


def test_scores_of_one_group_have_no_interval_and_its_flags_that_of_one():
    assert Moments.of(np.array([1.0, 2.0, 4.0]), np.zeros(3)).measure().low is None
    expected = share([True])
    measure = Moments.of(np.ones(9, bool), np.zeros(9)).measure()
    assert (measure.low, measure.high) == (expected.low, expected.high)


def test_groups_without_a_score_do_not_count():
    scores, groups = np.array([1.0, 3.0, 8.0, np.nan, np.nan]), np.array([5, 5, 6, 7, 7])
    expected = Moments.of(scores[:3], groups[:3])
    assert Moments.of(scores, groups).measure() == expected.measure()


def test_moments_of_the_same_groups_can_be_added_and_negated():
    rng = np.random.default_rng(3)
    groups, first, second = rng.integers(5, size=40), *rng.normal(size=(2, 40))
    total = Moments.of(first, groups) + -Moments.of(second, groups)
    expected = Moments.of(np.concatenate([first, -second]), np.concatenate([groups, groups]))
    assert total.standard_error() == pytest.approx(expected.standard_error())
    assert total.measure().value == pytest.approx(expected.measure().value)
