"""Infer the task of a user's own examples: the kind of answers, and the scale of the features.

We read the examples for the loosest task, which accepts every answer. If the user named the kind of
answers, such as "set" or "permutation", we then check that all answers are of this kind. If the
user named no kind, we infer it from all answers.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from math import lgamma, log
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ptrnet.data import formats, stored
from ptrnet.data.arrays import records_of
from ptrnet.data.columns import ANSWERS, Columns
from ptrnet.data.formats.parts.json_values import num_features, records
from ptrnet.data.groups import SharedFields, common_id, warn_of_ids
from ptrnet.data.infer_schema import AS_IT_IS, Reading, context_of, infer_schema
from ptrnet.data.tables import Table, field_names, infer_sets, kind_of_sets
from ptrnet.errors import InputError, listed, short, warn_ambiguous
from ptrnet.tasks.custom import MAX_LENGTH, MIN_SPREAD, Custom, Kind
from ptrnet.tasks.schema import Schema
from ptrnet.types import Dataset, Example, Floats

_CHUNK = 2**12  # how many examples are in memory at a time
# Limits of `warn_of_positions`, in this order:
# - the minimum number of answers for a warning
# - the maximum number of answers that are examined
# - the minimum share of answers of the same form for a warning
_MIN_ANSWERS, _MAX_ANSWERS, _MIN_SHARE = 10, 10_000, 0.95
_MIN_CHANCE = 1e-6  # we assume that less probable coincidences do not happen


class InferredTask(NamedTuple):
    """The task of a user's examples, and the examples."""

    task: Custom
    examples: Dataset


def infer_task(
    path: str, kind: Kind | None = None, reading: Reading = AS_IT_IS, columns: Columns | None = None
) -> InferredTask:
    """Infer the task of the examples in a file. Return the task and the examples.

    Args:
        kind: the kind of the answers; inferred if None.
        reading: how to read elements with named fields.
        columns: the columns of ids and answers, if the file is a long table.

    Raises:
        InputError: the file cannot be read, an element lacks a field, an example has no answer, or
            an answer is not of the given kind. The message names the line.

    Warns:
        AmbiguousInputWarning: there are no groups, but a field looks like an id of groups.

    Examples:
        >>> _ = Path("mine.jsonl").write_text('{"inputs": [[2, 1], [0, 3]], "outputs": [1, 0]}\\n')
        >>> task, examples = infer_task("mine.jsonl")
        >>> task.kind, task.center, len(examples)
        ('permutation', (1.0, 2.0), 1)
    """
    opened = formats.open_table(path, columns)
    if opened is not None:
        return infer_task_of_table(*opened, kind, reading)
    shared = SharedFields()
    first, place = next(formats.instances(path))
    if records_of(first) is not None:
        pairs = ((records(*pair), pair[1]) for pair in formats.instances(path))
        loosest = task_of(infer_schema(shared.watch(pairs), reading))
    else:
        reading.check_unused(path)
        loosest = loosest_task(num_features(first, place))
    examples = stored.open_file(path, loosest, reading.group)
    if examples.groups is None:
        warn_of_ids(shared.ids, loosest.fields, path)
    return infer_task_of(examples, loosest, path, kind, reading.context)


def infer_task_of_table(
    table: Table, columns: Columns, kind: Kind | None = None, reading: Reading = AS_IT_IS
) -> InferredTask:
    """As `infer_task`, for a long table. If `kind` is None, the setting of the answers tells it."""
    source = table.source
    if not columns.answer[0]:
        raise InputError(
            f"{source}: expected the column of the answers, got none; name one of "
            f"{short(', '.join(table.columns), 200)} with --{', --'.join(ANSWERS[:-1])} or "
            f"--{ANSWERS[-1]}"
        )
    schema, examples = infer_sets(table, columns, reading)
    loosest = replace(task_of(schema), layout=table.layout)
    if examples.groups is None:
        names, sets = field_names(table, columns), examples.column("rows")
        found = ((name, _ids_in(table.columns[name], sets)) for name in names)
        warn_of_ids({name: ids for name, ids in found if ids is not None}, schema.fields, source)
    kind = kind or kind_of_sets(table, columns, examples)
    return infer_task_of(examples, loosest, source, kind, reading.context)


def _ids_in(column: Sequence[Any], sets: Sequence[Sequence[int]]) -> list[Any] | None:
    """Return the id that a column holds for each set; None if there is a set without one id."""
    ids = []
    for rows in sets:
        ids.append(common_id([column[row] for row in rows]))
        if ids[-1] is None:
            return None
    return ids


