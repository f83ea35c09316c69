"""Points: scales and orders of points, and points that are equal.

The package uses NumPy only.
"""

import numpy as np

from ptrnet.types import Floats, Indices

SMALLEST_RANGE = 2.0**-6  # instances in the unit cube with a smaller range are scaled up


def scale_by_power_of_two(points: Floats, axis: int | tuple[int, int] = (-2, -1)) -> Floats:
    """Multiply each of the instances `(..., n, d)` by a power of two.

    The largest absolute coordinate is then at least 1/2 and below 1. So products of coordinates do
    not overflow, and only products of very small coordinates underflow. A power of two keeps all
    digits, except for coordinates that are 1e290 times smaller than the largest coordinate. An
    instance of zeros stays unchanged.

    If `axis` is -2, each axis of an instance is scaled by a power of its own. Ratios of areas stay
    the same, and the same edges cross. Areas do not underflow, even if one axis is 1e300 times
    longer than the other axis.
    """
    largest = np.abs(points).max(axis=axis, keepdims=True, initial=0)
    _, exponent = np.frexp(largest)
    return np.ldexp(points, -exponent)


def fit_unit_cube(inputs: Floats) -> Floats:
    """Return instances `(..., n, d)` in the unit cube.

    An instance that leaves the cube, or whose range is above 0 and below `SMALLEST_RANGE`, is
    shifted and scaled to fill the cube. All its coordinates have the same scale, so proportions
    stay. We scale up small instances because models work in float32, and cannot distinguish points
    1e-5 apart.
    """
    low, high = inputs.min(-2, keepdims=True), inputs.max(-2, keepdims=True)
    inside = (low >= 0).all(-1, keepdims=True) & (high <= 1).all(-1, keepdims=True)
    # Halve instances that leave the cube before subtracting, because 1e308 - -1e308 overflows.
    part = np.where(inside, 1.0, 0.5)
    width = (high * part - low * part).max(-1, keepdims=True)
    fits = inside & ((width >= SMALLEST_RANGE) | (width == 0))
    if fits.all():
        return inputs
    moved = (inputs * part - low * part) / np.where(width > 0, width, 1)
    return np.where(fits, inputs, np.clip(moved, 0, 1))


_BITS = 20  # bits of each coordinate; with 3 axes, an index on Hilbert's curve has 60


def model_order(inputs: Floats, order: str) -> Indices:
    """Return the order `(B, n)` in which models read the elements of instances `(B, n, d)`.

    Args:
        order: the setting of the task: "given", "lexicographic" or "hilbert".
    """
    if order == "lexicographic":
        return lexicographic_order(inputs)
    if order == "hilbert":
        return hilbert_order(inputs)
    return np.tile(np.arange(inputs.shape[1]), (len(inputs), 1))


def lexicographic_order(inputs: Floats) -> Indices:
    """Return the lexicographic order `(..., n)` of elements `(..., n, d)`."""
    keys = np.moveaxis(inputs, -1, 0)[::-1]
    return np.lexsort(tuple(keys), axis=-1)


def hilbert_order(points: Floats) -> Indices:
    """Return the order `(..., n)` of points `(..., n, d)` along Hilbert's curve (1891), d <= 3.

    Points that are near each other are mostly near each other in this order.
    """
    corner, opposite = points.min(-2, keepdims=True), points.max(-2, keepdims=True)
    width = (opposite / 2 - corner / 2).max(-1, keepdims=True)  # halved to avoid overflow
    width = np.where(width > 0, width, 1)
    cells = ((points / 2 - corner / 2) / width * (2**_BITS - 1)).astype(np.int64)
    axes = list(np.moveaxis(cells, -1, 0))
    index = np.zeros(axes[0].shape, np.int64)  # the index of the cell on the curve
    last = np.zeros_like(index)  # the last bit of the index
    # The algorithm of Skilling (2004). If a cell is in the upper half of an axis, mirror the first
    # axis. If the cell is in the lower half, swap the first axis and that axis.
    for bit in reversed(range(_BITS)):
        lower = (1 << bit) - 1
        for i, axis in enumerate(axes):
            upper = axis >> bit & 1
            last = last ^ upper
            index = index * 2 + last
            changed = np.where(upper, 0, (axes[0] ^ axis) & lower)
            axes[0] = axes[0] ^ np.where(upper, lower, changed)
            axes[i] = axes[i] ^ changed
    return np.argsort(index, axis=-1, kind="stable")


def first_equal(points: Floats) -> Indices:
    """Return for each of the points `(n, d)` the index of the first equal point, `(n,)`."""
    _, first, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()]
