"""Distances between points: Euclidean, and TSPLIB's distances (Reinelt 1991, report of 1995).

TSPLIB's distances are whole numbers. We use exactly the expressions of its report, because other
expressions that are mathematically equal round some halves in the other direction.

- EUC (Euclidean), MAN (Manhattan) and MAX (maximum), in the plane or in space, are rounded to the
  nearest whole number.
- CEIL_2D is the Euclidean distance, rounded up.
- ATT is the square root of a tenth of the squared distance, rounded up.
- GEO is the distance on the earth's surface in kilometres, plus one, rounded down. Coordinates are
  latitudes and longitudes, written DDD.MM (degrees and minutes).
- XRAY1 and XRAY2 are 100 times the time that a diffractometer takes to turn by three angles at
  once, rounded to the nearest whole number. The motors of XRAY1 are equally fast, the motors of
  XRAY2 are not.
- EXPLICIT is a matrix: row i of the instance has the distances from element i to all elements.
"""

import numpy as np
from numpy.typing import NDArray

from ptrnet.types import Floats, Indices

EUCLIDEAN, EXPLICIT = "euclidean", "EXPLICIT"
CEIL_2D, ATT, GEO = "CEIL_2D", "ATT", "GEO"
MOTORS = {"XRAY1": (1.0, 1.0, 1.0), "XRAY2": (1.25, 1.5, 1.15)}  # speeds about phi, chi, 2 theta
SPATIAL = ("EUC_3D", "MAN_3D", "MAX_3D", *MOTORS)
PLANAR = (EUCLIDEAN, "EUC_2D", "MAN_2D", "MAX_2D", CEIL_2D, ATT, GEO)
NAMES = (*PLANAR, *SPATIAL, EXPLICIT)
TSPLIB = NAMES[1:]

_PI = 3.141592  # TSPLIB's value; its published optima depend on these digits
_EARTH_RADIUS = 6378.388  # km
_MAX_AT_ONCE = 256  # up to this many points, all distances are computed in one expression
_MINUTES_OF_A_DEGREE, _MAX_LATITUDE, _MAX_LONGITUDE = 60, 90, 360
# `_rounding_doubt` compares the distances between at most _MAX_COMPARED points. Two conditions must
# be true for a doubt. At least the share _MANY of the distances is rounded to the same number, and
# before rounding, these distances differ by more than _MAX_SPREAD times the largest of them.
_MAX_COMPARED, _MANY, _MAX_SPREAD = 200, 1 / 3, 0.1


def between(a: Floats, b: Floats, name: str = EUCLIDEAN) -> Floats:
    """Return the distances `(...)` between points, broadcast.

    Args:
        a: points `(..., d)`.
        b: points `(..., d)`.
        name: the name of the distance, one of `NAMES` except EXPLICIT.

    Examples:
        >>> between(np.array([0.0, 0.0]), np.array([[1.0, 1.0], [3.0, 4.0]]), "EUC_2D")
        array([1., 5.])
    """
    dist = unrounded(a, b, name)
    if name in (EUCLIDEAN, GEO):
        return np.floor(dist) if name == GEO else dist
    return np.ceil(dist) if name in (CEIL_2D, ATT) else np.floor(dist + 0.5)


def unrounded(a: Floats, b: Floats, name: str) -> Floats:
    """Return the distances of `between` before they are rounded to whole numbers."""
    if name == GEO:
        return _great_circle(a, b)
    differences = np.moveaxis(a - b, -1, 0)
    if name == EUCLIDEAN:
        return np.hypot(*differences)  # does not overflow, unlike the root of the sum of squares
    if name.startswith(("MAN", "MAX")):
        return np.abs(differences).sum(0) if name.startswith("MAN") else np.abs(differences).max(0)
    if name in MOTORS:
        phi, chi, two_theta = np.abs(differences)
        angles = np.stack([np.minimum(phi, np.abs(phi - 360.0)), chi, two_theta], -1)
        times: Floats = 100.0 * (angles / MOTORS[name]).max(-1)
        return times
    square = sum(x * x for x in differences)
    return np.sqrt(square / 10.0 if name == ATT else square)


