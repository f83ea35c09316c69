"""The distances of many instances, a few at a time."""

from collections.abc import Iterator

from ptrnet import distances
from ptrnet.geometry import comparable
from ptrnet.types import Floats

_AT_ONCE = 2**22  # distances


def matrices(inputs: Floats, distance: str) -> Iterator[tuple[slice, Floats]]:
    """Places in the batch and the distances `(b, n, n)` of the `(B, n, 2)` instances there.

    Euclid's are of instances scaled by a power of two each: the shortest tour is the same.
    """
    batch, n, _ = inputs.shape
    points = comparable(inputs) if distance == distances.EUCLIDEAN else inputs
    step = max(1, _AT_ONCE // n**2)
    for first in range(0, batch, step):
        places = slice(first, first + step)
        yield places, distances.matrix(points[places], distance)
