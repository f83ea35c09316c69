"""Times are right by a clock that only the work moves, medians and quartiles by NumPy."""

import numpy as np
import pytest

from ptrnet.bench.timing import Side, interleaved, ratio, spread


class FakeClock:
    """Stands still but for what is worked."""

    def __init__(self):
        self.now, self.worked = 0.0, []

    def __call__(self):
        return self.now

    def work(self, name, *seconds):
        """A side that takes the seconds given, one after the other, at each run."""
        durations = iter(seconds)

        def run():
            self.worked.append(name)
            self.now += next(durations)

        return run


def test_sides_run_in_turn_and_the_first_run_of_each_is_not_counted():
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
def test_medians_and_quartiles(count):
    values = np.random.default_rng(count).random(count)
    result = spread(values.tolist())
    assert result[:3] == pytest.approx(np.quantile(values, [0.5, 0.25, 0.75]))
    assert result.runs == count
