"""A model's answers, measured against known ones."""

from collections.abc import Iterable, Sequence

from ptrnet.metrics.interval import Measure, mean
from ptrnet.solver import Solver
from ptrnet.types import Example


def evaluate(
    solver: Solver, examples: Sequence[Example], answered: Iterable[Example]
) -> dict[str, Measure]:
    """The task's metrics of `answered`, and the mean log-likelihood of the examples' answers.

    Args:
        solver: the model.
        examples: with their own answers, the truth.
        answered: the same examples with the model's answers, from `Solver.answered`.
    """
    outputs = [a.outputs for a in answered if a.outputs is not None]
    found = solver.task.measure(examples, outputs)
    return {**found, "log_likelihood": mean(solver.log_likelihoods(examples))}
