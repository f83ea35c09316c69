"""Metrics of sorted numbers, and of answers that are compared with the true answer."""

from collections.abc import Iterable, Sequence

import numpy as np

from ptrnet.metrics.interval import Scores
from ptrnet.types import Example, Floats, Indices, is_permutation


def is_sorted(inputs: Floats, outputs: Indices) -> bool:
    """Whether `outputs` has each index of the numbers `(n, 1)` once, smallest number first."""
    n = len(inputs)
    return is_permutation(outputs, n) and bool((np.diff(inputs[outputs, 0]) >= 0).all())


def score_sorted(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """Return `accuracy`: whether the entire order is right. Equal numbers may be in any order."""
    right = [is_sorted(e.inputs, answer) for e, answer in zip(examples, answers, strict=True)]
    return {"accuracy": np.array(right, bool)}


def score_sequences(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """Return `accuracy` and `in_place` of answers, compared with the true answers.

    - accuracy: whether the answer equals the true answer.
    - in_place: the number of positions with the same element, divided by the length of the longer
      sequence. For two empty sequences, the value is 1.
    """
    pairs = _pairs(examples, answers)
    return {
        "accuracy": _exact_matches(pairs),
        "in_place": np.array([_agreement(truth, answer) for truth, answer in pairs], float),
    }


def score_subsets(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """Return `accuracy`, `same_set` and `f1` of answers, compared with the true answers.

    - accuracy: whether the answer equals the true answer.
    - same_set: whether both answers have the same elements, in any order.
    - f1: twice the number of elements that both sets share, divided by the sum of the sets' sizes.
    """
    pairs = _pairs(examples, answers)
    sets = [(np.sort(truth), np.sort(answer)) for truth, answer in pairs]
    return {
        "accuracy": _exact_matches(pairs),
        "same_set": _exact_matches(sets),
        "f1": np.array([_f1(truth, answer) for truth, answer in pairs], float),
    }


def score_sets(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """Return `accuracy`, which ignores the order, and `f1` as in `score_subsets`."""
    scores = score_subsets(examples, answers)
    return {"accuracy": scores["same_set"], "f1": scores["f1"]}


def score_choices(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """Return `accuracy`: whether the answer is the true element."""
    return {"accuracy": _exact_matches(_pairs(examples, answers))}


def grades_of(example: Example) -> Floats:
    """Return the grades `(n,)` of an example.

    If the example has no grades, derive them from its answer. The first element gets the highest
    grade, and elements that are not in the answer get 0.
    """
    if example.grades is not None:
        return example.grades
    assert example.outputs is not None
    grades = np.zeros(len(example.inputs))
    grades[example.outputs] = np.arange(len(example.outputs), 0, -1)
    return grades


Pairs = list[tuple[Indices, Indices]]  # the true and the given answer


def _pairs(examples: Sequence[Example], answers: Iterable[Indices]) -> Pairs:
    """Return pairs of true and given answers, for examples that have a true answer."""
    pairs = zip(examples, answers, strict=True)
    return [(e.outputs, answer) for e, answer in pairs if e.outputs is not None]


def _exact_matches(pairs: Pairs) -> Scores:
    return np.array([np.array_equal(truth, answer) for truth, answer in pairs], bool)


def _agreement(truth: Indices, answer: Indices) -> float:
    shorter, longer = sorted((len(truth), len(answer)))
    return float((truth[:shorter] == answer[:shorter]).sum() / longer) if longer else 1.0


def _f1(truth: Indices, answer: Indices) -> float:
    total = len(truth) + len(answer)
    return 2 * len(np.intersect1d(truth, answer)) / total if total else 1.0
