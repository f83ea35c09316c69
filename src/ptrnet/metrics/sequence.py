"""Orders of numbers (C 3.1)."""

from collections.abc import Iterable, Sequence

import numpy as np

from ptrnet.metrics.interval import Measure, share
from ptrnet.types import Example, Floats, Indices


def is_sorted(inputs: Floats, outputs: Indices) -> bool:
    """Whether `outputs` name every number once, none before a smaller one."""
    whole = np.array_equal(np.sort(outputs), np.arange(len(inputs)))
    return whole and bool((np.diff(inputs[outputs, 0]) >= 0).all())


def measure_sorted(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Measure]:
    """`accuracy`: the whole order is right; equal numbers may stand either way."""
    right = [is_sorted(e.inputs, answer) for e, answer in zip(examples, answers, strict=True)]
    return {"accuracy": share(right)}
