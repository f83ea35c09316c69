"""Permutation importance (Breiman 2001): how much worse a model gets if a field is shuffled."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ptrnet.errors import InputError, check_int
from ptrnet.metrics import Measure, Moments
from ptrnet.progress import track
from ptrnet.solver.predict import Predictor
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import own_task
from ptrnet.types import Dataset, Floats


@dataclass(frozen=True)
class Importance:
    """A metric of a model's answers, and how much lower this metric is if a field is shuffled."""

    metric: str  # the name of the main metric for answers of this kind
    complete: Measure  # the value of the metric with all fields in place
    # For each field, how much the metric falls if the field is shuffled. The largest number comes
    # first.
    losses: dict[str, Measure]

    def to_dict(self) -> dict[str, Any]:
        """Return the measures as a JSON object."""
        losses = {field: measure.to_dict() for field, measure in self.losses.items()}
        return {"metric": self.metric, **self.complete.to_dict(), "importance": losses}


def importance_of(
    predictor: Predictor, data: Dataset, repeats: int, seed: int, activity: str = ""
) -> Importance:
    """Measure how much the task's main metric falls if a field is shuffled.

    We shuffle the values of a field among all elements of all instances. If the elements of an
    instance never differ in the field, we shuffle its values among instances. The loss of an
    instance is how much its metric falls, as a mean over the repeats. The result has the mean of
    these losses over all instances, with a 95% interval.

    Args:
        predictor: the function that answers the instances, of a task of the user's own examples.
        data: examples with answers.
        repeats: how often to shuffle each field, 1 or more.
        seed: the seed of the shuffles, 0 or more.
        activity: the label of a progress bar. If the label is empty, there is no bar.
    """
    check_int("repeats", repeats, 1)
    check_int("seed", seed, 0)
    task = own_task(predictor.task)
    if not len(data):
        raise InputError("examples: expected at least one, got none")
    complete = _metric_of(predictor, data, data)
    fields = field_columns(task)
    rounds = [(field, k) for field in fields for k in range(repeats)]
    losses = {field: np.zeros(len(data)) for field in fields}
    for field, k in track(rounds, activity, len(rounds)):
        rng = np.random.default_rng([seed, k, fields[field].start])
        shuffled = _shuffled(data, fields[field], rng)
        losses[field] += (complete - _metric_of(predictor, data, shuffled)) / repeats
    groups, weights = data.groups, data.weights
    measures = {f: Moments.of(loss, groups, weights).measure() for f, loss in losses.items()}
    by_loss = dict(sorted(measures.items(), key=lambda row: -(row[1].value or 0)))
    return Importance(task.facts.metric, Moments.of(complete, groups, weights).measure(), by_loss)


def field_columns(task: Task) -> dict[str, slice]:
    """Return, for each field, the slice of the feature columns that belong to the field.

    If the task has no schema (the names of the fields), each feature is a field.
    """
    if task.facts.schema is None:
        return {f"feature {k + 1}": slice(k, k + 1) for k in range(task.facts.num_features)}
    return dict(zip(task.facts.schema.fields, task.facts.schema.slices, strict=True))


def feature_names(task: Task) -> list[str]:
    """Return the names of the features, such as `price`, `mode = bus` or `mode is missing`."""
    if task.facts.schema is None:
        return list(field_columns(task))
    return [
        f"{name.removesuffix(' = ')} is missing" if name.endswith(" = ") else name
        for name in task.facts.schema.feature_names
    ]


def _metric_of(predictor: Predictor, data: Dataset, instances: Dataset) -> Floats:
    """Return the main metric `(B,)` of answers to `instances`: those of `data`, or shuffled."""
    task = predictor.task
    answered = predictor(instances)
    return task.score(data, answered.all_outputs())[task.facts.metric].astype(np.float64)


def _shuffled(data: Dataset, columns: slice, rng: np.random.Generator) -> Dataset:
    """Return the instances with shuffled values in `columns`; see `importance_of`."""
    elements = np.array(data.elements)
    values, owners = elements[:, columns], np.repeat(np.arange(len(data)), data.sizes)
    of_instances = values[data.starts[:-1]]
    if (values == of_instances[owners]).all():
        elements[:, columns] = rng.permutation(of_instances)[owners]
    else:
        elements[:, columns] = rng.permutation(values)
    return replace(data, elements=elements)
