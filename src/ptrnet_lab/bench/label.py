"""Labels per second of each labeller, on all cores, as `ptrnet generate` makes them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from os import cpu_count
from sys import stderr
from time import perf_counter

import numpy as np

from ptrnet import labellers, tasks
from ptrnet.data import checks
from ptrnet.errors import MissingExtraError
from ptrnet.parallel import ordered_map
from ptrnet.types import Sizes
from ptrnet_lab.bench.harness import Row, Side, measure

N = 50  # default number of elements; fewer if the algorithm cannot label that many
MIN_SECONDS = 0.2  # minimum duration of a run, so that distributing work takes negligible time
MEMORY_COUNT = 4  # instances in the measurement of memory, which runs in one process
CHUNKS = 4  # per process, if there are enough instances


def rows(
    task: str | None = None, n: int | None = None, repeats: int = 5, seed: int = 0
) -> Iterator[Row]:
    """A row for each labeller. Raises InputError if instances cannot be labelled."""
    sizes = Sizes(N if n is None else n)
    drawn = []
    for name in tasks.names() if task is None else [task]:
        kind = tasks.get(name)
        checks.check_sizes(sizes, kind)
        for labeller in labellers.names_for(kind):
            size = int(min(sizes[0], labellers.max_elements(labeller)))
            try:
                labellers.check_labeller(kind, labeller)
            except MissingExtraError as error:
                print(f"left out: {error}", file=stderr)
            else:
                drawn.append(Instances(name, labeller, size, seed))
    return chain.from_iterable(_rows_of(instances, repeats) for instances in drawn)


@dataclass(frozen=True)
class Instances:
    """Random instances of n elements, and the algorithm that labels them."""

    task: str
    labeller: str
    n: int
    seed: int

    def label(self, chunk: tuple[int, int]) -> None:
        """Draw the instances of a chunk `(first, count)`, and label them in canonical form."""
        first, count = chunk
        task = tasks.get(self.task)
        inputs = task.sample(np.random.default_rng([self.seed, first]), count, self.n)
        labellers.label(task, inputs, self.labeller)

    def label_in_parallel(self, count: int, processes: int) -> None:
        """Label the first `count` instances in several processes."""
        size = -(-count // (processes * CHUNKS))
        chunks = [(first, min(size, count - first)) for first in range(0, count, size)]
        for _ in ordered_map(self.label, chunks, processes):
            pass


def _rows_of(instances: Instances, rounds: int) -> Iterator[Row]:
    processes = cpu_count() or 1
    title = f"{instances.task} by {instances.labeller}"
    count = _count_of_a_run(instances, processes)
    side = Side(partial(instances.label_in_parallel, count, processes))
    setups = {"labels": partial(_in_one_process, instances)}
    yield measure(setups, {"labels": side}, rounds, f"label, {title}").row(
        "labels",
        "label",
        f"{title}, n={instances.n}",
        count=count,
        unit="labels",
        facts={
            "task": instances.task,
            "labeller": instances.labeller,
            "n": instances.n,
            "instances": count,
            "processes": processes,
        },
        note=f"{count:,} instances",
    )


def _count_of_a_run(instances: Instances, processes: int) -> int:
    """Return a number of instances that take at least MIN_SECONDS to label."""
    count, seconds = processes, 0.0
    instances.label_in_parallel(count, processes)  # start the processes
    while seconds < MIN_SECONDS:
        count, seconds = 2 * count, np.inf
        for _ in range(2):  # take the faster run, because a process may start late
            start = perf_counter()
            instances.label_in_parallel(count, processes)
            seconds = min(seconds, perf_counter() - start)
    return count


def _in_one_process(instances: Instances) -> partial[None]:
    """Return a function that labels MEMORY_COUNT instances without other processes."""
    return partial(instances.label, (0, MEMORY_COUNT))
