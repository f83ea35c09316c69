"""Signs of determinants of points of one instance, always right.

Floats decide nearly all, by bounds of their error as Shewchuk (1997) has them; what they cannot
decide is computed again in whole numbers.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ptrnet.geometry import exact
from ptrnet.geometry.scaling import scale_by_power_of_two
from ptrnet.types import Floats, Indices

# Relative to the sum of the absolute terms of a determinant; both are Shewchuk's, rounded up.
TURN_ERROR, CIRCLE_ERROR = 2.0**-51, 2.0**-49
# What underflow may add, where the largest coordinate is 1/2 or more: such results are not used.
UNDERFLOW = 1e-290


class Predicates:
    """What is left of a line or inside a circle, by indices of `(n, 2)` points.

    Indices are arrays that broadcast with each other; results have their shape, and are 1, 0, -1.
    """

    def __init__(self, points: Floats) -> None:
        self._points = points
        self._scaled = scale_by_power_of_two(points)

    def turn(self, i: Indices, j: Indices, k: Indices) -> Indices:
        """1 where the points k are left of the lines from i to j, 0 on them, -1 right of them."""
        det, terms, _ = self._turn(i, j, k)
        unsure = np.abs(det) <= TURN_ERROR * terms + UNDERFLOW
        return _decide(det, unsure, (i, j, k), self._exact_turn)

    def turn_beyond_rounding(self, i: Indices, j: Indices, k: Indices) -> Indices:
        """As `turn`, but 0 where the rounding of the coordinates could make it so."""
        det, terms, difference = self._turn(i, j, k)
        # A slack of at most 3 (a size) times 8 differences, and the error of `det`.
        most = 32 * exact.ROUNDING * (terms + difference)
        return _decide(
            det, np.abs(det) <= most + UNDERFLOW, (i, j, k), self._exact_turn_beyond_rounding
        )

    def in_circle(self, i: Indices, j: Indices, k: Indices, p: Indices) -> Indices:
        """1 where p is inside the circle of i, j, k, 0 on it, -1 outside. These turn left."""
        det, terms, _ = self._in_circle(i, j, k, p)
        unsure = np.abs(det) <= CIRCLE_ERROR * terms + UNDERFLOW
        return _decide(det, unsure, (i, j, k, p), self._exact_in_circle)

    def in_circle_beyond_rounding(self, i: Indices, j: Indices, k: Indices, p: Indices) -> Indices:
        """As `in_circle`, but 0 where the rounding of the coordinates could make it so."""
        det, terms, difference = self._in_circle(i, j, k, p)
        # A slack of at most 4 (a size) times 96 difference^3, and the error of `det`.
        most = exact.ROUNDING * (16 * terms + 512 * difference**3)
        return _decide(
            det, np.abs(det) <= most + UNDERFLOW, (i, j, k, p), self._exact_circle_beyond_rounding
        )

    @cached_property
    def _integers(self) -> NDArray[np.object_]:
        return exact.as_integers(self._points)

    @cached_property
    def _rounded(self) -> NDArray[np.object_]:
        return exact.is_rounded(self._points).astype(int).astype(object)

    def _turn(self, i: Indices, j: Indices, k: Indices) -> tuple[Floats, Floats, Floats]:
        """The determinant, the sum of its absolute terms, and the largest difference in it."""
        u, v = self._scaled[j] - self._scaled[i], self._scaled[k] - self._scaled[i]
        plus, minus = u[..., 0] * v[..., 1], u[..., 1] * v[..., 0]
        difference = np.maximum(np.abs(u).max(-1), np.abs(v).max(-1))
        return plus - minus, np.abs(plus) + np.abs(minus), difference

    def _in_circle(
        self, i: Indices, j: Indices, k: Indices, p: Indices
    ) -> tuple[Floats, Floats, Floats]:
        """As `_turn`."""
        a, b, c = (self._scaled[m] - self._scaled[p] for m in (i, j, k))
        det, terms = 0.0, 0.0
        for lifted, u, v in ((a, b, c), (b, c, a), (c, a, b)):
            lift = (lifted**2).sum(-1)
            plus, minus = u[..., 0] * v[..., 1], u[..., 1] * v[..., 0]
            det = det + lift * (plus - minus)
            terms = terms + lift * (np.abs(plus) + np.abs(minus))
        difference = np.maximum(np.abs(a).max(-1), np.maximum(np.abs(b).max(-1), np.abs(c).max(-1)))
        return np.asarray(det), np.asarray(terms), difference

    def _exact_turn(self, *indices: Indices) -> Indices:
        return _signs(exact.turn(*(self._integers[i].T for i in indices)))

    def _exact_turn_beyond_rounding(self, *indices: Indices) -> Indices:
        a, b, c = (self._integers[i].T for i in indices)
        r, s, t = (self._rounded[i].T for i in indices)
        return _beyond(exact.turn(a, b, c), exact.turn_slack((a, b, c), (r, s, t)))

    def _exact_in_circle(self, *indices: Indices) -> Indices:
        return _signs(exact.in_circle(*(self._integers[i].T for i in indices)))

    def _exact_circle_beyond_rounding(self, *indices: Indices) -> Indices:
        points = tuple(self._integers[i].T for i in indices)
        rounded = tuple(self._rounded[i].T for i in indices)
        return _beyond(exact.in_circle(*points), exact.circle_slack(points, rounded))


def _decide(
    det: Floats,
    unsure: NDArray[np.bool_],
    indices: tuple[Indices, ...],
    decide: Callable[..., Indices],
) -> Indices:
    """The signs of determinants, of those that are not sure by `decide`, of flat indices."""
    signs = np.sign(det).astype(np.int64)
    if unsure.any():
        signs[unsure] = decide(*(np.broadcast_to(i, det.shape)[unsure] for i in indices))
    return signs


def _signs(det: NDArray[np.object_]) -> Indices:
    return (det > 0).astype(np.int64) - (det < 0).astype(np.int64)


def _beyond(det: NDArray[np.object_], slack: NDArray[np.object_]) -> Indices:
    """The signs of determinants, 0 where they are within a slack in units of ROUNDING."""
    scaled = det * int(1 / exact.ROUNDING)
    return (scaled > slack).astype(np.int64) - (scaled < -slack).astype(np.int64)
