"""What a recipe may say: types and ranges of its values, and which of them go together."""

import typing
from dataclasses import fields
from typing import TYPE_CHECKING

from ptrnet import models, tasks
from ptrnet.data import checks
from ptrnet.data.sizes import parse_sizes
from ptrnet.errors import InputError
from ptrnet.settings import check_type

if TYPE_CHECKING:
    from ptrnet.training.recipe import Recipe

LARGEST_BATCH = 2**24  # elements, padding included


def check_values(recipe: "Recipe") -> None:
    """Refuses a value of another type, or out of range. Raises InputError."""
    hints = typing.get_type_hints(type(recipe))
    for f in fields(recipe):
        if typing.get_origin(hints[f.name]) is not dict:
            check_type(f.name, getattr(recipe, f.name), hints[f.name])
    for name in ("steps", "batch_size", "valid_every", "checkpoint_every", "devices", "nodes"):
        _check_minimum(name, getattr(recipe, name), 1)
    if recipe.batch_size % (recipe.devices * recipe.nodes):
        raise InputError(
            f"recipe: a batch of {recipe.batch_size} cannot be shared evenly by "
            f"{recipe.devices * recipe.nodes} processes"
        )
    for name in ("cuts", "valid_batches", "patience", "seed"):
        _check_minimum(name, getattr(recipe, name), 0)
    for name in ("learning_rate", "clip"):
        if not 0 < getattr(recipe, name) < float("inf"):
            raise InputError(f"recipe: {name} must be above 0, got {getattr(recipe, name)}")
    for name in ("warmup", "beta1", "beta2", "weight_decay", "valid_share"):
        if not 0 <= getattr(recipe, name) < 1:
            raise InputError(f"recipe: {name} must be in [0, 1), got {getattr(recipe, name)}")
    largest = parse_sizes(recipe.n)[-1]
    if recipe.batch_size * max(recipe.cuts, 1) * largest > LARGEST_BATCH:
        raise InputError(
            f"recipe: a batch of {recipe.batch_size} instances of {largest} elements is more "
            f"than {LARGEST_BATCH} elements"
        )
    if recipe.seed >= 2**63:
        raise InputError(f"recipe: seed must be below 2^63, got {recipe.seed}")


def check_combination(recipe: "Recipe") -> None:
    """Refuses what the task or the model does not know, and values that contradict each other.

    Raises:
        InputError: a setting, a size or a labeller that does not serve; options without which
            another one has no meaning.
    """
    task, sizes = tasks.get(recipe.task, **recipe.settings), parse_sizes(recipe.n)
    checks.check_sizes(sizes, task)
    models.settings_of(recipe.model, **recipe.network())
    if recipe.augment and not recipe.data:
        raise InputError("recipe: augment goes with data; fresh examples are new without it")
    if recipe.valid_share and (recipe.valid or not recipe.data):
        raise InputError("recipe: valid_share goes with data, and without valid")
    if recipe.patience and not (recipe.valid or recipe.valid_batches):
        raise InputError("recipe: patience goes with validations, valid_batches is 0")
    validates_on_file = recipe.valid or recipe.valid_share or not recipe.valid_batches
    draws_examples = not (recipe.data and validates_on_file)
    if draws_examples or (recipe.labeller and not task.labellers):
        task.check_labeller(recipe.labeller or None, sizes[-1])


def _check_minimum(name: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise InputError(f"recipe: {name} must be {minimum} or more, got {value}")
