"""Scales and orders of points, and points that are equal."""

import numpy as np

from ptrnet.types import Floats, Indices

SMALLEST_RANGE = 2.0**-6  # of an instance in the unit cube that stays as it is


def scale_by_power_of_two(points: Floats) -> Floats:
    """Multiplies each instance of `(..., n, d)` by a power of two of its own.

    Its largest absolute coordinate comes to 1/2 or more, less than 1: products of coordinates
    neither overflow nor vanish. A power of two changes no digit, except of coordinates that are
    1e-290 times smaller than the largest. An instance of zeros stays as it is.
    """
    largest = np.abs(points).max(axis=(-2, -1), keepdims=True, initial=0)
    _, exponent = np.frexp(largest)
    return np.ldexp(points, -exponent)


def scale_axes_by_powers_of_two(points: Floats) -> Floats:
    """As `scale_by_power_of_two`, each axis by a power of its own.

    Shares of areas, and which edges meet, stay; areas do not vanish where one axis is 1e300 times
    longer than the other.
    """
    largest = np.abs(points).max(axis=-2, keepdims=True, initial=0)
    _, exponent = np.frexp(largest)
    return np.ldexp(points, -exponent)


def fit_unit_cube(inputs: Floats) -> Floats:
    """Instances `(..., n, d)`; each that leaves the unit cube, or is lost in it, comes to fill it.

    By one shift and one scale for all its coordinates, so that proportions stay. Lost is what has
    no range of SMALLEST_RANGE: models tell points 1e-5 apart no better than float32 does.
    """
    low, high = inputs.min(-2, keepdims=True), inputs.max(-2, keepdims=True)
    inside = (low >= 0).all(-1, keepdims=True) & (high <= 1).all(-1, keepdims=True)
    # Halve before subtracting outside the cube: the range of 1e308 and -1e308 is not a float.
    part = np.where(inside, 1.0, 0.5)
    width = (high * part - low * part).max(-1, keepdims=True)
    fits = inside & ((width >= SMALLEST_RANGE) | (width == 0))
    if fits.all():
        return inputs
    moved = (inputs * part - low * part) / np.where(width > 0, width, 1)
    return np.where(fits, inputs, np.clip(moved, 0, 1))


_BITS = 20  # of each coordinate along Hilbert's curve


def lexicographic_order(inputs: Floats) -> Indices:
    """`(..., n)`: elements `(..., n, d)` by their first number, then the second, and so on."""
    keys = np.moveaxis(inputs, -1, 0)[::-1]
    return np.lexsort(tuple(keys), axis=-1)


def hilbert_order(points: Floats) -> Indices:
    """`(..., n)`: the order of `(..., n, 2)` points along Hilbert's curve (1891).

    Points that are near each other mostly come near each other in this order.
    """
    corner, opposite = points.min(-2, keepdims=True), points.max(-2, keepdims=True)
    width = (opposite / 2 - corner / 2).max(-1, keepdims=True)  # halves: it cannot overflow
    width = np.where(width > 0, width, 1)
    cells = ((points / 2 - corner / 2) / width * (2**_BITS - 1)).astype(np.int64)
    x, y = np.moveaxis(cells, -1, 0)
    index = np.zeros(x.shape, np.int64)  # of the cell along the curve
    for bit in reversed(range(_BITS)):
        side = 1 << bit
        right, upper = (x & side) > 0, (y & side) > 0
        index = index * 4 + ((3 * right) ^ upper)
        x, y = x & (side - 1), y & (side - 1)
        # The curve runs through the lower quarters rotated: x and y change places, and the right
        # one is mirrored as well.
        mirrored = right & ~upper
        x, y = np.where(mirrored, side - 1 - x, x), np.where(mirrored, side - 1 - y, y)
        x, y = np.where(upper, x, y), np.where(upper, y, x)
    return np.argsort(index, axis=-1, kind="stable")


def first_equal(points: Floats) -> Indices:
    """`(n,)`: for each of `(n, d)` points the first index at which an equal point stands."""
    _, first, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()]
