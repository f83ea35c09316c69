"""Fresh instances with their answers: `ptrnet.generate`, and the same as an iterator."""

from collections.abc import Iterator, Sequence
from functools import partial
from os import fspath
from pathlib import Path
from typing import overload

import numpy as np

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.bulk import engine
from ptrnet.data.bulk.engine import CHUNK, BulkWork
from ptrnet.data.bulk.label import label_examples
from ptrnet.data.checks import check_sizes
from ptrnet.data.random_streams import GENERATED
from ptrnet.data.sizes import Sizes
from ptrnet.errors import whole_number
from ptrnet.parallel import LOCAL, check_backend, check_jobs
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices


@overload
def generate(
    task: str | Task,
    n: str | int,
    count: int,
    *,
    output: None = None,
    labeller: str | None = None,
    strict: bool = False,
    seed: int = 0,
    jobs: int = 1,
    backend: str = LOCAL,
) -> list[tuple[Floats, Indices]]: ...


@overload
def generate(
    task: str | Task,
    n: str | int,
    count: int,
    *,
    output: str | Path,
    labeller: str | None = None,
    strict: bool = False,
    seed: int = 0,
    jobs: int = 1,
    backend: str = LOCAL,
) -> None: ...


def generate(
    task: str | Task,
    n: str | int,
    count: int,
    *,
    output: str | Path | None = None,
    labeller: str | None = None,
    strict: bool = False,
    seed: int = 0,
    jobs: int = 1,
    backend: str = LOCAL,
) -> list[tuple[Floats, Indices]] | None:
    """Draws instances, answers them by an algorithm, and returns or writes both.

    Example number k depends on the task, the sizes, the labeller and the seed alone: not on
    `count`, `jobs` or `backend`. Where a call that writes a file of lines (.txt, .jsonl,
    .parquet) is stopped, what is done stays beside the file, and the same call goes on.

    Args:
        task: "hull", "delaunay", "tsp" or "sort"; or a task with other settings, as
            `ptrnet.load(...).task`.
        n: the numbers of elements: 50, "5-50" or "5,10,20-30"; 1 to 100,000, and at least 3 for
            "delaunay". The size of each instance is drawn uniformly.
        count: how many examples, 1 or more.
        output: the file; its extension is the format, "-" is standard output.
        labeller: the algorithm, one of `task.labellers`; the task's first when None.
        strict: whether an answer that is not proved, where the labeller promises a proof, is an
            error. Else it is the best that was found, `"proved": false` says so in .jsonl and
            .parquet, and a line on standard error counts them.
        seed: of all that is drawn, 0 or more.
        jobs: processes, 1 or more; -1 for one a core.
        backend: where they run: "local", or a cluster of "dask" or "ray".

    Returns:
        Pairs of inputs `(n, d)` and outputs, 0-based indices `(m,)` or triangles `(t, 3)`, where
        `output` is None; `ptrnet.fit` takes pairs of indices. None where a file is written.

    Raises:
        InputError: an argument out of its range or unknown, instances too large for the labeller,
            a file that cannot be written, or the beginning of other work in its place. No file is
            made then.
        MissingExtraError: format, labeller or backend needs a package that is not installed.
    """
    task = tasks.get(task) if isinstance(task, str) else task
    work = generation_work(task, Sizes(n), count, seed, labeller, strict)
    path = None if output is None else fspath(output)
    if path is not None:
        formats.check_output(path, task)
    check_jobs(jobs)
    check_backend(backend)
    return engine.run(work, path, None, jobs, backend)


def generate_examples(
    task: Task,
    sizes: Sequence[int],
    count: int,
    seed: int,
    labeller: str | None = None,
    jobs: int = 1,
    backend: str = LOCAL,
) -> Iterator[Example]:
    """The examples of `generate`, of sizes drawn from `sizes`, computed as they are taken."""
    return generation_work(task, sizes, count, seed, labeller).examples(jobs, backend)


def generation_work(
    task: Task,
    sizes: Sequence[int],
    count: int,
    seed: int,
    labeller: str | None = None,
    strict: bool = False,
) -> BulkWork[int]:
    """The work of `generate`; an item is the number of a chunk.

    Raises:
        InputError: an argument out of its range or unknown, sizes too large for the labeller.
        MissingExtraError: the labeller needs a package that is not installed.
    """
    check_sizes(sizes, task)
    count, seed = whole_number("count", count, 1), whole_number("seed", seed, 0)
    task.check_labeller(labeller)
    task.check_max_elements(labeller, max(sizes))
    return BulkWork(
        task=task,
        activity="generating",
        compute=partial(_generate_chunk, task, sizes, seed, count, labeller, strict),
        items_after=lambda done: range(-(-done // CHUNK), -(-count // CHUNK)),
        resume_key={
            "sizes": list(sizes),
            "seed": seed,
            "labeller": labeller or task.labellers[0],
            "strict": strict,
        },
        total=count,
    )


def _generate_chunk(
    task: Task,
    sizes: Sequence[int],
    seed: int,
    count: int,
    labeller: str | None,
    strict: bool,
    k: int,
) -> list[Example]:
    """Chunk number k of `count` examples: those from number `k * CHUNK` on."""
    rng = np.random.default_rng([seed, GENERATED, k])
    drawn_sizes = rng.choice(np.asarray(sizes), CHUNK)[: count - k * CHUNK]
    examples = [
        Example(task.sample(rng, 1, int(n))[0], source=f"instance {number}")
        for number, n in enumerate(drawn_sizes, k * CHUNK + 1)
    ]
    return label_examples(task, labeller, examples, strict=strict)
