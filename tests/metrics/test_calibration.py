import numpy as np
import pytest

from ptrnet.metrics import moments_of
from ptrnet.metrics.calibration import BINS, bin_of, error_of, gaps_by_bin


def measured(confidence, right):
    return error_of(moments_of(gaps_by_bin(confidence, right)))


def test_error_of_two_bins_computed_by_hand():
    confidence = np.array([0.62, 0.68, 0.65, 0.95, 0.93])
    right = np.array([True, False, False, True, True])
    expected = (3 / 5) * abs(0.65 - 1 / 3) + (2 / 5) * abs(0.94 - 1)
    measure = measured(confidence, right)
    assert measure.value == pytest.approx(expected) and measure.count == 5


def test_error_is_that_of_a_plain_loop_over_bins():
    rng = np.random.default_rng(0)
    confidence = rng.random(1000)
    right = rng.random(1000) < confidence**2
    expected = 0.0
    for low in np.arange(BINS) / BINS:
        inside = (confidence >= low) & (confidence < low + 1 / BINS)
        expected += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    measure = measured(confidence, right)
    assert measure.value == pytest.approx(expected)
    assert measure.low < expected < measure.high


def test_chunks_add_up_to_the_whole():
    rng = np.random.default_rng(1)
    confidence, right = rng.random(300), rng.random(300) < 0.5
    chunks = [
        moments_of(gaps_by_bin(confidence[k : k + 70], right[k : k + 70]))
        for k in range(0, 300, 70)
    ]
    added = {name: sum((c[name] for c in chunks[1:]), start=chunks[0][name]) for name in chunks[0]}
    whole = measured(confidence, right)
    assert vars(error_of(added)) == pytest.approx(vars(whole))


def test_the_interval_covers_the_error_of_many_instances():
    """Models that say 0.75 and are right in 60% of all cases have an error of 0.15."""
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        measure = measured(np.full(400, 0.75), rng.random(400) < 0.6)
        covered += measure.low <= 0.15 <= measure.high
    assert covered >= 180


def test_edges_of_bins_belong_to_the_upper_bin():
    assert bin_of(np.array([0.0, 0.0999, 0.1, 0.95, 1.0])).tolist() == [0, 0, 1, 9, 9]


def test_no_instance_has_no_error():
    assert measured(np.zeros(0), np.zeros(0, bool)).value is None
