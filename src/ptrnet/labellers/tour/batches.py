"""Many instances, a few at a time: their distances, and tours that are written for them."""

from collections.abc import Callable, Iterator

import numpy as np

from ptrnet import distances
from ptrnet.geometry import scale_by_power_of_two
from ptrnet.types import Answers, Floats, Indices

_AT_ONCE = 2**22  # distances


def matrices(inputs: Floats, distance: str) -> Iterator[tuple[slice, Floats]]:
    """Places in the batch and the distances `(b, n, n)` of the `(B, n, 2)` instances there.

    Euclid's are of instances scaled by a power of two each: the shortest tour is the same.
    """
    batch, n, _ = inputs.shape
    points = scale_by_power_of_two(inputs) if distance == distances.EUCLIDEAN else inputs
    step = max(1, _AT_ONCE // n**2)
    for first in range(0, batch, step):
        places = slice(first, first + step)
        yield places, distances.matrix(points[places], distance)


def tours(inputs: Floats, distance: str, write: Callable[[Floats, Indices], None]) -> Answers:
    """Tours of `(B, n, 2)` cities; `write` fills in `(b, n)` of them by `(b, n, n)` distances."""
    batch, n, _ = inputs.shape
    found = np.empty((batch, n), np.int64)
    for places, far in matrices(inputs, distance):
        write(far, found[places])
    return Answers(found, np.full(batch, n, np.int64))
