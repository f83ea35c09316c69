"""Metrics, which compare a model's answers with known answers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ptrnet.data.groups import shared_value
from ptrnet.errors import InputError
from ptrnet.metrics import Measure, Moments, Scores, calibration, moments_of, summary
from ptrnet.run import Part, Sink
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Example, Floats, Indices

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
        examples: examples with the true answers.
        log_likelihoods: `(B,)`, the model's log-likelihoods of the true answers.
        element_scores: for each example, the model's scores `(n,)` of its elements. Empty if no
            metric of the task uses element scores.
    """
    scores = _scores(task, examples, answered, log_likelihoods, element_scores)
    return _summarize(_moments(scores, examples.groups, examples.weights))


def _scores(
    task: Task,
    examples: Dataset,
    answered: Dataset,
    log_likelihoods: Floats,
    element_scores: Sequence[Floats],
) -> dict[str, Scores]:
    """Return the scores `(B,)` of the answers by metric, including `log_likelihood`."""
    return {
        **task.score(examples, answered.all_outputs()),
        **summary.score_elements(task, examples, element_scores),
        LOG_LIKELIHOOD: log_likelihoods,
    }


def _no_scores(task: Task) -> dict[str, Scores]:
    """Return the scores of zero examples, which show the names and types of the task's metrics."""
    return _scores(task, Dataset.of([]), Dataset.of([]), np.zeros(0), [])


def _moments(
    scores: Mapping[str, Scores], groups: Indices | None = None, weights: Floats | None = None
) -> dict[str, Moments]:
    """Return each metric's moments, and those of `gaps_by_bin` if CONFIDENCE is a metric."""
    if CONFIDENCE in scores:
        right = scores["accuracy"] == 1
        gaps = calibration.gaps_by_bin(scores[CONFIDENCE].astype(np.float64), right)
        return moments_of({**scores, **gaps}, groups, weights)
    return moments_of(scores, groups, weights)


class Evaluation(Sink["Evaluation"]):
    """The metrics of any number of examples, which are read chunk by chunk. Also the sink of a run.

    The memory holds one chunk at a time, and sums for each size and each value of the field `by`.
    If the examples have groups or weights, it holds the scores of all examples instead of sums.

    Args:
        chunks: examples with their scores in `extra`, from `with_scores`.
        by: a field of instances; see `shared_value`. `by_value` returns the metrics for each value
            of this field.
        has_weights: whether some examples have another weight than 1.

    Attributes:
        groups: the codes of the groups of all examples. Empty if the examples have no groups.
    """

    def __init__(
        self,
        task: Task,
        chunks: Iterable[Dataset] = (),
        by: str | None = None,
        has_weights: bool = False,
    ) -> None:
        self._task, self._field, self._has_weights = task, by, has_weights
        self._no_scores = _no_scores(task)
        self._empty = _moments(self._no_scores)
        self._by_size = _ScoresByValue(self._empty)
        self._by_value = _ScoresByValue(self._empty)
        self._cannot_tell = [*self._no_scores]  # of the examples so far
        self.groups = set[int]()
        for chunk in chunks:
            self._add(chunk)

    def add(self, part: Part) -> None:
        """See `ptrnet.run.Sink`."""
        self._add(part.encoded)

    def _add(self, data: Dataset) -> None:
        scores: dict[str, Scores] = {}
        for name, empty in self._no_scores.items():
            values = np.array([extra.get(name, np.nan) for extra in data.column("extra")], float)
            scores[name] = values == 1 if empty.dtype == bool else values
        for example in data if self._cannot_tell else ():
            task, left = self._task, self._cannot_tell
            untold = [name for name in left if not summary.can_tell(task, name, example)]
            self._cannot_tell = untold
        groups, weights = data.groups, data.weights if self._has_weights else None
        if self._has_weights:
            weights = np.ones(len(data)) if weights is None else weights
            groups = np.arange(len(data)) + len(self) if groups is None else groups
        self._by_size.add(data.sizes.tolist(), scores, groups, weights)
        if self._field is not None:
            by = [shared_value(example, self._field, "by") for example in data]
            self._by_value.add(by, scores, groups, weights)
        if data.groups is not None:
            self.groups.update(data.groups.tolist())

    def result(self) -> "Evaluation":
        """See `ptrnet.run.Sink`."""
        return self

    def __len__(self) -> int:
        return self._by_size.counts.total()

    def __repr__(self) -> str:
        measures, telling = self.measures(), self.telling_metrics()
        texts = (f"{name} {measures[name].text(4)}" for name in telling)
        return f"Evaluation of {len(self)} examples: {', '.join(texts)}"

    def measures(self) -> dict[str, Measure]:
        """The metrics over all examples."""
        return _summarize(self._by_size.total(sorted(self._by_size.counts)))

    def telling_metrics(self) -> list[str]:
        """The names of the metrics that a text for people shows.

        A metric is left out if every model gets the same value on these examples: `top@5` if no
        set has more than 5 elements. `accuracy` is left out for grades, and if there is a finer
        metric and no answer is entirely right. `ptrnet.metrics.summary` has these rules.
        """
        return [
            name
            for name, measure in self.measures().items()
            if name not in self._cannot_tell and summary.shows(self._task, name, measure.value)
        ]

    def by_size(self) -> dict[str, tuple[int, dict[str, Measure]]]:
        """The number of instances and the metrics for each size n; empty if all sizes are equal.

        If there are more than `MAX_ROWS` sizes, ranges of sizes share a row (`5-8`).
        """
        return self._rows(self._by_size, "-") if len(self._by_size.counts) > 1 else {}

    def by_value(self) -> dict[str, tuple[int, dict[str, Measure]]]:
        """The metrics for each value of the field `by`; empty without a field.

        If there are more than `MAX_ROWS` different numbers, ranges share a row (`1.5 to 4.25`).
        """
        return self._rows(self._by_value, " to ")

    def _rows(
        self, scores: "_ScoresByValue", dash: str
    ) -> dict[str, tuple[int, dict[str, Measure]]]:
        rows = {}
        for name, part in scores.parts(dash).items():
            count = sum(scores.counts[value] for value in part)
            rows[name] = (count, _summarize(scores.total(part)))
        return rows


