"""The metrics of a model's answers, against known ones."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ptrnet.data.dataset import Dataset
from ptrnet.errors import InputError
from ptrnet.metrics import calibration
from ptrnet.metrics.interval import Measure, Moments, Scores, moments_of
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats

LOG_LIKELIHOOD = "log_likelihood"
CONFIDENCE = "confidence"  # a metric; with it and accuracy there is a calibration error
CALIBRATION_ERROR = "calibration_error"
_ANSWER = "answer"  # beside it, of the model's
MAX_ROWS = 12  # sizes that have a row of their own


def evaluate(
    task: Task,
    examples: Dataset,
    answered: Dataset,
    log_likelihoods: Floats,
    element_scores: Sequence[Floats] = (),
) -> dict[str, Measure]:
    """Return the task's metrics of a model's answers, and the true answers' mean log-likelihood.

    Args:
        task: of the examples.
        examples: with the true answers.
        answered: the same examples with the model's answers.
        log_likelihoods: `(B,)` of the true answers, by the model.
        element_scores: `(n,)` of each example's elements, by the model; none if the task does not
            measure them.
    """
    scores = _scores(task, examples, answered, log_likelihoods, element_scores)
    return _summarize(task, _moments(scores))


def _scores(
    task: Task,
    examples: Dataset,
    answered: Dataset,
    log_likelihoods: Floats,
    element_scores: Sequence[Floats],
) -> dict[str, Scores]:
    """Return by metric the `(B,)` scores of each answer; `log_likelihood` is one more."""
    outputs = [example.outputs for example in answered if example.outputs is not None]
    return {
        **task.score(examples, outputs),
        **task.score_elements(examples, element_scores),
        LOG_LIKELIHOOD: log_likelihoods,
    }


def _no_scores(task: Task) -> dict[str, Scores]:
    """Return the scores of no examples: the names and types of the task's metrics."""
    return _scores(task, Dataset.of([]), Dataset.of([]), np.zeros(0), [])


def _moments(scores: Mapping[str, Scores]) -> dict[str, Moments]:
    """Return the moments of each metric's scores; with a confidence, those of its gaps too."""
    if CONFIDENCE in scores:
        right = scores["accuracy"] == 1
        gaps = calibration.gaps_by_bin(scores[CONFIDENCE].astype(np.float64), right)
        return moments_of({**scores, **gaps})
    return moments_of(scores)


class Evaluation:
    """The measures of many examples' scores, without the scores themselves.

    Args:
        task: of the examples.
        chunks: examples with their scores in `extra`, from `with_scores`.
        by: a field of whole instances, whose values split the examples; see `group_value`.
    """

    def __init__(self, task: Task, chunks: Iterable[Dataset], by: str | None = None) -> None:
        self._task, self._field = task, by
        self._no_scores = _no_scores(task)
        self._empty = _moments(self._no_scores)
        self._by_size = _Groups(self._empty)
        self._by_value = _Groups(self._empty)
        for chunk in chunks:
            self._add(chunk)

    def _add(self, data: Dataset) -> None:
        scores: dict[str, Scores] = {}
        for name, empty in self._no_scores.items():
            values = np.array([extra.get(name, np.nan) for extra in data.carried["extra"]], float)
            scores[name] = values == 1 if empty.dtype == bool else values
        self._by_size.add(data.sizes.tolist(), scores)
        if self._field is not None:
            self._by_value.add([group_value(example, self._field) for example in data], scores)

    def __len__(self) -> int:
        return self._by_size.counts.total()

    def __repr__(self) -> str:
        measures = (f"{name} {measure.text(4)}" for name, measure in self.measures().items())
        return f"Evaluation of {len(self)} examples: {', '.join(measures)}"

    def measures(self) -> dict[str, Measure]:
        """The metrics over all examples."""
        return _summarize(self._task, self._by_size.total(sorted(self._by_size.counts)))

    def by_size(self) -> dict[str, tuple[int, dict[str, Measure]]]:
        """The same for each n, if the examples' sizes differ; else nothing.

        If there are more than `MAX_ROWS` sizes, ranges of them share a row (`5-8`).

        Returns:
            By n or range, the number of instances and the measures.
        """
        return self._rows(self._by_size, "-") if len(self._by_size.counts) > 1 else {}

    def by_value(self) -> dict[str, tuple[int, dict[str, Measure]]]:
        """The same for each value of the field `by`; nothing without a field.

        If there are more than `MAX_ROWS` different numbers, ranges of them share a row
        (`1.5 to 4.25`).
        """
        return self._rows(self._by_value, " to ")

    def _rows(self, groups: "_Groups", dash: str) -> dict[str, tuple[int, dict[str, Measure]]]:
        rows = {}
        for name, part in groups.parts(dash).items():
            count = sum(groups.counts[value] for value in part)
            rows[name] = (count, _summarize(self._task, groups.total(part)))
        return rows


