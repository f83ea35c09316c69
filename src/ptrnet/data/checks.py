"""Validate instances and answers.

`source` says where the values came from: a file and line, or an argument of the user's call. Error
messages of functions with a `source` begin with this text. `task` is the task of the instance, and
n is the number of elements in the instance.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ptrnet.data import cells
from ptrnet.data.arrays import is_frame, real_array, records_of, to_array
from ptrnet.errors import InputError, file_of, short, unknown, warn_ambiguous
from ptrnet.geometry import first_equal
from ptrnet.geometry.distances import EUCLIDEAN, EXPLICIT, doubt_about
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import Element, Place, flags_of, place_of, to_numbers
from ptrnet.types import LARGEST, Dataset, Example, Floats, Indices

# The limit for the numbers in a matrix of distances, and for coordinates whose distances are
# rounded to whole numbers. A distance is then at most 6e10 (MAN_3D), and the length of a tour of
# LARGEST elements is at most 6e15. This is less than 2^53, so float64 adds up whole distances
# exactly. XRAY1 and XRAY2 multiply by 100, but their coordinates are angles, which are far below
# the limit.
MAX_COORDINATE = 1e10

WEIGHTS = (1e-30, 1e30)  # with weights in this range, sums of losses stay finite in float32

# Instances


def check_instance(values: Any, task: Task, source: str) -> Floats:
    """Convert values to an instance by `encode`, and check it as `check_instances` does."""
    array = encode(values, task, source)
    check_size(len(array), task.facts.min_elements, source)
    _check_numbers(array, task, place_of([source], [0]))
    check_solvable(array, task, source)
    return array


def encode(values: Any, task: Task, source: str) -> Floats:
    """Convert values to float64 numbers `(n, d)` that `check_instances` can check.

    Args:
        values: numbers `(n, d)`, or `(n,)` if d is 1, in any form that `real_array` accepts. Or
            elements with named fields: dictionaries, or a frame. A task with a schema reads the
            fields of its schema, and a task with `number_names` the columns of these names. Other
            tasks read all numeric fields. If there are more than d numeric fields, other tasks
            leave out fields with names of ids.

    Raises:
        InputError: the values have another form, or ids would be read as coordinates.
    """
    d, schema = task.facts.num_features, task.facts.schema
    if is_frame(values) and task.facts.number_names:
        values = _named_numbers(values, task, source)
    elements = records_of(values)
    if schema is not None:
        if elements is not None:
            values = schema.encode(elements, source)
            _check_available(elements, task, source)
            _check_outside(elements, task, source)
        elif not isinstance(values, list | tuple) or values:
            raise InputError(
                f"{source}: expected elements with the fields {', '.join(schema.fields)}"
            )
    elif elements is not None:
        values = _numeric_fields(elements, values, d, source)
    elif is_frame(values):
        columns = list(values.columns)
        names = cells.without_ids(columns, columns, d)
        if len(names) < len(columns):
            values = values[names]
        cells.check_no_ids(names, d, source)
    array = real_array(values, source, f"elements of {d} number{'s' * (d > 1)} each")
    if array.ndim == 1 and d == 1:
        array = array[:, None]
    missing = d - array.shape[1] if array.ndim == 2 else 0
    if 0 < missing <= task.facts.optional_features:
        array = np.pad(array, ((0, 0), (0, missing)))
    if array.ndim != 2 or array.shape[1] != d:
        if array.size == 0:
            raise InputError(f"{source}: expected at least one element, got none")
        raise InputError(f"{source}: expected shape (n, {d}) for {task.name}, got {array.shape}")
    return array


def _named_numbers(frame: Any, task: Task, source: str) -> Any:
    """Return the columns of a frame that have the names of an element's numbers.

    If the columns have no names, return the frame.
    """
    names, columns = task.facts.number_names, list(frame.columns)
    if not all(isinstance(name, str) for name in columns):
        return frame
    found = [name for name in names if name in columns]
    needed = names[: len(names) - task.facts.optional_features]
    if found[: len(needed)] != [*needed]:
        raise InputError(
            f"{source}: expected the columns {', '.join(names)}, got {short(', '.join(columns))}"
        )
    return frame[found]


def _check_available(elements: Sequence[Element], task: Task, source: str) -> None:
    """Refuse elements that cannot be chosen. Tables leave them out, but here they have a place."""
    layout = task.facts.layout
    for name in layout.available if not layout.alternatives else ():
        place = place_of([source], [0])
        can = flags_of([element.get(name, 1) for element in elements], name, place)
        if not can.all():
            raise InputError(
                f'{place(int(can.argmin()))}: "{name}" says that the element cannot be chosen: '
                "leave it out, or name the sets of a table (set_id)"
            )


def _check_outside(elements: Sequence[Element], task: Task, source: str) -> None:
    """Refuse a set without its outside option. Without it, something would always be chosen."""
    layout = task.facts.layout
    if not layout.outside:
        return
    field, mark = layout.outside_mark
    count = sum(element.get(field) == mark for element in elements)
    if count != 1:
        raise InputError(
            f'{source}: expected one element with "{field}": {json.dumps(mark)}, the option to '
            f"choose none, got {count}"
        )


def check_instances(data: Dataset, task: Task) -> None:
    """Refuse instances that the task cannot answer.

    Raises:
        InputError: an instance has fewer elements than the task's `min_elements` or more than
            LARGEST, or a number that is not finite or larger than the task allows. Or it has no
            answer, see `check_solvable`.
    """
    sources = data.column("source")
    for source, n in zip(sources, data.sizes.tolist(), strict=True):
        check_size(n, task.facts.min_elements, source)

    _check_numbers(data.elements, task, place_of(sources, data.starts))
    for row, source in enumerate(sources):
        check_solvable(data.inputs(row), task, source)


def _check_numbers(elements: Floats, task: Task, place: Place) -> None:
    """Refuse numbers that are not finite or too large. `place` returns the name of element k."""
    facts = task.facts
    is_usable = np.abs(elements) <= facts.largest  # False for infinity and NaN
    if not is_usable.all():
        k, column = np.argwhere(~is_usable)[0].tolist()
        named = facts.number_names if facts.schema is None else facts.schema.feature_names
        name = f'"{named[column]}"' if named else f"number {column + 1}"
        value = elements[k, column]
        expected = f"at most {facts.largest:g}" if np.isfinite(value) else "a finite number"
        raise InputError(f"{place(k)}, {name}: expected {expected}, got {value}")


def _numeric_fields(elements: list[Element], values: Any, d: int, source: str) -> Any:
    """Return the d numeric fields of all elements, `(n, d)`.

    A frame with more or fewer numeric fields is returned unchanged. `real_array` then raises an
    error that says what is not a number.
    """
    place = place_of([source], [0])
    for k, element in enumerate(elements):
        if not isinstance(element, Mapping):
            raise InputError(f"{place(k)}: expected a dictionary, got {short(element)}")
    names = dict.fromkeys(name for element in elements for name in element)
    columns = {name: [element.get(name) for element in elements] for name in names}
    misfits = {
        name: [k for k, value in enumerate(column) if not cells.is_real(value)]
        for name, column in columns.items()
    }
    fields = cells.numeric_columns(
        columns, misfits, list(names), d, lambda name, k: f'{place(k)}: "{name}"'
    )
    if len(fields) != d:
        if is_frame(values):
            return values
        raise InputError(
            f"{source}: expected elements of {d} number{'s' * (d > 1)} each, got {len(fields)} "
            f"fields that are numbers{': ' * bool(fields)}{', '.join(map(str, fields))}"
        )
    cells.check_no_ids(fields, d, source)
    return np.column_stack([to_numbers(columns[name], name, place) for name in fields])


def from_dictionary(fields: Mapping[str, Any], task: Task, source: str) -> Any:
    """Convert a dictionary that a user gave, alone or as an item of a list.

    If the task has `field_names`, return an array `(n, d)`, and refuse unknown keys. If the
    dictionary is a row of a wide table, return its elements. Otherwise return the dictionary,
    because instances are lists with a dictionary for each element.
    """
    if task.facts.layout.is_wide(fields):
        return task.facts.layout.elements(fields, source)
    if not task.facts.field_names:
        return fields
    rest = dict(fields)
    inputs = task.read_instance(rest, source)
    for key in rest.keys() - set(task.facts.field_names):
        raise InputError(f"{source}: {unknown('key', str(key), task.facts.field_names)}")
    return inputs


def check_size(n: int, least: int, source: str) -> None:
    """Refuse fewer than `least` or more than LARGEST elements."""
    if not least <= n <= LARGEST:
        raise InputError(f"{source}: expected {least} to {LARGEST} elements, got {n}")


def check_sizes(sizes: Sequence[int], task: Task) -> None:
    """Refuse sizes of instances that are too small for the task."""
    if min(sizes) < task.facts.min_elements:
        raise InputError(
            f"n: expected {task.facts.min_elements} or more for {task.name}, got {min(sizes)}"
        )


def check_solvable(inputs: Floats, task: Task, source: str) -> None:
    """Refuse an instance without an answer. Points on one line have no triangulation, for example.

    Warns:
        AmbiguousInputWarning: two elements are equal, and answers have only the first of them. Or
            distances are equal only because they were rounded.
    """
    reason = task.instance_error(inputs)
    if reason:
        raise InputError(f"{source}: {reason}")
    rounded = task.facts.rounded_points
    points = rounded(inputs) if rounded else None
    if points is not None:
        check_distances(points, "EUC_2D", source)
    if task.facts.keeps_equal:
        return
    first = first_equal(inputs)
    others = np.flatnonzero(first != np.arange(len(inputs)))
    if len(others):
        file = file_of(source)
        equal = f"elements {first[others[0]] + 1} and {others[0] + 1}"
        which = equal if file == source else "some elements"
        warn_ambiguous(f"{file}: {which} are equal; answers only have the first of equal elements")


# Answers


def required_answer(example: Example, task: Task, source: str = "") -> Indices:
    """Return the answer of an example. Raises InputError if the example has no answer.

    The message has the given source if the example itself has none.
    """
    if example.outputs is None:
        advice = labeller_advice(task)
        if task.facts.schema is not None:
            advice = (
                "; a long table needs set_id and the column of its answers (chosen, rank, grade or "
                "member), such as --set-id trip --chosen bought"
            )
        raise InputError(f"{example.source or source}: has no answer to measure against{advice}")
    return example.outputs


def labeller_advice(task: Task) -> str:
    """Return the advice to compute answers, for the end of an error message.

    A labeller is an algorithm that computes answers. If the task has none, return an empty text.
    """
    if not task.facts.labellers:
        return ""
    return f"; ptrnet label {task.name} computes answers by an algorithm"


def check_answer(values: Sequence[int], n: int, task: Task, source: str, first: int = 0) -> Indices:
    """Convert indices to a valid answer of 0-based indices.

    The answer is `(m,)`, or `(t, item_size)` for t items such as triangles.

    Args:
        values: the indices, in a flat list.
        first: the index of the first element: 1 in formats that count from 1.

    Raises:
        InputError: an index is out of range, or the task does not allow the answer.

    Examples:
        >>> check_answer([3, 1, 2], 3, tasks.get("sort"), "a.txt:1", first=1).tolist()
        [2, 0, 1]
    """
    for number, value in enumerate(values, 1):
        if not first <= value < n + first:
            raise InputError(
                f"{source}: index {number}: expected {first} to {n - 1 + first}, got {short(value)}"
            )
    if len(values) % task.facts.item_size:
        raise InputError(
            f"{source}: answer: expected {task.facts.item_size} indices for each item, "
            f"got {len(values)} in all"
        )
    indices = np.asarray(values, np.int64) - first
    if task.facts.item_size > 1:
        indices = indices.reshape(-1, task.facts.item_size)
    complaint = task.answer_error(n, indices, first)
    if complaint:
        raise InputError(f"{source}: answer: {complaint}")
    return indices


def check_outputs(values: Any, n: int, task: Task, source: str) -> Indices:
    """Convert an array or list of 0-based indices to a valid answer; see `check_answer`.

    Indices are `(m,)` or `(t, item_size)`, in any form that `real_array` accepts.
    """
    size = task.facts.item_size
    expected = "a list of whole numbers" if size == 1 else f"lists of {size} whole numbers"
    indices = to_array(values, source, expected)
    if indices.ndim != 1 and (size == 1 or indices.shape[1:] != (size,)):
        raise InputError(f"{source}: expected {expected}, got shape {indices.shape}")
    if indices.size and indices.dtype.kind not in "iu":
        raise InputError(f"{source}: expected {expected}, got {indices.dtype}")
    return check_answer(indices.ravel().tolist(), n, task, source)


def check_grades(values: Any, n: int, source: str) -> Floats:
    """Convert finite numbers to the grades of n elements, `(n,)`."""
    grades = real_array(values, source, f"{n} numbers")
    if grades.shape != (n,):
        got = len(grades) if grades.ndim == 1 else f"shape {grades.shape}"
        raise InputError(f"{source}: expected a number for each of {n} elements, got {got}")
    if not np.isfinite(grades).all():
        k = int(np.argmin(np.isfinite(grades)))
        raise InputError(f"{source}: element {k + 1}: expected a finite number, got {grades[k]}")
    return grades


def check_weights(values: Any, sources: Sequence[str], name: str) -> Floats:
    """Convert numbers to the weights `(B,)` of examples in the losses of a training.

    The numbers are in any form that `real_array` accepts. Error messages have the names of the B
    examples, or of the weights. Raises InputError if the values are not B numbers, a number is
    neither 0 nor in the range WEIGHTS, or all numbers are 0.
    """
    weights = real_array(values, name, f"{len(sources)} numbers")
    if weights.shape != (len(sources),):
        got = len(weights) if weights.ndim == 1 else f"shape {weights.shape}"
        raise InputError(f"{name}: expected a number for each of {len(sources)} sets, got {got}")
    least, most = WEIGHTS
    is_weight = (weights == 0) | ((least <= weights) & (weights <= most))
    if not is_weight.all():
        k = int(is_weight.argmin())
        raise InputError(
            f"{sources[k]}: {name}: expected 0, or a number from {least:g} to {most:g}, got "
            f"{weights[k]:g}"
        )
    if not weights.any():
        raise InputError(f"{name}: expected a number above 0, got only zeros")
    return weights


def check_feasible(examples: Iterable[Example], task: Task) -> None:
    """Refuse an answer that is not feasible for its instance, such as an overloaded route.

    `check_answer` only looks at the indices. This function also looks at the inputs. Pass many
    examples at a time. Some tasks replay answers step by step, and hundreds of answers together
    take little longer than a single answer. Examples without an answer are not checked.
    """
    data = Dataset.of(examples)
    answers = [(k, data.outputs(k)) for k in np.flatnonzero(data.has_answers).tolist()]
    known = [(k, outputs) for k, outputs in answers if outputs is not None]
    reasons = task.infeasible([data.inputs(k) for k, _ in known], [outputs for _, outputs in known])
    for (k, _), reason in zip(known, reasons, strict=True):
        if reason:
            raise InputError(f"{data[k].source}: answer: {reason}")


# Distances


def check_matrix(values: Any, task: Task, source: str) -> Floats:
    """Convert finite numbers to a matrix `(n, n)` of distances, with 0 on the diagonal.

    The numbers are in any form that `real_array` accepts. We ignore their diagonal.
    """
    dist = real_array(values, source, "a square matrix of distances").copy()
    if dist.ndim != 2 or dist.shape[0] != dist.shape[1]:
        raise InputError(f"{source}: expected distances (n, n), got shape {dist.shape}")
    check_size(len(dist), task.facts.min_elements, source)
    np.fill_diagonal(dist, 0)
    if not np.isfinite(dist).all():
        i, j = np.argwhere(~np.isfinite(dist))[0]
        raise InputError(
            f"{source}: row {i + 1}, column {j + 1}: expected a finite distance, got {dist[i, j]}; "
            "write a large number if two elements are not connected"
        )
    check_distances(dist, EXPLICIT, source)
    return dist


def check_distances(inputs: Floats, distance: str, source: str) -> None:
    """Refuse coordinates, or distances of a matrix, above MAX_COORDINATE.

    With larger numbers, float64 would round the lengths of tours. The limit does not apply to
    Euclidean distances: they are not whole numbers, so float64 rounds lengths anyway.

    Warns:
        AmbiguousInputWarning: coordinates of GEO cannot be degrees and minutes, or distances are
            equal only because they were rounded.
    """
    if distance == EUCLIDEAN:
        return
    if np.abs(inputs).max() > MAX_COORDINATE:
        numbers = "distances" if distance == EXPLICIT else "coordinates"
        raise InputError(
            f"{source}: {distance}: expected {numbers} of at most "
            f"{MAX_COORDINATE:.0e}, got {np.abs(inputs).max():.3g}"
        )
    if doubt := doubt_about(inputs, distance):
        warn_ambiguous(f"{file_of(source)}: {doubt}")
