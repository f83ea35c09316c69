"""One measured thing, as a row of a table and as an object of JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ptrnet.bench.timing import Spread


@dataclass(frozen=True)
class Baseline:
    """What a time is compared with, measured in the same rounds."""

    name: str
    ms: float  # the median
    ratio: float  # how many times as long it takes
    peak_mb: float | None = None


@dataclass(frozen=True)
class Row:
    """One measured thing.

    Args:
        measurement: that it belongs to, such as `train`.
        name: unique in the measurement.
        time: milliseconds of a run.
        count: how many of the unit a run handles.
        unit: of the rate.
        facts: the settings, and what else was measured; by names for JSON.
        roofline_ms: the least time that this machine could take.
        baseline: the other side of the ratio.
        peak_mb: the peak of memory of a process that does only this.
        note: what else a reader should know.
        paths: which code parts of it took, and why, by the part.
    """

    measurement: str
    name: str
    time: Spread
    count: float
    unit: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    roofline_ms: float | None = None
    baseline: Baseline | None = None
    peak_mb: float | None = None
    note: str = ""
    paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Units a second."""
        return 1000 * self.count / self.time.median

    @property
    def share(self) -> float | None:
        """The roofline's share of the time."""
        return None if self.roofline_ms is None else self.roofline_ms / self.time.median

    def table(self) -> dict[str, Any]:
        """The row as a dictionary, flat but for the baseline; None where nothing was measured."""
        return {
            "what": self.measurement,
            "name": self.name,
            **self.facts,
            "median_ms": self.time.median,
            "low_ms": self.time.low,
            "high_ms": self.time.high,
            "runs": self.time.runs,
            "rate": self.rate,
            "unit": f"{self.unit}/s",
            "roofline_ms": self.roofline_ms,
            "roofline_share": self.share,
            "peak_mb": self.peak_mb,
            "paths": dict(self.paths),
            "other": None if self.baseline is None else vars(self.baseline),
        }

    def cells(self) -> dict[str, str]:
        """The printed cells of the row by the heads of their columns; empty ones included."""
        baseline, share = self.baseline, self.share
        return {
            "": self.name,
            "ms": _three_digits(self.time.median),
            "quartiles": f"{_three_digits(self.time.low)} to {_three_digits(self.time.high)}",
            "rate": f"{_three_digits(self.rate)} {self.unit}/s",
            "roofline ms": _three_digits(self.roofline_ms),
            "share": "" if share is None else f"{share:.0%}",
            "peak MB": _three_digits(self.peak_mb),
            "beside it": f"{baseline.name} {_three_digits(baseline.ms)} ms" if baseline else "",
            "times": f"{baseline.ratio:.1f}" if baseline else "",
            "its peak MB": _three_digits(baseline.peak_mb) if baseline else "",
            "note": self.note,
        }


def format_table(rows: Sequence[Row]) -> str:
    """The rows as text: common facts, a table of the columns that are not empty, code paths."""
    common = [
        f"{key.replace('_', ' ')} {value}"
        for key, value in rows[0].facts.items()
        if not isinstance(value, float) and all(row.facts.get(key) == value for row in rows)
    ]
    cells = [row.cells() for row in rows]
    heads = [head for head in cells[0] if any(row[head] for row in cells)]
    columns = [[head, *(row[head] for row in cells)] for head in heads]
    padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
    lines = ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
    paths = {part: path for row in rows for part, path in row.paths.items()}
    return "\n".join([", ".join(common), *lines, *(f"{k}: {path}" for k, path in paths.items())])


def _three_digits(number: float | None) -> str:
    """Three digits or more; nothing for none."""
    if number is None:
        return ""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
