"""Solve and evaluate whole files in one or more processes. Answer a pipe's lines immediately."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ptrnet import tasks
from ptrnet.data import checks, formats
from ptrnet.data.dataset import Dataset, chunks_of
from ptrnet.data.groups import shared_value
from ptrnet.data.infer_groups import warned_of_ids
from ptrnet.data.tables import Columns, Sets
from ptrnet.errors import InputError
from ptrnet.evaluation import Evaluation, check_room_for_scores
from ptrnet.labels import generation
from ptrnet.parallel import check_processes
from ptrnet.run import CHUNK, Sink, Source, Whole, run
from ptrnet.settings import to_mapping
from ptrnet.sinks import Printed, can_resume, file_sink, file_source
from ptrnet.sizes import Sizes
from ptrnet.solver.predict import Predictor
from ptrnet.solver.scoring import Evaluator, element_probabilities
from ptrnet.tasks import tsp
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import own_task
from ptrnet.tasks.tsp import with_ends
from ptrnet.types import Ends, Example

if TYPE_CHECKING:
    from ptrnet.solver.solver import Solver

AnyPredictor = TypeVar("AnyPredictor", bound=Predictor)


def _for_many(predictor: AnyPredictor, count: int | None) -> AnyPredictor:
    """Return the predictor with `always_compiled` set for `count` instances.

    If `count` is None (unknown), or more than one chunk, `always_compiled` is True.
    """
    return replace(predictor, always_compiled=count is None or count > CHUNK)


def solve_file(
    solver: "Solver",
    predictor: Predictor,
    path: str,
    target: str,
    ends: Ends,
    jobs: int,
    backend: str,
    columns: Columns,
    probability: str,
) -> None:
    """Answer the instances of a file, and write the answers; see `Solver.solve_file`."""
    task, activity = solver.task, predictor.activity
    check_ends(predictor, ends)
    check_processes(jobs, backend)
    instances, sets = instances_to_solve(task, path, target, ends, columns)
    sink: Sink[None]
    if path == target == "-" and sets is None:
        check_no_probability(probability)
        waiting = solver.trained_range.warned(
            _waiting(instances, task), predictor.decoder, at_once=True
        )
        source = Source(waiting, None, None, path)
        run(source, predictor, Printed(task))
        return
    if sets is None:
        check_no_probability(probability)
        source = file_source(path, chunks_of(instances, task, CHUNK), target)
        key = {} if source.key is None else {**predictor.key(), "ends": list(ends)}
        sink = file_sink(target, source, task, activity, key)
    else:
        data = Dataset.of(instances, task.item_size)
        source = Source(data.chunks(CHUNK), len(data), None, path)
        sink = Whole(table_writer(predictor, sets, target, probability))
    source = source._replace(chunks=solver.trained_range.warned(source.chunks, predictor.decoder))
    run(source, _for_many(predictor, source.num_rows), sink, activity, jobs, backend)


def check_ends(predictor: Predictor, ends: Ends) -> None:
    """Raise InputError if the task or the search cannot obey the given ends of tours."""
    tsp.check_ends(predictor.task, ends)
    if not predictor.constrained and ends != Ends():
        raise InputError("start, end and open need constrained decoding")
    if predictor.decoder.needs_circular and None not in (ends.start, ends.end):
        raise InputError(f"{predictor.decoder.name} decoding does not keep both ends of a tour")


def instances_to_solve(
    task: Task, path: str, target: str, ends: Ends, columns: Columns
) -> tuple[Iterable[Example], Sets | None]:
    """Return the instances of a file, and its sets if the file is a long table.

    Raises:
        InputError: the file cannot be read, the target cannot be written or cannot hold the
            instances with their answers, or an instance cannot be used. If the file is not a long
            table, instances are read and checked while you iterate.
    """
    formats.check_output(target, task)
    if path != "-":
        formats.check_input(path)
    if sets := formats.open_sets(path, columns):
        return with_ends(sets.dataset(task, with_answers=False), task, ends), sets
    formats.check_not_overwritten(path, target)
    instances = with_ends(formats.read(path, task), task, ends)
    return formats.output_format(target, path).checked(instances, task), None


def table_writer(
    predictor: Predictor, sets: Sets, target: str, probability: str
) -> Callable[[Sequence[Example]], None]:
    """Return a function that writes the solved sets of a table.

    If the target is a table or standard output, the function writes the table with a column of
    answers. If `probability` is not empty, it also writes a column of this name, with the
    probability of each element. For other targets, the function writes a line for each set.

    Raises:
        InputError: the table already has a column with the name of a new column, or the model or
            the target has no probabilities.
    """
    task = predictor.task
    if target != "-" and not formats.writes_table(target, sets.table.source):
        check_no_probability(probability)
        sets.columns.check_keys()
        return lambda solved: formats.write(target, solved, task)
    kind = getattr(task, "kind", "")
    taken = (*sets.table.columns, sets.answer_column(kind))
    if probability:
        own_task(task)
        if probability in taken:
            raise InputError(
                f'{sets.table.source}: has a column "{probability}" already; name another column '
                "for the probabilities (--probability)"
            )

    def write(solved: Sequence[Example]) -> None:
        answers = (row.outputs for row in solved if row.outputs is not None)
        table = sets.answered(answers, kind)
        if probability:
            of_sets = element_probabilities(predictor.model, own_task(task), Dataset.of(solved))
            column = sets.in_rows(of_sets).tolist()
            table = replace(table, columns={**table.columns, probability: column})
        formats.write_table(target, table)

    return write


def check_no_probability(probability: str) -> None:
    """Refuse the name of a column of probabilities if the output is not a long table."""
    if probability:
        raise InputError(
            "probability: needs a long table (set_id), and an output that is one: .csv, .tsv or "
            ".parquet"
        )


def evaluate_file(
    solver: "Solver",
    evaluator: Evaluator,
    path: str,
    target: str | None,
    jobs: int,
    backend: str,
    by: str | None,
    columns: Columns,
) -> Evaluation:
    """Compare the model's answers with the answers in a file; see `Solver.evaluate_file`."""
    task = solver.task
    if target is not None:
        formats.check_keeps_extra(target, task)
        columns.check_keys()
    check_processes(jobs, backend)
    if path != "-":
        formats.check_input(path)
    examples = _known(warned_of_ids(formats.read(path, task, columns)), task, target, by)
    chunks = solver.trained_range.warned(chunks_of(examples, task, CHUNK), evaluator.decoder)
    source = file_source(path, chunks, target)
    if columns:  # a line of a long table is an element, so `num_rows` does not count instances
        source = source._replace(num_rows=None)
    function = _for_many(evaluator, source.num_rows)
    key = {} if source.key is None else {**evaluator.key(), **to_mapping(columns)}
    # A long table has groups only if the user named their column, whatever its other columns are.
    groups = None if columns and not columns.group else Columns(group=columns.group)
    return _evaluation(task, function, source, target, key, jobs, backend, by, groups)


