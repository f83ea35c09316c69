"""Fresh examples by the million: counted chunks, whoever computes them."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ptrnet import labellers
from ptrnet.errors import InputError
from ptrnet.parallel import LOCAL, in_order
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CHUNK = 250
_SPLIT = 2  # beside the streams of training and validation: no example is shared with them


def generate(
    task: Task,
    sizes: Sequence[int],
    count: int,
    seed: int,
    labeller: str | None = None,
    jobs: int = 1,
    backend: str = LOCAL,
) -> Iterator[Example]:
    """`count` examples whose sizes are drawn uniformly from `sizes`.

    Example number k depends on the seed, the task, the sizes and the labeller alone: not on
    `count`, nor on who computes it (see `ptrnet.parallel` for `jobs` and `backend`).
    """
    work = partial(fresh, task, sizes, seed, count, labeller)
    for chunk in in_order(work, range(-(-count // CHUNK)), jobs, backend):
        yield from chunk


def fresh(
    task: Task, sizes: Sequence[int], seed: int, count: int, labeller: str | None, k: int
) -> list[Example]:
    """Chunk number k of `count` examples."""
    rng = np.random.default_rng([seed, _SPLIT, k])
    drawn = rng.choice(np.asarray(sizes), CHUNK)[: count - k * CHUNK]
    examples = [
        Example(task.sample(rng, 1, int(n))[0], source=f"instance {i}")
        for i, n in enumerate(drawn, k * CHUNK + 1)
    ]
    return label(task, labeller, examples)


def label(task: Task, labeller: str | None, examples: Sequence[Example]) -> list[Example]:
    """The examples with an algorithm's answers; those of one size are labelled together.

    Raises:
        InputError: the algorithm takes no such example, or found no answer to one; it is named
            by where it came from.
    """
    groups: dict[tuple[int, str], list[int]] = {}
    for i, example in enumerate(examples):
        groups.setdefault((len(example.inputs), example.distance), []).append(i)
    labelled = list(examples)
    for (n, distance), places in groups.items():
        try:
            task.check_labeller(labeller, n)
        except InputError as error:
            raise InputError(f"{examples[places[0]].source}: {error}") from None
        inputs = np.stack([examples[i].inputs for i in places])
        for i, row in zip(places, task.unpad(task.label(inputs, labeller, distance)), strict=True):
            if not len(row):
                name = labeller or task.labellers[0]
                raise InputError(f"{examples[i].source}: {labellers.failure(name)}")
            labelled[i] = examples[i]._replace(outputs=row)
    return labelled
