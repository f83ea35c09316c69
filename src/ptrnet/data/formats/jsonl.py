"""JSON lines: `{"inputs": [[...], ...], "outputs": [...]}`, 0-based, no closing repeat.

Other keys of a line are kept, and written again.
"""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from ptrnet.data import checks
from ptrnet.data.lines import numbered
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Example


def read(name: str, task: Task) -> Iterator[Example]:
    """See `ptrnet.data.formats`."""
    for line, text in numbered(name):
        where = f"{'standard input' if name == '-' else name}:{line}"
        row = _object(text, where)
        if "inputs" not in row:
            raise InputError(f'{where}: expected the key "inputs"')
        values = row.pop("inputs")
        _numbers(values, where)
        inputs = checks.instance(values, task, f'{where}: "inputs"')
        outputs = row.pop("outputs", None)
        if outputs is not None:
            flat = _flat(outputs, task.corners, f'{where}: "outputs"')
            outputs = checks.answer(flat, len(inputs), task, f'{where}: "outputs"')
        yield Example(inputs, outputs, where, row)


def write(stream: TextIO, examples: Iterable[Example], task: Task) -> None:
    """See `ptrnet.data.formats`."""
    for example in examples:
        row: dict[str, Any] = {"inputs": example.inputs.tolist()}
        if example.outputs is not None:
            row["outputs"] = example.outputs.tolist()
        stream.write(json.dumps({**row, **example.kept}) + "\n")


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


def _flat(outputs: Any, corners: int, where: str) -> list[int]:
    """The indices of a list, or of a list of lists of `corners` indices each."""
    items = [outputs] if corners == 1 else outputs
    rows = isinstance(items, list) and all(isinstance(item, list) for item in items)
    if not rows or not all(type(i) is int for item in items for i in item):
        lists = "" if corners == 1 else f"lists of {corners} "
        raise InputError(f"{where}: expected a list of {lists}whole numbers")
    for place, item in enumerate(items, 1):
        if corners > 1 and len(item) != corners:
            raise InputError(f"{where}: item {place}: expected {corners} indices, got {len(item)}")
    return [i for item in items for i in item]


def _numbers(values: Any, where: str) -> None:
    """Refuses what NumPy would turn into numbers: text, booleans, null."""
    if not isinstance(values, list):
        raise InputError(f'{where}: "inputs": expected a list of elements')
    for k, element in enumerate(values, 1):
        for value in element if isinstance(element, list) else [element]:
            if type(value) not in (int, float):
                raise InputError(
                    f'{where}: "inputs": element {k}: expected a number, '
                    f"got {json.dumps(value)[:40]}"
                )
