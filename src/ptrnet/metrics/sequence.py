"""Orders of numbers (C 3.1), and sequences that are right only as they are given."""

from collections.abc import Iterable, Sequence

import numpy as np

from ptrnet.metrics.interval import Measure, mean, share
from ptrnet.types import Example, Floats, Indices


def is_sorted(inputs: Floats, outputs: Indices) -> bool:
    """Whether `outputs` name every number once, none before a smaller one."""
    whole = np.array_equal(np.sort(outputs), np.arange(len(inputs)))
    return whole and bool((np.diff(inputs[outputs, 0]) >= 0).all())


def measure_sorted(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Measure]:
    """`accuracy`: the whole order is right; equal numbers may stand either way."""
    right = [is_sorted(e.inputs, answer) for e, answer in zip(examples, answers, strict=True)]
    return {"accuracy": share(right)}


def measure_sequences(
    examples: Sequence[Example], answers: Iterable[Indices]
) -> dict[str, Measure]:
    """`accuracy`: the answer is the example's own; `in_place`: the share of places that agree.

    Of two lengths the longer one counts; two empty sequences agree.
    """
    pairs = _pairs(examples, answers)
    return {
        "accuracy": share([np.array_equal(a, b) for a, b in pairs]),
        "in_place": mean([_agreeing(a, b) for a, b in pairs]),
    }


def measure_orders(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Measure]:
    """As `measure_sequences`, and `kendall_tau`: Kendall's rank correlation (1938), 1 to -1.

    An answer that is no order of all elements counts -1.
    """
    pairs = _pairs(examples, answers)
    found = measure_sequences(examples, [b for _, b in pairs])
    return {**found, "kendall_tau": mean([_kendall_tau(a, b) for a, b in pairs])}


def measure_subsets(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Measure]:
    """`accuracy` as in `measure_sequences`; `same_set`, in whatever order; and the mean `f1`.

    F1 is twice the number of elements in both over the sum of the numbers in each.
    """
    pairs = _pairs(examples, answers)
    return {
        "accuracy": share([np.array_equal(a, b) for a, b in pairs]),
        "same_set": share([np.array_equal(np.sort(a), np.sort(b)) for a, b in pairs]),
        "f1": mean([_f1(a, b) for a, b in pairs]),
    }


def _pairs(
    examples: Sequence[Example], answers: Iterable[Indices]
) -> list[tuple[Indices, Indices]]:
    """Each example's own answer with the one to measure."""
    both = zip(examples, answers, strict=True)
    return [(e.outputs, answer) for e, answer in both if e.outputs is not None]


def _agreeing(truth: Indices, answer: Indices) -> float:
    both, longer = min(len(truth), len(answer)), max(len(truth), len(answer))
    return float((truth[:both] == answer[:both]).sum() / longer) if longer else 1.0


def _kendall_tau(truth: Indices, answer: Indices) -> float:
    n = len(truth)
    if not np.array_equal(np.sort(answer), np.arange(n)):
        return -1.0
    if n < 2:
        return 1.0
    ranks = np.argsort(answer)[truth]
    ordered = np.sign(ranks[None, :] - ranks[:, None])[np.triu_indices(n, 1)]
    return float(ordered.mean())


def _f1(truth: Indices, answer: Indices) -> float:
    total = len(truth) + len(answer)
    return 2 * len(np.intersect1d(truth, answer)) / total if total else 1.0
