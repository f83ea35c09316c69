"""Open files for `ptrnet.solver.solver.solve`: the source of their instances, and a sink."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from queue import Queue
from threading import Thread
from typing import Any

from ptrnet.data import formats
from ptrnet.data.tables import (
    Columns,
    Table,
    answer_column,
    answered,
    sets_for_task,
    with_column,
)
from ptrnet.errors import InputError
from ptrnet.run import CHUNK, Memory, Sink, Source, Whole
from ptrnet.sinks import Printed, file_sink, open_instances
from ptrnet.solver.predict import Predictor
from ptrnet.solver.scoring import element_probabilities
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import own_task
from ptrnet.tasks.tsp.ends import check_ends, with_ends
from ptrnet.types import Dataset, Ends, Example, Floats

ACTIVITY = "solving"


def open_file(
    predictor: Predictor,
    path: str,
    target: str | None,
    ends: Ends,
    columns: Columns,
    probability: str = "",
    whole: bool = False,
) -> tuple[Source, Sink[Any]]:
    """Return the instances of a file as a source, and the sink for their answers.

    Args:
        predictor: what will answer them.
        path: the file; "-" is standard input.
        target: the file for the answers; "-" is standard output, None keeps them in memory.
        ends: the ends of all tours.
        columns: the columns of a long table.
        probability: the name of a column of probabilities to write; empty for no such column.
        whole: whether all answers are needed at the end, in one run, for a picture or a document.

    Raises:
        InputError: the file cannot be read, the target cannot be written or cannot hold the
            instances with their answers, or an instance cannot be used. If the file is not a long
            table, instances are read and checked while you iterate.
    """
    task, like = predictor.task, target or "-"
    _check_ends(predictor, ends)
    formats.check_output(like, task)
    if path != "-":
        formats.check_input(path)
    if opened := formats.open_table(path, columns):
        # `columns` name the column to write. Only formats that fix the names of columns have true
        # answers, which a picture shows. Their grades would be written beside the model's answers.
        known = replace(sets_for_task(*opened, task, with_answers=not columns), grades=None)
        data = Dataset.of(with_ends(known, task, ends))
        source = Source(data.chunks(CHUNK), len(data), None, path)
        if target is not None:
            return source, Whole(_table_writer(predictor, *opened, target, probability))
        _check_no_probability(probability)
        return source, Memory()
    _check_no_probability(probability)
    if path == target == "-" and not whole:
        source = open_instances(task, path, target, ends, size=1)
        return source._replace(chunks=_waiting(source.chunks, task)), Printed(task)
    source = open_instances(task, path, like, ends, whole)
    if target is None:
        return source, Memory()
    key = {} if source.key is None else {**predictor.key(), "ends": list(ends)}
    return source, file_sink(target, source, task, ACTIVITY, key)


def open_drawn(
    predictor: Predictor, inputs: Floats, target: str | None, ends: Ends, probability: str = ""
) -> tuple[Source, Sink[Any]]:
    """Return a random instance `(n, d)` as a source, and the sink for its answer.

    See `open_file` for the other arguments.
    """
    task = predictor.task
    _check_ends(predictor, ends)
    _check_no_probability(probability)
    formats.check_output(target or "-", task)
    drawn = with_ends([Example(inputs, source="the random instance")], task, ends)
    like = f"drawn.{task.facts.stdout_format}"
    instances = formats.output_format(target or "-", like).checked(drawn, task)
    source = Source([Dataset.of(instances)], 1, None)
    return source, Memory() if target is None else file_sink(target, source, task, ACTIVITY, {})


def _check_ends(predictor: Predictor, ends: Ends) -> None:
    """Raise InputError if the task or the search cannot obey the given ends of tours."""
    check_ends(predictor.task, ends)
    if not predictor.constrained and ends != Ends():
        raise InputError("start, end and open need constrained decoding")
    if predictor.decoder.needs_circular and None not in (ends.start, ends.end):
        raise InputError(f"{predictor.decoder.name} decoding does not keep both ends of a tour")


def _table_writer(
    predictor: Predictor, table: Table, columns: Columns, target: str, probability: str
) -> Callable[[Dataset], None]:
    """Return a function that writes the solved sets of a table.

    If the target is a table or standard output, the function writes the table with a column of
    answers. If `probability` is not empty, it also writes a column of this name, with the
    probability of each element. For other targets, the function writes a line for each set.

    Raises:
        InputError: the table already has a column with the name of a new column, or the model or
            the target has no probabilities.
    """
    task = predictor.task
    if target != "-" and not formats.writes_table(target, table.source):
        _check_no_probability(probability)
        columns.check_keys()
        return lambda solved: formats.write(target, solved, task)
    kind = getattr(task, "kind", "")
    taken = (*table.columns, answer_column(table, columns, kind))
    if probability:
        own_task(task)
        if probability in taken:
            raise InputError(
                f'{table.source}: has a column "{probability}" already; name another column '
                "for the probabilities (--probability)"
            )

    def write(solved: Dataset) -> None:
        result = answered(table, columns, solved, kind)
        if probability:
            of_sets = element_probabilities(predictor.model, own_task(task), solved)
            result = with_column(result, probability, solved, (p.tolist() for p in of_sets))
        formats.write_table(target, result)

    return write


def _check_no_probability(probability: str) -> None:
    """Refuse the name of a column of probabilities if the output is not a long table."""
    if probability:
        raise InputError(
            "probability: needs a long table (set_id), and an output that is one: .csv, .tsv or "
            ".parquet"
        )


_END = EOFError()  # the reading thread sends this error after the last example


def _waiting(rows: Iterable[Dataset], task: Task) -> Iterator[Dataset]:
    """Read datasets of one row in a thread, and yield the rows that were read since the last chunk.

    So examples that are read while a batch is answered share the next batch. If reading fails, the
    examples that were read before the failure are yielded first.
    """
    waiting: Queue[Example | Exception] = Queue(CHUNK)

    def read() -> None:
        try:
            for (example,) in rows:
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
            yield Dataset.of(chunk)
        if error is _END:
            return
        if error is not None:
            raise error
