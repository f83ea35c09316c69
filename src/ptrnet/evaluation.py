"""Metrics, which compare a model's answers with known answers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ptrnet.data.dataset import Dataset
from ptrnet.errors import InputError
from ptrnet.metrics import calibration
from ptrnet.metrics.interval import Measure, Moments, Scores, moments_of
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats

LOG_LIKELIHOOD = "log_likelihood"
CONFIDENCE = "confidence"  # a metric; the calibration error compares confidence with accuracy
CALIBRATION_ERROR = "calibration_error"
_ANSWER = "answer"  # key of the model's answer in `extra`, next to the answer's scores
MAX_ROWS = 12  # rows of a table by size; more sizes are merged into ranges


def evaluate(
    task: Task,
    examples: Dataset,
    answered: Dataset,
    log_likelihoods: Floats,
    element_scores: Sequence[Floats] = (),
) -> dict[str, Measure]:
    """Return the metrics of a model's answers, and the mean log-likelihood of the true answers.

    Args:
        task: the task of the examples.
        examples: examples with the true answers.
        answered: the same examples with the model's answers.
        log_likelihoods: `(B,)`, the model's log-likelihoods of the true answers.
        element_scores: for each example, the model's scores `(n,)` of its elements. Empty if no
            metric of the task uses element scores.
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
    """Return the scores `(B,)` of the answers by metric, including `log_likelihood`."""
    outputs = [example.outputs for example in answered if example.outputs is not None]
    return {
        **task.score(examples, outputs),
        **task.score_elements(examples, element_scores),
        LOG_LIKELIHOOD: log_likelihoods,
    }


def _no_scores(task: Task) -> dict[str, Scores]:
    """Return the scores of zero examples, which show the names and types of the task's metrics."""
    return _scores(task, Dataset.of([]), Dataset.of([]), np.zeros(0), [])


def _moments(scores: Mapping[str, Scores]) -> dict[str, Moments]:
    """Return each metric's moments, and those of `gaps_by_bin` if CONFIDENCE is a metric."""
    if CONFIDENCE in scores:
        right = scores["accuracy"] == 1
        gaps = calibration.gaps_by_bin(scores[CONFIDENCE].astype(np.float64), right)
        return moments_of({**scores, **gaps})
    return moments_of(scores)


class Evaluation:
    """The metrics of any number of examples, which are read chunk by chunk.

    The memory holds one chunk at a time, and sums for each size and each value of the field `by`.

    Args:
        task: the task of the examples.
        chunks: examples with their scores in `extra`, from `with_scores`.
        by: a field of instances; see `group_value`. `by_value` returns the metrics for each value
            of this field.
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
        """The metrics for each size n; empty if all sizes are equal.

        If there are more than `MAX_ROWS` sizes, ranges of sizes share a row (`5-8`).

        Returns:
            For each size or range, the number of instances and the metrics.
        """
        return self._rows(self._by_size, "-") if len(self._by_size.counts) > 1 else {}

    def by_value(self) -> dict[str, tuple[int, dict[str, Measure]]]:
        """The metrics for each value of the field `by`; empty without a field.

        If there are more than `MAX_ROWS` different numbers, ranges share a row (`1.5 to 4.25`).
        """
        return self._rows(self._by_value, " to ")

    def _rows(self, groups: "_Groups", dash: str) -> dict[str, tuple[int, dict[str, Measure]]]:
        rows = {}
        for name, part in groups.parts(dash).items():
            count = sum(groups.counts[value] for value in part)
            rows[name] = (count, _summarize(self._task, groups.total(part)))
        return rows


class _Groups:
    """The moments of scores for each group of examples.

    Args:
        empty: the moments of zero examples.
    """

    def __init__(self, empty: Mapping[str, Moments]) -> None:
        self.counts = Counter[Any]()
        self._empty, self._moments = empty, dict[Any, dict[str, Moments]]()

    def add(self, values: Sequence[Any], scores: Mapping[str, Scores]) -> None:
        """Add the scores of B examples. `values[k]` names the group of example k."""
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
        """Return the moments over all examples of the given groups."""
        of_values = [self._moments[value] for value in values]
        return {
            name: sum((moments[name] for moments in of_values), start=empty)
            for name, empty in self._empty.items()
        }

    def parts(self, dash: str) -> dict[str, list[Any]]:
        """Return the groups in each row of the table, by the row's name.

        A row has one group, or the groups of a range of numbers.
        """
        if not all(isinstance(value, int | float) for value in self.counts):
            by_name: dict[str, list[Any]] = {}
            for value in sorted(self.counts, key=str):  # 1 and "1" share a row
                by_name.setdefault(str(value), []).append(value)
            return by_name
        distinct = sorted(self.counts)
        parts = np.array_split(np.arange(len(distinct)), min(len(distinct), MAX_ROWS) or 1)
        rows = [[distinct[k] for k in part] for part in parts if len(part)]
        return {f"{r[0]}{dash}{r[-1]}" if len(r) > 1 else str(r[0]): r for r in rows}


def group_value(example: Example, field: str) -> Any:
    """Return the value of a field for an instance. An evaluation groups instances by such values.

    The field is a key of the instance's line, or a field that has the same value in all elements.

    Raises:
        InputError: the instance lacks the field, or the field differs between elements.
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
    """Check that no key of the examples' `extra` has the name of a score.

    Keys of an earlier evaluation are allowed, because `with_scores` overwrites these keys.

    Raises:
        InputError: a key has the name of a score, and no earlier evaluation wrote that key.
    """
    names = (*_no_scores(task), _ANSWER)
    for example in examples:
        if {_ANSWER, LOG_LIKELIHOOD} <= set(example.extra):
            continue
        for name in names:
            if name in example.extra:
                raise InputError(
                    f'{example.source}: "{name}" is the name of a score: rename that key'
                )


def with_scores(
    task: Task,
    examples: Dataset,
    answered: Dataset,
    log_likelihoods: Floats,
    element_scores: Sequence[Floats] = (),
) -> Dataset:
    """Return the examples with the model's `answer` and its scores in `extra`.

    Scores of an earlier evaluation are removed. A score is left out if the metric is not defined
    for the answer. `evaluate` has the same arguments.
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
    return replace(examples, carried={**examples.carried, "extra": rows})


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
    """Yield lines with the sizes that a model was trained on, and its scores by size."""
    if "n" in trained:
        yield f"  trained on n {trained['n']}"
    yield from describe_scores(trained.get("scores", []))


def describe_scores(scores: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each score in a model's files."""
    for score in scores:
        percent = Measure.from_dict(score).text(1, 100)
        yield f"  n={score['n']}: {score['metric']} {percent}%"
