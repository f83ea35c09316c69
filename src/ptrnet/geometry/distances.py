"""Distances of points in the plane: Euclid's, and those of TSPLIB (Reinelt 1991, report of 1995).

TSPLIB's are whole numbers: EUC_2D rounds to the nearest, CEIL_2D up, ATT up from a tenth of the
square, and GEO measures along the earth's surface between latitudes and longitudes in DDD.MM.
"""

import numpy as np

from ptrnet.types import Floats

EUCLIDEAN = "euclidean"
EUC_2D, CEIL_2D, ATT, GEO = "EUC_2D", "CEIL_2D", "ATT", "GEO"
TSPLIB = (EUC_2D, CEIL_2D, ATT, GEO)
NAMES = (EUCLIDEAN, *TSPLIB)

_PI = 3.141592  # as TSPLIB has it; its known optima rest on these digits
_EARTH_RADIUS = 6378.388  # km
_MAX_AT_ONCE = 256  # points whose distances are computed in one expression


def between(a: Floats, b: Floats, name: str = EUCLIDEAN) -> Floats:
    """Distances of points `(..., 2)` from points `(..., 2)`, broadcast: `(...)`.

    Args:
        a: points.
        b: points.
        name: of the distance, one of `NAMES`.
    """
    if name == GEO:
        return _great_circle(a, b)
    x, y = np.moveaxis(a - b, -1, 0)
    if name == ATT:
        return np.ceil(np.hypot(x, y) / np.sqrt(10.0))
    dist = np.hypot(x, y)
    if name == EUC_2D:
        return np.floor(dist + 0.5)
    return np.ceil(dist) if name == CEIL_2D else dist


def matrix(points: Floats, name: str = EUCLIDEAN) -> Floats:
    """`(..., n, n)` distances of all pairs of `(..., n, 2)` points; zero on the diagonal."""
    n = points.shape[-2]
    if n <= _MAX_AT_ONCE:
        dist = between(points[..., :, None, :], points[..., None, :, :], name)
    else:  # row by row: differences of all pairs would take twice the result's memory
        dist = np.empty((*points.shape[:-1], n))
        for i in range(n):
            dist[..., i, :] = between(points[..., i : i + 1, :], points, name)
    dist[..., np.arange(n), np.arange(n)] = 0  # GEO adds a kilometre
    return dist


def _great_circle(a: Floats, b: Floats) -> Floats:
    """TSPLIB's GEO, whole kilometres."""
    (lat_a, long_a), (lat_b, long_b) = (np.moveaxis(_radians(p), -1, 0) for p in (a, b))
    q1, q2, q3 = np.cos(long_a - long_b), np.cos(lat_a - lat_b), np.cos(lat_a + lat_b)
    cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)
    return np.floor(_EARTH_RADIUS * np.arccos(np.clip(cosine, -1, 1)) + 1.0)


def _radians(points: Floats) -> Floats:
    """Latitudes and longitudes in DDD.MM (degrees, then minutes) as angles."""
    degrees = np.trunc(points)
    return _PI * (degrees + 5.0 * (points - degrees) / 3.0) / 180.0
