import numpy as np
import pytest
from scipy import stats

from ptrnet.metrics.interval import mean, share


@pytest.mark.parametrize(("right", "count"), [(0, 1), (1, 1), (0, 20), (7, 9), (9035, 10_000)])
def test_wilson_is_scipys(right, count):
    found = share(np.arange(count) < right)
    theirs = stats.binomtest(right, count).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert found.value == right / count and found.count == count


def test_normal_is_scipys():
    values = np.random.default_rng(0).exponential(size=50)
    found = mean(values)
    theirs = stats.norm.interval(0.95, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(theirs)


def test_too_few_to_say():
    assert mean([]).value is None and share([]).value is None
    assert (mean([3.0]).value, mean([3.0]).low) == (3.0, None)
    assert mean([3.0]).table() == {"value": 3.0, "low": None, "high": None, "count": 1}
