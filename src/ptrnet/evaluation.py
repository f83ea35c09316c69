"""The metrics of a model's answers, against known ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ptrnet.metrics.interval import Measure, mean
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats

MAX_ROWS = 12  # sizes that have a row of their own


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


def evaluate_by_size(
    solver: Evaluated, examples: Sequence[Example], answered: Iterable[Example]
) -> dict[str, tuple[int, dict[str, Measure]]]:
    """The same for all examples (`all`), and where their sizes differ for each n.

    Where there are more than `MAX_ROWS` sizes, ranges of them stand together (`5-8`).

    Returns:
        By `all`, n or range, the number of instances and the measures.
    """
    outputs = [example.outputs for example in answered if example.outputs is not None]
    log_likelihoods = solver.log_likelihoods(examples)
    sizes = np.array([len(example.inputs) for example in examples])
    distinct = np.unique(sizes)
    groups = {"all": list(range(len(sizes)))}
    if len(distinct) > 1:
        for part in np.array_split(distinct, min(len(distinct), MAX_ROWS)):
            name = f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0])
            groups[name] = [i for i, n in enumerate(sizes) if part[0] <= n <= part[-1]]
    return {
        name: (
            len(group),
            {
                **solver.task.measure([examples[i] for i in group], [outputs[i] for i in group]),
                "log_likelihood": mean(log_likelihoods[group]),
            },
        )
        for name, group in groups.items()
    }


def describe_training(trained: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the sizes that a model was trained on, and on its scores by size."""
    if "n" in trained:
        yield f"  trained on n {trained['n']}"
    for score in trained.get("scores", []):
        measure = Measure(score["value"], score["low"], score["high"], score["count"])
        yield f"  n={score['n']}: {score['metric']} {measure.text(1, 100)}%"
