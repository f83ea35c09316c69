"""Examples to train on, and examples to validate on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from ptrnet.data import formats, stored
from ptrnet.data.batches import batches_of, sorted_by_size
from ptrnet.data.groups import codes_of
from ptrnet.data.infer_task import open_for_task
from ptrnet.data.random_streams import VALID
from ptrnet.data.streams import BatchStream, CutStream, DatasetStream, ExampleStream, cut_batch
from ptrnet.data.tables import Columns
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import Custom
from ptrnet.training.recipe import Recipe
from ptrnet.types import Batch, CutBatch, Dataset, Example, Indices, InstanceBatch

MAX_TEST = 500  # the largest number of fresh examples for the scores of a model's card


class TrainingExamples(NamedTuple):
    """The training stream and the validation examples of a recipe."""

    stream: BatchStream[Any]  # yields `CutBatch`es if the recipe cuts answers
    # Validation examples from a file, for the validation loss and for the scores of the model's
    # card. The list has a part for each network of an ensemble, or one part for all networks. If
    # validation examples are not from a file, the list is empty.
    valid: list[list[Example]]
    valid_batches: Sequence[Batch | CutBatch | InstanceBatch]
    # The codes of the groups of the validation examples, in the order of the batches, if known.
    valid_groups: Indices | None = None


def open_examples(recipe: Recipe, first: int, examples: Dataset | None = None) -> TrainingExamples:
    """Open the examples of a recipe that learns from answers.

    Args:
        recipe: names the files, or says how to draw fresh examples.
        first: the number of the first batch: 0, or the step from which a run is resumed.
        examples: the examples of the recipe's file. If None, this function opens the file.

    Raises:
        InputError: a file cannot be used.
    """
    task = recipe.task
    stream: DatasetStream | ExampleStream
    if recipe.data:
        stream = _dataset_stream(recipe, task, first, examples)
    else:
        stream = _fresh_stream(recipe, task, first)
    valid = [list(part) for part in stream.held_out]
    if recipe.valid:
        columns: Columns = recipe.columns
        if not formats.format_of(recipe.valid).has("table"):  # lines of JSON, next to a table
            columns = Columns(group=columns.group)
        valid = [list(formats.read(recipe.valid, task, columns))]
        if isinstance(stream, DatasetStream):
            _check_other_groups(recipe, stream.examples, valid[0])
    groups = codes_of(example for part in valid for example in sorted_by_size(part))
    if valid:
        valid_batches = _valid_batches(recipe, task, valid)
    else:
        valid_batches = _fresh_valid_batches(recipe, task)
    if not recipe.cuts:
        return TrainingExamples(stream, valid, valid_batches, groups)
    cut_stream = CutStream(stream, task, recipe.cuts, recipe.seed)
    cut_batches = _cut_valid_batches(recipe, task, valid_batches)
    return TrainingExamples(cut_stream, valid, cut_batches, groups)


def _check_other_groups(recipe: Recipe, learned: Dataset, valid: Sequence[Example]) -> None:
    """Refuse a validation file with a group that is also in the training's file."""
    known = set() if learned.groups is None else {*learned.groups.tolist()}
    for example in valid:
        if bool(known) != (example.group is not None):
            expected = "a group" if known else "no group"
            raise InputError(f"{example.source}: expected {expected}, as in {recipe.data}")
        if example.group in known:
            raise InputError(
                f"{example.source}: its group is also in {recipe.data}, but a group may only be in "
                "training or in validation"
            )


def fresh_test_examples(recipe: Recipe) -> list[Example]:
    """Draw test examples that neither training nor validation has seen.

    Draw as many examples as the validation has, but at most MAX_TEST. If the recipe trains on a
    file or learns from costs, return an empty list, because the answers to fresh instances may be
    unknown.
    """
    count = min(MAX_TEST, recipe.valid_batches * recipe.batch_size)
    if recipe.data or recipe.learning != "answers" or not count:
        return []
    sizes, labeller = recipe.n, recipe.labeller or None
    from ptrnet.labels import generate_dataset

    return list(
        generate_dataset(
            recipe.task, sizes, count, recipe.seed, labeller, activity="labelling for the card"
        )
    )


def _dataset_stream(
    recipe: Recipe, task: Task, first: int, examples: Dataset | None
) -> DatasetStream:
    if examples is None:
        if isinstance(task, Custom):
            examples = open_for_task(recipe.data, task, recipe.columns)
        else:
            examples = stored.open_file(recipe.data, task, recipe.columns.group)
    return DatasetStream(
        examples,
        task,
        recipe.n,
        recipe.batch_size,
        recipe.seed,
        first=first,
        is_augmented=recipe.augment,
        valid_share=recipe.valid_share,
        max_valid=recipe.valid_batches * recipe.batch_size,
        num_parts=recipe.network.ensemble,
        name=recipe.data,
    )


def _fresh_stream(recipe: Recipe, task: Task, first: int) -> ExampleStream:
    return ExampleStream(
        task,
        recipe.n,
        recipe.batch_size,
        recipe.seed,
        first=first,
        labeller=recipe.labeller or None,
        num_batches=recipe.examples // recipe.batch_size or None,
    )


def _valid_batches(recipe: Recipe, task: Task, parts: list[list[Example]]) -> list[Batch]:
    """Batch the validation examples.

    A batch has examples of only one part, so one network holds all of them out, or all networks do.
    """
    batches = []
    for k, part in enumerate(parts):
        for batch in batches_of(part, task, recipe.batch_size):
            held_out_by = torch.full_like(batch.lengths, k) if len(parts) > 1 else None
            batches.append(batch._replace(held_out_by=held_out_by))
    return batches


def _fresh_valid_batches(recipe: Recipe, task: Task) -> list[Batch]:
    """Draw fresh batches from a random stream that training does not use."""
    if not recipe.valid_batches:
        return []
    stream = ExampleStream(
        task,
        recipe.n,
        recipe.batch_size,
        recipe.seed,
        VALID,
        labeller=recipe.labeller or None,
    )
    return [stream.batch(k) for k in range(recipe.valid_batches)]


def _cut_valid_batches(recipe: Recipe, task: Task, batches: Sequence[Batch]) -> list[CutBatch]:
    """Cut each answer of the validation batches once. The recipe's seed determines the cuts."""
    return [
        cut_batch(np.random.default_rng([recipe.seed, VALID, k, 1]), task, batch, 1)
        for k, batch in enumerate(batches)
    ]
