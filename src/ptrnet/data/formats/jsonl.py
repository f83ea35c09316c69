"""JSON lines: `{"inputs": [[...], ...], "outputs": [...]}`, 0-based, no closing repeat.

Other keys of a line are kept, and written again. A `distance` other than Euclid's is a key, too.
"""

import json
import math
from collections.abc import Iterable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, TextIO

from ptrnet.data import checks
from ptrnet.data.formats.parts import nested
from ptrnet.data.formats.parts.capabilities import Capabilities
from ptrnet.data.formats.parts.lines import numbered
from ptrnet.distances import EUCLIDEAN, NAMES
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CAPABILITIES = Capabilities(distances=NAMES)


def read(name: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    for line, text in numbered(name):
        where = f"{'standard input' if name == '-' else name}:{line}"
        row = _object(text, where)
        if "inputs" not in row:
            raise InputError(f'{where}: expected the key "inputs"')
        values = row.pop("inputs")
        nested.check_numbers(values, where)
        inputs = checks.instance(values, task, f'{where}: "inputs"')
        outputs = row.pop("outputs", None)
        if outputs is not None:
            flat = nested.flat(outputs, task.item_size, f'{where}: "outputs"')
            outputs = checks.answer(flat, len(inputs), task, f'{where}: "outputs"')
        distance = checks.take_distance(row, inputs, task, where)
        yield Example(inputs, outputs, where, row, distance=distance)


def features(name: str) -> int:
    """See `ptrnet.data.formats`."""
    for line, text in numbered(name):
        row = _object(text, f"{name}:{line}")
        return nested.features(row.get("inputs"), f"{name}:{line}")
    raise InputError(f"{name}: holds no instance")


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    for example in examples:
        row: dict[str, Any] = {"inputs": example.inputs.tolist()}
        if example.outputs is not None:
            row["outputs"] = example.outputs.tolist()
        if example.distance != EUCLIDEAN:
            row["distance"] = example.distance
        try:
            stream.write(json.dumps({**row, **example.extra}, allow_nan=False, default=_text))
            stream.write("\n")
        except (TypeError, ValueError) as error:  # what a column of another format may hold
            raise InputError(f"{example.source}: cannot be written as JSON: {error}") from None


def _text(value: Any) -> str:
    """The text of what JSON has no type for, but text holds without loss."""
    if isinstance(value, date | time | timedelta | Decimal):
        return str(value)
    raise TypeError(f"no type for {type(value).__name__}")


def _object(text: str, where: str) -> dict[str, Any]:
    def refuse(word: str) -> float:
        raise InputError(f"{where}: expected a finite number, got {word}")

    def finite(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else refuse(digits)

    try:
        row = json.loads(text, parse_constant=refuse, parse_float=finite)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not JSON at column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: not JSON: {error}") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected a JSON object, got {type(row).__name__}")
    return row
