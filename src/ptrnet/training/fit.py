"""`ptrnet.fit`: from a user's own examples, in memory, to a trained model."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptrnet.data import checks, formats, stored
from ptrnet.data.arrays import count_features, is_frame, named_records_of, split
from ptrnet.data.dataset import Dataset, checked_example, example_name, inputs_and_outputs, pairs_of
from ptrnet.data.infer_task import (
    InferredTask,
    Reading,
    infer_task_of,
    infer_task_of_sets,
    loosest_task,
    task_of,
)
from ptrnet.data.tables import Columns, Sets
from ptrnet.errors import InputError, MissingExtraError, short
from ptrnet.files import atomic_folder, exists
from ptrnet.settings import options_of
from ptrnet.solver import Solver
from ptrnet.tasks.custom import Custom, Kind, kind_of
from ptrnet.training import run_folder
from ptrnet.training.recipe import kind_and_reading, recipe_of, summary
from ptrnet.types import Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.training.callbacks import Hooks

EXAMPLES = "examples"  # the folder of their arrays in the run's, and what messages call them
INFERRED = ("center", "spread", "longest_answer", "longest_share", "categories", "filled")


def fit(
    examples: Any,
    outputs: Any = None,
    kind: str | None = None,
    *,
    constraint: str | None = None,
    cost: Callable[[Floats, Indices], float] | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    callbacks: Iterable[Any] = (),
    loggers: Iterable[Any] = (),
    **recipe: Any,
) -> Solver:
    """Trains a model on examples of whatever answers with positions in its own input.

    Or, with a `cost`, on instances whose answers nobody knows: the model samples answers, and
    learns from the cheaper ones.

    Args:
        examples: pairs of inputs `(n, d)`, any n and one d, and outputs `(m,)`, 0-based indices;
            or the inputs alone, with a `cost` or with `outputs`: a list of instances, or an array
            `(B, n, d)`. All may be NumPy's, torch's, or lists; instances may be frames. Elements
            may be dictionaries, whose texts are categories, unless there is a `cost`; `read_table`
            makes them of a table. The columns of a frame are fields by their names.
        outputs: the outputs, as many as there are inputs: a list of such, or an array `(B, m)`.
            A string here is the `kind`.
        kind: what answers are: "permutation" (an order of all elements), "subset" (each at most
            once, in an order that counts), "sequence" (repeats as well), "set" (some elements in
            whatever order), "choice" (one element) or "grades" (an order with ties); guessed from
            the answers when None. With a `cost` it has to be said.
        constraint: the kind by another name: "permutation", "subset" or "free", a sequence.
        cost: a function of inputs `(n, d)` and outputs `(m,)`, a finite number; less is better.
            The recipe's `learning` ("self-labelling" or "reinforce"), `samples` and `baseline`
            say how the model learns from it.
        output: a new folder that the examples, the run and the model are left in; none when None.
        resume: with a `cost`, goes on with the run that was stopped in `output`, to the weights
            that it would have reached: with the same instances, cost and recipe. A run on
            examples goes on with `ptrnet train --output DIR --resume`.
        callbacks: of the class `lightning.pytorch.Callback`.
        loggers: of the class `lightning.pytorch.loggers.Logger`, or "wandb" or "mlflow"; beside
            the files of metrics that every run has.
        recipe: fields of a recipe by their names, as the options of `ptrnet train`: `steps`,
            `hidden_size`, `seed` and so on. A tenth of the examples validates; training ends
            after `patience` validations without a better loss, and the best weights are kept.
            Of elements that are dictionaries `fields` are read, all where it is missing; texts
            that no example has are refused, or with `unknown_category="ignore"` no category.

    Returns:
        The trained model, ready to `solve`.

    Raises:
        InputError: an example that cannot be used, named by its number from 0 on; a field of the
            recipe; a folder that holds something already.
        MissingExtraError: the extra "train" is not installed.
        DivergedError: the loss is no finite number any more.
    """
    try:
        import ptrnet.training.run  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "train") from error

    from ptrnet.training.callbacks import Hooks

    recipe = {key: _plain(key, value) for key, value in recipe.items()}
    for key in ("task", "data", *INFERRED):
        if key in recipe:
            raise InputError(f"fit: {key} follows from the examples")
    if (recipe.get("devices", 1), recipe.get("nodes", 1)) != (1, 1):
        raise InputError("fit: trains in one process; several are started by ptrnet train")
    if isinstance(outputs, str) and kind is None:
        outputs, kind = None, outputs
    kind = kind_of(kind, constraint)
    folder = None if output is None else Path(output)
    hooks = Hooks(callbacks, loggers)  # type: ignore[arg-type]
    if cost is None:
        if resume:
            raise InputError(
                "fit: resume goes with cost; a run on examples goes on with ptrnet train --resume"
            )
        if recipe.get("learning", "answers") != "answers":
            raise InputError(f"fit: learning {short(recipe['learning'])} goes with a cost")
        if outputs is not None:
            examples = list(pairs_of(examples, outputs))
        return _fit_answers(examples, kind, folder, hooks, recipe)
    if outputs is not None:
        raise InputError("fit: expected a cost or outputs, got both")
    from ptrnet.training.fit_costs import fit_costs

    if resume and folder is None:
        raise InputError("fit: resume goes with output, the folder of the run")
    return fit_costs(examples, cost, kind, folder, resume, hooks, recipe)


def _plain(key: str, value: Any) -> Any:
    """NumPy's numbers and columns' names as Python's."""
    if isinstance(value, np.generic) or (key == "fields" and hasattr(value, "tolist")):
        return value.tolist()
    return value


