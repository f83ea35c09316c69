"""What problems with routes in the plane share. Element 0 is the depot."""

import numpy as np

from ptrnet.geometry.distances import EUCLIDEAN, between
from ptrnet.problems.base import State
from ptrnet.types import Floats, Indices


def dist(a: Floats, b: Floats) -> Floats:
    """Euclidean distances of points `(..., 2)`, broadcast."""
    return between(a, b, EUCLIDEAN)


def dist_or_rounded(a: Floats, b: Floats, rounded: Floats) -> Floats:
    """As `dist`, but TSPLIB's EUC_2D, a whole number, where `rounded` is not 0."""
    if not rounded.any():  # squares of large coordinates may overflow
        return dist(a, b)
    return np.where(rounded != 0, between(a, b, "EUC_2D"), dist(a, b))


def place(position: Floats, last: Indices) -> Floats:
    """`(B, 2)`: the positions of the elements `(B,)`, of positions `(B, n, 2)`."""
    return position[np.arange(len(last)), last]


def from_depot(position: Floats) -> Floats:
    """`(B, n, 2)` positions seen from the depot, in units of the largest difference."""
    relative = position - position[:, :1]
    extent = np.abs(relative).max((1, 2), keepdims=True)
    return relative / np.where(extent > 0, extent, 1)


def path_length(fields: State, answers: Indices) -> Floats:
    """`(B,)`: how long the ways from the depot through `(B, m)` answers and back are.

    Args:
        fields: `position` and `rounded` of the instances.
        answers: a 0 is a visit to the depot.
    """
    path = np.pad(answers, ((0, 0), (1, 1)))
    points = np.take_along_axis(fields["position"], path[..., None], 1)
    legs = dist_or_rounded(points[:, 1:], points[:, :-1], fields["rounded"][:, None])
    return legs.sum(1)  # type: ignore[no-any-return]


def route_lines(inputs: Floats, outputs: Indices) -> list[Floats]:
    """The line of each route, from the depot and back, for a picture."""
    routes = np.split(outputs, np.flatnonzero(outputs == 0))
    return [inputs[np.pad(route[route > 0], 1), :2] for route in routes]
