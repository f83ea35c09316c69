"""Many instances, a few at a time: their distances, and the tours that a labeller writes."""

from collections.abc import Callable, Iterator

import numpy as np

from ptrnet.geometry import distances
from ptrnet.geometry.scaling import scale_by_power_of_two
from ptrnet.types import Answers, Floats, Indices

_MAX_DISTANCES = 2**22  # that are in memory at a time


def distance_matrices(inputs: Floats, distance: str) -> Iterator[tuple[slice, Floats]]:
    """Slices of a batch of `(B, n, 2)` cities, each with the distances of its instances.

    The distances are `(B, n, n)`, with B of the slice. Euclidean ones are those of the instance
    scaled by a power of two, so that none overflows; the shortest tour stays the same.
    """
    batch, n, _ = inputs.shape
    points = scale_by_power_of_two(inputs) if distance == distances.EUCLIDEAN else inputs
    step = max(1, _MAX_DISTANCES // n**2)
    for first in range(0, batch, step):
        rows = slice(first, first + step)
        yield rows, distances.matrix(points[rows], distance)


def label_tours(
    inputs: Floats, distance: str, write_tours: Callable[[Floats, Indices], None]
) -> Answers:
    """Tours of `(B, n, 2)` cities.

    Args:
        inputs: `(B, n, 2)` cities.
        distance: a name of `ptrnet.geometry.distances`.
        write_tours: computes the tours of instances by their distances `(B, n, n)`, and writes
            them into an array `(B, n)`.
    """
    batch, n, _ = inputs.shape
    tours = np.empty((batch, n), np.int64)
    for rows, dist in distance_matrices(inputs, distance):
        write_tours(dist, tours[rows])
    return Answers(tours, np.full(batch, n, np.int64))