def matrix(points: Floats, name: str = EUCLIDEAN) -> Floats:
    """Return distances `(..., n, n)` of all pairs of points `(..., n, d)`, 0 on the diagonal."""
    n = points.shape[-2]
    if name == EXPLICIT:
        dist = points.copy()
    elif n <= _MAX_AT_ONCE:
        dist = between(points[..., :, None, :], points[..., None, :, :], name)
    else:  # row by row, because the differences of all pairs take twice the result's memory
        dist = np.empty((*points.shape[:-1], n))
        for i in range(n):
            dist[..., i, :] = between(points[..., i : i + 1, :], points, name)
    dist[..., np.arange(n), np.arange(n)] = 0  # GEO adds a kilometre even from a point to itself
    return dist


def is_directed(matrices: Floats) -> NDArray[np.bool_]:
    """Return `(B,)`: True for each of the EXPLICIT matrices `(B, n, n)` that is not symmetric."""
    result: NDArray[np.bool_] = (matrices != matrices.swapaxes(1, 2)).any((1, 2))
    return result


def along(points: Floats, path: Indices, name: str = EUCLIDEAN) -> Floats:
    """Return the distances `(m - 1,)` between successive points `(n, d)` of a path `(m,)`."""
    if name == EXPLICIT:
        return points[path[:-1], path[1:]]
    return between(points[path[:-1]], points[path[1:]], name)


def _great_circle(a: Floats, b: Floats) -> Floats:
    """Return TSPLIB's GEO before it is rounded down to kilometres."""
    (lat_a, long_a), (lat_b, long_b) = (np.moveaxis(_radians(p), -1, 0) for p in (a, b))
    q1, q2, q3 = np.cos(long_a - long_b), np.cos(lat_a - lat_b), np.cos(lat_a + lat_b)
    cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)
    return _EARTH_RADIUS * np.arccos(np.clip(cosine, -1, 1)) + 1.0


def _radians(points: Floats) -> Floats:
    """Convert latitudes and longitudes from DDD.MM (degrees and minutes) to radians."""
    degrees = np.trunc(points)
    return _PI * (degrees + 5.0 * (points - degrees) / 3.0) / 180.0


def doubt_about(points: Floats, name: str) -> str:
    """Return why distances may not be what the user meant; empty if distances seem right.

    There are two kinds of doubt: coordinates of GEO that may not be degrees and minutes, and
    distances that are equal only because they were rounded.
    """
    return (_geo_doubt(points) if name == GEO else "") or _rounding_doubt(points, name)


def _geo_doubt(inputs: Floats) -> str:
    """Return why coordinates may not be GEO's degrees and minutes; empty if they seem right."""
    beyond = np.abs(inputs) > (_MAX_LATITUDE, _MAX_LONGITUDE)
    if beyond.any():
        return (
            "GEO takes coordinates as degrees, latitude first, and some are beyond "
            f"{_MAX_LATITUDE} or {_MAX_LONGITUDE}, such as {inputs[beyond][0]:g}; EUC_2D takes "
            "coordinates of a plane"
        )
    if (np.round(100 * np.abs(inputs - np.trunc(inputs)), 4) >= _MINUTES_OF_A_DEGREE).any():
        return (
            "GEO takes coordinates as degrees and minutes, DDD.MM, and some would have more than "
            "59 minutes; decimal degrees have to be converted"
        )
    return ""


def _rounding_doubt(inputs: Floats, distance: str) -> str:
    """Return why rounded distances may be too coarse to compare tours; empty if all seems right.

    Rounded distances are too coarse if many of them are equal, although the unrounded distances
    differ.
    """
    if distance == EXPLICIT:
        return ""
    some = inputs[:: -(-len(inputs) // _MAX_COMPARED)]
    i, j = np.triu_indices(len(some), 1)
    rounded = between(some[i], some[j], distance)
    values, counts = np.unique(rounded, return_counts=True)
    if not len(values) or counts.max() < 2 or counts.max() / counts.sum() < _MANY:
        return ""
    most = values[np.argmax(counts)]
    exact = unrounded(some[i], some[j], distance)[rounded == most]
    if np.ptp(exact) <= _MAX_SPREAD * exact.max():
        return ""
    return (
        f"{distance} rounds distances to whole numbers, and {counts.max() / counts.sum():.0%} of "
        f"them become {most:.0f} here, so tours can hardly be compared; "
        + ("use EUC_2D, in metres" if distance == GEO else "multiply the coordinates by 1000")
    )