def evaluate_random(
    solver: "Solver",
    evaluator: Evaluator,
    count: int,
    n: str | int | None,
    points: str | None,
    seed: int,
    target: str | None,
    jobs: int,
    backend: str,
) -> Evaluation:
    """Compare the model's and an algorithm's answers to random instances.

    The algorithm is the task's first labeller. See `Solver.evaluate_random`.
    """
    if n is None and "n" not in solver.trained:
        raise InputError(
            "n: expected sizes such as 5-50, because the model's files do not say on which sizes "
            "it was trained"
        )
    task = solver.task if points is None else tasks.with_points(solver.task, points)
    if target is not None:
        formats.check_keeps_extra(target, task)
    check_processes(jobs, backend)
    sizes = Sizes(solver.trained["n"] if n is None else n)
    draw, source, key = generation(task, sizes, count, seed)
    rng = np.random.default_rng(seed)
    # The evaluator itself does not warn. So draw an instance of the smallest size and one of the
    # largest size. Warn if the model was not trained on such instances.
    for size in (min(sizes), max(sizes)):
        solver.trained_range.warn_of([Example(task.sample(rng, 1, size)[0])], evaluator.decoder)
    if can_resume(target):
        key |= {**to_mapping(task), **evaluator.key()}
    function = partial(_evaluate_drawn, draw, _for_many(evaluator, count))
    return _evaluation(solver.task, function, source, target, key, jobs, backend)


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
) -> Evaluation:
    """Run an evaluation, in memory or with a file for the results, and return the measures.

    `groups` has the field of groups in the file of results; None if there are no groups.
    """
    activity = Evaluator.activity
    if target is None:
        return run(source, function, Evaluation(task, by=by), activity, jobs, backend)
    sink = file_sink(target, source, task, activity, key)
    run(source, function, sink, activity, jobs, backend)
    return Evaluation(task, chunks_of(formats.read(target, task, groups), task, CHUNK), by)


def _known(
    examples: Iterable[Example], task: Task, target: str | None, by: str | None
) -> Iterator[Example]:
    """Check each example, and yield it.

    Raises:
        InputError: an example has no answer, no field `by`, or a key with the name of a score.
    """
    for example in examples:
        checks.required_answer(example, task)
        if by is not None:
            shared_value(example, by, "by")
        if target is not None:
            check_room_for_scores(task, [example])
        yield example


def _evaluate_drawn(draw: Callable[[int], Dataset], evaluator: Evaluator, number: int) -> Dataset:
    """Draw chunk `number` and evaluate it in the same process."""
    return evaluator(draw(number))


_END = EOFError()  # the reading thread sends this error after the last example


def _waiting(examples: Iterable[Example], task: Task) -> Iterator[Dataset]:
    """Read examples in a thread, and yield the examples that were read since the last chunk.

    So examples that are read while a batch is answered share the next batch. If reading fails, the
    examples that were read before the failure are yielded first.
    """
    waiting: Queue[Example | Exception] = Queue(CHUNK)

    def read() -> None:
        try:
            for example in examples:
                waiting.put(example)
        except Exception as error:
            waiting.put(error)
        else:
            waiting.put(_END)

    Thread(target=read, daemon=True).start()
    while True:
        chunk: list[Example] = []
        error: Exception | None = None
        while error is None and (not chunk or not waiting.empty()):
            item = waiting.get()
            if isinstance(item, Exception):
                error = item
            else:
                chunk.append(item)
        if chunk:
            yield Dataset.of(chunk, task.item_size)
        if error is _END:
            return
        if error is not None:
            raise error