def infer_task_of(
    examples: Dataset,
    loosest: Custom,
    source: str,
    kind: Kind | None = None,
    context: Sequence[str] = (),
) -> InferredTask:
    """As `infer_task`, for a dataset.

    Args:
        examples: the examples, all with answers.
        loosest: the task that the examples were read for, from `loosest_task` or `task_of`.
        source: the name of the examples in error messages, such as their file.
        kind: the kind of the answers; inferred if None.
        context: the fields that have one value in all elements of an instance; inferred if empty.
    """
    if not examples.lengths.any():
        raise InputError(f"{source}: every answer is empty, expected one with an element")
    repeats = _find_repeats(examples)
    schema = loosest.facts.schema
    center, spread, lowest = feature_scaling(examples, schema.feature_names if schema else None)
    if schema is not None:
        # In the examples, missing numbers are filled with the schema's mean. A loaded model fills
        # missing numbers with its center. Mean and center must be equal, but `feature_scaling`
        # rounds the mean differently, so use the schema's mean as the center.
        center = np.where(schema.is_filled, loosest.center, center)
        center = np.where(schema.is_category, 0, center)
        spread = np.where(schema.is_category, 1, spread)
        context = context_of(examples, schema, context)
    task = replace(
        loosest,
        kind=kind or _infer_kind(examples, repeats),
        context=tuple(context),
        unknown="missing",
        center=tuple(center.tolist()),
        spread=tuple(spread.tolist()),
        lowest=tuple(lowest.tolist()),
        longest_answer=min(int(examples.lengths.max()), MAX_LENGTH),
        longest_share=min(float((examples.lengths / examples.sizes).max()), MAX_LENGTH),
    )
    _check_answers(source, task, examples, repeats)
    return InferredTask(task, examples)


def open_for_task(path: str, task: Custom, columns: Columns | None = None) -> Dataset:
    """Return examples for an existing task, which may have been inferred from another file.

    Args:
        path: a file, or a folder that `stored.save` wrote.
        columns: the columns of ids and answers, if the file is a long table; and the field of
            groups, unless the path is a folder.

    Raises:
        InputError: elements have more or fewer features than the task's elements, or a value that
            the task's fields do not have, or an answer is too long or not of the task's kind. The
            message about an answer names its line, or its row in a saved folder.
    """
    loosest = replace(task, kind="sequence", unknown="refuse", missing="fill")  # as `task_of`
    if stored.is_saved(path):
        examples = stored.open_folder(Path(path), loosest)
    elif opened := formats.open_sets(path, columns, loosest):
        examples = opened[0]
    else:
        expected = task.facts.num_features
        if task.facts.schema is None:
            d = num_features(*next(formats.instances(path)))
            if d != expected:
                raise InputError(f"{path}: expected elements of {expected} numbers, got {d}")
        group = "" if columns is None else columns.group
        examples = stored.open_file(path, loosest, group)
    _check_answers(path, task, examples, _find_repeats(examples))
    return examples


def loosest_task(d: int) -> Custom:
    """Return the task that accepts every example whose elements have d features."""
    return Custom(center=(0.0,) * d, spread=(1.0,) * d)


def task_of(schema: Schema) -> Custom:
    """Return the task that accepts every example whose elements have the fields of a schema.

    It refuses other values, because it reads the examples of a training.
    """
    center = np.zeros(len(schema.is_category))
    center[schema.is_filled] = [value for _, value in schema.fills]
    return replace(
        loosest_task(len(center)),
        fields=schema.fields,
        categories=schema.categories,
        filled=tuple(field for field, _ in schema.fills),
        common=schema.common if any(schema.common) else (),
        context=schema.context,
        increasing=schema.increasing,
        decreasing=schema.decreasing,
        unknown="refuse",
        center=tuple(center.tolist()),
    )


