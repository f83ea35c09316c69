"""Shared code of labellers of tours: batches of instances, tours as edges, and 2-opt.

A tour is an order of all cities. It is closed: its last city is joined to its first.
"""

from collections.abc import Callable, Iterator

import numpy as np

from ptrnet.geometry import distances, scale_by_power_of_two
from ptrnet.jit import jit
from ptrnet.labellers import is_plain
from ptrnet.labellers.rules import Problem, reduce, restore
from ptrnet.types import CLOSED, Floats, Indices, TourRules

_MAX_DISTANCES = 2**22  # maximum number of distances in memory at a time: 32 MB


def distance_matrices(inputs: Floats, distance: str) -> Iterator[tuple[slice, Floats]]:
    """Yield slices of the batch, each with the distances of its instances.

    The distances are `(B, n, n)`, where B is the size of the slice. For Euclidean distances, the
    instances are scaled by a power of two, so that no distance overflows. If matrices contain
    negative distances, we increase all distances of the batch by the same number, so that no
    distance is below 0. Neither the scaling nor the increase changes which tour is shortest. See
    `label_tours` for the arguments.
    """
    batch, n, _ = inputs.shape
    points = scale_by_power_of_two(inputs) if distance == distances.EUCLIDEAN else inputs
    if distance == distances.EXPLICIT and batch:
        points = points - min(0.0, points.min())
    step = max(1, _MAX_DISTANCES // n**2)
    for first in range(0, batch, step):
        rows = slice(first, first + step)
        yield rows, distances.matrix(points[rows], distance)


def label_tours(
    inputs: Floats,
    distance: str,
    write_tours: Callable[[Floats, Indices], None],
    rules: TourRules = CLOSED,
    search: Callable[[Problem], Indices] | None = None,
) -> list[Indices]:
    """Return tours of cities that obey the rules.

    Args:
        inputs: `(B, n, d)` cities, or `(B, n, n)` distances.
        distance: a name of `ptrnet.geometry.distances`.
        write_tours: a function that takes the distances `(B, n, n)` of plain instances, and writes
            their tours into an array `(B, n)`.
        search: a function that returns a tour `(n,)` of a `Problem`. It is needed for instances
            that are not plain (see `is_plain`).

    Raises:
        InputError: no tour obeys the rules.
    """
    batch, n, _ = inputs.shape
    tours, plain = np.empty((batch, n), np.int64), is_plain(inputs, distance, rules)
    for rows, matrices in distance_matrices(inputs, distance):
        if search is None or plain:
            write_tours(matrices, tours[rows])
            continue
        for tour, dist in zip(tours[rows], matrices, strict=True):
            problem = reduce(dist, rules, bool((dist != dist.T).any()))
            tour[:] = restore(search(problem), n, rules, problem.directed)
    return list(tours)


@jit
def tour_length(dist: Floats, tour: Indices) -> float:
    """Return the length of the closed tour `(n,)` by distances `(n, n)`."""
    total = dist[tour[-1], tour[0]]
    for k in range(len(tour) - 1):
        total += dist[tour[k], tour[k + 1]]
    return total


@jit
def add_edge(neighbours: Indices, i: int, j: int) -> None:
    """Write the edge i-j into `neighbours` `(n, 2)`, in which -1 means no neighbour yet."""
    neighbours[i, 0 if neighbours[i, 0] < 0 else 1] = j
    neighbours[j, 0 if neighbours[j, 0] < 0 else 1] = i


@jit
def walk(neighbours: Indices, start: int) -> Indices:
    """Return all cities `(n,)` in the order of a tour: `start`, its first neighbour, and so on.

    The neighbours `(n, 2)` are those in a tour, or in a path that begins at `start`. Each end of a
    path has -1 as its second neighbour.
    """
    n = len(neighbours)
    tour = np.empty(n, np.int64)
    previous, city = -1, start
    for k in range(n):
        tour[k] = city
        first, second = neighbours[city]
        next_city = first if first != previous else second
        previous, city = city, next_city
    return tour
