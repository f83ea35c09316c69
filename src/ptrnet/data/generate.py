"""Fresh examples by the million: counted chunks, whoever computes them."""

from collections.abc import Iterator, Sequence

import numpy as np
from joblib import Parallel, delayed

from ptrnet import labellers
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Example

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
    first = k * CHUNK
    examples = [
        Example(task.sample(rng, 1, int(n))[0], where=f"instance {i}")
        for i, n in enumerate(drawn, first + 1)
    ]
    return label(task, examples, labeller)


def label(task: Task, examples: Sequence[Example], labeller: str | None = None) -> list[Example]:
    """The examples with an algorithm's answers; those of one size are labelled together.

    Raises:
        InputError: the algorithm found no answer to one; it is named by where it came from.
    """
    groups: dict[tuple[int, str], list[int]] = {}
    for i, example in enumerate(examples):
        groups.setdefault((len(example.inputs), example.distance), []).append(i)
    labelled = list(examples)
    for (_, distance), places in groups.items():
        inputs = np.stack([examples[i].inputs for i in places])
        for i, row in zip(places, task.rows(task.label(inputs, labeller, distance)), strict=True):
            if not len(row):
                name = labeller or task.labellers[0]
                raise InputError(f"{examples[i].where}: {labellers.failure(name)}")
            labelled[i] = examples[i]._replace(outputs=row)
    return labelled
