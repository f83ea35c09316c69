"""`ptrnet.fit`: train a model on a user's own examples in memory."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptrnet.data import checks, formats, stored
from ptrnet.data.arrays import count_features, is_frame, named_records_of, split
from ptrnet.data.columns import TrainingColumns
from ptrnet.data.dataset import checked_examples, example_name, inputs_and_outputs, pairs_of
from ptrnet.data.groups import SharedFields, grouped, warn_of_ids
from ptrnet.data.infer_schema import infer_schema
from ptrnet.data.infer_task import (
    InferredTask,
    Reading,
    infer_task_of,
    infer_task_of_table,
    loosest_task,
    task_of,
)
from ptrnet.errors import InputError, MissingExtraError, short
from ptrnet.files import atomic_folder, exists, named_failure
from ptrnet.settings import options_of
from ptrnet.solver import Solver
from ptrnet.tasks.custom import Custom, Kind, kind_of
from ptrnet.training import run_folder
from ptrnet.training.own_data import (
    columns_of,
    infer_recipe,
    kind_and_reading,
    recipe_of,
    summary,
)
from ptrnet.types import Dataset, Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.training.reports import Hooks

# The name of the examples' folder in the run's folder. Error messages also use this name.
EXAMPLES = "examples"
INFERRED = ("center", "spread", "longest_answer", "longest_share", "filled")


def fit(
    examples: Any,
    outputs: Any = None,
    kind: str | None = None,
    *,
    constraint: str | None = None,
    group: Any = "",
    cost: Callable[[Floats, Indices], float] | None = None,
    weight: Any = None,
    output: str | Path | None = None,
    resume: bool = False,
    callbacks: Iterable[Any] = (),
    loggers: Iterable[Any] = (),
    **recipe: Any,
) -> Solver:
    """Train a model on examples. The answer of an example is a list of indices into its input.

    If answers are not known, pass a `cost` and the instances alone. The model then samples answers,
    and learns to give cheap ones.

    Args:
        examples: pairs of inputs `(n, d)` and outputs `(m,)`. All inputs must have the same d, but
            may have different n. Outputs are 0-based indices. With `outputs` or a `cost`, pass the
            inputs alone: a list of instances or an array `(B, n, d)`. Inputs and outputs may be
            NumPy arrays, torch tensors or lists. Instances may also be data frames, whose columns
            are named fields. Without a `cost`, elements may also be dictionaries. Strings in these
            dictionaries are categories. Or pass a file that `ptrnet train --data` reads, or a table
            with the names of its columns: `set_id` and one of `chosen`, `rank`, `grade` and
            `member`, as in `read_table`.
        outputs: the outputs of all inputs: a list with an item for each input, or an array
            `(B, m)`. If you pass no outputs, the second argument may be the kind.
        kind: the kind of the answers. If None, ptrnet guesses the kind from the answers. With a
            `cost`, the kind is required.

            - "permutation": an order of all elements
            - "subset": some elements in an order that matters, each at most once
            - "sequence": elements in an order that matters, with repetition
            - "set": some elements, in any order
            - "choice": one element
            - "grades": an order of all elements, with ties
        constraint: another way to give the kind: "permutation", "subset", or "free" for a sequence.
        group: the column of a table, or the field of elements, that says to which group each
            example belongs, such as a person. Or the groups themselves: a name or number for each
            example. The examples of a group are on the same side of every split, and the model
            does not read the groups.
        cost: a function of inputs `(n, d)` and outputs `(m,)` that returns a finite number. Lower
            is better. The recipe's `learning` ("self-labelling" or "reinforce"), `samples` and
            `baseline` control how the model learns from costs.
        weight: the weights of the examples in the losses: B numbers or, for a long table, the name
            of the column that has them. An example of weight 2 counts as if it occurred twice in
            its batch. An example of weight 0 is neither learned nor validated on.
        output: a new folder for the examples, the run and the model. If None, nothing is saved.
        resume: with a `cost`, resume the run in `output`. If you pass the same instances, cost and
            recipe, the weights equal those of a run that was never stopped. To resume a run on
            examples, use `ptrnet train --output DIR --resume`.
        callbacks: functions `callback(step, metrics)`, called after each step. If one returns True,
            the training ends after this step. The metrics are a dictionary of numbers or tensors.
        loggers: "wandb", "mlflow", or objects with the methods `log_hyperparams`, `log_metrics` and
            `finalize`, such as the loggers of `lightning.pytorch.loggers`. Every run also writes
            metrics to files.
        recipe: fields of a recipe, named like the options of `ptrnet train`: `steps`,
            `hidden_size`, `seed` and so on. By default each network of an ensemble uses its own
            tenth of the examples for validation, and its own fifth for choices and grades. Training
            stops after `patience` validations without a lower loss. The model gets the weights of
            the latest validation whose loss is at most one standard error above the lowest loss. If
            elements are dictionaries, the model reads `fields`, or all fields by default. Fields in
            `categories` are categories, even if their values are numbers, such as codes. Later, the
            model treats texts that were not in the training examples as missing. With
            `unknown="refuse"`, it refuses them.

    Returns:
        The trained model, ready to `solve`.

    Raises:
        InputError: an example cannot be used, a field of the recipe is wrong, or the folder is in
            use. If an example is wrong, the message has its number, counted from 0.
        MissingExtraError: the extra "train" is not installed.
        DivergedError: the loss is not finite.

    Examples:
        Learn to sort points by their first coordinate:

        >>> rng = np.random.default_rng(1)
        >>> X = [rng.random((5, 2)) for _ in range(200)]
        >>> y = [np.argsort(x[:, 0]) for x in X]
        >>> model = ptrnet.fit(zip(X, y), "permutation", steps=200, seed=1)
        >>> model.solve(X[0]), y[0]
        (array([1, 2, 0, 4, 3]), array([1, 2, 0, 4, 3]))
    """
    try:
        from ptrnet.training.reports import Hooks
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "train") from error

    # Numbers of NumPy, and names in an array or a pandas index, become Python's.
    recipe = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in recipe.items()}
    for key in ("task", "data", *INFERRED):
        if key in recipe:
            raise InputError(f"fit: {key} cannot be given, because it follows from the examples")
    if (recipe.get("devices", 1), recipe.get("nodes", 1)) != (1, 1):
        raise InputError("fit: trains in one process; to use several, run ptrnet train")
    if isinstance(outputs, str) and kind is None:
        outputs, kind = None, outputs
    kind = kind_of(kind, constraint)
    folder = None if output is None else Path(output)
    hooks = Hooks(callbacks, loggers)  # type: ignore[arg-type]
    if isinstance(group, str) and group:
        recipe["group"] = group
    if cost is None:
        if resume:
            raise InputError(
                "fit: resume needs a cost; ptrnet train --resume resumes a run on examples"
            )
        if recipe.get("learning", "answers") != "answers":
            raise InputError(f"fit: learning {short(recipe['learning'])} needs a cost")
        if outputs is not None:
            if isinstance(examples, str | Path):
                raise InputError(f"fit: expected no outputs, because {examples} has the answers")
            examples = list(pairs_of(examples, outputs))
        return _fit_answers(examples, kind, group, weight, folder, hooks, recipe)
    if isinstance(examples, str | Path):
        raise InputError(f"fit: with a cost, expected a list of instances, got the file {examples}")
    if outputs is not None:
        raise InputError("fit: expected a cost or outputs, got both")
    if weight is not None:
        raise InputError("fit: expected a cost or the weights of known answers, got both")
    if not (isinstance(group, str) and not group):
        raise InputError("fit: group is for examples with answers, not for a cost")
    from ptrnet.training.fit_costs import fit_costs

    if resume and folder is None:
        raise InputError("fit: resume needs output, the folder of the run")
    return fit_costs(examples, cost, kind, folder, resume, hooks, recipe)


def _fit_answers(
    examples: Any,
    kind: Kind | None,
    group: Any,
    weight: Any,
    output: Path | None,
    hooks: "Hooks",
    recipe: dict[str, Any],
) -> Solver:
    """Train on a file, a list of examples, or a long table."""
    from ptrnet.training.run import train

    if kind:
        recipe["kind"] = kind
    if isinstance(examples, str | Path):
        for name, value in (("group", group), ("weight", weight)):
            if not isinstance(value, str | None):
                raise InputError(f"{name}: expected the name of a column or key of {examples}")
        if weight is not None:
            recipe["weight"] = weight
        made, text, data = infer_recipe(str(examples), recipe)
        text = f"{examples}: {text}"
    else:
        inferred, is_guessed = _inferred(examples, group, weight, recipe)
        made = recipe_of(inferred, EXAMPLES, recipe)
        text, data = summary(inferred, made, is_guessed), inferred.examples
    print(text, file=sys.stderr)
    if output is not None and not isinstance(examples, str | Path):
        run_folder.check_unused(output, EXAMPLES)
        with _saved(data, output) as saved:
            return Solver(*train(made.replace(data=str(saved)), output, hooks=hooks))
    with tempfile.TemporaryDirectory() as scratch:
        return Solver(*train(made, output or Path(scratch) / "run", hooks=hooks, data=data))


def _inferred(
    examples: Any, group: Any, weight: Any, recipe: dict[str, Any]
) -> tuple[InferredTask, bool]:
    """Return the examples with their inferred task, and whether the kind was guessed.

    If `recipe` has names of columns (see `TrainingColumns`), the examples are a long table.
    """
    kind, reading = kind_and_reading(recipe)
    names_columns = bool(options_of(TrainingColumns).keys() & recipe.keys() - {"group"})
    if isinstance(weight, str) or (names_columns and weight is not None):
        recipe["weight"] = weight
    columns = columns_of(recipe)
    if columns:
        if not isinstance(group, str):
            raise InputError("group: expected the name of a column, because set_id names one, too")
        opened = formats.open_table(examples, columns)
        assert opened is not None  # columns are given
        return infer_task_of_table(*opened, kind, reading), False
    items = [] if is_frame(examples) else split(examples, "examples")
    has_rows = items and isinstance(items[0], Mapping) and "inputs" not in items[0]
    if is_frame(examples) or has_rows:
        raise InputError("fit: expected set_id, the column that says which rows are a set")
    if not items:
        raise InputError("examples: expected at least one, got none")
    sources = [example_name(k, item) for k, item in enumerate(items)]
    pairs = [_pair(item, source) for item, source in zip(items, sources, strict=True)]
    shared = SharedFields()
    task = _loosest_task([inputs for inputs, _ in pairs], sources, reading, shared)
    rows = (
        row.replace(grades=item.grades) if isinstance(item, Example) else row
        for item, row in zip(items, checked_examples(pairs, sources, task), strict=True)
    )
    data = grouped(Dataset.of(stored.require_answers(rows)), group)
    if data.groups is None:
        warn_of_ids(shared.ids, task.fields, "examples")
    kept: dict[str, Any] = {"source": sources}
    if data.groups is not None:
        kept["group"] = data.columns["group"]
    if weight is None:
        weight = [getattr(item, "weight", 1.0) for item in items]
    weights = checks.check_weights(weight, sources, "weight")
    if (weights != 1).any():
        kept["weight"] = weights
    data = replace(data, columns=kept)
    return infer_task_of(data, task, EXAMPLES, kind, reading.context), kind is None


def _pair(item: Any, source: str) -> tuple[Any, Any]:
    """Return the inputs and the outputs of an item.

    If the item is an `Example` whose elements have named fields, the inputs are the user's
    dictionaries.
    """
    if isinstance(item, Example):
        checks.required_answer(item, loosest_task(1), source)
        if item.elements is not None:
            return item.elements, item.outputs
    return inputs_and_outputs(item, source)


def _loosest_task(
    inputs: Sequence[Any], sources: Sequence[str], reading: Reading, shared: SharedFields
) -> Custom:
    """Return the task that examples are checked against.

    If inputs are arrays, the task has as many features as the elements of the first array. If
    elements are dictionaries, the task has the fields of all examples, and `shared` gets them.
    """
    if named_records_of(inputs[0]) is not None:
        rows = (named_records_of(values) or [] for values in inputs)
        places = [f"{source}: inputs" for source in sources]
        watched = shared.watch(zip(rows, places, strict=True))
        return task_of(infer_schema(watched, reading))
    reading.check_unused("fit")
    return loosest_task(count_features(inputs[0]))


@contextlib.contextmanager
def _saved(data: Dataset, folder: Path) -> Iterator[Path]:
    """Save the examples to the run's folder, and yield the path of the saved examples.

    If an error is raised before the run's recipe is written, remove the examples again.
    """
    is_new, saved = not exists(folder), folder / EXAMPLES
    with named_failure(f"{folder}: cannot be written"):
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_folder(saved) as temporary:
            stored.save([data], temporary, EXAMPLES)
    try:
        yield saved.resolve()
    except BaseException:
        if not exists(folder / run_folder.RECIPE):
            shutil.rmtree(saved, ignore_errors=True)
            if is_new:
                folder.rmdir()
        raise
