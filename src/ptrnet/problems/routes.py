"""What problems with routes in the plane share. Element 0 is the depot."""

import numpy as np

from ptrnet.problems.base import State
from ptrnet.types import Floats, Indices


def dist(a: Floats, b: Floats) -> Floats:
    """Euclidean distances of points `(..., 2)`, broadcast."""
    return np.hypot(*np.moveaxis(a - b, -1, 0))  # type: ignore[no-any-return]


def round_where(rounded: Floats, distances: Floats) -> Floats:
    """Distances, to the nearest whole number where `rounded` is not 0, as TSPLIB's EUC_2D."""
    return np.where(rounded != 0, np.floor(distances + 0.5), distances)


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
    legs = dist(points[:, 1:], points[:, :-1])
    return round_where(fields["rounded"][:, None], legs).sum(1)  # type: ignore[no-any-return]


def route_lines(inputs: Floats, outputs: Indices) -> list[Floats]:
    """The line of each route, from the depot and back, for a picture."""
    routes = np.split(outputs, np.flatnonzero(outputs == 0))
    return [inputs[np.pad(route[route > 0], 1), :2] for route in routes]
