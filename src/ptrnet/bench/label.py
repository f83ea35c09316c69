"""Labels per second of each labeller, on all cores, as `ptrnet generate` makes them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from os import cpu_count
from sys import stderr
from time import perf_counter

import numpy as np

from ptrnet import labellers, tasks
from ptrnet.bench.harness import Case, Result, Row, Setup, Side, measure
from ptrnet.data import checks
from ptrnet.data.sizes import Sizes
from ptrnet.errors import MissingExtraError
from ptrnet.parallel import ordered_map

N = 50  # elements by default; fewer for an algorithm that is limited to fewer
MIN_SECONDS = 0.2  # of a run, so that the time to distribute the work is negligible
MEMORY_COUNT = 4  # instances in the measurement of memory
CHUNKS = 4  # per process, if there are enough instances
ONE_PROCESS, ALL_CORES = "one process", "all cores"  # a setup, and a side


def rows(
    task: str | None = None, n: int | None = None, repeats: int = 5, seed: int = 0
) -> Iterator[Row]:
    """A row for each labeller. Raises InputError if instances cannot be labelled."""
    sizes = Sizes(N if n is None else n)
    cases = []
    for name in tasks.names() if task is None else [task]:
        kind = tasks.get(name)
        checks.check_sizes(sizes, kind)
        for labeller in kind.labellers:
            size = int(min(sizes[0], labellers.max_elements(labeller)))
            try:
                kind.check_labeller(labeller)
            except MissingExtraError as error:
                print(f"left out: {error}", file=stderr)
            else:
                cases.append(Labelling(Instances(name, labeller, size, seed), repeats))
    return measure("label", cases)


@dataclass(frozen=True)
class Instances:
    """Fresh instances of n elements, and the algorithm that labels them."""

    task: str
    labeller: str
    n: int
    seed: int

    def label(self, chunk: tuple[int, int]) -> None:
        """Draw and label `(first, count)` of the instances; labels are in canonical order."""
        first, count = chunk
        task = tasks.get(self.task)
        inputs = task.sample(np.random.default_rng([self.seed, first]), count, self.n)
        task.label(inputs, self.labeller)

    def label_in_parallel(self, count: int, processes: int) -> None:
        """Label the first `count` instances by several processes."""
        size = -(-count // (processes * CHUNKS))
        chunks = [(first, min(size, count - first)) for first in range(0, count, size)]
        for _ in ordered_map(self.label, chunks, processes):
            pass


class Labelling(Case):
    """One labeller on every core."""

    def __init__(self, instances: Instances, rounds: int) -> None:
        self.instances, self.rounds = instances, rounds
        self.title = f"{instances.task} by {instances.labeller}"
        self.processes = cpu_count() or 1

    def setups(self) -> dict[str, Setup]:
        return {ONE_PROCESS: partial(one_process, self.instances)}

    def sides(self) -> dict[str, Side]:
        """A run of enough instances to take MIN_SECONDS."""
        self.instances.label_in_parallel(self.processes, self.processes)  # start the processes
        self.count, seconds = self.processes, 0.0
        while seconds < MIN_SECONDS:
            self.count *= 2
            seconds = min(self._seconds() for _ in range(2))  # a process may start late
        return {ALL_CORES: Side(self._run)}

    def rows(self, result: Result) -> Iterator[Row]:
        yield Row(
            measurement="label",
            name=f"{self.title}, n={self.instances.n}",
            time=result.spread(ALL_CORES),
            count=self.count,
            unit="labels",
            facts={
                "task": self.instances.task,
                "labeller": self.instances.labeller,
                "n": self.instances.n,
                "instances": self.count,
                "processes": self.processes,
            },
            peak_mb=result.peak_mb[ONE_PROCESS],
            note=f"{self.count:,} instances",
        )

    def _run(self) -> None:
        self.instances.label_in_parallel(self.count, self.processes)

    def _seconds(self) -> float:
        start = perf_counter()
        self._run()
        return perf_counter() - start


def one_process(instances: Instances) -> partial[None]:
    """A function that labels MEMORY_COUNT instances in one process."""
    return partial(instances.label, (0, MEMORY_COUNT))