class _Groups:
    """The moments of scores, by a value that splits the examples.

    Args:
        empty: the moments of no examples.
    """

    def __init__(self, empty: Mapping[str, Moments]) -> None:
        self.counts = Counter[Any]()
        self._empty, self._moments = empty, dict[Any, dict[str, Moments]]()

    def add(self, values: Sequence[Any], scores: Mapping[str, Scores]) -> None:
        """Add the scores of B examples, whose groups are told by B values."""
        rows: dict[Any, list[int]] = {}
        for row, value in enumerate(values):
            rows.setdefault(value, []).append(row)
        for value, of_value in rows.items():
            moments = _moments({name: column[of_value] for name, column in scores.items()})
            present = self._moments.setdefault(value, dict(self._empty))
            for name in present:
                present[name] += moments[name]
        self.counts.update(values)

    def total(self, values: Iterable[Any]) -> dict[str, Moments]:
        """Return the moments of the groups of some values together."""
        of_values = [self._moments[value] for value in values]
        return {
            name: sum((moments[name] for moments in of_values), start=empty)
            for name, empty in self._empty.items()
        }

    def parts(self, dash: str) -> dict[str, list[Any]]:
        """Return the values of each row by its name: one value, or a range of numbers."""
        if not all(isinstance(value, int | float) for value in self.counts):
            return {str(value): [value] for value in sorted(self.counts, key=str)}
        distinct = sorted(self.counts)
        parts = np.array_split(np.arange(len(distinct)), min(len(distinct), MAX_ROWS) or 1)
        rows = [[distinct[k] for k in part] for part in parts if len(part)]
        return {f"{r[0]}{dash}{r[-1]}" if len(r) > 1 else str(r[0]): r for r in rows}


def group_value(example: Example, field: str) -> Any:
    """Return the value of a field of a whole instance, by which evaluations are split.

    That is a key of its line or, for dictionaries, a field that all of its elements share.

    Raises:
        InputError: the example has no such field, or its elements differ in it.
    """
    if field in example.extra:
        values = [example.extra[field]]
    else:
        values = [element[field] for element in example.elements or () if field in element]
    if len(values) not in (1, len(example.inputs)):
        raise InputError(f'{example.source}: by: expected the field "{field}" of an instance')
    if any(value != values[0] for value in values):
        raise InputError(
            f'{example.source}: by: "{field}" differs between elements: expected a field of the '
            "whole instance"
        )
    value = values[0].item() if isinstance(values[0], np.generic) else values[0]
    return value if isinstance(value, str | int | float) else str(value)


def check_room_for_scores(task: Task, examples: Iterable[Example]) -> None:
    """Refuses examples whose `extra` has a key of a score's name, but from a former evaluation."""
    names = (*_no_scores(task), _ANSWER)
    for example in examples:
        if {_ANSWER, LOG_LIKELIHOOD} <= set(example.extra):
            continue
        for name in names:
            if name in example.extra:
                raise InputError(
                    f'{example.source}: "{name}" is what a score is to be called: rename that key'
                )


def with_scores(
    task: Task,
    examples: Dataset,
    answered: Dataset,
    log_likelihoods: Floats,
    element_scores: Sequence[Floats] = (),
) -> Dataset:
    """Return the examples, with the model's `answer` and each of its scores in their `extra`.

    A score is left out if a metric is not defined for an answer, and so is the score of an earlier
    evaluation. Arguments as in `evaluate`.
    """
    columns = _scores(task, examples, answered, log_likelihoods, element_scores)
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
    gaps = {name: of_bin for name, of_bin in moments.items() if name in calibration.GAPS}
    metrics = {
        name: of_metric
        for name, of_metric in moments.items()
        if name != LOG_LIKELIHOOD and name not in gaps
    }
    measures = {**task.summarize(metrics), LOG_LIKELIHOOD: moments[LOG_LIKELIHOOD].measure()}
    return {**measures, CALIBRATION_ERROR: calibration.error_of(gaps)} if gaps else measures


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