def _fit_answers(
    examples: Any, kind: Kind | None, output: Path | None, hooks: "Hooks", recipe: dict[str, Any]
) -> Solver:
    """Trains on examples in memory, or in a table."""
    from ptrnet.training.run import train

    if kind:
        recipe["kind"] = kind
    inferred, is_guessed = _inferred(examples, recipe)
    made = recipe_of(inferred, EXAMPLES, recipe)
    print(summary(inferred, made, is_guessed), file=sys.stderr)
    if output is None:
        with tempfile.TemporaryDirectory() as scratch:
            return Solver(*train(made, Path(scratch) / "run", hooks=hooks, data=inferred.examples))
    run_folder.check_unused(output, EXAMPLES)
    with _saved(inferred.examples, output) as saved:
        return Solver(*train(replace(made, data=str(saved)), output, hooks=hooks))


def _inferred(examples: Any, recipe: dict[str, Any]) -> tuple[InferredTask, bool]:
    """The task of examples, which are a table if columns of it are named; and whether guessed."""
    kind, reading = kind_and_reading(recipe)
    columns = Columns(**{key: recipe.pop(key) for key in options_of(Columns) if key in recipe})
    if columns:
        return infer_task_of_sets(Sets(formats.table_of(examples), columns), kind, reading), False
    if is_frame(examples):
        raise InputError("fit: expected set_id, the column that says which rows are a set")
    items = split(examples, "examples")
    if not items:
        raise InputError("examples: expected at least one, got none")
    sources = [example_name(k, item) for k, item in enumerate(items)]
    pairs = [_pair(item, source) for item, source in zip(items, sources, strict=True)]
    task = _loosest_task([inputs for inputs, _ in pairs], sources, reading)
    rows = [
        checked_example(pair, task, source).replace(grades=getattr(item, "grades", None))
        for item, pair, source in zip(items, pairs, sources, strict=True)
    ]
    data = replace(Dataset.of(stored.with_answers(rows)), carried={"source": sources})
    return infer_task_of(data, task, EXAMPLES, kind, reading.context), kind is None


def _pair(item: Any, source: str) -> tuple[Any, Any]:
    """Inputs and outputs of an example; as inputs its elements, if their fields have names."""
    if isinstance(item, Example):
        checks.required_answer(item, loosest_task(1), source)
        if item.elements is not None:
            return item.elements, item.outputs
    return inputs_and_outputs(item, source)


def _loosest_task(inputs: Sequence[Any], sources: Sequence[str], reading: Reading) -> Custom:
    """The task that examples are checked against: as the first one is, or by all their fields."""
    if named_records_of(inputs[0]) is not None:
        rows = (named_records_of(values) or [] for values in inputs)
        places = [f"{source}: inputs" for source in sources]
        return task_of(reading.schema(zip(rows, places, strict=True)))
    for name in ("fields", "context"):
        if getattr(reading, name):
            raise InputError(f"fit: {name} are of elements that are dictionaries, or frames")
    return loosest_task(count_features(inputs[0]))


@contextlib.contextmanager
def _saved(data: Dataset, folder: Path) -> Iterator[Path]:
    """The examples in the run's folder; removed if the run is refused before it begins."""
    is_new, saved = not exists(folder), folder / EXAMPLES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_folder(saved) as temporary:
            stored.save([data], temporary, EXAMPLES)
        yield saved.resolve()
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
    except BaseException:
        if not exists(folder / run_folder.RECIPE):
            shutil.rmtree(saved, ignore_errors=True)
            if is_new:
                folder.rmdir()
        raise
