"""Answers by an algorithm: `ptrnet.label` takes instances, `ptrnet.generate` draws instances."""

from collections.abc import Iterable, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any, overload

import numpy as np

from ptrnet import labellers, tasks
from ptrnet.data import formats
from ptrnet.data.checks import check_matrix, check_sizes
from ptrnet.data.dataset import instances_of
from ptrnet.errors import InputError, MissingExtraError, check_int, short
from ptrnet.geometry.distances import EXPLICIT
from ptrnet.parallel import LOCAL
from ptrnet.run import CHUNK, Memory, Result, Sink, Source, report_unproved, run
from ptrnet.sinks import open_instances, sink_for
from ptrnet.tasks.base import Task, with_ends
from ptrnet.types import GENERATED, Dataset, Ends, Example, Indices, Sizes, TourRules

LABELLING, GENERATING = "labelling", "generating"  # verbs of runs


def label(
    task: str | Task,
    file: Any,
    *,
    output: str | Path | None = None,
    labeller: str | None = None,
    strict: bool = False,
    start: int | None = None,
    end: int | None = None,
    open: bool = False,
    jobs: int = 1,
    backend: str = LOCAL,
) -> Any:
    """Answer instances by an algorithm, and return or write them.

    Answers that the file already has are replaced. Random numbers of the algorithms have a fixed
    seed, so the answers are the same for any `jobs` and `backend`. If a call that reads a file and
    writes a .txt, .jsonl or .parquet file is stopped, its finished chunks stay in
    `OUTPUT.partial/`. The same call then resumes from there.

    Args:
        task: the name of a task or a problem, such as "hull", "tsp" or "knapsack"; or a task with
            other settings, such as `ptrnet.load(...).task`.
        file: the path of the instances, in any format; "-" is standard input. Or the instances
            themselves, one or many, in any form that `Solver.solve` takes, or a `Dataset`. For the
            task "tsp", an array `(n, n)` of three rows or more is a matrix of distances.
        output: the file for instances and answers. Its extension is the format; "-" is standard
            output. Answers to a .tsp file go to a .tour file.
        labeller: an algorithm in `task.facts.labellers`. None: the first in that list.
        strict: whether to raise an error if the labeller promises a proof but finds no proof. If
            False, the best answer that was found is kept. Unproved answers are marked by
            `"proved": false` in .jsonl and .parquet files, and counted on standard error.
        start: for task "tsp", the city where each tour begins: its id if the file is a .tsp file,
            else its 0-based index; None for any city.
        end: the city where each tour ends, given like `start`.
        open: for task "tsp", whether the tour does not return from its last city to its first.
        jobs: number of processes, 1 or more; -1 for one per core.
        backend: where the processes run: "local", or a cluster of "dask" or "ray".

    Returns:
        None if a file is written. Otherwise a `Dataset`. Its rows unpack as pairs of inputs
        `(n, d)` and outputs: 0-based indices `(m,)`, or triangles `(t, 3)`. If `file` is a single
        instance, the call returns one such row instead of a `Dataset`.

    Raises:
        InputError: an argument is unknown, an instance cannot be used, the algorithm does not take
            the instance, or `output` cannot hold the instance. The message names file and line. Or
            the call is `strict` and an answer has no proof. Or `output` cannot be written, or
            belongs to another unfinished job. After any of these errors, no file is written.
        MissingExtraError: the format, labeller or backend needs a package that is not installed.

    Examples:
        >>> inputs, outputs = ptrnet.label("hull", [[0, 0], [1, 0], [0, 1], [0.2, 0.2]])
        >>> outputs
        array([0, 1, 2])
    """
    task = tasks.get(task) if isinstance(task, str) else task
    if not isinstance(task, Task):
        raise InputError(f"label: expected a task or its name first, got {short(task)}")
    target = None if output is None else fspath(output)
    ends = Ends(start, end, open)
    is_one = False
    if isinstance(file, str | PathLike):
        source, sink = open_labels(task, fspath(file), target, labeller, strict, ends)
    else:
        labellers.check_labeller(task, labeller)
        data, is_one = _instances(file, task, target, ends)
        source = Source(data.chunks(CHUNK), len(data), None)
        sink = sink_for(target, source, task, LABELLING, {})
    labelled = label_source(task, source, sink, labeller, strict, jobs, backend)
    return labelled[0] if labelled is not None and is_one else labelled


def open_labels(
    task: Task,
    path: str,
    target: str | None,
    labeller: str | None,
    strict: bool,
    ends: Ends,
    whole: bool = False,
) -> tuple[Source, Sink[Any]]:
    """Return the instances of a file as a source, and the sink for their labels.

    See `label` for the arguments and errors, and `open_instances` for `whole`.
    """
    labellers.check_labeller(task, labeller)
    source = open_instances(task, path, target, ends, whole)
    key = {"labeller": labeller or task.facts.labellers[0], "strict": strict, "ends": list(ends)}
    return source, sink_for(target, source, task, LABELLING, key)


