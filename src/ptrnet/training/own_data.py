"""The recipe of a training on your own examples. Its defaults follow from the data.

`docs/dev/own-data-defaults.md` has the measurements behind the numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ptrnet import models
from ptrnet.data.columns import TrainingColumns
from ptrnet.errors import LISTED, InputError, listed, short
from ptrnet.models.settings import every_setting
from ptrnet.settings import check, numbers_of, options_of
from ptrnet.tasks.custom import Kind, kind_of
from ptrnet.tasks.schema import Missing
from ptrnet.training.recipe import Recipe, part_options
from ptrnet.types import Sizes

if TYPE_CHECKING:
    from ptrnet.data.infer_task import InferredTask, Reading
    from ptrnet.types import Dataset

SETS, SEQUENCES = "set-ptr-net", "transformer-ptr-net"
VALIDATIONS, PATIENCE, VALID_SHARE = 20, 10, 0.1
# If answers are NOISY, the networks of an ensemble together hold out all examples, each of them at
# most this share. So all examples choose the mixture (`ptrnet.training.mixture`). Such networks
# learn what they can in the first third of the steps, so patience is short.
NOISY_VALID_SHARE, NOISY_PATIENCE = 0.2, 6
EPOCHS, FEWEST_STEPS, MOST_STEPS = 40, 150, 3_000
# Defaults that depend on the number of examples. The first column is the largest number of examples
# that a row is for. The other columns are the batch size, the dropout, the number of layers, the
# number of networks, and the number of epochs.
SIZES = (
    (500, 16, 0.3, 1, 5, EPOCHS),
    (2_000, 32, 0.3, 1, 5, EPOCHS),
    (5_000, 64, 0.3, 1, 5, EPOCHS),
    (20_000, 128, 0.2, 2, 1, EPOCHS),
    (float("inf"), 256, 0.0, 2, 1, EPOCHS),
)
NOISY_SIZES = (
    (500, 16, 0.3, 1, 5, 20),
    (2_000, 32, 0.3, 1, 5, 20),
    (5_000, 64, 0.3, 1, 5, 10),
    (20_000, 128, 0.2, 1, 3, 5),
    (float("inf"), 256, 0.0, 2, 1, 10),
)
# If there are at most FEW_CHOICES, trees answer most of a mixture. So the network that is mixed
# with them is trained for fewer epochs.
FEW_CHOICES, EPOCHS_BESIDE_TREES = 2_000, 8
# With more numbers (elements times features) than this, ptrnet trains one network for NOISY
# answers, which reads logarithms instead of waves, in at most FEW_EPOCHS, with half the batch size
# and one validation per epoch.
MANY_NUMBERS, FEW_EPOCHS = 5_000_000, 5
# Further values for the last row, which has no dropout.
LARGE = {"weight_decay": 0.0, "learning_rate": 4e-3, "see_logs": True}
ORDERS = ("permutation", "subset")
NOISY = ("choice", "grades")  # judgements of people, which a network overfits after a few epochs
MOST_TREES = 300
MAX_ROWS = 400  # of a chooser, which is mixed with the network if all examples together have fewer
FEW_ELEMENTS = 50_000  # elements than these
OCTAVES = 5  # set-ptr-net also reads sines and cosines of features, in this many frequencies
MANY = 5_000  # with at least this many examples, we may use a decoder for answers of ORDERS
# We use gains 2^grade - 1 only if no grade is larger than this. The gain of a larger grade would
# make the gains of all other grades negligible.
LARGEST_GAIN = 30.0


def infer_recipe(path: str, overrides: Mapping[str, Any]) -> tuple[Recipe, str, "Dataset"]:
    """Return the recipe of a training on a file of examples, a summary, and the examples.

    Args:
        path: the path of the file; see `ptrnet.data.infer_task`.
        overrides: values of a recipe, by key. They take precedence over values that follow from the
            examples. The key `kind` or `constraint` has the kind of the answers. If elements are
            objects, `fields` lists the fields to read: a list of names, or a text such as
            price,colour. `categories` lists fields that are categories, even if their values are
            numbers. `ordered` says whether the order of the elements has a meaning.

    Raises:
        InputError: the examples or a key cannot be used.
    """
    from ptrnet.data.infer_task import infer_task

    kind, reading = kind_and_reading(overrides)
    columns = columns_of(overrides)
    inferred = infer_task(path, kind, reading, columns)
    recipe = recipe_of(inferred, path, overrides)
    is_guessed = kind is None and not columns
    return recipe, summary(inferred, recipe, is_guessed), inferred.examples


def columns_of(overrides: Mapping[str, Any]) -> TrainingColumns:
    """Return the names of columns among a recipe's values."""
    names = options_of(TrainingColumns).keys() & overrides.keys()
    return TrainingColumns(**{key: overrides[key] for key in names})


