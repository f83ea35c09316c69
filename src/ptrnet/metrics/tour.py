"""Metrics of tours: length, gap to the known tour, share of valid tours."""

from collections.abc import Iterable, Sequence

import numpy as np

from ptrnet.geometry import distances
from ptrnet.metrics import Scores
from ptrnet.types import Example, Floats, Indices, is_permutation


def score(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """Return `length`, `gap` and `valid` of `(B,)` answers, compared with the examples' tours.

    - length: the length of a valid tour, in the instance's distance function. It includes the way
      back to the first city, unless the instance asks for open paths.
    - gap: how much longer a valid tour is than the example's tour, divided by the length of the
      example's tour. If both lengths are 0, the gap is 0. If only the example's tour has length 0,
      the gap is NaN.
    - valid: whether the answer visits every city once. If not, length and gap are NaN.
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
    """Return the length of a tour through points `(n, d)`.

    If `is_open` is True, the way back from the last point to the first point does not count. If the
    length is too large for a float, return infinity.
    """
    if len(tour) < 2:
        return 0.0
    path = tour if is_open else np.append(tour, tour[0])
    with np.errstate(over="ignore"):
        return float(distances.along(points, path, distance).sum())
