"""The examples of a recipe: the stream of training batches, and the validation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ptrnet.data import formats, stored
from ptrnet.data.arrays import checksum_of
from ptrnet.data.batches import Batch, batches_of, rows_by_size
from ptrnet.data.columns import Columns
from ptrnet.data.infer_task import open_for_task
from ptrnet.data.streams import BatchStream, DatasetStream, FreshStream, cut_batch
from ptrnet.errors import InputError
from ptrnet.tasks.custom import Custom
from ptrnet.training.recipe import Recipe
from ptrnet.types import TRAIN, VALID, Dataset, Indices

MAX_TEST = 500  # the largest number of fresh examples for the scores of a model's card


def open_stream(recipe: Recipe, first: int = 0, data: Dataset | None = None) -> BatchStream:
    """Open the training batches of a recipe.

    Args:
        recipe: names the file of examples, or says how to draw fresh examples.
        first: the number of the first batch: 0, or the step from which a run is resumed.
        data: the examples of the recipe's file, or instances to learn from costs. If None, this
            function opens the file of the recipe, if there is one.

    Raises:
        InputError: a file cannot be used, or no example can be used for training.
    """
    given = recipe.data
    if data is None and not given.data:
        num_batches = given.examples // given.batch_size or None
        return _fresh_stream(recipe, first=first, num_batches=num_batches, num_cuts=given.cuts)
    if data is None:
        if isinstance(recipe.task, Custom):
            data = open_for_task(given.data, recipe.task, recipe.columns)
        else:
            data = stored.open_file(given.data, recipe.task, recipe.columns.group)
    elif not recipe.objective.has_answers:
        content = checksum_of([data.starts, data.elements])
        data = replace(data, fingerprint=f"{recipe.task.name}-{content}")
    return DatasetStream(
        recipe.task,
        given.n,
        given.batch_size,
        recipe.run.seed,
        data,
        first=first,
        num_cuts=given.cuts,
        has_answers=recipe.objective.has_answers,
        is_augmented=given.augment,
        valid_share=given.valid_share,
        max_valid=given.valid_batches * given.batch_size,
        num_parts=recipe.network.ensemble,
        name=given.data or "instances",
    )


def _fresh_stream(recipe: Recipe, split: int = TRAIN, **options: Any) -> FreshStream:
    return FreshStream(
        recipe.task,
        recipe.data.n,
        recipe.data.batch_size,
        recipe.run.seed,
        split,
        labeller=recipe.data.labeller or None,
        has_answers=recipe.objective.has_answers,
        **options,
    )


def open_valid(recipe: Recipe, stream: BatchStream) -> list[Dataset]:
    """Return the validation examples of a file, or those that the stream holds out.

    The list has a part for each network of an ensemble, or one part for all networks. If a recipe
    validates on fresh examples, or does not validate, the list is empty. Raises InputError if a
    file cannot be used.
    """
    if not recipe.data.valid:
        return list(stream.held_out)
    columns: Columns = recipe.columns
    if not formats.format_of(recipe.data.valid).has("table"):  # lines of JSON, next to a table
        columns = Columns(group=columns.group)
    rows = formats.read(recipe.data.valid, recipe.task, columns)
    valid = Dataset.of(rows)
    if isinstance(stream, DatasetStream):
        _check_other_groups(recipe, stream.examples, valid)
    return [valid]


def _check_other_groups(recipe: Recipe, learned: Dataset, valid: Dataset) -> None:
    """Refuse a validation file with a group that is also in the training's file."""
    known = set() if learned.groups is None else {*learned.groups.tolist()}
    for example in valid:
        if bool(known) != (example.group is not None):
            expected = "a group" if known else "no group"
            raise InputError(f"{example.source}: expected {expected}, as in {recipe.data.data}")
        if example.group in known:
            raise InputError(
                f"{example.source}: its group is also in {recipe.data.data}, but a group may only "
                "be in training or in validation"
            )


def make_valid_batches(recipe: Recipe, parts: Sequence[Dataset]) -> list[Batch]:
    """Return the validation batches: those of `open_valid`'s parts, or fresh ones.

    A batch has examples of only one part, so one network holds all of them out, or all networks do.
    Fresh batches are of a random stream that training does not use. If the recipe cuts answers,
    each answer is cut once.
    """
    task, batches, has_answers = recipe.task, list[Batch](), recipe.objective.has_answers
    for k, part in enumerate(parts):
        for batch in batches_of(part, task, recipe.data.batch_size, has_answers):
            held_out_by = torch.full_like(batch.lengths, k) if len(parts) > 1 else None
            batches.append(batch._replace(held_out_by=held_out_by))
    if not parts:
        fresh = _fresh_stream(recipe, VALID)
        batches = [fresh.batch(k) for k in range(recipe.data.valid_batches)]
    if recipe.data.cuts:
        rngs = (np.random.default_rng([recipe.run.seed, VALID, k, 1]) for k in range(len(batches)))
        batches = [cut_batch(rng, task, b, 1) for rng, b in zip(rngs, batches, strict=True)]
    return batches


def valid_groups(parts: Sequence[Dataset]) -> Indices | None:
    """Return the groups of the examples in the validation batches; None if unknown."""
    groups = [part.groups[rows_by_size(part)] for part in parts if part.groups is not None]
    return np.concatenate(groups) if groups else None


def fresh_test_examples(recipe: Recipe) -> Dataset | None:
    """Draw test examples that neither training nor validation has seen.

    Draw as many examples as the validation has, but at most MAX_TEST. If the recipe trains on a
    file or learns from costs, return None, because the answers to fresh instances may be unknown.
    """
    count = min(MAX_TEST, recipe.data.valid_batches * recipe.data.batch_size)
    if recipe.data.data or not recipe.objective.has_answers or not count:
        return None
    sizes, labeller = recipe.data.n, recipe.data.labeller or None
    from ptrnet.labels import generate_dataset

    return generate_dataset(
        recipe.task, sizes, count, recipe.run.seed, labeller, activity="labelling for the card"
    )
