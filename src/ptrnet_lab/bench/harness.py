"""Code that all measurements of `ptrnet bench` share.

A measurement compares sides, such as ptrnet and a naive implementation of the same work. A setup is
a function that prepares the work of a side. `measure` first runs each setup and its work in a
separate process, and measures the peak memory of that process. Then `measure` times the sides in
turn in the calling process, so that other work on the machine slows all sides equally.

Rows are printed as a table or as JSON. The last part of this file describes the machine.
"""

import multiprocessing
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from ptrnet import __version__, runtime
from ptrnet.progress import track

# ---- Time

Times = dict[int, float]  # milliseconds, by round


class Side(NamedTuple):
    """Work that is timed in turn with other sides."""

    run: Callable[[], object]
    every: int = 1  # for slow sides: run only in every n-th round
    warmups: int = 0  # untimed runs before each timed run, for work that users run again and again


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
    """Return the times of the sides, which run in turn. The first run of a side is not counted.

    Args:
        sides: the work, by name.
        rounds: number of rounds. `Side.every` says in which rounds a side runs.
        device: where the work is done. A GPU is synchronized before the clock is read.
        clock: returns the time in seconds.
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
    """The median and the quartiles of at least one time."""
    values = list(times)
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high, len(values))


def ratio(numerator: Times, denominator: Times) -> float:
    """The median ratio of two sides' times, over the rounds in which both sides ran."""
    rounds = numerator.keys() & denominator.keys()
    return statistics.median(numerator[k] / denominator[k] for k in rounds)


def _synchronize(device: str) -> Callable[[], object]:
    """Return a function that waits until the device has finished all launched work."""
    if device == "cpu":
        return lambda: None
    import torch

    return torch.cuda.synchronize


# ---- Memory

Setup = Callable[[], Callable[[], object]]  # prepares the work, and returns a function that runs it
RUNS = 2  # how often the work runs while we measure its memory


def peaks(setups: Sequence[Setup], title: str) -> list[float]:
    """Run the work of each setup RUNS times in a new process. Return the peaks of memory in MiB.

    A peak includes the interpreter and all libraries, but not the processes that the work starts.
    On a GPU, the peak is the memory of the tensors. Setups have to be picklable: module-level
    functions, or partials of module-level functions.
    """
    with ProcessPoolExecutor(
        max_workers=2,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_set_up_process,
        max_tasks_per_child=1,
    ) as processes:
        return list(track(processes.map(_peak, setups), f"memory of {title}", len(setups)))


def _set_up_process() -> None:
    """Apply the program's process settings. The parent process handles interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runtime.tune()


def _peak(setup: Setup) -> float:
    run = setup()
    for _ in range(RUNS):
        run()
    loky = sys.modules.get("joblib.externals.loky")
    if loky is not None:  # otherwise this process would wait for idle workers before it exits
        loky.get_reusable_executor().shutdown()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return float(torch.cuda.max_memory_allocated()) / 2**20
    return process_peak()


def process_peak() -> float:
    """The peak of this process's memory in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux `ru_maxrss` starts at the peak of the parent process
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


# ---- Rows


class Baseline(NamedTuple):
    """The side that a time is compared with, measured in the same rounds."""

    name: str
    ms: float  # the median
    ratio: float  # the baseline's time divided by the time that is compared with it
    peak_mb: float


@dataclass(frozen=True)
class Row:
    """One result: a row of the table, or an object of the JSON."""

    measurement: str  # the measurement that the row belongs to, such as `train`
    name: str  # unique within the measurement
    time: Spread  # milliseconds of a run
    count: float  # how many units a run handles
    unit: str
    # The settings, and other measured values, by their names in JSON.
    facts: Mapping[str, Any] = field(default_factory=dict)
    # The peak of memory, in MiB, of a process that runs only this side.
    peak_mb: float | None = None
    roofline_ms: float | None = None  # the least time that this machine could take
    baseline: Baseline | None = None  # the side that `time` is compared with
    note: str = ""  # printed at the end of the row

    def to_dict(self) -> dict[str, Any]:
        """The row as a dictionary, flat except for the baseline. Values not measured are None."""
        return {
            "what": self.measurement,
            "name": self.name,
            **self.facts,
            "median_ms": self.time.median,
            "low_ms": self.time.low,
            "high_ms": self.time.high,
            "runs": self.time.runs,
            "rate": 1000 * self.count / self.time.median,
            "unit": f"{self.unit}/s",
            "roofline_ms": self.roofline_ms,
            "roofline_share": self.roofline_ms and self.roofline_ms / self.time.median,
            "peak_mb": self.peak_mb,
            "other": self.baseline and self.baseline._asdict(),
        }

    def cells(self) -> dict[str, str]:
        """The printed cells of the row by column title, including empty cells."""
        table, baseline = self.to_dict(), self.baseline
        share = table["roofline_share"]
        return {
            "": self.name,
            "ms": _three_digits(self.time.median),
            "quartiles": f"{_three_digits(self.time.low)} to {_three_digits(self.time.high)}",
            "rate": f"{_three_digits(table['rate'])} {self.unit}/s",
            "roofline ms": _three_digits(self.roofline_ms),
            "share": "" if share is None else f"{share:.0%}",
            "peak MiB": _three_digits(self.peak_mb),
            "baseline": f"{baseline.name} {_three_digits(baseline.ms)} ms" if baseline else "",
            "times": f"{baseline.ratio:.1f}" if baseline else "",
            "baseline MiB": _three_digits(baseline.peak_mb) if baseline else "",
            "note": self.note,
        }


