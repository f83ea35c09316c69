"""Closed tours: length, gap to the known tour, share of valid ones (V 4.4)."""

from collections.abc import Iterable, Sequence

import numpy as np

from ptrnet.geometry import distances
from ptrnet.metrics.interval import Scores
from ptrnet.metrics.sequence import is_permutation
from ptrnet.types import Example, Floats, Indices


def score(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """`length`, `gap` and `valid` of `(B,)` answers, by the tours of the examples.

    - length: of the tour, closed if the instance does not say otherwise, in the distance that the
      instance's file names; of valid tours.
    - gap: how much longer than the example's tour, as a share of that, of valid tours. Zero where
      both have no length, none where only the example's has none.
    - valid: whether the answer visits every city once.
    """
    valid: list[bool] = []
    lengths, gaps = np.full(len(examples), np.nan), np.full(len(examples), np.nan)
    for k, (example, answer) in enumerate(zip(examples, answers, strict=True)):
        assert example.outputs is not None
        valid.append(is_permutation(answer, len(example.inputs)))
        if not valid[-1]:
            continue
        terms = example.distance, example.rules.is_open
        answered = length(example.inputs, answer, *terms)
        known = length(example.inputs, example.outputs, *terms)
        lengths[k] = answered
        if known or not answered:
            gaps[k] = (answered - known) / known if known else 0.0
    return {"length": lengths, "gap": gaps, "valid": np.array(valid, bool)}


def length(
    points: Floats, tour: Indices, distance: str = distances.EUCLIDEAN, is_open: bool = False
) -> float:
    """The length of the tour through `(n, d)` points; infinite where no float holds it.

    With `is_open` the way back from the last point to the first does not count.
    """
    if len(tour) < 2:
        return 0.0
    path = tour if is_open else np.append(tour, tour[0])
    with np.errstate(over="ignore"):
        return float(distances.along(points, path, distance).sum())
