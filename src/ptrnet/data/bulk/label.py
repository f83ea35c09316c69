"""Answers by an algorithm: `ptrnet.label` for a file or arrays, `label_examples` for examples."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from ptrnet import labellers, tasks
from ptrnet.data import formats
from ptrnet.data.bulk import engine
from ptrnet.data.bulk.engine import BulkWork, chunks, content_of, count_instances
from ptrnet.data.examples import instances_of
from ptrnet.errors import InputError, short
from ptrnet.files import checksum
from ptrnet.parallel import LOCAL, check_backend, check_jobs
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Indices


def label(
    task: str | Task,
    file: Any,
    *,
    output: str | Path | None = None,
    labeller: str | None = None,
    strict: bool = False,
    jobs: int = 1,
    backend: str = LOCAL,
) -> Any:
    """Answers instances by an algorithm, and returns or writes them.

    Answers that the file has are replaced. The algorithms draw nothing at random, and the answers
    are the same for any `jobs` and `backend`. Where a call that writes a file of lines (.txt,
    .jsonl, .parquet) is stopped, what is done stays beside the file, and the same call goes on.

    Args:
        task: "hull", "delaunay", "tsp" or "sort"; or a task with other settings, as
            `ptrnet.load(...).task`.
        file: the path of the instances, in any format; "-" is standard input. Or the instances
            themselves, one or many, in any form that `Solver.solve` takes.
        output: the file for instances and answers; its extension is the format, "-" is standard
            output. Answers to a .tsp file go to a .tour.
        labeller: the algorithm, one of `task.labellers`; the task's first when None.
        strict: whether an answer that is not proved, where the labeller promises a proof, is an
            error. Else it is the best that was found, `"proved": false` says so in .jsonl and
            .parquet, and a line on standard error counts them.
        jobs: processes, 1 or more; -1 for one a core.
        backend: where they run: "local", or a cluster of "dask" or "ray".

    Returns:
        Pairs of inputs `(n, d)` and outputs, 0-based indices `(m,)` or triangles `(t, 3)`, where
        `output` is None; `ptrnet.fit` takes pairs of indices. What else a file says of an
        instance, as its distance in TSPLIB, is not in the pair. For one instance, that is given
        itself, the pair alone. None where a file is written.

    Raises:
        InputError: an argument that is unknown; an instance that cannot be used, that the
            algorithm does not take, or that `output` cannot hold, by file and line; a file that
            cannot be written, or the beginning of other work in its place. No file is made then.
        MissingExtraError: format, labeller or backend needs a package that is not installed.
    """
    task = tasks.get(task) if isinstance(task, str) else task
    if not isinstance(task, Task):
        raise InputError(f"label: expected a task or its name first, got {short(task)}")
    task.check_labeller(labeller)
    path = None if output is None else fspath(output)
    if path is not None:
        formats.check_output(path, task)
    check_jobs(jobs)
    check_backend(backend)
    if not isinstance(file, str | PathLike):
        examples, is_one = instances_of(file, task)
        work = _work_in_memory(task, examples, path, labeller, strict)
        pairs = engine.run(work, path, None, jobs, backend)
        return pairs[0] if pairs and is_one else pairs
    source = fspath(file)
    if source != "-":
        formats.check_input(source)
        formats.check_not_overwritten(source, path or "-")
    return engine.run(_work(task, source, path, labeller, strict), path, source, jobs, backend)


def label_examples(
    task: Task, labeller: str | None, examples: Sequence[Example], *, strict: bool = False
) -> list[Example]:
    """The examples with an algorithm's answers; those of one size and distance are a batch.

    The `extra` of an answer that is not proved has `proved`: False.

    Raises:
        InputError: the algorithm does not take an example, finds no answer to it, or no proof where
            that is `strict`; the message begins with its source.
    """
    groups: dict[tuple[int, str], list[int]] = {}
    for i, example in enumerate(examples):
        groups.setdefault((len(example.inputs), example.distance), []).append(i)
    labelled = list(examples)
    for (_, distance), indices in groups.items():
        inputs = np.stack([examples[i].inputs for i in indices])
        try:
            answers, proved = task.label_with_proof(inputs, labeller, distance)
        except InputError as error:
            raise InputError(f"{examples[indices[0]].source}: {error}") from None
        for i, outputs, is_proved in zip(indices, task.unpad(answers), proved, strict=True):
            name = labeller or task.labellers[0]
            if not len(outputs):
                raise InputError(f"{examples[i].source}: {labellers.failure(name)}")
            if strict and not is_proved:
                raise InputError(f"{examples[i].source}: {labellers.unproved(name)}")
            labelled[i] = _labelled(examples[i], outputs, bool(is_proved), task)
    return labelled


def _labelled(example: Example, outputs: Indices, is_proved: bool, task: Task) -> Example:
    """The example with another answer."""
    extra = dict(example.extra)
    if task.may_be_unproved:
        extra.pop("proved", None)  # was said of a former answer
    if not is_proved:
        extra["proved"] = False
    return example._replace(outputs=outputs, extra=extra)


def _work(
    task: Task, source: str, output: str | None, labeller: str | None, strict: bool
) -> BulkWork[list[Example]]:
    def chunks_after(done: int) -> Iterator[list[Example]]:
        examples = formats.read(source, task)
        if output is not None:
            examples = formats.output_format(output, source).checked(examples, task)
        return chunks(islice(examples, done, None))

    name = labeller or task.labellers[0]
    can_be_reread = source != "-" and Path(source).is_file()  # a pipe is read but once
    return BulkWork(
        task=task,
        activity="labelling",
        compute=partial(label_examples, task, labeller, strict=strict),
        items_after=chunks_after,
        resume_key=_resume_key(Path(source), name, strict) if can_be_reread else None,
        total=count_instances(source) if can_be_reread else None,
        is_checked=True,
        upgrade=partial(_upgrade, Path(source)),
    )


def _work_in_memory(
    task: Task, examples: list[Example], output: str | None, labeller: str | None, strict: bool
) -> BulkWork[list[Example]]:
    """The work on instances that are given themselves; where it is stopped, nothing is kept."""

    def chunks_after(done: int) -> Iterator[list[Example]]:
        if output is not None:
            return chunks(formats.output_format(output, None).checked(examples[done:], task))
        return chunks(examples[done:])

    return BulkWork(
        task=task,
        activity="labelling",
        compute=partial(label_examples, task, labeller, strict=strict),
        items_after=chunks_after,
        resume_key=None,
        total=len(examples),
        is_checked=True,
    )


def _resume_key(path: Path, labeller: str, strict: bool) -> dict[str, Any]:
    """What decides the answers: the file's content as it is now, and the labeller."""
    return {**content_of(path), "labeller": labeller, "strict": strict}


def _upgrade(path: Path, resume_key: dict[str, Any]) -> dict[str, Any]:
    """A key that has a file by its size and time, as it would be with the file's content."""
    stat = path.stat()
    if (resume_key.get("bytes"), resume_key.get("changed")) == (stat.st_size, stat.st_mtime_ns):
        return {"sha256": checksum(path), **resume_key}
    return resume_key
