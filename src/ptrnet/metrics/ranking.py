"""Metrics of orders, sets and choices, compared with the true answer or with grades.

`ndcg`, `reciprocal_rank`, `average_precision` and `kendall_tau` compare an order of an instance's n
elements, best first, with the elements' grades `(n,)`. The `score_*` functions measure many
instances. An element is relevant if its grade is above 0.

If all grades are equal, every value is 1. If grades differ but none is above 0, every value except
Kendall's tau is 1, as in LightGBM; `score_grades` can also count such instances as 0 or leave them
out.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from ptrnet.errors import InputError
from ptrnet.metrics import Scores
from ptrnet.types import Example, Floats, Indices, is_permutation

CUTOFFS = (1, 5, 10)  # the k of NDCG@k, by default
TOP = (3, 5)  # the k of top@k, by default; top@1 is the accuracy


def ndcg(grades: Floats, order: Indices, k: int) -> float:
    """Return the normalised discounted cumulative gain of the first k elements.

    The gains are `2^grade - 1`, as in Burges et al. (2005). scikit-learn uses the grades as gains.

    Examples:
        >>> ndcg(np.array([0.0, 2.0, 1.0]), np.array([1, 0, 2]), k=3)
        0.9639404333166532
    """
    positive = np.maximum(grades, 0)
    # 2^grade may be infinite, so divide all gains by 2^max. The quotient below does not change.
    # Write 2^grade - 1 as 2^grade (1 - 2^-grade), which keeps the digits of small grades.
    gains = np.exp2(positive - positive.max()) * -np.expm1(-positive * np.log(2))
    discounts = 1 / np.log2(np.arange(2, min(k, len(gains)) + 2))
    ideal = np.sort(gains)[::-1][: len(discounts)] @ discounts
    return float(gains[order[:k]] @ discounts / ideal) if ideal > 0 else 1.0


def grades_of_gains(grades: Floats, gains: Sequence[float]) -> Floats:
    """Return the grades `log2(1 + gain)`, whose gains in `ndcg` are those of a user.

    Args:
        grades: `(n,)`, whole numbers from 0.
        gains: the gain of an element with grade 0, 1, 2, ...

    Raises:
        InputError: there is no gain for a grade.

    Examples:
        >>> grades_of_gains(np.array([0.0, 2.0]), [0, 1, 7])
        array([0., 3.])
    """
    known = np.isin(grades, np.arange(len(gains)))
    if not known.all():
        raise InputError(
            f"gains: expected grades 0 to {len(gains) - 1}, because there are {len(gains)} gains, "
            f"got grade {grades[~known][0]:g}"
        )
    of_grades: Floats = np.log2(1 + np.array(gains, float))[grades.astype(int)]
    return of_grades


def reciprocal_rank(grades: Floats, order: Indices) -> float:
    """Return 1 / the position of the first relevant element, counted from 1."""
    relevant = grades[order] > 0
    return float(1 / (1 + relevant.argmax())) if relevant.any() else 1.0


def average_precision(grades: Floats, order: Indices) -> float:
    """Return the mean precision at the positions of the relevant elements.

    The precision at a position is the share of relevant elements among those up to this position.
    """
    places = np.flatnonzero(grades[order] > 0)
    return float((np.arange(1, len(places) + 1) / (places + 1)).mean()) if len(places) else 1.0


def kendall_tau(grades: Floats, order: Indices) -> float:
    """Return Kendall's rank correlation (1938) of the order with the grades, from -1 to 1.

    If grades are tied, the result is Kendall's tau-b (1945).
    """
    in_order = grades[order]
    first, second = np.triu_indices(len(in_order), 1)
    signs = np.sign(in_order[first] - in_order[second])
    num_untied = np.count_nonzero(signs)
    return float(signs.sum() / np.sqrt(len(signs) * num_untied)) if num_untied else 1.0


def score_permutations(
    examples: Sequence[Example], answers: Iterable[Indices]
) -> dict[str, Scores]:
    """Return the metrics of `score_sequences`, and `kendall_tau`.

    Kendall's tau is -1 for an answer that is not an order of all elements.
    """
    answers = list(answers)
    tau = [
        kendall_tau(grades_of(example), answer)
        if is_permutation(answer, len(example.inputs))
        else -1.0
        for example, answer in zip(examples, answers, strict=True)
        if example.outputs is not None
    ]
    return {**score_sequences(examples, answers), "kendall_tau": np.array(tau, float)}


def score_grades(
    examples: Sequence[Example],
    answers: Iterable[Indices],
    cutoffs: Sequence[int] = CUTOFFS,
    gains: Sequence[float] = (),
    irrelevant: float = 1.0,
) -> dict[str, Scores]:
    """Return `accuracy`, `ndcg@k`, `mrr`, `map` and `kendall_tau` of B answers that are orders.

    An order is accurate if no element comes before an element with a higher grade. An answer that
    is not an order of all elements gets the worst values: a tau of -1, and 0 for all other metrics.

    Args:
        examples: the examples with grades or true orders.
        cutoffs: the k of `ndcg@k`.
        gains: the gain of grade 0, 1, 2, ... in `ndcg`; empty: `2^grade - 1`.
        irrelevant: the value of `ndcg@k`, `mrr` and `map` for an instance in which no element is
            relevant; NaN leaves the instance out.

    Raises:
        InputError: there is no gain for a grade.
    """
    metrics: dict[str, Callable[[Floats, Indices], float]] = {
        "accuracy": lambda grades, order: bool((np.diff(grades[order]) <= 0).all()),
        **{f"ndcg@{k}": partial(ndcg, k=k) for k in cutoffs},
        "mrr": reciprocal_rank,
        "map": average_precision,
        "kendall_tau": kendall_tau,
    }
    columns: dict[str, list[float]] = {name: [] for name in metrics}
    for example, answer in zip(examples, answers, strict=True):
        if example.outputs is None and example.grades is None:
            continue
        grades = grades_of(example)
        if gains:
            grades = grades_of_gains(grades, gains)
        is_order = is_permutation(answer, len(grades))
        for name, metric in metrics.items():
            if name not in ("accuracy", "kendall_tau") and not (grades > 0).any():
                columns[name].append(irrelevant)
                continue
            worst = -1.0 if name == "kendall_tau" else 0.0
            columns[name].append(metric(grades, answer) if is_order else worst)
    return {
        name: np.array(values, bool if name == "accuracy" else float)
        for name, values in columns.items()
    }


def score_chosen(
    chosen: Sequence[int], scores: Sequence[Floats], cutoffs: Sequence[int] = TOP
) -> dict[str, Scores]:
    """Return `top@k`, `mrr` and `confidence` of a model on B choices, such as users made.

    - top@k: whether the chosen element is among the k elements that the model finds most likely.
    - mrr: 1 / the position of the chosen element in the order of likelihood, counted from 1.
    - confidence: the probability of the most likely element.

    Args:
        chosen: B indices, the element that is the true answer of each instance.
        scores: for each instance the model's log-probabilities `(n,)` of its elements.
        cutoffs: the k of `top@k`.
    """
    places = np.array(
        [np.flatnonzero(_best_first(s) == k)[0] for k, s in zip(chosen, scores, strict=True)], int
    )
    return {
        **{f"top@{k}": places < k for k in cutoffs},
        "mrr": 1 / (1 + places),
        "confidence": np.array([np.exp(s.max()) for s in scores], float),
    }


def score_members(grades: Sequence[Floats], scores: Sequence[Floats]) -> dict[str, Scores]:
    """Return `map`: for each instance the average precision of its elements, sorted by score."""
    values = [average_precision(g, _best_first(s)) for g, s in zip(grades, scores, strict=True)]
    return {"map": np.array(values, float)}


def _best_first(scores: Floats) -> Indices:
    """Return the indices of scores, highest score first. Ties keep the order, as in `solve`."""
    return np.argsort(-scores, kind="stable")


def is_sorted(inputs: Floats, outputs: Indices) -> bool:
    """Whether `outputs` has each index of the numbers `(n, 1)` once, smallest number first."""
    n = len(inputs)
    return is_permutation(outputs, n) and bool((np.diff(inputs[outputs, 0]) >= 0).all())


def score_sorted(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """Return `accuracy`: whether the entire order is right. Equal numbers may be in any order."""
    right = [is_sorted(e.inputs, answer) for e, answer in zip(examples, answers, strict=True)]
    return {"accuracy": np.array(right, bool)}


def score_orders(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """Return `accuracy` and `edit_distance` of answers that are orders of all n elements.

    - accuracy: whether the answer equals the true order.
    - edit_distance: the fewest elements to insert, remove or replace in the answer to get the true
      order (Levenshtein 1966), divided by n.
    """
    pairs = _pairs(examples, answers)
    return {
        "accuracy": _exact_matches(pairs),
        "edit_distance": np.array([_edit_distance(*pair) / len(pair[0]) for pair in pairs], float),
    }


def _edit_distance(truth: Indices, answer: Indices) -> int:
    """Return the number of insertions, deletions and replacements between two sequences."""
    steps = np.arange(len(answer) + 1)
    distances = steps
    for k, element in enumerate(truth, 1):
        replaced = distances[:-1] + (answer != element)
        best = np.append(k, np.minimum(replaced, distances[1:] + 1))
        # An insertion adds 1 to the entry on its left, so entries minus their index never rise.
        distances = np.minimum.accumulate(best - steps) + steps
    return int(distances[-1])


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
