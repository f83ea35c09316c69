"""The examples of a training: those that it learns from, and those that it validates on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ptrnet.data import formats, stored
from ptrnet.data.batches import batches_of
from ptrnet.data.dataset import Dataset
from ptrnet.data.infer_task import open_checked
from ptrnet.data.random_streams import VALID
from ptrnet.data.streams import BatchStream, CutStream, DatasetStream, ExampleStream, cut_batch
from ptrnet.data.symmetries import augment, identity
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import Custom
from ptrnet.training.recipe import Recipe
from ptrnet.types import Batch, CutBatch, Example, InstanceBatch

MAX_TEST = 500  # fresh examples that a model's card has scores of


class TrainingExamples(NamedTuple):
    """What a recipe's training reads or draws."""

    stream: BatchStream[Any]  # of `CutBatch`es where the recipe cuts answers
    valid: list[Example]  # of a file, to validate on and for the card; empty: fresh ones do
    valid_batches: Sequence[Batch | CutBatch | InstanceBatch]


def open_examples(
    recipe: Recipe, task: Task, first: int, examples: Dataset | None = None
) -> TrainingExamples:
    """The examples of a training that begins with batch number `first`.

    Args:
        recipe: of the training.
        task: of the recipe.
        first: the number of the first batch.
        examples: those of the recipe's file, if they are open already.

    Raises:
        InputError: a file that cannot be used.
    """
    stream: DatasetStream | ExampleStream
    if recipe.data:
        stream = _dataset_stream(recipe, task, first, examples)
    else:
        stream = _fresh_stream(recipe, task, first)
    known = formats.read(recipe.valid, task, recipe.columns) if recipe.valid else stream.held_out
    valid = list(known)
    valid_batches = (
        batches_of(valid, task, recipe.batch_size) if valid else _fresh_valid_batches(recipe, task)
    )
    if not recipe.cuts:
        return TrainingExamples(stream, valid, valid_batches)
    cut_stream = CutStream(stream, task, recipe.cuts, recipe.seed)
    return TrainingExamples(cut_stream, valid, _cut_valid_batches(recipe, task, valid_batches))


def fresh_test_examples(recipe: Recipe, task: Task) -> list[Example]:
    """Examples that neither training nor validation has drawn, as many as that has, or MAX_TEST.

    None where the training is on a file or from costs: there nobody need know answers.
    """
    count = min(MAX_TEST, recipe.valid_batches * recipe.batch_size)
    if recipe.data or recipe.learning != "answers" or not count:
        return []
    sizes, labeller = recipe.n, recipe.labeller or None
    from ptrnet.labels import generate_dataset

    return list(
        generate_dataset(
            task, sizes, count, recipe.seed, labeller, activity="labelling for the card"
        )
    )


def _dataset_stream(
    recipe: Recipe, task: Task, first: int, examples: Dataset | None
) -> DatasetStream:
    if examples is None:
        if isinstance(task, Custom):
            examples = open_checked(recipe.data, task, recipe.columns)
        else:
            examples = stored.open_file(recipe.data, task)
    return DatasetStream(
        examples,
        task,
        recipe.n,
        recipe.batch_size,
        recipe.seed,
        first,
        transform=augment if recipe.augment else identity,
        valid_share=recipe.valid_share,
        max_valid=recipe.valid_batches * recipe.batch_size,
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


def _fresh_valid_batches(recipe: Recipe, task: Task) -> list[Batch]:
    """Fresh batches of which the training draws none."""
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
    """The batches of a validation, each answer cut once."""
    return [
        cut_batch(np.random.default_rng([recipe.seed, VALID, k, 1]), task, batch, 1)
        for k, batch in enumerate(batches)
    ]
