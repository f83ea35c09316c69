"""`ptrnet.fit`: from a user's own examples, in memory, to a model."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ptrnet import tasks
from ptrnet.data import checks, formats
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.solver import Solver
from ptrnet.tasks.custom import Custom
from ptrnet.training import folder
from ptrnet.training.infer_recipe import recipe_for
from ptrnet.types import Example

EXAMPLES = "examples.jsonl"
LEARNED = ("center", "spread", "longest_answer", "longest_share")


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
        InputError: an example that cannot be used, named by its number from 0 on; a field of the
            recipe; a folder that holds something already.
        MissingExtraError: the extra "train" is not installed.
    """
    try:
        from ptrnet.training.run import train
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "train") from error

    for name in ("task", "data", *LEARNED):
        if name in recipe:
            raise InputError(f"fit: {name} follows from the examples")
    if (recipe.get("devices", 1), recipe.get("nodes", 1)) != (1, 1):
        raise InputError("fit: trains in one process; several are started by ptrnet train")
    asked = {"constraint": constraint} if constraint else {}
    pairs = enumerate(examples)
    first = next(pairs, None)
    if first is None:
        raise InputError("examples: expected at least one, got none")
    task = _task(first[1], asked)
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "run" if output is None else Path(output)
        folder.check_free(home, EXAMPLES)
        file = Path(scratch) / EXAMPLES
        formats.write(str(file), _checked(chain([first], pairs), task), task)
        planned, summary = recipe_for(str(file), {**recipe, **asked})
        print(summary, file=sys.stderr)
        if output is None:
            return Solver(*train(planned, home))
        with _kept(Path(scratch), home):
            planned = replace(planned, data=str(home.resolve() / EXAMPLES))
            return Solver(*train(planned, home))


@contextlib.contextmanager
def _kept(scratch: Path, home: Path) -> Iterator[None]:
    """The examples beside the run; back again where that is refused before it has begun."""
    made = not os.path.exists(home)  # noqa: PTH110  names of any length
    try:
        _move(scratch, home)
        yield
    except InputError:
        if not (home / folder.RECIPE).exists():
            _move(home, scratch)
            if made:
                home.rmdir()
        raise


def _move(source: Path, target: Path) -> None:
    """Moves the examples, and what they are packed into, from one folder to another."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in (EXAMPLES, f"{EXAMPLES}.packed"):
            if (source / name).exists():
                shutil.move(source / name, target / name)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}") from None


def _pair(k: int, pair: Any) -> tuple[Any, Any]:
    """Inputs and outputs. Raises InputError for what are not two."""
    try:
        if isinstance(pair, Mapping | str):
            raise TypeError
        inputs, outputs = pair
    except (TypeError, ValueError):
        raise InputError(
            f"example {k}: expected a pair of inputs (n, d) and outputs (m,), got "
            f"{type(pair).__name__}"
        ) from None
    return inputs, outputs


def _task(pair: Any, asked: dict[str, Any]) -> Custom:
    """What examples are checked against, as far as the first one tells."""
    inputs, _ = _pair(0, pair)
    try:
        shape = np.shape(inputs)
    except ValueError:  # ragged, which is refused with its number
        shape = ()
    d = shape[1] if len(shape) == 2 and shape[1] else 1
    return tasks.get(tasks.CUSTOM, center=(0.0,) * d, spread=(1.0,) * d, **asked)  # type: ignore[return-value]


def _checked(pairs: Iterator[tuple[int, Any]], task: Custom) -> Iterator[Example]:
    for k, pair in pairs:
        inputs, outputs = _pair(k, pair)
        instance = checks.check_instance(inputs, task, f"example {k}: inputs")
        where = f"example {k}: outputs"
        try:
            indices = np.asarray(outputs)
        except ValueError:
            indices = np.zeros(1)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise InputError(f"{where}: expected a list of whole numbers")
        yield Example(instance, checks.check_answer(indices.tolist(), len(instance), task, where))
