"""Open files for `solve_source`: the source of their instances, and a sink."""

from collections.abc import Iterable, Iterator
from queue import Queue
from threading import Thread
from typing import Any

from ptrnet.data import formats
from ptrnet.data.columns import Columns, check_no_probability
from ptrnet.errors import InputError
from ptrnet.run import CHUNK, Sink, Source
from ptrnet.sinks import Printed, open_instances, sink_for
from ptrnet.solver.predict import Predictor
from ptrnet.tasks.base import check_ends, with_ends
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
    formats.check_output(like, task)  # before a table is read
    if opened := formats.open_sets(path, columns, task, with_answers=False):
        from ptrnet.solver import long_tables  # few files need its imports

        return long_tables.open_sets(predictor, *opened, path, target, ends, probability)
    check_no_probability(probability)
    if path == target == "-" and not whole:
        source = open_instances(task, path, target, ends, size=1)
        return source._replace(chunks=_waiting(source.chunks)), Printed(task)
    source = open_instances(task, path, like, ends, whole)
    key = {} if source.key is None else {**predictor.key(), "ends": list(ends)}
    return source, sink_for(target, source, task, ACTIVITY, key)


def open_drawn(
    predictor: Predictor, inputs: Floats, target: str | None, ends: Ends, probability: str = ""
) -> tuple[Source, Sink[Any]]:
    """Return a random instance `(n, d)` as a source, and the sink for its answer.

    See `open_file` for the other arguments.
    """
    task = predictor.task
    _check_ends(predictor, ends)
    check_no_probability(probability)
    drawn = with_ends([Example(inputs, source="the random instance")], task, ends)
    like = f"drawn.{task.facts.stdout_format}"
    instances = formats.output_format(target or "-", like).checked(drawn, task)
    source = Source([Dataset.of(instances)], 1, None)
    return source, sink_for(target, source, task, ACTIVITY, {})


def _check_ends(predictor: Predictor, ends: Ends) -> None:
    """Raise InputError if the task or the search cannot obey the given ends of tours."""
    check_ends(predictor.task, ends)
    if not predictor.constrained and ends != Ends():
        raise InputError("start, end and open need constrained decoding")
    if predictor.decoder.needs_circular and None not in (ends.start, ends.end):
        raise InputError(f"{predictor.decoder.name} decoding does not keep both ends of a tour")


_END = EOFError()  # the reading thread sends this error after the last example


def _waiting(rows: Iterable[Dataset]) -> Iterator[Dataset]:
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
