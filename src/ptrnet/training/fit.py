"""`ptrnet.fit`: from a user's own examples, in memory, to a model."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ptrnet.data import checks, formats
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.solver import Solver
from ptrnet.tasks.own import Own
from ptrnet.training.own import recipe_for
from ptrnet.types import Example

EXAMPLES = "examples.jsonl"


def fit(
    examples: Iterable[tuple[ArrayLike, ArrayLike]],
    constraint: str | None = None,
    *,
    output: str | Path | None = None,
    **recipe: Any,
) -> Solver:
    """Trains a model on examples of whatever answers with positions in its own input.

    Args:
        examples: pairs of inputs `(n, d)`, any n and one d, and outputs `(m,)`, 0-based indices.
        constraint: what answers are: "permutation" (an order of all elements), "subset" (each at
            most once) or "free" (repeats as well); the strictest that they obey when None.
        output: a new folder that the examples, the run and the model are left in; none when None.
        recipe: fields of a recipe by their names, as the options of `ptrnet train`: `steps`,
            `hidden_size`, `seed` and so on. A tenth of the examples validates; training ends
            after `patience` validations without a better loss, and the best weights are kept.

    Returns:
        The trained model, ready to `solve`.

    Raises:
        InputError: an example that cannot be used, named by its number from 0 on.
        MissingExtraError: the extra "train" is not installed.
    """
    try:
        from ptrnet.training.run import RECIPE, train
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "train") from error

    asked = {"constraint": constraint} if constraint else {}
    pairs = enumerate(examples)
    first = next(pairs, None)
    if first is None:
        raise InputError("examples: expected at least one, got none")
    task = _task(first[1], asked)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch if output is None else output)
        if os.path.exists(folder / RECIPE):  # noqa: PTH110  names of any length
            raise InputError(f"{folder}: holds a run already; name another folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
        file = str(folder / EXAMPLES)
        formats.write(file, _checked(chain([first], pairs), task), task)
        planned, _ = recipe_for(file, {**recipe, **asked})
        return Solver(*train(planned, folder))


def _task(pair: Any, asked: dict[str, Any]) -> Own:
    """What examples are checked against, as far as the first one tells."""
    try:
        inputs, _ = pair
        shape = np.shape(inputs)
    except (TypeError, ValueError):
        raise InputError("example 0: expected inputs (n, d) and outputs (m,)") from None
    d = shape[1] if len(shape) == 2 and shape[1] else 1
    return Own(center=(0.0,) * d, spread=(1.0,) * d, **asked)


def _checked(pairs: Iterator[tuple[int, Any]], task: Own) -> Iterator[Example]:
    for k, pair in pairs:
        try:
            inputs, outputs = pair
            indices = np.asarray(outputs)
        except (TypeError, ValueError):
            raise InputError(f"example {k}: expected inputs (n, d) and outputs (m,)") from None
        instance = checks.instance(inputs, task, f"example {k}: inputs")
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise InputError(f"example {k}: outputs: expected a list of whole numbers")
        where = f"example {k}: outputs"
        yield Example(instance, checks.answer(indices.tolist(), len(instance), task, where))