def label_source(
    task: Task,
    source: Source,
    sink: Sink[Result],
    labeller: str | None,
    strict: bool,
    jobs: int,
    backend: str,
) -> Result:
    """Label the instances of a source, give them to a sink, and return its result. See `label`."""
    function = partial(label_dataset, task, labeller, strict=strict)
    return _run(function, source, sink, LABELLING, jobs, backend)


def _instances(values: Any, task: Task, target: str | None, ends: Ends) -> tuple[Dataset, bool]:
    """Return instances in memory as a dataset, and whether there was only one instance.

    Refuse what the target could not hold before any work is done.
    """
    if task.facts.takes_matrices and _is_matrix(values):
        dist = check_matrix(values, task, "matrix")
        values = [Example(dist, source="matrix", distance=EXPLICIT)]
        data, is_one = Dataset.of(values), True
    else:
        data, is_one = instances_of(values, task)
    rows = with_ends(data, task, ends)
    if target is not None:
        rows = formats.output_format(target, f"drawn.{task.facts.stdout_format}").checked(
            rows, task
        )
    return Dataset.of(rows), is_one


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
) -> Dataset: ...


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
) -> Dataset | None:
    """Draw random instances, answer them by an algorithm, and return or write both.

    Example number k depends only on the task, the sizes, the labeller and the seed, not on `count`,
    `jobs` or `backend`. If a call that writes a .txt, .jsonl or .parquet file is stopped, its
    finished chunks stay in `OUTPUT.partial/`. The same call then resumes from there.

    Args:
        task: the name of a task or a problem, such as "hull", "tsp" or "knapsack"; or a task with
            other settings, such as `ptrnet.load(...).task`.
        n: the numbers of elements: 50, "5-50" or "5,10,20-30"; 1 to 100,000, and at least 3 for
            "delaunay". The size of each instance is drawn uniformly.
        count: number of examples, 1 or more.
        output: the file. Its extension is the format; "-" is standard output.
        labeller: the algorithm, as in `label`.
        strict: as in `label`.
        seed: seed of the random numbers, 0 or more.
        jobs: number of processes, 1 or more; -1 for one per core.
        backend: where the processes run: "local", or a cluster of "dask" or "ray".

    Returns:
        None if a file is written. Otherwise a `Dataset`. Its rows unpack as pairs of inputs
        `(n, d)` and outputs: 0-based indices `(m,)`, or triangles `(t, 3)`.

    Raises:
        InputError: an argument is out of its range or unknown, or instances are too large for the
            labeller. Or the call is `strict` and an answer has no proof. Or the file cannot be
            written, or belongs to another unfinished job. After any of these errors, no file is
            written.
        MissingExtraError: the format, labeller or backend needs a package that is not installed.

    Examples:
        >>> data = ptrnet.generate("hull", n="5-50", count=1000, seed=1)
        >>> points, hull = data[0]
    """
    task = tasks.get(task) if isinstance(task, str) else task
    function, source, key = generation(task, Sizes(n), count, seed, labeller, strict)
    sink = sink_for(None if output is None else fspath(output), source, task, GENERATING, key)
    data: Dataset | None = _run(function, source, sink, GENERATING, jobs, backend)
    return data


def generate_dataset(
    task: Task,
    sizes: Sequence[int],
    count: int,
    seed: int,
    labeller: str | None = None,
    jobs: int = 1,
    activity: str = "generating",
) -> Dataset:
    """Return the examples that `generate` returns. The progress bar shows the text `activity`."""
    function, source, _ = generation(task, sizes, count, seed, labeller)
    return run(source, function, Memory(), activity, jobs)


