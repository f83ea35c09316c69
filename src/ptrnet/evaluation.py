"""The metrics of a model's answers, against known ones."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ptrnet.data.dataset import Dataset
from ptrnet.errors import InputError
from ptrnet.metrics.interval import Measure, Moments, Scores, moments_of
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats

LOG_LIKELIHOOD = "log_likelihood"
_ANSWER = "answer"  # beside it, of the model's
MAX_ROWS = 12  # sizes that have a row of their own


def evaluate(
    task: Task, examples: Dataset, answered: Dataset, log_likelihoods: Floats
) -> dict[str, Measure]:
    """Return the task's metrics of a model's answers, and the true answers' mean log-likelihood.

    Args:
        task: of the examples.
        examples: with the true answers.
        answered: the same examples with the model's answers.
        log_likelihoods: `(B,)` of the true answers, by the model.
    """
    scores = _scores(task, examples, answered, log_likelihoods)
    return _summarize(task, moments_of(scores))


def _scores(
    task: Task, examples: Dataset, answered: Dataset, log_likelihoods: Floats
) -> dict[str, Scores]:
    """Return by metric the `(B,)` scores of each answer; `log_likelihood` is one more."""
    outputs = [example.outputs for example in answered if example.outputs is not None]
    return {**task.score(examples, outputs), LOG_LIKELIHOOD: log_likelihoods}


class Evaluation:
    """The measures of many examples' scores, without the scores themselves.

    Args:
        task: of the examples.
        chunks: examples with their scores in `extra`, from `with_scores`.
    """

    def __init__(self, task: Task, chunks: Iterable[Dataset]) -> None:
        self._task, self._counts = task, Counter[int]()
        self._by_size: dict[int, dict[str, Moments]] = {}
        is_flag = {name: scores.dtype == bool for name, scores in task.score([], []).items()}
        self._empty = {name: Moments(flag) for name, flag in is_flag.items()}
        self._empty[LOG_LIKELIHOOD] = Moments(False)
        for chunk in chunks:
            self._add(chunk)

    def _add(self, data: Dataset) -> None:
        sizes = data.sizes
        for name, empty in self._empty.items():
            values = np.array([extra.get(name, np.nan) for extra in data.carried["extra"]], float)
            scores: Scores = values == 1 if empty.is_flag else values
            for n in np.unique(sizes).tolist():
                of_size = self._by_size.setdefault(n, dict(self._empty))
                of_size[name] += Moments.of(scores[sizes == n])
        self._counts.update(sizes.tolist())

    def __len__(self) -> int:
        return self._counts.total()

    def __repr__(self) -> str:
        measures = (f"{name} {measure.text(4)}" for name, measure in self.measures().items())
        return f"Evaluation of {len(self)} examples: {', '.join(measures)}"

    def measures(self) -> dict[str, Measure]:
        """The metrics over all examples."""
        return self._measures(sorted(self._by_size))

    def by_size(self) -> dict[str, tuple[int, dict[str, Measure]]]:
        """The same for each n, where the examples' sizes differ; else nothing.

        Where there are more than `MAX_ROWS` sizes, ranges of them stand together (`5-8`).

        Returns:
            By n or range, the number of instances and the measures.
        """
        distinct, rows = sorted(self._by_size), {}
        if len(distinct) < 2:
            return {}
        for part in np.array_split(distinct, min(len(distinct), MAX_ROWS)):
            name = f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0])
            of_part = part.tolist()
            rows[name] = (sum(self._counts[n] for n in of_part), self._measures(of_part))
        return rows

    def _measures(self, sizes: Sequence[int]) -> dict[str, Measure]:
        moments = {
            name: sum((self._by_size[n][name] for n in sizes), start=empty)
            for name, empty in self._empty.items()
        }
        return _summarize(self._task, moments)


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
    task: Task, examples: Dataset, answered: Dataset, log_likelihoods: Floats
) -> Dataset:
    """Return the examples, with the model's `answer` and each of its scores in their `extra`.

    A score is left out if a metric is not defined for an answer, and so is the score of an earlier
    evaluation. Arguments as in `evaluate`.
    """
    columns = _scores(task, examples, answered, log_likelihoods)
    rows = []
    for k, (example, other) in enumerate(zip(examples, answered, strict=True)):
        assert other.outputs is not None
        scores = {
            name: values[k].item() for name, values in columns.items() if not np.isnan(values[k])
        }
        extra = {key: value for key, value in example.extra.items() if key not in columns}
        rows.append({**extra, _ANSWER: other.outputs.tolist(), **scores})
    return examples.with_extra(rows)


def _summarize(task: Task, moments: Mapping[str, Moments]) -> dict[str, Measure]:
    metrics = {name: of_metric for name, of_metric in moments.items() if name != LOG_LIKELIHOOD}
    return {**task.summarize(metrics), LOG_LIKELIHOOD: moments[LOG_LIKELIHOOD].measure()}


def describe_training(trained: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the sizes that a model was trained on, and on its scores by size."""
    if "n" in trained:
        yield f"  trained on n {trained['n']}"
    yield from describe_scores(trained.get("scores", []))


def describe_scores(scores: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each score that a model's files know."""
    for score in scores:
        percent = Measure.from_dict(score).text(1, 100)
        yield f"  n={score['n']}: {score['metric']} {percent}%"