def format_table(rows: Sequence[Row]) -> str:
    """Return the rows as text: a line of common settings, and a table without empty columns."""
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
    return "\n".join([", ".join(common), *lines])


def _three_digits(number: float | None) -> str:
    """Format a number with three digits, or as a whole number from 100 on. None becomes empty."""
    if number is None:
        return ""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


# ---- Measurements


class Measured(NamedTuple):
    """The times by side, and the peaks of memory by setup."""

    times: Mapping[str, Times]
    peak_mb: Mapping[str, float]

    def median(self, side: str) -> float:
        """The median of a side's times in milliseconds."""
        return spread(self.times[side].values()).median

    def baseline(self, name: str, side: str, than: str) -> Baseline:
        """Return `side` as the baseline that the side `than` is compared with."""
        times = self.times[side], self.times[than]
        return Baseline(name, self.median(side), ratio(*times), self.peak_mb[side])

    def row(self, side: str, measurement: str, name: str, **others: Any) -> Row:
        """Return the row of a side. `others` are further arguments of `Row`."""
        time, peak_mb = spread(self.times[side].values()), self.peak_mb[side]
        return Row(measurement, name, time, peak_mb=peak_mb, **others)


def measure(
    setups: Mapping[str, Setup],
    sides: Mapping[str, Side],
    rounds: int,
    title: str,
    device: str = "cpu",
) -> Measured:
    """Measure the memory of the setups in other processes, then the times of the sides here.

    Args:
        setups: the work whose peaks of memory are measured, by side.
        sides, rounds, title, device: arguments of `interleaved`.
    """
    peak_mb = dict(zip(setups, peaks(list(setups.values()), title), strict=True))
    return Measured(interleaved(sides, rounds, title, device), peak_mb)


# ---- The machine


def machine(device: str) -> dict[str, Any]:
    """The processor, its cores and its load, and the GPU if `device` is `cuda`."""
    import torch

    facts: dict[str, Any] = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "bfloat16": _bfloat16(),
        "load": round(os.getloadavg()[0], 2),  # average of the last minute
        "system": f"{platform.system()} {platform.machine()}",
    }
    return {**facts, "gpu": torch.cuda.get_device_name()} if device == "cuda" else facts


def versions() -> dict[str, str]:
    """The versions of ptrnet, Python and the packages that do the work."""
    return {
        "ptrnet": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "numba", "numpy")},
    }


def describe(machine: dict[str, Any], versions: dict[str, str]) -> str:
    """The machine and the versions in two lines of text."""
    gpu = f"{machine['gpu']}, " if "gpu" in machine else ""
    return (
        f"{gpu}{machine['processor']}, {machine['threads']} threads on {machine['cores']} cores, "
        f"bfloat16: {machine['bfloat16']}, load before: {machine['load']}\n"
        + ", ".join(f"{name} {number}" for name, number in versions.items())
    )


def processor() -> str:
    """The name of the processor."""
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def commit() -> str:
    """The commit of the source, or the version if the source is not in a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return f"version {__version__}"
    return done.stdout.strip()


def _bfloat16() -> str:
    flags = _cpuinfo("flags").split()
    return next((flag for flag in ("amx_bf16", "avx512_bf16") if flag in flags), "none")


def _cpuinfo(key: str) -> str:
    """The value of a key in /proc/cpuinfo for the first core; empty if the key is missing."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")
