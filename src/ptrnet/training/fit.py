"""`ptrnet.fit`: from a user's own examples, in memory, to a trained model."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptrnet.data import formats
from ptrnet.data.arrays import count_features, is_frame, named_records_of, split
from ptrnet.data.dataset import checked_example, example_name, inputs_and_outputs, pairs_of
from ptrnet.data.infer_schema import infer_schema
from ptrnet.data.infer_task import loosest_task, task_of
from ptrnet.errors import InputError, MissingExtraError, short
from ptrnet.solver import Solver
from ptrnet.tasks.custom import Custom, Kind, kind_of
from ptrnet.training import run_folder
from ptrnet.training.recipe import field_names, infer_recipe
from ptrnet.types import Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.training.callbacks import Hooks

EXAMPLES = "examples.jsonl"
INFERRED = ("center", "spread", "longest_answer", "longest_share", "categories")


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
        if outputs is None and is_frame(examples):
            raise InputError("fit: ptrnet.read_table makes examples of a long table such as this")
        if outputs is not None:
            examples = pairs_of(examples, outputs)
        elif not isinstance(examples, Iterator):  # which is read once, and not held in memory
            examples = split(examples, "examples")
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
    examples: Iterable[Any],
    kind: Kind | None,
    output: Path | None,
    hooks: "Hooks",
    recipe: dict[str, Any],
) -> Solver:
    """Trains on examples, which are written to a file first."""
    from ptrnet.training.run import train

    items = iter(examples)
    first = next(items, None)
    if first is None:
        raise InputError("examples: expected at least one, got none")
    task, items = _loosest_task(chain([first], items), recipe)
    if kind:
        task = replace(task, kind=kind)
    with tempfile.TemporaryDirectory() as scratch, _named_examples(scratch):
        folder = Path(scratch) / "run" if output is None else output
        run_folder.check_unused(folder, EXAMPLES)
        file = Path(scratch) / EXAMPLES
        formats.write(str(file), _checked_examples(items, task), task)
        inferred, summary, data = infer_recipe(
            str(file), {**recipe, "kind": kind} if kind else recipe
        )
        print(summary, file=sys.stderr)
        if output is None:
            return Solver(*train(inferred, folder, hooks=hooks, data=data))
        with _examples_moved(Path(scratch), folder):
            inferred = replace(inferred, data=str(folder.resolve() / EXAMPLES))
            return Solver(*train(inferred, folder, hooks=hooks))


@contextlib.contextmanager
def _named_examples(scratch: str) -> Iterator[None]:
    """Complaints of a file that the user has not made speak of the examples."""
    file = str(Path(scratch) / EXAMPLES)
    try:
        yield
    except InputError as error:
        if file not in str(error):
            raise
        raise InputError(str(error).replace(file, "examples")) from None


@contextlib.contextmanager
def _examples_moved(scratch: Path, folder: Path) -> Iterator[None]:
    """The examples in the run's folder; back again where the run is refused before it begins."""
    is_new = not os.path.exists(folder)  # noqa: PTH110  names of any length
    try:
        _move(scratch, folder)
        yield
    except BaseException:
        if not (folder / run_folder.RECIPE).exists():
            _move(folder, scratch)
            if is_new:
                folder.rmdir()
        raise


def _move(source: Path, target: Path) -> None:
    """Moves the examples, and their memory-mapped arrays, from one folder to another."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path in (EXAMPLES, f"{EXAMPLES}.packed"):
            if (source / path).exists():
                shutil.move(source / path, target / path)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}") from None


def _loosest_task(items: Iterator[Any], recipe: dict[str, Any]) -> tuple[Custom, Iterator[Any]]:
    """The task that examples are checked against, and the examples again.

    As far as the first one tells; where elements are dictionaries, as all do.
    """
    first = next(items)
    inputs, _ = inputs_and_outputs(first, "example 0")
    if named_records_of(inputs) is None:
        if recipe.get("fields"):
            raise InputError("fit: fields go with elements that are dictionaries, or frames")
        return loosest_task(count_features(inputs)), chain([first], items)
    everything = [first, *items]
    sources = [example_name(k, item) for k, item in enumerate(everything)]
    pairs = map(inputs_and_outputs, everything, sources)
    instances = (
        (named_records_of(inputs) or [], f"{source}: inputs")
        for (inputs, _), source in zip(pairs, sources, strict=True)
    )
    fields = field_names(recipe.get("fields", ()))
    is_ignored = recipe.get("unknown_category") == "ignore"
    return task_of(infer_schema(instances, fields, is_ignored)), iter(everything)


def _checked_examples(items: Iterator[Any], task: Custom) -> Iterator[Example]:
    """The examples, of dictionaries with the fields alone that are read."""
    for k, item in enumerate(items):
        source = example_name(k, item)
        example = checked_example(inputs_and_outputs(item, source), task, source)
        if task.schema and example.elements:
            example = example.replace(elements=task.schema.read_fields(example.elements, source))
        yield example
