"""How many labels a second, on an otherwise idle machine: `python benchmarks/labellers.py`."""

import os
import time
from functools import partial

import numpy as np

from ptrnet import distances, tasks
from ptrnet.data.workers import in_order
from ptrnet.labellers import exact
from ptrnet.labellers.tour.batches import matrices

CORES = os.cpu_count() or 1
# task, labeller, n, instances, instances that a process labels at a time
ROWS = [
    ("hull", "monotone-chain", 50, 200_000, 5000),
    ("delaunay", "qhull", 50, 20_000, 500),
    ("tsp", "exact", 20, 10_000, 250),
    ("tsp", "exact", 50, 1000, 25),
    ("tsp", "held-karp", 12, 2000, 50),
    ("tsp", "local-search", 50, 4000, 100),
    ("tsp", "local-search", 1000, 20, 1),
    ("tsp", "a1", 50, 10_000, 250),
    ("tsp", "a2", 50, 10_000, 250),
    ("tsp", "a3", 50, 10_000, 250),
]


def instances(n, count):
    return np.random.default_rng([0, n]).random((count, n, 2))


def label(task, labeller, inputs):
    """Canonical labels, as the training stream has them; their tour lengths."""
    answers = tasks.get(task).label(inputs, labeller)
    if task != "tsp":
        return answers.lengths
    path = np.take_along_axis(inputs, answers.indices[..., None], 1)
    return distances.between(path, np.roll(path, -1, 1)).sum(-1)


def certificate(inputs):
    """Of each tour of `exact`: the proved bound as a share of its length."""
    (tours, _), bounds = exact.certified(inputs)
    far = np.concatenate([far for _, far in matrices(inputs, distances.EUCLIDEAN)])
    rows = np.arange(len(tours))[:, None]
    return bounds / far[rows, tours, np.roll(tours, -1, 1)].sum(1)


def timed(work, inputs, piece):
    """The results, and the seconds they took on every core once the processes were up."""
    pieces = [inputs[k : k + piece] for k in range(0, len(inputs), piece)]
    list(in_order(work, [inputs[:1]] * 8 * CORES, CORES))
    began = time.perf_counter()
    found = np.concatenate(list(in_order(work, pieces, CORES)))
    return found, time.perf_counter() - began


def main():
    print(f"{CORES} cores; cities and points uniform in the unit square, seed 0\n")
    print("| task | labeller | n | instances | seconds | a second, all cores |")
    print("|---|---|---|---|---|---|")
    found = {}
    for task, labeller, n, count, piece in ROWS:
        inputs = instances(n, count)
        found[labeller, n], seconds = timed(partial(label, task, labeller), inputs, piece)
        cells = f"{n} | {count:,} | {seconds:.2f} | {count / seconds:,.0f}"
        print(f"| {task} | {labeller} | {cells} |", flush=True)
    gaps = found["local-search", 50][:1000] / found["exact", 50] - 1
    bounds, _ = timed(certificate, instances(50, 1000), 25)
    print(f"\nlocal-search at n = 50: mean gap {gaps.mean():.4%} over 1,000 instances")
    print(f"exact at n = 50: {(bounds > 1 - 1e-9).sum():,} of 1,000 tours proved the shortest")


if __name__ == "__main__":
    main()
