"""A user's own examples: the recipe that follows from them."""

from typing import Any

import numpy as np

from ptrnet import tasks
from ptrnet.data.infer_task import InferredTask, infer_task
from ptrnet.training.recipe import Recipe
from ptrnet.types import Indices

# What suits a file of examples, where the recipe's defaults suit fresh ones without end.
STEPS, VALID_EVERY, VALID_SHARE, PATIENCE = 20_000, 500, 0.1, 10


def recipe_for(data: str, given: dict[str, Any]) -> tuple[Recipe, str]:
    """The recipe of a training on a file of examples, and one line on what they are.

    Args:
        data: the file; see `ptrnet.data.infer_task`.
        given: flat keys of a recipe, which overrule what follows from the examples; `constraint`
            is what answers are, the strictest that they obey where it is not given.

    Raises:
        InputError: examples, or keys, that cannot be used.
    """
    asked = given.get("constraint")
    inferred = infer_task(data, asked)
    task = inferred.task
    steps = given.get("steps", STEPS)
    short = isinstance(steps, int) and 0 < steps < VALID_EVERY  # validates at its end at least
    table = {
        "steps": steps,
        "valid_every": steps if short else VALID_EVERY,
        **_validation(given),
        "n": _sizes(inferred.sizes),
        **{name: getattr(task, name) for name in task.settings()},
        **given,
        "data": data,
        "task": tasks.CUSTOM,
    }
    return Recipe.from_table(table), _summary(inferred, asked is None)


def _validation(given: dict[str, Any]) -> dict[str, Any]:
    """How the training validates: on a file, on a share of the examples, or, if asked, not."""
    if given.get("valid"):
        return {"patience": PATIENCE}
    if 0 in (given.get("valid_share"), given.get("valid_batches")):
        return {"valid_share": 0.0, "valid_batches": 0}
    return {"valid_share": VALID_SHARE, "patience": PATIENCE}


def _sizes(sizes: Indices) -> str:
    """The sizes that there are, as a recipe writes them."""
    there = np.unique(sizes)
    runs = np.split(there, np.flatnonzero(np.diff(there) > 1) + 1)
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _summary(inferred: InferredTask, guessed: bool) -> str:
    sizes, widths, d = inferred.sizes, inferred.widths, inferred.task.num_features
    how = " (guessed; the option constraint says otherwise)" if guessed else ""
    return (
        f"{len(sizes):,} examples of {sizes.min()} to {sizes.max()} elements of {d} "
        f"feature{'s' * (d > 1)}; answers of {widths.min()} to {widths.max()} indices, taken as "
        f"{inferred.task.constraint}{how}"
    )
