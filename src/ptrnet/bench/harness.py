"""What every measurement shares: cases, each measured side by side, that end as rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ptrnet.bench.memory import Setup, peaks
from ptrnet.bench.row import Row
from ptrnet.bench.timing import Side, Spread, Times, interleaved, ratio, spread


@dataclass(frozen=True)
class Result:
    """The measured times of a case, by side, and its measured peaks of memory, by setup."""

    times: Mapping[str, Times]
    peak_mb: Mapping[str, float]

    def spread(self, side: str) -> Spread:
        """The median of a side's times in milliseconds, and its quartiles."""
        return spread(self.times[side].values())

    def median(self, side: str) -> float:
        """The median of a side's times in milliseconds."""
        return self.spread(side).median

    def ratio(self, numerator: str, denominator: str) -> float:
        """How many times as long the first side takes, in the rounds that both ran in."""
        return ratio(self.times[numerator], self.times[denominator])


class Case(ABC):
    """One configuration of a measurement: what runs in turn, and the rows that come of it."""

    title: str  # of its progress bar
    rounds: int
    device: str = "cpu"

    @abstractmethod
    def setups(self) -> dict[str, Setup]:
        """The work whose peak of memory is measured, each in a process of its own."""

    @abstractmethod
    def sides(self) -> dict[str, Side]:
        """The work that is timed, side after side in each round; made when the case is measured."""

    @abstractmethod
    def rows(self, result: Result) -> Iterator[Row]:
        """The rows that are reported."""


def measure(measurement: str, cases: Sequence[Case]) -> Iterator[Row]:
    """The rows of all cases: first the memory of all, then the times case by case."""
    setups = {
        (number, name): setup
        for number, case in enumerate(cases)
        for name, setup in case.setups().items()
    }
    peak_mb = peaks(setups, measurement)
    for number, case in enumerate(cases):
        title = f"{measurement}, {case.title}"
        times = interleaved(case.sides(), case.rounds, title, case.device)
        own_peaks = {name: mb for (of, name), mb in peak_mb.items() if of == number}
        yield from case.rows(Result(times, own_peaks))
