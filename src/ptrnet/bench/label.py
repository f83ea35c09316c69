"""Labels a second of each labeller, on every core, as `ptrnet generate` has them."""

from collections.abc import Iterator
from functools import partial
from os import cpu_count
from sys import stderr
from time import perf_counter
from typing import NamedTuple

import numpy as np

from ptrnet import labellers, tasks
from ptrnet.bench.memory import Work, peaks
from ptrnet.bench.row import Row
from ptrnet.bench.timing import Side, interleaved, spread
from ptrnet.data import checks
from ptrnet.data.sizes import parse_sizes
from ptrnet.errors import MissingExtraError
from ptrnet.parallel import ordered_map

N = 50  # elements, where none are asked for; fewer for an algorithm that takes no more
LONG_ENOUGH = 0.2  # seconds of a run, so that handing out the work does not count
PIECE = 4  # instances that the memory is measured with
PIECES = 4  # that each process has of a run, where there is so much


class Asked(NamedTuple):
    """What is labelled, and by which algorithm."""

    task: str
    labeller: str
    n: int
    seed: int


def rows(
    task: str | None = None, n: int | None = None, repeats: int = 5, seed: int = 0
) -> Iterator[Row]:
    """A row for each labeller. Raises InputError for what cannot be labelled."""
    sizes = parse_sizes(str(N if n is None else n))
    wanted = []
    for name in tasks.names() if task is None else [task]:
        kind = tasks.get(name)
        checks.check_sizes(sizes, kind)
        for labeller in kind.labellers:
            most = min(sizes[0], labellers.largest(labeller))
            try:
                kind.check_labeller(labeller, int(most))
            except MissingExtraError as error:
                print(f"left out: {error}", file=stderr)
            else:
                wanted.append(Asked(name, labeller, int(most), seed))
    return _measured(wanted, repeats)


def _measured(wanted: list[Asked], repeats: int) -> Iterator[Row]:
    works: dict[str, Work] = {
        f"{asked.task} {asked.labeller}": partial(alone, asked) for asked in wanted
    }
    held = peaks(works, "label")
    for asked in wanted:
        yield _row(asked, repeats, held[f"{asked.task} {asked.labeller}"])


def _row(asked: Asked, repeats: int, held: float) -> Row:
    processes = cpu_count() or 1
    everywhere(asked, processes, processes)  # which starts them
    count, seconds = processes, 0.0
    while seconds < LONG_ENOUGH:
        count *= 2
        seconds = min(_seconds(asked, count, processes) for _ in range(2))  # one may start late
    side = Side(lambda: everywhere(asked, count, processes))
    times = interleaved({"": side}, repeats, f"label, {asked.task} by {asked.labeller}")
    return Row(
        what="label",
        name=f"{asked.task} by {asked.labeller}, n={asked.n}",
        time=spread(times[""].values()),
        count=count,
        unit="labels",
        facts={
            "task": asked.task,
            "labeller": asked.labeller,
            "n": asked.n,
            "instances": count,
            "processes": processes,
        },
        peak_mb=held,
        note=f"{count:,} instances",
    )


def _seconds(asked: Asked, count: int, processes: int) -> float:
    began = perf_counter()
    everywhere(asked, count, processes)
    return perf_counter() - began


def everywhere(asked: Asked, count: int, processes: int) -> None:
    """Draws and labels `count` instances, shared between all processes."""
    each = -(-count // (processes * PIECES))
    pieces = [(k, min(each, count - k)) for k in range(0, count, each)]
    for _ in ordered_map(partial(piece, asked), pieces, processes):
        pass


def piece(asked: Asked, place: tuple[int, int]) -> None:
    """Instances from the first on, so many: drawn, labelled, and in canonical order."""
    first, count = place
    kind = tasks.get(asked.task)
    inputs = kind.sample(np.random.default_rng([asked.seed, first]), count, asked.n)
    kind.label(inputs, asked.labeller)


def alone(asked: Asked) -> partial[None]:
    """What one process does at a time."""
    return partial(piece, asked, (0, PIECE))
