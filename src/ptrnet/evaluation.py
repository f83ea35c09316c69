"""The metrics of a model's answers, against known ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ptrnet.metrics.interval import Measure, mean
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats


class Evaluated(Protocol):
    """What is asked of a solver beside its answers."""

    task: Task

    def log_likelihoods(self, examples: Sequence[Example]) -> Floats:
        """`(B,)` log-probabilities of the examples' answers."""
        ...


def evaluate(
    solver: Evaluated, examples: Sequence[Example], answered: Iterable[Example]
) -> dict[str, Measure]:
    """The task's metrics of the model's answers, and the true answers' mean log-likelihood.

    Args:
        solver: the model.
        examples: with the true answers.
        answered: the same examples with the model's answers, from `Solver.solve_examples`.
    """
    outputs = [example.outputs for example in answered if example.outputs is not None]
    measures = solver.task.measure(examples, outputs)
    return {**measures, "log_likelihood": mean(solver.log_likelihoods(examples))}


def describe_training(trained: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the sizes that a model was trained on, and on its scores by size."""
    if "n" in trained:
        yield f"  trained on n {trained['n']}"
    for score in trained.get("scores", []):
        measure = Measure(score["value"], score["low"], score["high"], score["count"])
        yield f"  n={score['n']}: {score['metric']} {measure.text(1, 100)}%"