def feature_scaling(
    examples: Dataset, names: Sequence[str] | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return the mean, the standard deviation and the smallest value `(d,)` of each feature.

    If a feature is constant, or its deviation is below MIN_SPREAD, we return 1 as its deviation,
    because we divide by deviations.

    Warns:
        AmbiguousInputWarning: features are not constant, but their deviations are below
            MIN_SPREAD. The message has their names from `names`, or their numbers.
    """
    # Do not add up squares of values in one pass: far from 0, rounding would destroy the deviation.
    parts = [part.elements for part in examples.chunks(_CHUNK)]
    lowest = np.min([part.min(0) for part in parts], 0)
    highest = np.max([part.max(0) for part in parts], 0)
    unit = np.maximum(np.abs(lowest), np.abs(highest))  # divide by `unit`, so squares are finite
    unit = np.where(unit > 0, unit, 1)
    count = len(examples.elements)
    mean = np.sum([(part / unit).sum(0) for part in parts], axis=0) / count
    squares = [((part / unit - mean) ** 2).sum(0) for part in parts]
    spread = np.sqrt(np.sum(squares, axis=0) / count) * unit
    is_varied = (lowest < highest) & (spread >= MIN_SPREAD)
    narrow = np.flatnonzero((lowest < highest) & ~is_varied).tolist()
    if narrow:
        which = listed(short(names[k]) if names else f"number {k + 1}" for k in narrow)
        warn_ambiguous(
            f"{which}: all values are within {(highest - lowest)[narrow].max():.0e} of each other, "
            "so the model reads them as equal; write them in a smaller unit"
        )
    return mean * unit, np.where(is_varied, spread, 1), lowest


# The kind of answers


def _infer_kind(examples: Dataset, repeats: NDArray[np.bool_]) -> Kind:
    """Return the strictest kind that fits all answers.

    If the indices of all answers ascend, we assume that the answers are sets, whose order means
    nothing. But the indices of a few answers may ascend by chance: m indices in random order ascend
    with probability 1 / m!. If it is too likely that all answers ascend by chance, we return
    "subset" instead of "set".
    """
    if examples.grades is not None:
        return "grades"
    if repeats.any():
        return "sequence"
    if (examples.lengths == examples.sizes).all():
        return "permutation"
    if (examples.lengths == 1).all():
        return "choice"
    counts = np.bincount(examples.lengths)
    log_chance = -sum(count * lgamma(length + 1) for length, count in enumerate(counts.tolist()))
    return "set" if log_chance < log(_MIN_CHANCE) and _all_ascend(examples) else "subset"


def _find_repeats(examples: Dataset) -> NDArray[np.bool_]:
    """Return `(B,)`: which answers have an index twice."""
    found = []
    span = int(examples.sizes.max(initial=0))
    for part in examples.chunks(_CHUNK):
        # Encode each pair (answer, index) as one number. After sorting, repeats are neighbours.
        pairs = np.sort(np.repeat(np.arange(len(part)) * span, part.lengths) + part.indices)
        repeated = pairs[1:][pairs[1:] == pairs[:-1]] // span
        found.append(np.bincount(repeated, minlength=len(part)) > 0)
    return np.concatenate(found)


def _all_ascend(examples: Dataset) -> bool:
    """Whether the indices of each answer ascend."""
    for part in examples.chunks(_CHUNK):
        owners = np.repeat(np.arange(len(part)), part.lengths)
        if ((np.diff(part.indices) <= 0) & (np.diff(owners) == 0)).any():
            return False
    return True


def _check_answers(path: str, task: Custom, examples: Dataset, repeats: NDArray[np.bool_]) -> None:
    """Refuse the first answer that is too long, or is not of the task's kind."""
    sizes, inverse = np.unique(examples.sizes, return_inverse=True)
    max_lengths = np.array([task.max_length(int(n)) for n in sizes])[inverse]
    refused = examples.lengths > max_lengths
    if not task.facts.repeats:
        refused |= repeats
    if task.is_ranking:
        refused |= examples.lengths != examples.sizes
    if task.kind == "choice":
        refused |= examples.lengths != 1
    if refused.any():
        _refuse(path, task, examples, int(np.argmax(refused)))


def _refuse(path: str, task: Custom, examples: Dataset, row: int) -> NoReturn:
    """Raise InputError for the answer of a row. The message names the line or the row."""
    example: Example | None = examples[row]
    source, key = f"{path}: row {row + 1}", "outputs"
    if "source" in examples.columns:
        source = examples.columns["source"][row]
    elif not Path(path).is_dir():  # a memory map of a file has no sources: read the file again
        rows = islice(formats.read_instances(path, replace(task, kind="sequence")), row, row + 1)
        example = next(rows, None)
        source, key = example.source if example else path, '"outputs"'
    if example is None or example.outputs is None:
        raise InputError(f"{path}: was changed while it was read")
    n = len(example.inputs)
    complaint = task.answer_error(n, example.outputs)
    if complaint:
        raise InputError(f"{source}: {key}: answer: {complaint}")
    raise InputError(
        f"{source}: expected at most {task.max_length(n)} indices, got {len(example.outputs)}"
    )


def warn_of_positions(examples: Dataset) -> None:
    """Warn if nearly all answers follow from the positions of the elements alone.

    These answers have one of three forms: the first elements in order, the last elements in reverse
    order, or the same positions in all instances of the same size. A model that ignores positions
    cannot learn the answers, and a model that sees positions would learn nothing else.

    Warns:
        AmbiguousInputWarning: one of the three forms fits at least 95% of the answers. Fewer than
            10 answers never cause a warning.
    """
    counts, same, num_rows = Counter[str](), Counter[tuple[int, ...]](), 0
    for row in range(min(len(examples), _MAX_ANSWERS)):
        n, outputs = int(examples.sizes[row]), examples.outputs(row)
        if n < 2 or outputs is None or not outputs.size:
            continue
        num_rows += 1
        answer = outputs.ravel().tolist()
        counts["the first elements in order"] += answer == [*range(len(answer))]
        last = [*range(n - 1, n - 1 - len(answer), -1)]
        counts["the last elements in reverse order"] += answer == last
        same[n, *answer] += 1
    most = {n: count for (n, *_), count in reversed(same.most_common()) if count > 1}
    counts["the same positions"] = sum(most.values())
    form = max(counts, key=lambda name: counts[name])
    if num_rows >= _MIN_ANSWERS and counts[form] >= _MIN_SHARE * num_rows:
        warn_ambiguous(
            f"{counts[form] / num_rows:.0%} of the answers are {form}. Were the elements sorted by "
            "their answer? ptrnet ignores the order of elements, unless you set ordered."
        )
