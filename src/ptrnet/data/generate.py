"""Fresh examples by the million: counted chunks, whoever computes them."""

from collections.abc import Iterator, Sequence

import numpy as np
from joblib import Parallel, delayed

from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices

CHUNK = 1000
_SPLIT = 2  # beside the streams of training and validation: no example is shared with them


def generate(
    task: Task,
    sizes: Sequence[int],
    count: int,
    seed: int,
    labeller: str | None = None,
    jobs: int = 1,
) -> Iterator[Example]:
    """`count` examples whose sizes are drawn uniformly from `sizes`.

    Example number k depends on the seed, the task and the sizes alone: not on `count`, not on
    `jobs`, the number of processes that compute.
    """
    work = (
        delayed(_chunk)(task, sizes, seed, k, min(CHUNK, count - k * CHUNK), labeller)
        for k in range(-(-count // CHUNK))
    )
    for chunk in Parallel(n_jobs=jobs, return_as="generator")(work):
        yield from chunk


def _chunk(
    task: Task, sizes: Sequence[int], seed: int, k: int, wanted: int, labeller: str | None
) -> list[Example]:
    rng = np.random.default_rng([seed, _SPLIT, k])
    drawn = rng.choice(np.asarray(sizes), CHUNK)[:wanted]
    instances = [task.sample(rng, 1, int(n))[0] for n in drawn]
    return [
        Example(instance, answer)
        for instance, answer in zip(instances, label(task, instances, labeller), strict=True)
    ]


def label(task: Task, instances: Sequence[Floats], labeller: str | None = None) -> list[Indices]:
    """The answers to instances of any sizes; those of one size are labelled together."""
    sizes = np.array([len(instance) for instance in instances])
    answers: list[Indices] = [np.empty(0, np.int64)] * len(instances)
    for n in np.unique(sizes):
        places = np.flatnonzero(sizes == n).tolist()
        rows = task.label(np.stack([instances[i] for i in places]), labeller).rows()
        for i, row in zip(places, rows, strict=True):
            answers[i] = row
    return answers
