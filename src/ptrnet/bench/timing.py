"""Times of several sides that are measured in turn, so that a busy machine slows all alike."""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ptrnet.progress import track

Times = dict[int, float]  # milliseconds, by the round they were measured in


class Side(NamedTuple):
    """One of the things that are timed in turn."""

    run: Callable[[], object]
    every: int = 1  # it runs in one of so many rounds, where it is slow
    warmups: int = 0  # runs before each that is timed, for what in use follows itself


class Spread(NamedTuple):
    """The median of several runs, and the quartiles around it."""

    median: float
    low: float
    high: float
    runs: int


def interleaved(
    sides: Mapping[str, Side],
    rounds: int,
    title: str,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Times]:
    """The times of each side; the first run of each is not counted.

    Args:
        sides: what is measured, by name.
        rounds: in each every side is timed once, but for those that run in one of several.
        title: of the progress bar.
        device: where the work is done; a GPU is synchronized with.
        clock: gives the time in seconds.
    """
    synchronize = _synchronize(device)
    times: dict[str, Times] = {name: {} for name in sides}
    for round_ in track(range(-1, rounds), f"measuring {title}", rounds + 1):
        for name, side in sides.items():
            if round_ > 0 and round_ % side.every:
                continue
            for _ in range(side.warmups):
                side.run()
            synchronize()
            start = clock()
            side.run()
            synchronize()
            if round_ >= 0:
                times[name][round_] = 1000 * (clock() - start)
    return times


def spread(times: Iterable[float]) -> Spread:
    """The median and the quartiles of one time or more."""
    values = list(times)
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high, len(values))


def ratio(numerator: Times, denominator: Times) -> float:
    """How many times as long one side takes: the median over the rounds that both ran in."""
    rounds = numerator.keys() & denominator.keys()
    return statistics.median(numerator[k] / denominator[k] for k in rounds)


def _synchronize(device: str) -> Callable[[], object]:
    """A function that waits until the device has done all that was launched."""
    if device == "cpu":
        return lambda: None
    import torch

    return torch.cuda.synchronize
