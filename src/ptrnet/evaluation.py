"""The metrics of a model's answers, against known ones."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ptrnet.errors import InputError
from ptrnet.metrics.interval import Measure, Scores, mean
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats

LOG_LIKELIHOOD = "log_likelihood"
_ANSWER = "answer"  # beside it, of the model's
MAX_ROWS = 12  # sizes that have a row of their own


class Evaluated(Protocol):
    """A solver that gives the likelihoods of answers."""

    task: Task

    def log_likelihoods(self, examples: Sequence[Example]) -> Floats:
        """`(B,)` log-probabilities of the examples' answers."""
        ...


def score(
    solver: Evaluated, examples: Sequence[Example], answered: Iterable[Example]
) -> dict[str, Scores]:
    """The task's metrics of each of the model's answers, and the true answers' log-likelihood.

    Args:
        solver: the model.
        examples: with the true answers.
        answered: the same examples with the model's answers, from `Solver.solve_examples`.

    Returns:
        By metric `(B,)`; `log_likelihood` is one more.
    """
    outputs = [example.outputs for example in answered if example.outputs is not None]
    scores = solver.task.score(examples, outputs)
    return {**scores, LOG_LIKELIHOOD: solver.log_likelihoods(examples)}


def evaluate(
    solver: Evaluated, examples: Sequence[Example], answered: Iterable[Example]
) -> dict[str, Measure]:
    """The task's metrics of the model's answers, and the true answers' mean log-likelihood.

    Arguments as in `score`.
    """
    return _summarize(solver.task, score(solver, examples, answered))


class Evaluation:
    """The scores of many examples, a number for each example and metric.

    Args:
        task: of the examples.
        examples: with their scores as `extra`, as `with_scores` gives them.
    """

    def __init__(self, task: Task, examples: Iterable[Example]) -> None:
        self._task, self._sizes = task, array("q")
        self._is_flag = {name: scores.dtype == bool for name, scores in task.score([], []).items()}
        self._scores = {name: array("d") for name in (*self._is_flag, LOG_LIKELIHOOD)}
        for example in examples:
            self._sizes.append(len(example.inputs))
            for name, values in self._scores.items():
                values.append(example.extra.get(name, np.nan))

    def __len__(self) -> int:
        return len(self._sizes)

    def measures(self) -> dict[str, Measure]:
        """The metrics over all examples."""
        return self._measures(np.arange(len(self)))

    def by_size(self) -> dict[str, tuple[int, dict[str, Measure]]]:
        """The same for each n, where the examples' sizes differ; else nothing.

        Where there are more than `MAX_ROWS` sizes, ranges of them stand together (`5-8`).

        Returns:
            By n or range, the number of instances and the measures.
        """
        sizes = np.array(self._sizes)
        distinct, rows = np.unique(sizes), {}
        if len(distinct) < 2:
            return {}
        for part in np.array_split(distinct, min(len(distinct), MAX_ROWS)):
            name = f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0])
            which = np.flatnonzero((sizes >= part[0]) & (sizes <= part[-1]))
            rows[name] = (len(which), self._measures(which))
        return rows

    def _measures(self, which: Any) -> dict[str, Measure]:
        scores: dict[str, Scores] = {}
        for name, values in self._scores.items():
            taken = np.array(values)[which]
            scores[name] = taken == 1 if self._is_flag.get(name) else taken
        return _summarize(self._task, scores)


def check_room_for_scores(task: Task, examples: Iterable[Example]) -> None:
    """Refuses examples whose `extra` has a key of a score's name, but from a former evaluation."""
    names = (*task.score([], []), LOG_LIKELIHOOD, _ANSWER)
    for example in examples:
        if {_ANSWER, LOG_LIKELIHOOD} <= set(example.extra):
            continue
        for name in names:
            if name in example.extra:
                raise InputError(
                    f'{example.source}: "{name}" is what a score is to be called: rename that key'
                )


def with_scores(
    solver: Evaluated, examples: Sequence[Example], answered: Sequence[Example]
) -> list[Example]:
    """The examples, with the model's `answer` and each of its scores in their `extra`.

    There is no score where a metric does not speak of an answer: not a former one either, in a file
    that was evaluated before. Arguments as in `score`.
    """
    columns = score(solver, examples, answered)
    rows = []
    for k, (example, other) in enumerate(zip(examples, answered, strict=True)):
        assert other.outputs is not None
        scores = {
            name: values[k].item() for name, values in columns.items() if not np.isnan(values[k])
        }
        extra = {key: value for key, value in example.extra.items() if key not in columns}
        extra = {**extra, _ANSWER: other.outputs.tolist(), **scores}
        rows.append(example._replace(extra=extra))
    return rows


def _summarize(task: Task, scores: Mapping[str, Scores]) -> dict[str, Measure]:
    metrics = {name: values for name, values in scores.items() if name != LOG_LIKELIHOOD}
    return {**task.summarize(metrics), LOG_LIKELIHOOD: mean(scores[LOG_LIKELIHOOD])}


def describe_training(trained: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the sizes that a model was trained on, and on its scores by size."""
    if "n" in trained:
        yield f"  trained on n {trained['n']}"
    yield from describe_scores(trained.get("scores", []))


def describe_scores(scores: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each score that a model's files know."""
    for score in scores:
        percent = Measure.from_table(score).text(1, 100)
        yield f"  n={score['n']}: {score['metric']} {percent}%"
