"""Which way closed paths run, always right."""

import numpy as np

from ptrnet.geometry.exact import as_integers, doubled_area
from ptrnet.geometry.predicates import UNDERFLOW
from ptrnet.geometry.scaling import scale_by_power_of_two
from ptrnet.types import Answers, Floats, Indices


def area_signs(inputs: Floats, rings: Indices, lengths: Indices) -> Indices:
    """`(B,)`: the signs of signed areas: 1 counter-clockwise, -1 clockwise, 0 without area.

    Args:
        inputs: `(B, n, 2)` points.
        rings: `(B, M)` indices, closed paths through some of them.
        lengths: `(B,)` of the paths; what follows is padding.
    """
    steps = np.arange(rings.shape[1])
    mask = Answers(rings, lengths).mask
    next_step = np.where(steps + 1 < lengths[:, None], steps + 1, 0)
    points = np.take_along_axis(scale_by_power_of_two(inputs), rings[..., None], axis=1)
    x, y = np.moveaxis(points, -1, 0)
    x, y = x - x[:, :1], y - y[:, :1]  # far from the origin the sum would lose its sign
    plus = np.where(mask, x * np.take_along_axis(y, next_step, 1), 0)
    minus = np.where(mask, np.take_along_axis(x, next_step, 1) * y, 0)
    areas = (plus - minus).sum(1)
    terms = (np.abs(plus) + np.abs(minus)).sum(1)
    # Each term has a relative error of three roundings, and their sum one for each addition.
    error = (2 * len(steps) + 8) * 2.0**-53 * terms + UNDERFLOW
    signs = np.sign(areas).astype(np.int64)
    for b in np.flatnonzero(np.abs(areas) <= error):
        signs[b] = _exact_sign(inputs[b, rings[b, : lengths[b]]])
    return signs


def _exact_sign(ring: Floats) -> int:
    """The sign of the area of a ring `(m, 2)`, in whole numbers."""
    if len(ring) < 3:
        return 0
    area = doubled_area(as_integers(ring))
    return int(area > 0) - int(area < 0)
