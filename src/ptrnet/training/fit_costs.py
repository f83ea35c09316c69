"""`ptrnet.fit` with a cost: train a model on a user's instances without answers."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ptrnet.data.arrays import count_features, records_of, split_instances
from ptrnet.data.dataset import checked_instances, is_example
from ptrnet.data.infer_task import feature_scaling, loosest_task
from ptrnet.errors import InputError, short
from ptrnet.settings import options_of
from ptrnet.solver import Solver
from ptrnet.tasks.custom import KINDS, Custom, Kind
from ptrnet.training.costs import Costs
from ptrnet.training.own_data import in_cycles, validation_defaults
from ptrnet.training.recipe import Recipe, part_options
from ptrnet.training.reports import Hooks
from ptrnet.training.run import train
from ptrnet.types import Dataset, Floats, Indices, Sizes

STEPS, VALID_EVERY, LEARNING = 10_000, 500, "self-labelling"


def fit_costs(
    instances: Any,
    cost: Callable[[Floats, Indices], float],
    kind: Kind | None,
    output: Path | None,
    resume: bool,
    hooks: Hooks,
    recipe: dict[str, Any],
) -> Solver:
    """Train a model on instances without answers; see `ptrnet.fit`.

    Raises:
        InputError: `kind` is missing, an instance cannot be used, a field of the recipe is wrong,
            or a cost is not a finite number. If an instance cannot be used, the message has its
            number, counted from 0.
    """
    if not callable(cost):
        raise InputError(f"fit: expected a function as cost, got {short(cost)}")
    if kind is None:
        raise InputError(f"fit: with a cost, kind is one of {', '.join(KINDS)}")
    data = _checked_instances(instances)
    costs = _costs_of_each(cost)
    inferred = _infer_recipe(data, {**recipe, "kind": kind})
    if output is not None:
        return Solver(*train(inferred, output, resume, data, costs, hooks))
    with tempfile.TemporaryDirectory() as scratch:
        return Solver(*train(inferred, Path(scratch) / "run", False, data, costs, hooks))


def _checked_instances(instances: Any) -> Dataset:
    """Return the instances as a dataset. Raises InputError if an instance cannot be used."""
    items = split_instances(instances, "instances")
    if not items:
        raise InputError("instances: expected at least one, got none")
    names = [f"instance {k}" for k in range(len(items))]
    for values, name in zip(items, names, strict=True):
        if records_of(values) is not None:
            raise InputError(f"{name}: with a cost, elements are numbers, no dictionaries")
        if is_example(values, loosest_task(2)):
            raise InputError(f"{name}: with a cost, expected inputs alone, got an example")
    return checked_instances(items, names, loosest_task(count_features(items[0])))


def _costs_of_each(cost: Callable[[Floats, Indices], float]) -> Costs:
    def costs(instance: Floats, answers: Sequence[Indices]) -> Floats:
        return np.array([_number(cost(instance, answer)) for answer in answers])

    return costs


def _number(value: Any) -> float:
    """Convert a result of the user's cost to a float. Raises InputError if this is impossible."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"cost: expected a number, got {short(str(value))}") from None


def _infer_recipe(instances: Dataset, overrides: dict[str, Any]) -> Recipe:
    """Infer the recipe from the instances, except the fields that `overrides` gives."""
    center, spread, _ = feature_scaling(instances)
    task = replace(loosest_task(len(center)), center=tuple(center), spread=tuple(spread))
    given = dict(overrides)
    of_task = {key: given.pop(key) for key in options_of(Custom) if key in given}
    if "cycles" in given:  # the default of steps depends on it
        given["cycles"] = part_options()["cycles"].check(given["cycles"])
    return Recipe.of(
        replace(task, **of_task),
        {
            "steps": in_cycles(STEPS, given),
            "valid_every": VALID_EVERY,
            "learning": LEARNING,
            **validation_defaults(given),
            "n": Sizes.of(instances.sizes),
            **given,
        },
    )
