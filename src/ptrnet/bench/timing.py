"""Times of several sides that are measured in turn, so that a busy machine slows all alike."""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ptrnet.progress import track

Times = dict[int, float]  # milliseconds, by the round they were measured in


class Side(NamedTuple):
    """What is run in every round, or where it is slow in one of several.

    `before`: runs before each that is counted, of what in use follows itself and not another.
    """

    run: Callable[[], object]
    every: int = 1
    before: int = 0


class Spread(NamedTuple):
    """The median of several runs, and the quartiles around it."""

    median: float
    low: float
    high: float
    runs: int


def interleaved(
    sides: Mapping[str, Side],
    rounds: int,
    what: str,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Times]:
    """The times of each side; the first run of each is not counted.

    Args:
        sides: what is measured, by name.
        rounds: in each of them every side runs once, but for those that sit some out.
        what: is said of the bar.
        device: where the work is done; a GPU is waited for.
        clock: seconds.
    """
    settle = _settle(device)
    found: dict[str, Times] = {name: {} for name in sides}
    for round_ in track(range(-1, rounds), f"measuring {what}", rounds + 1):
        for name, side in sides.items():
            if round_ > 0 and round_ % side.every:
                continue
            for _ in range(side.before):
                side.run()
            settle()
            began = clock()
            side.run()
            settle()
            if round_ >= 0:
                found[name][round_] = 1000 * (clock() - began)
    return found


def spread(times: Iterable[float]) -> Spread:
    """Of at least one time."""
    known = list(times)
    if len(known) == 1:
        return Spread(known[0], known[0], known[0], 1)
    low, median, high = statistics.quantiles(known, n=4, method="inclusive")
    return Spread(median, low, high, len(known))


def ratio(over: Times, under: Times) -> float:
    """How many times as long one side takes: the median over the rounds that both ran in."""
    return statistics.median(over[k] / under[k] for k in over if k in under)


def _settle(device: str) -> Callable[[], object]:
    """What waits until the device has done all that it was asked for."""
    if device == "cpu":
        return lambda: None
    import torch

    return torch.cuda.synchronize
