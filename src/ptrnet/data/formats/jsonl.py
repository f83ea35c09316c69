"""JSON lines: `{"inputs": [[...], ...], "outputs": [...]}`, 0-based.

Elements may be objects, `{"inputs": [{"price": 3.5, "colour": "red"}, ...]}`. An answer does not
repeat its first index at the end. A distance other than Euclid's is the key `distance`; all other
keys of a line are its example's `extra`, and are written again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, TextIO

from ptrnet.data import checks
from ptrnet.data.arrays import records_of
from ptrnet.data.formats.parts import nested
from ptrnet.data.formats.parts.capabilities import Capabilities
from ptrnet.data.formats.parts.json_object import parse_object
from ptrnet.data.formats.parts.lines import display_name, numbered_lines
from ptrnet.errors import InputError
from ptrnet.geometry.distances import NAMES
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CAPABILITIES = Capabilities(extra=True, distances=NAMES, dictionaries=True)


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    file = display_name(path)
    for line, text in numbered_lines(path):
        source = f"{file}:{line}"
        row = parse_object(text, source)
        if "inputs" not in row:
            raise InputError(f'{source}: expected the key "inputs"')
        values = row.pop("inputs")
        nested.check_numbers(values, f'{source}: "inputs"')
        inputs = checks.check_instance(values, task, f'{source}: "inputs"')
        example = nested.example_from_row(inputs, row, task, source)
        yield example.replace(elements=records_of(values))


def dictionaries(path: str) -> Iterator[tuple[list[Mapping[str, Any]], str]] | None:
    """See `ptrnet.data.formats`."""
    first, _ = next(_inputs(path), (None, ""))
    if records_of(first) is None:
        return None
    return ((nested.records(values, source), source) for values, source in _inputs(path))


def num_features(path: str) -> int:
    """See `ptrnet.data.formats`."""
    for values, source in _inputs(path):
        return nested.num_features(values, source)
    raise InputError(f"{path}: holds no instance")


def _inputs(path: str) -> Iterator[tuple[Any, str]]:
    """What each line has as `inputs`, unchecked, None for nothing; and its source."""
    for line, text in numbered_lines(path):
        source = f"{path}:{line}"
        yield parse_object(text, source).get("inputs"), f'{source}: "inputs"'


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    for example in examples:
        row: dict[str, Any] = {"inputs": example.elements or example.inputs.tolist()}
        if example.outputs is not None:
            row["outputs"] = example.outputs.tolist()
        row.update(nested.other_keys(example))
        try:
            stream.write(json.dumps(row, allow_nan=False, default=_text))
            stream.write("\n")
        except (TypeError, ValueError) as error:  # what a column of another format may hold
            raise InputError(f"{example.source}: cannot be written as JSON: {error}") from None


def _text(value: Any) -> str:
    """The value as text, for types that JSON does not have and that text holds without loss."""
    if isinstance(value, date | time | timedelta | Decimal):
        return str(value)
    raise TypeError(f"no type for {type(value).__name__}")
