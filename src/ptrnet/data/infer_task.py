"""The task of a user's own examples: the kind of their answers, the scale of their features.

Both are inferred from a `Dataset`, usually of memory maps. A file is read with the loosest task,
because its kind is not known yet. So whether answers are of a kind is checked here.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import lgamma, log
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ptrnet.data import formats, stored
from ptrnet.data.dataset import Dataset
from ptrnet.data.infer_schema import Missing, context_of, infer_schema
from ptrnet.data.tables import ANSWERS, Columns, Sets
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.tasks.custom import MAX_LENGTH, MIN_SPREAD, Custom, Kind, Unknown
from ptrnet.tasks.schema import Element, Schema
from ptrnet.types import Example, Floats, Indices

_CHUNK = 2**20  # elements and indices that are in memory at a time
# `warn_of_positions` looks at this many answers, of each size at most, and warns if this share of
# them agrees.
_FEWEST_DOUBTED, _MAX_DOUBTED, _DOUBTED_SHARE = 10, 10_000, 0.95
_CHANCE = 1e-6  # what is less likely than this is not taken for chance


class InferredTask(NamedTuple):
    """The task of a user's examples, and the examples."""

    task: Custom
    examples: Dataset


class Reading(NamedTuple):
    """How elements with fields are read.

    Args:
        fields: that the model reads; if empty, all.
        unknown_category: whether texts that no example has are refused, or ignored.
        missing: whether missing values are filled in, or refused.
        context: the fields that all elements of an instance share; looked for if empty.
    """

    fields: Sequence[str] = ()
    unknown_category: Unknown = "refuse"
    missing: Missing = "fill"
    context: Sequence[str] = ()

    def schema(self, instances: Iterable[tuple[Sequence[Element], str]]) -> Schema:
        """Return the schema of the elements of instances; see `infer_schema`."""
        return infer_schema(instances, self.fields, self.unknown_category == "ignore", self.missing)


AS_IT_IS = Reading()


def infer_task(
    path: str,
    kind: Kind | None = None,
    reading: Reading = AS_IT_IS,
    columns: Columns | None = None,
) -> InferredTask:
    """Return the task of all examples of a file.

    Args:
        path: of the file.
        kind: of the answers; guessed from them if None.
        reading: how elements with fields are read.
        columns: which columns of a long table say what.

    Raises:
        InputError: fields that elements do not have, a file that cannot be used, an example
            without an answer, or the first answer that is not of the kind, by its line.

    Warns:
        AmbiguousInputWarning: no kind is given, and the answers look like masks, closed cycles or
            padded rows.
    """
    sets = formats.open_sets(path, columns)
    if sets is not None:
        return infer_task_of_sets(sets, kind, reading)
    instances = formats.format_of(path).dictionaries(path)
    if instances is not None:
        loosest = task_of(reading.schema(instances))
    else:
        loosest = loosest_task(formats.num_features(path))
        for name in ("fields", "context"):
            if getattr(reading, name):
                raise InputError(
                    f"{path}: {name} are of elements that are objects, got rows of numbers"
                )
    return infer_task_of(stored.open_file(path, loosest), loosest, path, kind, reading.context)


def infer_task_of_sets(
    sets: Sets, kind: Kind | None = None, reading: Reading = AS_IT_IS
) -> InferredTask:
    """As `infer_task`, of the sets of a long table, whose columns say of what kind answers are."""
    source = sets.table.source
    if not sets.columns.answer[0]:
        raise InputError(f"{source}: expected the column of the answers: {', '.join(ANSWERS)}")
    ignores_unknown = reading.unknown_category == "ignore"
    schema, examples = sets.for_training(reading.fields, ignores_unknown, reading.missing)
    return infer_task_of(examples, task_of(schema), source, kind or sets.kind, reading.context)


def infer_task_of(
    examples: Dataset,
    loosest: Custom,
    source: str,
    kind: Kind | None = None,
    context: Sequence[str] = (),
) -> InferredTask:
    """As `infer_task`, of a dataset.

    Args:
        examples: with answers.
        loosest: the task by which they were read.
        source: their file, or what messages call them.
        kind: of the answers; guessed from them if None.
        context: the fields that all elements of an instance share; looked for if empty.
    """
    repeats = _find_repeats(examples)
    if kind is None and repeats.any():
        _warn_of_other_forms(examples)
    center, spread = feature_scaling(examples)
    schema = loosest.schema
    if schema is not None:
        # A model that is loaded fills in missing numbers by its center, so the bits must be equal.
        center = np.where(schema.is_filled, loosest.center, center)
        center = np.where(schema.is_category, 0, center)
        spread = np.where(schema.is_category, 1, spread)
        context = context_of(examples, schema, context)
    task = replace(
        loosest,
        kind=kind or _guess(examples, repeats),
        context=tuple(context),
        center=tuple(center.tolist()),
        spread=tuple(spread.tolist()),
        longest_answer=min(int(examples.lengths.max()), MAX_LENGTH),
        longest_share=min(float((examples.lengths / examples.sizes).max()), MAX_LENGTH),
    )
    _check_answers(source, task, examples, repeats)
    return InferredTask(task, examples)


