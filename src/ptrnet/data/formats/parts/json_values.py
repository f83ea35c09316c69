"""Parse examples from JSON values: objects, and nested lists of numbers and indices.

The lines of `.jsonl`, the rows of Parquet and the requests to the service have this form.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ptrnet.data import checks
from ptrnet.data.arrays import real_array
from ptrnet.errors import InputError, short
from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.tasks import CUSTOM
from ptrnet.tasks.base import Task
from ptrnet.types import CLOSED, Example, Floats, TourRules, ranking


def parse(text: str, source: str, finite: bool = True) -> Any:
    """Parse a JSON value.

    If `finite`, refuse `NaN` and infinite numbers. Otherwise callers have to check numbers, and
    parsing takes less time. Raises InputError if the text is not JSON, or an object in it has a
    duplicate key, or a number is too large.
    """
    numbers: dict[str, Any] = {"parse_constant": _refuse, "parse_float": _finite} if finite else {}
    try:
        return json.loads(text, object_pairs_hook=_unique, **numbers)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise InputError(f"{source}: not JSON at {line}column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{source}: lists or objects are nested too deeply") from None
    except ValueError:  # raised by int() for too many digits
        digits = sys.get_int_max_str_digits()
        raise InputError(f"{source}: a whole number of more than {digits} digits") from None


def parse_object(text: str, source: str, finite: bool = True) -> dict[str, Any]:
    """As `parse`, but refuse values that are not objects."""
    row = parse(text, source, finite)
    if not isinstance(row, dict):
        got = "a list" if isinstance(row, list) else json.dumps(row)[:40]
        raise InputError(f"{source}: expected a JSON object, got {got}")
    return row


def _refuse(word: str) -> float:
    raise InputError(f"expected a finite number, got {word[:40]}")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InputError(f'the key "{twice[:40]}" occurs twice')
    return row


def arguments_of(
    inputs: Floats,
    row: dict[str, Any],
    task: Task,
    source: str,
    elements: list[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the arguments of an `Example`: an instance, and the other keys of its row.

    Args:
        inputs: the instance, `(n, d)`, already checked.
        row: the keys of the row, except the instance. This function removes keys that have a
            meaning, such as `outputs`. The remaining keys become the example's `extra`.
        source: the name of the row in error messages.
        elements: the elements as dictionaries, if they have named fields.
    """
    outputs, grades, distance, rules = row.pop("outputs", None), None, EUCLIDEAN, CLOSED
    if outputs is not None:
        outputs = checks.check_outputs(outputs, len(inputs), task, f'{source}: "outputs"')
    if task.name == CUSTOM and row.get("grades") is not None:
        grades = checks.check_grades(row.pop("grades"), len(inputs), f'{source}: "grades"')
        outputs = ranking(grades) if outputs is None else outputs
    if task.facts.distances != (EUCLIDEAN,):  # otherwise the key belongs to the user
        distance = row.pop("distance", EUCLIDEAN)
        if distance not in task.facts.distances:
            raise InputError(
                f'{source}: "distance": expected one of {", ".join(task.facts.distances)}, '
                f"got {short(str(distance))}"
            )
        checks.check_distances(inputs, distance, source)
    if task.facts.takes_matrices and row.get("open") is True:  # other values belong to the user
        rules = TourRules(is_open=row.pop("open"))
    return {
        "inputs": inputs,
        "outputs": outputs,
        "source": source,
        "extra": row,
        "distance": distance,
        "rules": rules,
        "elements": elements,
        "grades": grades,
    }


def other_keys(example: Example) -> dict[str, Any]:
    """Return the keys and values of an example's row, except inputs and outputs."""
    ours: dict[str, Any] = {}
    if example.distance != EUCLIDEAN:
        ours["distance"] = example.distance
    if example.grades is not None:
        ours["grades"] = example.grades.tolist()
    if example.rules.is_open:
        ours["open"] = True
    for key in ("inputs", "outputs", *ours):
        if key in example.extra:
            raise InputError(
                f'{example.source}: the key "{key}" is reserved in a line; rename your key'
            )
    return {**ours, **example.extra}


def records(values: Any, source: str) -> list[Mapping[str, Any]]:
    """Check that elements are JSON objects, and return the elements."""
    if not isinstance(values, list) or not values:
        raise InputError(f"{source}: expected a list of objects")
    for k, element in enumerate(values, 1):
        if not isinstance(element, Mapping):
            raise InputError(f"{source}: element {k}: expected an object, got {short(element)}")
    return values


def num_features(values: Any, source: str) -> int:
    """Return d, the number of features of an instance's elements."""
    array = real_array(values, source, "elements of one number or more")
    if not array.size or array.ndim > 2:
        raise InputError(
            f"{source}: expected elements of one number or more, got shape {array.shape}"
        )
    return array.shape[1] if array.ndim == 2 else 1
