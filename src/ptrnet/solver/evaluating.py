"""Compare a model's answers with known answers: in memory, in files, and to random instances."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ptrnet import tasks
from ptrnet.data import checks, formats
from ptrnet.data.columns import Columns
from ptrnet.data.dataset import chunks_of
from ptrnet.data.groups import shared_value, warned_of_ids
from ptrnet.evaluation import Evaluation, check_room_for_scores
from ptrnet.labels import generation
from ptrnet.run import CHUNK, Source, run
from ptrnet.settings import to_mapping
from ptrnet.sinks import can_resume, file_source, sink_for
from ptrnet.solver.predict import Predictor
from ptrnet.solver.scoring import scored
from ptrnet.solver.trained_range import TrainedRange
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Example

ACTIVITY = "evaluating"


def evaluated(predictor: Predictor, data: Dataset) -> Dataset:
    """Answer examples. Return them with the model's `answer` and its scores in `extra`."""
    return scored(predictor.model, predictor.task, data, predictor(data))


def evaluate_file(
    predictor: Predictor,
    trained_range: TrainedRange,
    path: str,
    target: str | None,
    by: str | None,
    columns: Columns,
    jobs: int,
    backend: str,
) -> Evaluation:
    """Compare the model's answers with the answers in a file; see `Solver.evaluate_file`."""
    task = predictor.task
    if target is not None:
        formats.check_keeps_extra(target, task)
        columns.check_keys()
    if opened := formats.open_sets(path, columns, task):
        rows: Iterable[Example] = opened[0]
        columns = opened[2]
    else:
        rows = formats.read_instances(path, task, columns)
    weight = getattr(columns, "weight", "")
    examples = _known(warned_of_ids(rows), task, target, by, weight)
    chunks = trained_range.warned(chunks_of(examples, CHUNK), predictor.decoder)
    source = file_source(path, chunks, target)
    if columns:  # a line of a long table is an element, so `num_rows` does not count instances
        source = source._replace(num_rows=None)
    function = partial(evaluated, predictor.for_many(source.num_rows))
    key = {} if source.key is None else {**predictor.key(), **to_mapping(columns)}
    # A long table has groups only if the user named their column, whatever its other columns are.
    groups = None if columns and not columns.group else Columns(group=columns.group)
    return _evaluation(task, function, source, target, key, jobs, backend, by, groups, weight)


def evaluate_drawn(
    predictor: Predictor,
    trained_range: TrainedRange,
    task: Task,
    sizes: Sequence[int],
    count: int,
    seed: int,
    target: str | None,
    jobs: int,
    backend: str,
) -> Evaluation:
    """Compare the model's answers to drawn instances with those that `ptrnet.generate` gives them.

    With the same seed, `ptrnet.generate` draws the same instances. If there is a `target`, the
    examples are written to it, each with the model's `answer` and its scores.

    Raises:
        InputError: as in `Solver.evaluate_file` and `ptrnet.generate`.
    """
    if target is not None:
        formats.check_keeps_extra(target, task)
    draw, source, key = generation(task, sizes, count, seed)
    # Other processes draw the instances, so warn of one of the smallest and of the largest size.
    rng = np.random.default_rng(seed)
    for size in (min(sizes), max(sizes)):
        trained_range.warn_of([Example(task.sample(rng, 1, size)[0])], predictor.decoder)
    if can_resume(target):
        key |= {**tasks.settings_of(task), **predictor.key()}
    function = partial(_evaluate_drawn, draw, predictor.for_many(count))
    return _evaluation(predictor.task, function, source, target, key, jobs, backend)


def _evaluation(
    task: Task,
    function: Callable[[Any], Dataset],
    source: Source,
    target: str | None,
    key: dict[str, Any],
    jobs: int,
    backend: str,
    by: str | None = None,
    groups: Columns | None = None,
    weight: str = "",
) -> Evaluation:
    """Run an evaluation, in memory or with a file for the results, and return the measures.

    `groups` has the field of groups in the file of results; None if there are no groups. `weight`
    is the key of weights in this file; empty if there are no weights.
    """
    if target is None:
        evaluation = Evaluation(task, by=by, has_weights=bool(weight))
        return run(source, function, evaluation, ACTIVITY, jobs, backend)
    sink = sink_for(target, source, task, ACTIVITY, key)
    run(source, function, sink, ACTIVITY, jobs, backend)
    examples = formats.read(target, task, groups)
    if weight:
        examples = (row.replace(weight=row.extra[weight]) for row in examples)
    return Evaluation(task, chunks_of(examples, CHUNK), by, bool(weight))


def _known(
    examples: Iterable[Example], task: Task, target: str | None, by: str | None, weight: str
) -> Iterator[Example]:
    """Check each example, and yield it. For a file of results, `extra` gets its weight.

    Raises:
        InputError: an example has no answer, no field `by`, or a key with the name of a score.
    """
    for example in examples:
        checks.required_answer(example, task)
        if by is not None:
            shared_value(example, by, "by")
        if target is not None:
            check_room_for_scores(task, [example])
            if weight:
                example = example.replace(extra={**example.extra, weight: example.weight})
        yield example


def _evaluate_drawn(draw: Callable[[int], Dataset], predictor: Predictor, number: int) -> Dataset:
    """Draw chunk `number` and evaluate it in the same process."""
    return evaluated(predictor, draw(number))