def open_checked(path: str, task: Custom, columns: Columns | None = None) -> Dataset:
    """Return the examples of a file for a task that was inferred before, from this file or another.

    Raises:
        InputError: elements with another number of features, or the first answer that is too long
            or is not of the task's kind, by its line.
    """
    loosest = replace(task, kind="sequence")
    if stored.is_saved(path):
        examples = stored.open_folder(Path(path), loosest)
    elif sets := formats.open_sets(path, columns):
        examples = sets.dataset(loosest)
    else:
        d = task.num_features if task.schema else formats.num_features(path)
        if d != task.num_features:
            raise InputError(f"{path}: expected elements of {task.num_features} numbers, got {d}")
        examples = stored.open_file(path, loosest)
    _check_answers(path, task, examples, _find_repeats(examples))
    return examples


def loosest_task(d: int) -> Custom:
    """Return the task that takes every example whose elements have d features."""
    return Custom(center=(0.0,) * d, spread=(1.0,) * d)


def task_of(schema: Schema) -> Custom:
    """Return the task that takes every example whose elements have these fields."""
    center = np.zeros(len(schema.is_category))
    center[schema.is_filled] = [value for _, value in schema.fills]
    return replace(
        loosest_task(len(center)),
        fields=schema.fields,
        categories=schema.categories,
        filled=tuple(field for field, _ in schema.fills),
        context=schema.context,
        unknown_category="ignore" if schema.ignores_unknown else "refuse",
        center=tuple(center.tolist()),
    )


def feature_scaling(examples: Dataset) -> tuple[Floats, Floats]:
    """Return mean and standard deviation `(d,)` of each feature; 1 for that of a constant feature.

    The elements are passed over three times: for the range, for the mean, and for the squares of
    the distances from it. The squares of the numbers themselves, which one pass could add up, lose
    the spread of values that are far from 0.
    """
    parts = [part.elements for part in _parts(examples)]
    lowest = np.min([part.min(0) for part in parts], 0)
    highest = np.max([part.max(0) for part in parts], 0)
    unit = np.maximum(np.abs(lowest), np.abs(highest))  # squares of multiples of it stay finite
    unit = np.where(unit > 0, unit, 1)
    count = len(examples.elements)
    mean = np.sum([(part / unit).sum(0) for part in parts], axis=0) / count
    squares = [((part / unit - mean) ** 2).sum(0) for part in parts]
    spread = np.sqrt(np.sum(squares, axis=0) / count) * unit
    return mean * unit, np.where((lowest < highest) & (spread >= MIN_SPREAD), spread, 1)


def _parts(examples: Dataset) -> Iterator[Dataset]:
    """Yield views of consecutive rows, of about _CHUNK elements and indices each."""
    ends = np.cumsum(examples.sizes + examples.lengths)
    first = 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(ends, before + _CHUNK)))
        yield examples[first:stop]
        first = stop


# The kind of answers


def _guess(examples: Dataset, repeats: NDArray[np.bool_]) -> Kind:
    """Return the strictest kind that all answers are of.

    Answers are sets if the indices of all of them ascend and chance does not explain that.
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
    return "set" if log_chance < log(_CHANCE) and _all_ascend(examples) else "subset"


def _find_repeats(examples: Dataset) -> NDArray[np.bool_]:
    """Return `(B,)`: whether an index occurs twice in the answer."""
    return np.concatenate([_repeats(part.indices, part.lengths) for part in _parts(examples)])


def _repeats(flat: Indices, lengths: Indices) -> NDArray[np.bool_]:
    """Return `(B,)`: whether a number occurs twice in an answer, given flat and by its length."""
    owners = np.repeat(np.arange(len(lengths)), lengths)
    lowest, highest = int(flat.min(initial=0)), int(flat.max(initial=0))
    # (answer, number) pairs as one number each: equal neighbours are a repeated number.
    span = highest - lowest + 1
    pairs = np.sort(owners * span + (flat - lowest))
    repeated = pairs[1:][pairs[1:] == pairs[:-1]] // span
    return np.bincount(repeated, minlength=len(lengths)) > 0


def _all_ascend(examples: Dataset) -> bool:
    """Whether the indices of each answer ascend."""
    for part in _parts(examples):
        owners = np.repeat(np.arange(len(part)), part.lengths)
        if ((np.diff(part.indices) <= 0) & (np.diff(owners) == 0)).any():
            return False
    return True


def _check_answers(path: str, task: Custom, examples: Dataset, repeats: NDArray[np.bool_]) -> None:
    """Refuse the first answer that is too long, or is not of the task's kind."""
    sizes, inverse = np.unique(examples.sizes, return_inverse=True)
    max_lengths = np.array([task.max_length(int(n)) for n in sizes])[inverse]
    refused = examples.lengths > max_lengths
    if not task.repeats:
        refused |= repeats
    if task.is_ranking:
        refused |= examples.lengths != examples.sizes
    if task.kind == "choice":
        refused |= examples.lengths != 1
    if refused.any():
        _refuse(path, task, examples, int(np.argmax(refused)))


