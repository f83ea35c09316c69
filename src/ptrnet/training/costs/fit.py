"""`ptrnet.fit` without answers: from a user's instances and a cost to a trained model."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ptrnet import tasks
from ptrnet.data import checks
from ptrnet.data.arrays import count_features, split
from ptrnet.data.infer_task import feature_scaling
from ptrnet.errors import InputError, unknown
from ptrnet.solver import Solver
from ptrnet.tasks.custom import CONSTRAINTS, Custom
from ptrnet.training.costs.problem import CostProblem
from ptrnet.training.costs.sampler import Costs
from ptrnet.training.infer_recipe import size_ranges, validation
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train
from ptrnet.types import Floats, Indices

STEPS, VALID_EVERY, LEARNING = 10_000, 500, "self-labelling"


def fit_costs(
    instances: Any,
    cost: Callable[[Floats, Indices], float],
    constraint: str | None,
    output: Path | None,
    resume: bool,
    recipe: dict[str, Any],
) -> Solver:
    """Trains a model on instances whose answers nobody knows; see `ptrnet.fit`.

    Raises:
        InputError: a constraint that is missing or unknown; an instance that cannot be used, by
            its number from 0 on; a field of the recipe; an answer whose cost is no finite number.
    """
    if constraint is None:
        raise InputError(f"fit: with a cost, constraint is one of {', '.join(CONSTRAINTS)}")
    if constraint not in CONSTRAINTS:
        raise unknown("constraint", constraint, CONSTRAINTS)
    checked = _checked_instances(instances)
    problem = CostProblem(checked, _costs_of_each(cost))
    inferred = _infer_recipe(checked, {**recipe, "constraint": constraint})
    if output is not None:
        return Solver(*train(inferred, output, resume, problem))
    with tempfile.TemporaryDirectory() as scratch:
        return Solver(*train(inferred, Path(scratch) / "run", problem=problem))


def _checked_instances(instances: Any) -> list[Floats]:
    """Arrays `(n, d)` of one d."""
    checked: list[Floats] = []
    task = _custom(1)
    for k, values in enumerate(split(instances, "instances")):
        if not k:
            task = _custom(count_features(values))
        checked.append(checks.check_instance(values, task, f"instance {k}"))
    if not checked:
        raise InputError("instances: expected at least one, got none")
    return checked


def _custom(d: int) -> Custom:
    """The task of elements of d features, whose scale is not known yet."""
    return Custom(center=(0.0,) * d, spread=(1.0,) * d)


def _costs_of_each(cost: Callable[[Floats, Indices], float]) -> Costs:
    def costs(instance: Floats, answers: Sequence[Indices]) -> Floats:
        values = [cost(instance, answer) for answer in answers]
        try:
            return np.array([float(value) for value in values])
        except (TypeError, ValueError):
            raise InputError(f"cost: expected a number, got {values[0]!r}") from None

    return costs


def _infer_recipe(instances: Sequence[Floats], overrides: dict[str, Any]) -> Recipe:
    """The recipe that follows from the instances; `overrides` are keys of it."""
    center, spread = feature_scaling(lambda: iter(instances))
    task = replace(_custom(len(center)), center=tuple(center), spread=tuple(spread))
    steps = overrides.get("steps", STEPS)
    short = isinstance(steps, int) and 0 < steps < VALID_EVERY  # validates at its end at least
    return Recipe.from_table(
        {
            "steps": steps,
            "valid_every": steps if short else VALID_EVERY,
            "learning": LEARNING,
            **validation(overrides),
            "n": size_ranges(np.array([len(instance) for instance in instances])),
            **{name: getattr(task, name) for name in task.settings()},
            **overrides,
            "task": tasks.CUSTOM,
        }
    )
