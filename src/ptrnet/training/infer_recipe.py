"""The recipe of a training on a user's own examples, which follows from them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptrnet import tasks
from ptrnet.data.infer_task import InferredTask, infer_task
from ptrnet.errors import InputError, short
from ptrnet.settings import check_type
from ptrnet.tasks.custom import Unknown
from ptrnet.training.recipe import Recipe
from ptrnet.types import Indices

# Defaults for a file of examples; those of `Recipe` suit fresh ones without end.
STEPS, VALID_EVERY, VALID_SHARE, PATIENCE = 20_000, 500, 0.1, 10


def infer_recipe(path: str, overrides: dict[str, Any]) -> tuple[Recipe, str]:
    """The recipe of a training on a file of examples, and one line on what they are.

    Args:
        path: of the file; see `ptrnet.data.infer_task`.
        overrides: keys of a recipe, which overrule what follows from the examples; `constraint`
            is what answers are, the strictest that they obey where it is missing; `fields`, a
            list or a text such as price,colour, is what is read of elements that are objects.

    Raises:
        InputError: examples, or keys, that cannot be used.
    """
    constraint, fields = overrides.get("constraint"), field_names(overrides.get("fields", ()))
    unknown_category = overrides.get("unknown_category", "refuse")
    check_type("unknown_category", unknown_category, Unknown)
    inferred = infer_task(path, constraint, fields, unknown_category)
    task = inferred.task
    table = {
        "steps": STEPS,
        "valid_every": VALID_EVERY,
        **validation(overrides),
        "n": size_ranges(inferred.sizes),
        **{name: getattr(task, name) for name in task.settings()},
        **overrides,
        "fields": task.fields,
        "data": path,
        "task": tasks.CUSTOM,
    }
    return Recipe.from_table(table), _summary(inferred, constraint is None)


def field_names(fields: str | Sequence[str]) -> tuple[str, ...]:
    """The names of a list, or of a text such as price,colour.

    Raises:
        InputError: no such list, or a name that is empty.
    """
    if isinstance(fields, str):
        fields = [name.strip() for name in fields.split(",")]
    if not isinstance(fields, list | tuple) or not all(isinstance(f, str) and f for f in fields):
        raise InputError(f"fields: expected names of fields, got {short(fields)}")
    return tuple(fields)


def validation(overrides: dict[str, Any]) -> dict[str, Any]:
    """How the training validates: on a file, not at all where a 0 says so, else on a share."""
    if overrides.get("valid"):
        return {"patience": PATIENCE}
    if overrides.get("valid_share") == 0 and overrides.get("valid_batches"):
        raise InputError(
            "valid_batches: expected 0, or a file to validate on (valid): valid_share is 0"
        )
    if 0 in (overrides.get("valid_share"), overrides.get("valid_batches")):
        return {"valid_share": 0.0, "valid_batches": 0}
    return {"valid_share": VALID_SHARE, "patience": PATIENCE}


def size_ranges(sizes: Indices) -> str:
    """All sizes as a recipe writes them, such as 3,5-8."""
    distinct = np.unique(sizes)
    runs = np.split(distinct, np.flatnonzero(np.diff(distinct) > 1) + 1)
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _summary(inferred: InferredTask, guessed: bool) -> str:
    sizes, lengths, d = inferred.sizes, inferred.lengths, inferred.task.num_features
    schema = inferred.task.schema
    fields = f": {schema.describe()}" if schema else ""
    hint = " (guessed; the option constraint says otherwise)" if guessed else ""
    return (
        f"{len(sizes):,} examples of {sizes.min()} to {sizes.max()} elements of {d} "
        f"feature{'s' * (d > 1)}{fields}; answers of {lengths.min()} to {lengths.max()} indices, "
        f"taken as {inferred.task.constraint}{hint}"
    )