def generation(
    task: Task,
    sizes: Sequence[int],
    count: int,
    seed: int,
    labeller: str | None = None,
    strict: bool = False,
) -> tuple["partial[Dataset]", Source, dict[str, Any]]:
    """Return the parts of the job that `generate` runs: a function, a source and a key.

    The source yields the numbers of all chunks. The function makes the chunk of a given number. The
    key has the options that decide the result.

    Raises:
        InputError: an argument is out of its range or unknown, or a size is too large for the
            labeller.
        MissingExtraError: the labeller needs a package that is not installed.
    """
    check_sizes(sizes, task)
    count, seed = check_int("count", count, 1), check_int("seed", seed, 0)
    is_answered = task.facts.drawn_in_order and labeller is None
    if not is_answered:
        labellers.check_labeller(task, labeller)
        labellers.check_max_elements(task, labeller, max(sizes))
        labeller = labeller or task.facts.labellers[0]
    function = partial(_generate_chunk, task, sizes, seed, count, labeller, strict)
    key = {
        "sizes": list(sizes), "count": count, "seed": seed, "labeller": labeller, "strict": strict
    }  # fmt: skip
    return function, Source(range(-(-count // CHUNK)), count, {}), key


def label_dataset(
    task: Task, labeller: str | None, data: Iterable[Example], *, strict: bool = False
) -> Dataset:
    """Return the instances with an algorithm's answers.

    If the labeller promises a proof but finds no proof, `extra["proved"]` of the example is False.

    Raises:
        InputError: the algorithm does not take an instance, finds no answer, or finds no proof
            although the call is `strict`. The message begins with the instance's source.

    Examples:
        >>> labelled = label_dataset(tasks.get("tsp"), "exact", data)
    """
    data = Dataset.of(data)
    # A labeller takes a batch whose instances share the size, the distance and the rules.
    groups: dict[tuple[int, str, TourRules], list[int]] = {}
    shared = zip(data.sizes.tolist(), data.column("distance"), data.column("rules"), strict=True)
    for row, group in enumerate(shared):
        groups.setdefault(group, []).append(row)
    name = labeller or task.facts.labellers[0]
    answers: list[Indices | None] = [None] * len(data)
    extras = list(data.column("extra"))
    for (_, distance, rules), rows in groups.items():
        inputs = np.stack([data.inputs(row) for row in rows])
        try:
            found, proved = labellers.label_with_proof(task, inputs, labeller, distance, rules)
        except InputError as error:
            raise InputError(f"{data[rows[0]].source}: {error}") from None
        for row, outputs, is_proved in zip(rows, found, proved, strict=True):
            if not len(outputs):
                raise InputError(f"{data[row].source}: {labellers.failure(name)}")
            if strict and not is_proved:
                raise InputError(f"{data[row].source}: {labellers.unproved(name)}")
            answers[row] = outputs
            if task.facts.may_be_unproved:  # a mark from the file belongs to the former answer
                extras[row] = {key: v for key, v in extras[row].items() if key != "proved"}
            if not is_proved:
                extras[row] = {**extras[row], "proved": False}
    return data.with_answers(answers).with_columns(extra=extras)


def reference_answer(task: Task, example: Example) -> tuple[Indices | None, bool]:
    """Return the answer of the task's first labeller, and whether the answer is known to be best.

    The boolean is False if the labeller is a heuristic, or if a promised proof is missing. The
    answer is None if the task has no labeller or the labeller is not installed. The answer is
    also None if the labeller does not take that many elements or finds no answer.
    """
    try:
        labellers.check_labeller(task, None)
        labellers.check_max_elements(task, None, len(example.inputs))
    except (InputError, MissingExtraError):
        return None, False
    (outputs,), proved = labellers.label_with_proof(
        task, example.inputs[None], None, example.distance, example.rules
    )
    is_best = bool(proved[0]) and not labellers.is_heuristic(task.facts.labellers[0])
    return (outputs if len(outputs) else None), is_best


def _generate_chunk(
    task: Task,
    sizes: Sequence[int],
    seed: int,
    count: int,
    labeller: str | None,
    strict: bool,
    number: int,
) -> Dataset:
    """Return one chunk of a job that draws `count` examples in all.

    The first example of the chunk has the index `number * CHUNK`.
    """
    rng = np.random.default_rng([seed, GENERATED, number])
    first = number * CHUNK
    # Draw the sizes of a full chunk even if the last chunk has fewer examples, so that examples do
    # not depend on `count`.
    drawn_sizes = rng.choice(np.asarray(sizes), CHUNK)[: count - first]
    drawn = []
    for k, n in enumerate(drawn_sizes, first + 1):
        (inputs,), answers = labellers.draw(task, rng, 1, int(n), labeller)
        outputs = None if answers is None else answers[0]
        drawn.append(Example(inputs, outputs, source=f"instance {k}"))
    data = Dataset.of(drawn)
    is_answered = task.facts.drawn_in_order and labeller is None
    return data if is_answered else label_dataset(task, labeller, data, strict=strict)


def _is_matrix(values: Any) -> bool:
    """Whether the values are n rows of n numbers, with n of 3 or more."""

    def has_items(part: Any) -> bool:  # an array without axes has none
        return isinstance(part, list | np.ndarray) and np.iterable(part)

    if not has_items(values) or len(values) < 3:
        return False
    rows_fit = all(has_items(row) and len(row) == len(values) for row in values)
    return rows_fit and not np.iterable(values[0][0])


def _run(
    function: "partial[Dataset]",
    source: Source,
    sink: Sink[Result],
    activity: str,
    jobs: int,
    backend: str,
) -> Result:
    """Run, and report unproved answers on standard error."""
    result = run(source, function, sink, activity, jobs, backend)
    report_unproved(sink.unproved)
    return result