def kind_and_reading(overrides: Mapping[str, Any]) -> tuple[Kind | None, "Reading"]:
    """Return the kind of the answers, and how to read the examples, given a recipe's values."""
    from ptrnet.data.infer_schema import OF_FIELDS, Reading

    kind = kind_of(overrides.get("kind"), overrides.get("constraint"))
    named = {key: field_names(key, overrides.get(key, ())) for key in OF_FIELDS}
    if fields := named["fields"]:  # a user who asks for interactions wants them read
        named["fields"] = tuple(dict.fromkeys((*fields, *columns_of(overrides).interactions)))
    missing, group = overrides.get("missing", "fill"), overrides.get("group", "")
    for key, names in named.items():
        if group in names:
            raise InputError(
                f'{key}: "{group}" is the id of a group, which the model must not read'
            )
    return kind, Reading(
        missing=check("missing", missing, Missing),
        group=group,
        # The table of a logit has the user's fields, and no fields that we think of.
        marks_common=overrides.get("model") != models.LOGIT,
        **named,
    )


def recipe_of(inferred: "InferredTask", data: str, overrides: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a training on your own examples, from which the task was inferred.

    `data` is their file, or a name for them in messages. `overrides` are values of a recipe, by
    key. They take precedence over values that follow from the examples.
    """
    from ptrnet.data.infer_schema import OF_FIELDS
    from ptrnet.data.infer_task import warn_of_positions
    from ptrnet.metrics.ranking import grades_of_gains

    in_task = {"kind", "constraint", *OF_FIELDS}  # of the inferred task
    given = {key: value for key, value in overrides.items() if key not in in_task}
    known = {**part_options(), **every_setting()}
    for key in ("steps", "batch_size", "cycles", "ensemble"):  # defaults of others depend on these
        if key in given:
            given[key] = known[key].check(given[key])
    if isinstance(given.get("gains"), str):
        given["gains"] = numbers_of("gains", given["gains"])
    if given.get("gains") and inferred.examples.grades is not None:
        grades_of_gains(inferred.examples.grades, given["gains"])  # refuses other grades
    ordered = check("ordered", given.pop("ordered", False), bool)
    if ordered and given.get("model") in models.AT_ONCE:
        raise InputError(f"ordered: model {given['model']} does not see the order of the elements")
    if not ordered:
        warn_of_positions(inferred.examples)
    of_task = {key: given.pop(key) for key in options_of(type(inferred.task)) if key in given}
    chosen = defaults(inferred, ordered, given)
    networks = given.get("ensemble", chosen.get("ensemble", 1))
    chosen |= validation_defaults(given, inferred.task.kind, networks)
    table = {**chosen, "n": Sizes.of(inferred.examples.sizes), **given, "data": data}
    if trees := _most_trees(inferred.task.kind, table):
        table["trees"] = trees
    is_small = inferred.examples.sizes.sum() < FEW_ELEMENTS
    if is_small and not inferred.task.facts.signs.any() and _can_mix(inferred.task.kind, table):
        table.setdefault("spaces", MAX_ROWS)
    return Recipe.of(replace(inferred.task, **of_task), table)


def _can_mix(kind: str, table: Mapping[str, Any]) -> bool:
    """Whether other models can be mixed with the network of a flat recipe, by kind of answers."""
    validates = bool(table.get("valid") or table.get("valid_share"))
    is_read = table.get("model") == SETS and not table.get("positions")
    return kind in NOISY and is_read and validates


def _most_trees(kind: str, table: Mapping[str, Any]) -> int:
    """Return the most trees that are mixed with the network of a flat recipe; 0: none."""
    default = MOST_TREES if find_spec("lightgbm") else 0  # of the extra that grows trees
    return table.get("trees", default) if _can_mix(kind, table) else 0


def field_names(key: str, fields: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names in a list, or in a text such as price,colour.

    Raises:
        InputError: `fields` is neither a list nor a text, or a name is empty.
    """
    if isinstance(fields, str):
        fields = [name.strip() for name in fields.split(",")]
    if not isinstance(fields, list | tuple) or not all(isinstance(f, str) and f for f in fields):
        raise InputError(f"{key}: expected names of fields, got {short(fields)}")
    return tuple(fields)


def validation_defaults(
    overrides: Mapping[str, Any], kind: str = "", networks: int = 1
) -> dict[str, Any]:
    """Return the recipe's values for validation, by key.

    They depend on the kind of the answers and on the number of networks. The training validates on
    the file `valid`, on a share of the examples, or not at all. By default, a conditional logit
    learns from all examples. Raises InputError if `valid_batches` is given, but `valid_share` is 0
    and there is no `valid` file.
    """
    at_once = overrides.get("model") in models.AT_ONCE
    if at_once and (overrides.get("valid") or overrides.get("valid_share")):
        return {}
    if at_once:
        overrides = {**overrides, "valid_share": 0}
    is_noisy = kind in NOISY
    patience = {"patience": NOISY_PATIENCE if is_noisy else PATIENCE}
    if overrides.get("valid"):
        return patience
    if overrides.get("valid_share") == 0 and overrides.get("valid_batches"):
        raise InputError(
            "valid_batches: there are no examples for it, because valid_share is 0; leave out "
            "valid_batches, or name a file in valid"
        )
    if 0 in (overrides.get("valid_share"), overrides.get("valid_batches")):
        return {"valid_share": 0.0, "valid_batches": 0}
    share = min(NOISY_VALID_SHARE, 1 / networks) if is_noisy and networks > 1 else VALID_SHARE
    return {"valid_share": share, **patience}


def summary(inferred: "InferredTask", recipe: Recipe, is_guessed: bool) -> str:
    """Return lines that describe the examples, the fields that may be codes, and the training."""
    sizes, lengths = inferred.examples.sizes, inferred.examples.lengths
    d = inferred.task.facts.num_features
    schema = inferred.task.facts.schema
    fields = f": {schema.describe(LISTED)}" if schema else ""
    if schema and len(schema.fields) > LISTED:
        fields = f" from {len(schema.fields)} fields{fields}"
    hint = " (guessed; the option `kind` changes it)" if is_guessed else ""
    if is_guessed and inferred.task.kind == "sequence":
        hint = (
            " (guessed, because answers repeat indices: write masks as positions, and leave out "
            "padding and the repeated end of a cycle; the option `kind` changes it)"
        )
    groups = inferred.examples.groups
    of_groups = "" if groups is None else f" in {len(np.unique(groups)):,} groups,"
    return (
        f"{len(sizes):,} examples{of_groups} of {sizes.min()} to {sizes.max()} elements of {d} "
        f"feature{'s' * (d > 1)}{fields}; answers of {lengths.min()} to {lengths.max()} indices, "
        f"taken as {inferred.task.kind}{hint}{_possible_codes(inferred)}\n{describe(recipe)}"
        f"{_missing_extra(recipe)}"
    )


def _missing_extra(recipe: Recipe) -> str:
    """Return a line that names the extra that grows trees, if it would be used; empty if not."""
    if not _can_mix(recipe.task.facts.kind, recipe.table()) or find_spec("lightgbm"):
        return ""
    return (
        "\nno gradient-boosted trees, which often improve choices and rankings by grades, because "
        'the extra "trees" is not installed: pip install "ptrnet[trees]"'
    )


def _possible_codes(inferred: "InferredTask") -> str:
    """Return a line that names the numeric fields whose numbers may be codes; empty if none."""
    from ptrnet.data.infer_schema import whole_number_fields

    schema = inferred.task.facts.schema
    found = {} if schema is None else whole_number_fields(inferred.examples, schema)
    if not found:
        return ""
    shown = listed(f"{name} ({low} to {high})" for name, (low, high) in found.items())
    return (
        f"\nread as numbers: {len(found)} field{'s' * (len(found) > 1)} of few whole numbers: "
        f"{shown}; if they are codes, list them in the option `categories`"
    )


def defaults(inferred: "InferredTask", ordered: bool, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a recipe that follow from the examples, by key.

    If `ordered`, the order of the elements has a meaning. Defaults of other keys may depend on the
    values that the user gives. The caller replaces defaults in the result by these values.
    """
    task, count = inferred.task, len(inferred.examples)
    if given.get("model") in models.AT_ONCE:
        return {}
    is_exact = count >= MANY and not ordered and task.kind in ORDERS
    if is_exact:
        from ptrnet.training.linear_scores import has_linear_order

        is_exact = has_linear_order(task, inferred.examples)
    model = given.get("model") or _model(inferred, ordered, is_exact, given)
    chosen: dict[str, Any] = {"model": model}
    if given.get("position"):
        chosen["positions"] = _count_positions(inferred, model)
    names = models.setting_names(model)
    if model not in (SETS, SEQUENCES):  # keep the default hidden_size; patience ends training early
        chosen |= {"steps": in_cycles(20_000, given), "valid_every": 500}
    else:
        is_noisy = task.kind in NOISY
        rows = SIZES[-1:] if is_exact else NOISY_SIZES if is_noisy else SIZES
        batch_size, dropout, layers, networks, epochs = next(
            row for most, *row in rows if count <= most
        )
        validations = VALIDATIONS
        has_many_numbers = is_noisy and inferred.examples.elements.size > MANY_NUMBERS
        if has_many_numbers:
            networks, epochs, batch_size = 1, FEW_EPOCHS, batch_size // 2
        elif task.kind == "choice" and count <= FEW_CHOICES:
            table = {**chosen, **validation_defaults(given, task.kind), **given}
            epochs = EPOCHS_BESIDE_TREES if _most_trees(task.kind, table) else epochs
        if model == SEQUENCES:
            batch_size = min(batch_size, 128)
        batch_size = given.get("batch_size", batch_size)
        if model == SETS:
            steps = min(max(epochs * count // batch_size, FEWEST_STEPS), MOST_STEPS)
            validations = min(VALIDATIONS, int(epochs if has_many_numbers else 2 * epochs))
            chosen |= {"dropout": dropout, "ensemble": networks}
            chosen |= {"encoder_layers": layers, "precision": "float32"}
            # Dropout and weight decay reduce overfitting if there are few examples. With many
            # examples we use neither, so that scores can become as sharp as an exact rule requires.
            # Sines and cosines of the features help if examples are few and answers are choices of
            # people. Logarithms help if answers depend on ratios or products of features.
            chosen |= {"weight_decay": 0.02, "octaves": OCTAVES} if dropout else LARGE
            if has_many_numbers:
                chosen |= {"octaves": 0, "see_logs": True, "dropout": min(dropout, 0.1)}
        else:
            steps = MOST_STEPS
            chosen |= {"hidden_size": 64, "feed_forward": 256, "clip": 1.0, "see_deviations": True}
            chosen |= {"encoder_layers": 2, "decoder_layers": 1, "see_indices": ordered}
        steps = given.get("steps", in_cycles(steps, given))
        chosen |= {"batch_size": batch_size, "steps": steps}
        chosen["valid_every"] = max(1, steps // validations)
    if not ordered and (model not in (SETS, SEQUENCES) or given.get("see_indices")):
        chosen["augment"] = True
    if task.kind == "grades" and model == SETS and _are_gains(inferred):
        chosen["loss"] = "gains"
    settings = every_setting()  # of all models
    return {key: value for key, value in chosen.items() if key in names or key not in settings}


def _count_positions(inferred: "InferredTask", model: str) -> int:
    """Return the number of positions. Refuse models and kinds that cannot learn their effect."""
    kinds = (*NOISY, "set")
    if model != SETS:
        raise InputError(f"position: expected model {SETS} or {models.LOGIT}, got {model}")
    if inferred.task.kind not in kinds:
        raise InputError(f"position: is for {', '.join(kinds)}, got {inferred.task.kind}")
    return len(inferred.task.categories[-1])


def _model(
    inferred: "InferredTask", ordered: bool, is_exact: bool, given: Mapping[str, Any]
) -> str:
    """Return the name of the best model for the data.

    If the best model lacks a setting that the user gives, return a model that has this setting. If
    there are many examples and the order of the answer matters, a model with a decoder learns more
    than other models. If a score of each element determines this order (`is_exact`), no decoder is
    needed.
    """
    kind, count = inferred.task.kind, len(inferred.examples)
    has_signs = bool(inferred.task.increasing or inferred.task.decreasing)  # SETS guarantees them
    needs_decoder = kind in ORDERS and count >= MANY and not (is_exact or has_signs)
    best = SEQUENCES if ordered or kind == "sequence" or needs_decoder else SETS
    needed = given.keys() & every_setting().keys()
    for model in (best, "ptr-net", *models.names()):
        if needed <= set(models.setting_names(model)):
            return model
    return best


def in_cycles(steps: int, given: Mapping[str, Any]) -> int:
    """Round a default number of steps up to a multiple of the given `cycles`."""
    cycles = given.get("cycles", 1)
    return int(-(-steps // cycles) * cycles)


def _are_gains(inferred: "InferredTask") -> bool:
    """Whether gains `2^grade - 1` make sense: no grade is negative or above LARGEST_GAIN."""
    grades = inferred.examples.grades
    if grades is None:
        return False
    return bool(grades.min() >= 0 and grades.max() <= LARGEST_GAIN)


def describe(recipe: Recipe) -> str:
    """Return a line: the network, the training's length, and whether the network sees the order.

    A model that is not trained in steps has neither.
    """
    if recipe.model == models.LOGIT:
        if getattr(recipe.network, "nests", ""):
            return "a nested logit, fitted by Fisher scoring"
        return "a conditional logit, fitted by Newton's method"
    if recipe.model == models.CHOOSER:
        return "a chooser, fitted to all examples at once"
    network = recipe.network
    layers = getattr(network, "encoder_layers", 0)
    size = f"{recipe.model} of {network.hidden_size} units"
    size += f" and {layers} layer{'s' * (layers > 1)}" if layers else ""
    parts = [f"an ensemble of {network.ensemble}: {size}" if network.ensemble > 1 else size]
    if dropout := getattr(network, "dropout", 0):
        parts.append(f"dropout {dropout:g}")
    parts.append(f"{recipe.run.steps:,} steps of {recipe.data.batch_size} examples")
    if trees := getattr(network, "trees", 0):
        parts.append(f"mixed with up to {trees} trees")
    if getattr(network, "spaces", 0):
        parts.append("mixed with a chooser")
    if recipe.objective.loss == "gains":
        parts.append("learning gains 2^grade - 1")
    is_seen = network.sees_order and not recipe.data.augment
    order = "sees" if is_seen else "does not see"
    hint = "" if is_seen else " (with --ordered it does)"
    return f"{', '.join(parts)}; the network {order} the order of the elements{hint}"
