"""JSON lines: `{"inputs": [[...], ...], "outputs": [...]}`, 0-based.

An answer does not repeat its first index at the end. A distance other than Euclid's is the key
`distance`; all other keys of a line are its example's `extra`, and are written again.
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
from ptrnet.data.formats.parts.lines import display_name, numbered_lines
from ptrnet.errors import InputError
from ptrnet.geometry.distances import NAMES
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CAPABILITIES = Capabilities(distances=NAMES)


def read(path: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    name = display_name(path)
    for line, text in numbered_lines(path):
        source = f"{name}:{line}"
        row = _parse_object(text, source)
        if "inputs" not in row:
            raise InputError(f'{source}: expected the key "inputs"')
        values = row.pop("inputs")
        nested.check_numbers(values, source)
        inputs = checks.check_instance(values, task, f'{source}: "inputs"')
        yield nested.example_of(inputs, row, task, source)


def num_features(path: str) -> int:
    """See `ptrnet.data.formats`."""
    for line, text in numbered_lines(path):
        row = _parse_object(text, f"{path}:{line}")
        return nested.num_features(row.get("inputs"), f"{path}:{line}")
    raise InputError(f"{path}: holds no instance")


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    for example in examples:
        row: dict[str, Any] = {"inputs": example.inputs.tolist()}
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


def _parse_object(text: str, source: str) -> dict[str, Any]:
    """The object on a line. Raises InputError for anything else, `NaN` and what overflows."""

    def refuse(word: str) -> float:
        raise InputError(f"{source}: expected a finite number, got {word[:40]}")

    def finite(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else refuse(digits)

    try:
        row = json.loads(text, parse_constant=refuse, parse_float=finite)
    except json.JSONDecodeError as error:
        raise InputError(f"{source}: not JSON at column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):  # of `refuse`: it is a ValueError, too
            raise
        raise InputError(f"{source}: not JSON: {error}") from None
    if not isinstance(row, dict):
        raise InputError(f"{source}: expected a JSON object, got {type(row).__name__}")
    return row
