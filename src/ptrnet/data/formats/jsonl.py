"""JSON lines: `{"inputs": [[...], ...], "outputs": [...]}`, with 0-based indices.

Elements may be objects, as in `{"inputs": [{"price": 3.5, "colour": "red"}, ...]}`. An answer does
not repeat its first index at the end. The key `distance` names a distance that is not Euclidean.
`"open": true` marks an open path of task `tsp`. A user's own examples may have `grades`, a number
for each element, and `context`, an object with fields that are added to all elements. An instance
of a problem (`ptrnet.problems`) has the problem's fields as keys instead of `inputs`. All other
keys are kept in the example's `extra`, and are written again.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, TextIO

import numpy as np

from ptrnet.data import checks
from ptrnet.data.arrays import records_of
from ptrnet.data.dataset import examples_of_rows
from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import filled_lines, json_values
from ptrnet.errors import InputError
from ptrnet.geometry.distances import PLANAR
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import with_context
from ptrnet.types import Example

CAPABILITIES = Capabilities(extra=True, distances=PLANAR, dictionaries=True)


def read(path: str, task: Task) -> Iterator[Example]:
    if task.name == "reading-order":
        return _read_pages(path, task)
    return examples_of_rows((arguments(row, task, source) for row, source in _rows(path)), path)


def _read_pages(path: str, task: Task) -> Iterator[Example]:
    """Yield the pages that can be used, as from documents of pages."""
    from ptrnet.data.formats.parts import pages  # other tasks do not need its imports

    def attempt(source: str, text: str) -> Iterator[Example]:
        yield Example(**arguments(json_values.parse_object(text, source), task, source))

    yield from pages.usable(partial(attempt, *line) for line in filled_lines(path))


def read_answered(path: str, task: Task) -> Iterator[Example]:
    """As `read`, but do not check answers. A model may give answers that break the task's rules."""
    for row, source in _rows(path):
        outputs = np.array(row.pop("outputs"), np.int64)
        outputs = (
            outputs if task.facts.item_size == 1 else outputs.reshape(-1, task.facts.item_size)
        )
        yield Example(**{**arguments(row, task, source), "outputs": outputs})


def arguments(row: dict[str, Any], task: Task, source: str) -> dict[str, Any]:
    """Return the arguments of an `Example` for a JSON object, from which keys are removed."""
    values = task.read_instance(row, source)
    # If the task is a problem, `read_instance` has made an array of the problem's fields. The line
    # then has no "inputs" to name in error messages.
    is_array = isinstance(values, np.ndarray)
    name, *_ = (*task.facts.field_names, "inputs")
    inputs = checks.check_instance(values, task, source if is_array else f'{source}: "{name}"')
    return json_values.arguments_of(inputs, row, task, source, records_of(values))


def read_any(path: str, task: Task) -> Iterator[Example]:
    """Yield the examples of a file whose elements are objects with any fields.

    `ptrnet convert` uses this function to write a long table. The `inputs` of the examples are
    zeros, because only their `elements` are used.
    """
    for row, source in _rows(path):
        elements = json_values.records(task.read_instance(row, source), f'{source}: "inputs"')
        nothing = np.zeros((len(elements), 1))
        yield Example(**json_values.arguments_of(nothing, row, task, source, elements))


def instances(path: str) -> Iterator[tuple[Any, str]]:
    for row, source in _rows(path):
        values = with_context(row.get("inputs"), row.get("context"), source)
        if values is None:
            raise InputError(
                f'{source}: "inputs": expected a list of elements, got none; a problem\'s file can '
                "be read only if you name the problem"
            )
        yield values, f'{source}: "inputs"'


def _rows(path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the JSON object and the source of each line."""
    for source, text in filled_lines(path):
        yield json_values.parse_object(text, source), source


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    for example in examples:
        row = task.write_instance(example)
        if example.outputs is not None:
            row["outputs"] = example.outputs.tolist()
        row.update(json_values.other_keys(example))
        try:
            stream.write(json.dumps(row, allow_nan=False, default=_text))
            stream.write("\n")
        except (TypeError, ValueError) as error:  # `extra` of a Parquet file may have any type
            raise InputError(f"{example.source}: cannot be written as JSON: {error}") from None


def _text(value: Any) -> str:
    """Return a date, time, duration or decimal as a text, which loses no information.

    Raises TypeError for other types.
    """
    if isinstance(value, date | time | timedelta | Decimal):
        return str(value)
    raise TypeError(f"no type for {type(value).__name__}")
