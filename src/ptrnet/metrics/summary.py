"""Scores of answers to a task, summarized: what a text, a picture and an evaluation show."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ptrnet.metrics import Measure, Moments, Scores, moments_of
from ptrnet.types import Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.tasks.base import Task

FAILS_ABOVE = 0.01  # Vinyals et al. 2015 print FAIL if a larger share of hulls is not simple


def measure(
    task: "Task", examples: Sequence[Example], answers: Iterable[Indices]
) -> dict[str, Measure]:
    """Score one answer for each example by the metrics of the task, and summarize the scores."""
    return summarize(moments_of(task.score(examples, answers)))


def summarize(moments: Mapping[str, Moments]) -> dict[str, Measure]:
    """Return the mean of each metric with its interval. The mean of flags is the share of True.

    The `area` of hulls is FAIL if over 1% of the answers are not `simple`.
    """
    measures = {name: of_metric.measure() for name, of_metric in moments.items()}
    if "area" in moments:
        simple = moments["simple"]
        if simple.count - simple.total > FAILS_ABOVE * simple.count:
            measures["area"] = Measure(None, None, None, measures["area"].count, fail=True)
    return measures


def is_correct(task: "Task", example: Example, outputs: Indices) -> bool:
    """Whether `outputs` are as good as the example's answer.

    If the task has costs, they cost no more, up to rounding: the same tour from another city has
    other rounding errors.
    """
    assert example.outputs is not None
    costs = task.costs(example, [outputs, example.outputs])
    if costs is not None:
        return bool(costs[0] <= costs[1] + 1e-9 * abs(costs[1]))
    return bool(task.score([example], [outputs])["accuracy"][0])


def answer_stats(task: "Task", answered: Example) -> dict[str, float]:
    """Return numbers to report with an answer, such as the length of a tour.

    The result is empty for an invalid answer, and if the task has no costs.
    """
    assert answered.outputs is not None
    costs = task.costs(answered, [answered.outputs])
    if costs is None or not costs[0] < float("inf"):
        return {}
    others = task.facts.stats.items()
    return {
        task.facts.cost_name: float(costs[0]),
        **{name: float(stat(answered.inputs, answered.outputs)) for name, stat in others},
    }


def score_elements(
    task: "Task", examples: Sequence[Example], scores: Sequence[Floats]
) -> dict[str, Scores]:
    """Return metrics of the scores `(n,)` that a model gave to the elements of each example.

    Only choices and sets of own examples have such metrics. The form is that of `Task.score`.
    """
    from ptrnet.metrics import ranking

    if task.facts.kind == "choice":
        chosen = [int(e.outputs[0]) for e in examples if e.outputs is not None]
        return ranking.score_chosen(chosen, scores, task.facts.cutoffs or ranking.TOP)
    if task.facts.kind == "set":
        return ranking.score_members(list(map(ranking.grades_of, examples)), scores)
    return {}


def can_tell(task: "Task", metric: str, example: Example) -> bool:
    """Whether two answers to the example may get different values of a metric.

    A text for people leaves out a metric that tells no two answers to any example apart. It also
    leaves out a metric that always equals another one.
    """
    from ptrnet.metrics.ranking import grades_of

    name, _, cutoff = metric.partition("@")
    if name == "top" or (name == "ndcg" and metric != task.facts.metric):
        return len(example.inputs) > int(cutoff)
    if name == "map" or (name == "mrr" and task.facts.kind == "grades"):
        is_relevant = grades_of(example) > 0
        return bool(is_relevant.any() and not is_relevant.all())
    return True


def shows(task: "Task", metric: str, value: float | None) -> bool:
    """Whether a value of a metric, over many answers, belongs into a text for people.

    Exact matches are not shown if a finer metric is, and no answer matches. An order by grades
    never has to match from the first to the last element.
    """
    if task.facts.metric in ("", "accuracy") or metric not in ("accuracy", "same_set"):
        return True
    return task.facts.kind != "grades" and value != 0
