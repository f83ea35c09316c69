"""Coordinates scaled so that they can be multiplied, and so that they fit the unit cube."""

import numpy as np

from ptrnet.types import Floats

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
