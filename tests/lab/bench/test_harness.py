"""Check times by a fake clock, quartiles by NumPy, and memory peaks by known allocations."""

from functools import partial

import numpy as np
import pytest

from ptrnet_lab.bench.harness import (
    Baseline,
    Row,
    Side,
    Spread,
    format_table,
    interleaved,
    peaks,
    process_peak,
    ratio,
    spread,
)

MB = 2**20


class FakeClock:
    """A clock that advances only during work."""

    def __init__(self):
        self.now, self.worked = 0.0, []

    def __call__(self):
        return self.now

    def work(self, name, *seconds):
        """Return a function whose calls take these times, one after the other."""
        durations = iter(seconds)

        def run():
            self.worked.append(name)
            self.now += next(durations)

        return run


def test_sides_run_in_turn_and_their_first_runs_are_not_counted():
    clock = FakeClock()
    fast, slow = clock.work("fast", 9, 1, 2, 3, 4, 5), clock.work("slow", 90, 10, 30, 60)
    sides = {"fast": Side(fast), "slow": Side(slow, every=2)}
    times = interleaved(sides, 5, "a test", clock=clock)
    both, one = ["fast", "slow"], ["fast"]
    assert clock.worked == both + both + one + both + one + both
    assert times["fast"] == {0: 1000, 1: 2000, 2: 3000, 3: 4000, 4: 5000}
    assert times["slow"] == {0: 10_000, 2: 30_000, 4: 60_000}
    assert ratio(times["slow"], times["fast"]) == 10  # of 10/1, 30/3 and 60/5


def test_warmups_are_not_counted():
    clock = FakeClock()
    sides = {
        "a": Side(clock.work("a", 9, 9, 9, 1, 9, 2), warmups=1),
        "b": Side(clock.work("b", 9, 5, 7)),
    }
    times = interleaved(sides, 2, "a test", clock=clock)
    assert clock.worked == ["a", "a", "b"] * 3
    assert times == {"a": {0: 1000, 1: 2000}, "b": {0: 5000, 1: 7000}}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 40])
def test_spread_equals_numpy_quantiles(count):
    values = np.random.default_rng(count).random(count)
    result = spread(values.tolist())
    assert result[:3] == pytest.approx(np.quantile(values, [0.5, 0.25, 0.75]))
    assert result.runs == count


def test_peaks_exclude_memory_of_the_parent_process():
    allocated = np.ones(300 * MB // 8)
    assert process_peak() > 300
    # A setup returns the function that is run. Both have to be picklable.
    little, much = (partial(partial, np.ones, size * MB // 8) for size in (1, 200))
    little_mb, much_mb = peaks([little, much], "a test")
    assert 10 < little_mb < 250 and allocated.all()
    assert 190 < much_mb - little_mb < 260


def test_table_has_no_empty_columns():
    facts = {"task": "hull", "n": 5, "hidden_size": 8}
    one = Row("train", "first", Spread(2.0, 1.5, 3.0, 4), 100, "examples", facts, roofline_ms=0.5)
    other = Row("train", "second", one.time, 7, "examples", {**facts, "n": 6}, roofline_ms=0.1)
    text = format_table([one, other]).splitlines()
    assert text[0] == "task hull, hidden size 8"
    assert text[1].split() == ["ms", "quartiles", "rate", "roofline", "ms", "share"]
    assert " ".join(text[2].split()) == "first 2 1.5 to 3 50,000 examples/s 0.5 25%"
    beside = Row(
        "train", "third", one.time, 7, "examples", baseline=Baseline("naive", 20, 10, 512.4)
    )
    assert "naive 20 ms  10.0   512" in format_table([beside])
