"""Functions that problems with routes in the plane share. Element 0 is the depot."""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN, between
from ptrnet.problems.base import State
from ptrnet.types import Floats, Indices


def dist(a: Floats, b: Floats) -> Floats:
    """Return the Euclidean distances between points `a` and `b`, `(..., 2)`, with broadcasting."""
    return between(a, b, EUCLIDEAN)


def dist_or_rounded(a: Floats, b: Floats, rounded: Floats) -> Floats:
    """Return `dist`, or TSPLIB's EUC_2D (whole numbers) where `rounded` is not 0."""
    if not rounded.any():  # EUC_2D squares differences, which may overflow
        return dist(a, b)
    return np.where(rounded != 0, between(a, b, "EUC_2D"), dist(a, b))


def dist_matrix(inputs: Floats) -> Floats:
    """Return the distances `(n, n)` between the elements of an instance `(n, 5)`.

    The first two columns are positions. The last column says whether distances are rounded.
    """
    position = inputs[:, :2]
    return dist_or_rounded(position[:, None], position[None], inputs[:, -1:])


def place(position: Floats, last: Indices) -> Floats:
    """Return the position of element `last` in each instance: `(B, 2)`, from `(B, n, 2)`."""
    return position[np.arange(len(last)), last]


def from_depot(position: Floats) -> Floats:
    """Return positions `(B, n, 2)` relative to the depot, scaled to coordinates of -1 to 1."""
    relative = position - position[:, :1]
    extent = np.abs(relative).max((1, 2), keepdims=True)
    return relative / np.where(extent > 0, extent, 1)


def path_length(fields: State, answers: Indices) -> Floats:
    """Return the lengths `(B,)` of paths from the depot along the answers, and back to the depot.

    Args:
        fields: `position` and `rounded` of the instances.
        answers: indices `(B, m)`; a 0 is a visit to the depot.
    """
    path = np.pad(answers, ((0, 0), (1, 1)))
    points = np.take_along_axis(fields["position"], path[..., None], 1)
    legs = dist_or_rounded(points[:, 1:], points[:, :-1], fields["rounded"][:, None])
    return legs.sum(1)  # type: ignore[no-any-return]


def route_lines(inputs: Floats, outputs: Indices) -> list[Floats]:
    """Return the points of each route, including the depot at both ends, to draw a line."""
    routes = np.split(outputs, np.flatnonzero(outputs == 0))
    return [inputs[np.pad(route[route > 0], 1), :2] for route in routes]
