"""The metrics of a model's answers, against known ones."""

from collections.abc import Iterable, Sequence

from ptrnet.metrics.interval import Measure, mean
from ptrnet.solver import Solver
from ptrnet.types import Example


def evaluate(
    solver: Solver, examples: Sequence[Example], answered: Iterable[Example]
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
