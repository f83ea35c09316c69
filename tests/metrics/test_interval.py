import numpy as np
import pytest
from scipy import stats

from ptrnet.metrics.interval import Measure, Moments

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
