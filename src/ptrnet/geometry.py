"""Coordinates of any size, made fit to be multiplied."""

import numpy as np

from ptrnet.types import Floats


def comparable(points: Floats) -> Floats:
    """Each instance of `(..., n, d)` times a power of two: its largest number comes to 1/2..1.

    Exact, but for what is 1e-290 times smaller than the largest; products neither overflow nor
    vanish.
    """
    largest = np.abs(points).max(axis=(-2, -1), keepdims=True, initial=0)
    _, exponent = np.frexp(largest)
    return np.ldexp(points, -exponent)
