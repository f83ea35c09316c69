"""Open long tables for `solve_source`: a row is an element, and a set is an instance."""

from collections.abc import Callable
from typing import Any

from ptrnet.data import formats
from ptrnet.data.columns import Columns, check_no_probability
from ptrnet.data.tables import Table, answered, new_columns
from ptrnet.run import CHUNK, Memory, Sink, Source, Whole
from ptrnet.solver.predict import Predictor
from ptrnet.solver.scoring import element_probabilities
from ptrnet.tasks.base import with_ends
from ptrnet.tasks.custom import own_task
from ptrnet.types import Dataset, Ends


def open_sets(
    predictor: Predictor,
    data: Dataset,
    table: Table,
    columns: Columns,
    path: str,
    target: str | None,
    ends: Ends,
    probability: str,
) -> tuple[Source, Sink[Any]]:
    """Return the sets of a table as a source, and the sink for their answers.

    `formats.open_sets` returned the sets, their table and its columns. See
    `ptrnet.solver.solving.open_file` for the other arguments.
    """
    data = Dataset.of(with_ends(data, predictor.task, ends))
    source = Source(data.chunks(CHUNK), len(data), None, path)
    if target is not None:
        return source, Whole(_writer(predictor, table, columns, target, probability))
    check_no_probability(probability)
    return source, Memory()


def _writer(
    predictor: Predictor, table: Table, columns: Columns, target: str, probability: str
) -> Callable[[Dataset], None]:
    """Return a function that writes the solved sets of a table.

    If the target is a table or standard output, the function writes the table with a column of
    answers. If `probability` is not empty, it also writes a column of this name, with the
    probability of each element; see `answered` for wide tables. For other targets, the function
    writes a line for each set. Raises InputError if the table already has a column with the name of
    a new column, or the model or the target has no probabilities.
    """
    task = predictor.task
    if target != "-" and not formats.writes_table(target, table.source):
        check_no_probability(probability)
        columns.check_keys()
        return lambda solved: formats.write(target, solved, task)
    kind = task.facts.kind
    _, of_p = new_columns(table, columns, kind, probability)
    if of_p:
        own_task(task)  # refuses other tasks

    def write(solved: Dataset) -> None:
        probabilities = element_probabilities(predictor.model, task, solved) if of_p else None
        result = answered(table, columns, solved, kind, probability, probabilities)
        formats.write_table(target, result)

    return write
