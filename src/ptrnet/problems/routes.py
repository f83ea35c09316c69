"""Functions that problems with routes in the plane share. Element 0 is the depot.

Functions with arguments of type `Any` take arrays of NumPy or tensors of torch.
"""

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ptrnet.problems.base import State
from ptrnet.types import Floats, Indices

NEAR = 1e-9  # rules add it to distances to avoid division by 0


def coordinates(points: Any) -> tuple[Any, Any]:
    """Return the x and the y `(...)` of points `(..., 2)`."""
    return points[..., 0], points[..., 1]


def dist(a: Any, b: Any) -> Any:
    """Return the Euclidean distances between points `a` and `b`, `(..., 2)`, with broadcasting."""
    x, y = coordinates(a - b)
    return array_namespace(a).hypot(x, y)  # does not overflow, unlike the root of squares


def dist_or_rounded(a: Any, b: Any, rounded: Any) -> Any:
    """Return `dist`, or TSPLIB's EUC_2D (whole numbers) where `rounded` is not 0."""
    xp = array_namespace(a)
    is_rounded = rounded != 0
    # Leave out unrounded points, because their squares may overflow. The formula is that of
    # `ptrnet.geometry.distances`: other formulas may round x.5 differently.
    x, y = coordinates(xp.where(is_rounded[..., None], a - b, 0.0))
    return xp.where(is_rounded, xp.floor(xp.sqrt(x * x + y * y) + 0.5), dist(a, b))


def dist_matrix(inputs: Floats) -> Floats:
    """Return the distances `(n, n)` between the elements of an instance `(n, 5)`.

    The first two columns are positions. The last column says whether distances are rounded.
    """
    position = inputs[:, :2]
    matrix: Floats = dist_or_rounded(position[:, None], position[None], inputs[:, -1:])
    return matrix


def from_depot(position: Any) -> Any:
    """Return positions `(B, n, 2)` relative to the depot, scaled to coordinates of -1 to 1."""
    xp = array_namespace(position)
    relative = position - position[:, :1]
    extent = xp.max(xp.abs(relative), axis=(1, 2), keepdims=True)
    return relative / xp.where(extent > 0, extent, 1.0)


def path_length(fields: State, answers: Indices) -> Floats:
    """Return the lengths `(B,)` of paths from the depot along the answers, and back to the depot.

    The fields are `position` and `rounded`. In answers `(B, m)`, a 0 is a visit to the depot.
    """
    path = np.pad(answers, ((0, 0), (1, 1)))
    points = np.take_along_axis(fields["position"], path[..., None], 1)
    legs: Floats = dist_or_rounded(points[:, 1:], points[:, :-1], fields["rounded"][:, None])
    return legs.sum(1)


def route_lines(inputs: Floats, outputs: Indices) -> list[Floats]:
    """Return the points of each route, including the depot at both ends, to draw a line."""
    routes = np.split(outputs, np.flatnonzero(outputs == 0))
    return [inputs[np.pad(route[route > 0], 1), :2] for route in routes]
