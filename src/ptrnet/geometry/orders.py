"""Orders of points, and points that are equal."""

import numpy as np

from ptrnet.types import Floats, Indices

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