def _refuse(path: str, task: Custom, examples: Dataset, row: int) -> NoReturn:
    """Raise what is wrong with the answer of a row, by its line."""
    rows: Iterable[Example] = [examples[row]]
    key = "outputs"
    if "source" not in examples.carried:  # memory maps do not keep it
        rows = islice(formats.read(path, replace(task, kind="sequence")), row, row + 1)
        key = '"outputs"'
    for example in rows:
        n, outputs = len(example.inputs), example.outputs
        if outputs is None:
            break
        complaint = task.answer_error(n, outputs)
        if complaint:
            raise InputError(f"{example.source}: {key}: answer: {complaint}")
        raise InputError(
            f"{example.source}: expected at most {task.max_length(n)} indices, got {len(outputs)}"
        )
    raise InputError(f"{path}: was changed while it was read")


# Answers that were probably meant in another form


def _warn_of_other_forms(examples: Dataset) -> None:
    """Warn if all answers look like masks, like closed tours or like padded lists."""
    for form, doubt in _FORMS.items():
        if all(form(part, examples) for part in _parts(examples)):
            warnings.warn(
                f"{doubt} Otherwise an answer may contain an index any number of times.",
                AmbiguousInputWarning,
                stacklevel=4,
            )
            return


def _are_masks(part: Dataset, whole: Dataset) -> bool:
    """Whether answers have a 0 or a 1 for each element; some of three elements or more."""
    is_long = part.lengths == part.sizes
    return bool(whole.sizes.max() > 2 and is_long.all() and (part.indices <= 1).all())


def _are_closed(part: Dataset, whole: Dataset) -> bool:
    """Whether answers repeat their first index at the end, and no other."""
    flat, ends = part.indices, np.cumsum(part.lengths)
    if part.lengths.min() < 3 or (flat[ends - 1] != flat[ends - part.lengths]).any():
        return False
    flat[ends - 1] = -1
    return not _repeats(flat, part.lengths).any()


def _are_padded(part: Dataset, whole: Dataset) -> bool:
    """Whether answers are of one length, and repeat an index only in a run of it at the end."""
    longest = int(whole.lengths.max())
    if part.lengths.min() < longest or longest < 3:
        return False
    answers = part.indices.reshape(-1, longest)
    is_end = np.flip(np.flip(answers == answers[:, -1:], 1).cumprod(1), 1) == 1
    is_end &= is_end.sum(1, keepdims=True) > 1
    distinct = np.where(is_end, -1 - np.arange(longest), answers)
    return not _repeats(distinct.ravel(), part.lengths).any()


_FORMS: dict[Callable[[Dataset, Dataset], bool], str] = {
    _are_masks: "each answer has a 0 or a 1 for every element. If these tell which elements belong "
    "to the answer, write the positions of those elements instead.",
    _are_closed: "each answer repeats its first index at the end. If answers are closed cycles, "
    "leave the repeated index out.",
    _are_padded: "all answers have one length, and repeat indices at their end alone. If that is "
    "padding, leave it out.",
}


def warn_of_positions(examples: Dataset) -> None:
    """Warn if nearly all answers are one function of the elements' positions.

    Such answers are the first elements in their order, the last ones backwards, or one answer for
    each number of elements. A model that does not see positions cannot learn them, and one that
    does would learn nothing else.

    Warns:
        AmbiguousInputWarning: they are.
    """
    counts = {"the first ones, as they stand": 0, "the last ones, backwards": 0, "one answer": 0}
    num_rows = 0
    for n in np.unique(examples.sizes[examples.sizes > 1]).tolist():
        rows = np.flatnonzero((examples.sizes == n) & (examples.lengths > 0))[:_MAX_DOUBTED]
        if not len(rows):
            continue
        _, answers = examples.rows_of_one_size(rows)
        places = np.where(answers.mask, answers.indices, -1)
        steps = np.arange(places.shape[1])
        num_rows += len(rows)
        for form, expected in zip(counts, (steps, n - 1 - steps), strict=False):
            counts[form] += int(np.where(answers.mask, places == expected, True).all(1).sum())
        counts["one answer"] += int(np.unique(places, axis=0, return_counts=True)[1].max())
    form = max(counts, key=lambda name: counts[name])
    if num_rows >= _FEWEST_DOUBTED and counts[form] >= _DOUBTED_SHARE * num_rows:
        what = "the same elements by position" if form == "one answer" else f"elements {form}"
        warnings.warn(
            f"{counts[form] / num_rows:.0%} of the answers are {what}: were the elements sorted by "
            "their answer? ptrnet learns from their features alone, unless you say that their "
            "order means something (ordered).",
            AmbiguousInputWarning,
            stacklevel=4,
        )
