"""Coordinates of any size, made fit to be multiplied."""

import numpy as np

from ptrnet.types import Floats, Indices

_BITS = 20  # of each coordinate along the curve


def scale_by_power_of_two(points: Floats) -> Floats:
    """Each instance of `(..., n, d)` times a power of two: its largest number comes to 1/2..1.

    Exact, but for what is 1e-290 times smaller than the largest; products neither overflow nor
    vanish.
    """
    largest = np.abs(points).max(axis=(-2, -1), keepdims=True, initial=0)
    _, exponent = np.frexp(largest)
    return np.ldexp(points, -exponent)


def fit_unit_cube(inputs: Floats) -> Floats:
    """Instances `(..., n, d)`; each that is outside is moved into the unit cube.

    By one shift and one scale for all its coordinates, so that proportions stay.
    """
    low, high = inputs.min(-2, keepdims=True), inputs.max(-2, keepdims=True)
    inside = (low >= 0).all(-1, keepdims=True) & (high <= 1).all(-1, keepdims=True)
    if inside.all():
        return inputs
    # Halved before it is subtracted: the range of 1e308 and -1e308 is no float.
    half_range = (high / 2 - low / 2).max(-1, keepdims=True)
    moved = (inputs / 2 - low / 2) / np.where(half_range > 0, half_range, 1)
    return np.where(inside, inputs, np.clip(moved, 0, 1))


def lexicographic_order(inputs: Floats) -> Indices:
    """`(..., n)`: elements `(..., n, d)` by their first number, then the second, and so on."""
    keys = np.moveaxis(inputs, -1, 0)[::-1]
    return np.lexsort(tuple(keys), axis=-1)


def hilbert_order(points: Floats) -> Indices:
    """`(..., n)`: the order in which Hilbert's curve (1891) meets `(..., n, 2)` points.

    Near ones come near each other.
    """
    low, high = points.min(-2, keepdims=True), points.max(-2, keepdims=True)
    width = (high / 2 - low / 2).max(-1, keepdims=True)
    width = np.where(width > 0, width, 1)
    x, y = np.moveaxis(((points / 2 - low / 2) / width * (2**_BITS - 1)).astype(np.int64), -1, 0)
    along = np.zeros(x.shape, np.int64)
    for bit in reversed(range(_BITS)):
        side = 1 << bit
        right, upper = (x & side) > 0, (y & side) > 0
        along = along * 4 + ((3 * right) ^ upper)
        x, y = x & (side - 1), y & (side - 1)
        # The lower quarters are run through turned: the right one mirrored as well.
        mirrored = right & ~upper
        x, y = np.where(mirrored, side - 1 - x, x), np.where(mirrored, side - 1 - y, y)
        x, y = np.where(upper, x, y), np.where(upper, y, x)
    return np.argsort(along, axis=-1, kind="stable")