class _ScoresByValue:
    """The scores of examples for each value, such as each size. Scores are kept as moments.

    Moments of groups cannot be added chunk by chunk, because a group may be in several chunks. So
    if there are groups, the scores themselves are kept, with their weights. `empty` are the moments
    of zero examples.
    """

    def __init__(self, empty: Mapping[str, Moments]) -> None:
        self.counts = Counter[Any]()
        self._empty, self._moments = empty, dict[Any, dict[str, Moments]]()
        self._kept = dict[Any, list[tuple[dict[str, Scores], Indices, Floats | None]]]()

    def add(
        self,
        values: Sequence[Any],
        scores: Mapping[str, Scores],
        groups: Indices | None,
        weights: Floats | None,
    ) -> None:
        """Add the scores of B examples. `values[k]` is the value of example k.

        All calls have groups, or none has. The same holds for weights, which need groups.
        """
        rows: dict[Any, list[int]] = {}
        for row, value in enumerate(values):
            rows.setdefault(value, []).append(row)
        for value, of_value in rows.items():
            part = {name: column[of_value] for name, column in scores.items()}
            if groups is not None:
                of_part = None if weights is None else weights[of_value]
                self._kept.setdefault(value, []).append((part, groups[of_value], of_part))
                continue
            moments = _moments(part)
            present = self._moments.setdefault(value, dict(self._empty))
            for name in present:
                present[name] += moments[name]
        self.counts.update(values)

    def total(self, values: Iterable[Any]) -> dict[str, Moments]:
        """Return the moments over all examples with the given values."""
        if self._kept:
            rows = [row for value in values for row in self._kept[value]]
            kept, groups, weights = zip(*rows, strict=True)
            scores = {name: np.concatenate([part[name] for part in kept]) for name in kept[0]}
            of_all = None if weights[0] is None else np.concatenate(weights)
            return _moments(scores, np.concatenate(groups), of_all)
        of_values = [self._moments[value] for value in values]
        return {
            name: sum((moments[name] for moments in of_values), start=empty)
            for name, empty in self._empty.items()
        }

    def parts(self, dash: str) -> dict[str, list[Any]]:
        """Return the values in each row of the table, by the row's name.

        A row has one value, or the values of a range of numbers.
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


def check_room_for_scores(task: Task, examples: Iterable[Example]) -> None:
    """Check that no key of the examples' `extra` has the name of a score.

    Keys of an earlier evaluation are allowed, because `with_scores` overwrites these keys. Raises
    InputError if a key has the name of a score, and no earlier evaluation wrote that key.
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
    return examples.with_columns(extra=rows)


def _summarize(moments: Mapping[str, Moments]) -> dict[str, Measure]:
    gaps = {name: of_bin for name, of_bin in moments.items() if name in calibration.GAPS}
    metrics = {
        name: of_metric
        for name, of_metric in moments.items()
        if name != LOG_LIKELIHOOD and name not in gaps
    }
    measures = {**summary.summarize(metrics), LOG_LIKELIHOOD: moments[LOG_LIKELIHOOD].measure()}
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
