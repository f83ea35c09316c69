"""The determinants that decide hulls and triangulations, of floats or of whole numbers.

A point is a pair `(x, y)`; x and y are numbers or arrays. Of Python's whole numbers the results
are exact. What is decided up to the rounding of the points' own coordinates is compared with a
slack: a whole number is taken as it stands; any other coordinate (0.1, 0.2 and 0.3 are not exact)
may be off by `ROUNDING` times the sum of the coordinates on its axis in the determinant.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.types import Floats

ROUNDING = 2.0**-52
LARGEST_WHOLE = 2.0**64  # no type of whole numbers goes further: floats beyond were rounded

Pair = Any  # (x, y)


def as_integers(points: Floats) -> NDArray[np.object_]:
    """`(n, d)` finite floats as Python's whole numbers, all multiplied by one power of two."""
    mantissas, exponents = np.frexp(points)
    digits = np.ldexp(mantissas, 53).astype(np.int64).astype(object)
    shifts = np.where(points == 0, 0, exponents - exponents[points != 0].min(initial=2**15))
    shifted: NDArray[np.object_] = digits << shifts.astype(object)
    return shifted


def doubled_area(ring: NDArray[np.object_]) -> Any:
    """Twice the signed area of a closed path `(m, 2)` of whole numbers."""
    x, y = ring.T
    return (x * np.roll(y, -1) - np.roll(x, -1) * y).sum()


def is_rounded(points: Floats) -> NDArray[np.bool_]:
    """Which coordinates may be off by rounding: all but the whole numbers up to 2^64.

    Those that float64 does not hold are refused where they are read (`ptrnet.data.arrays`).
    """
    return (points != np.rint(points)) | (np.abs(points) > LARGEST_WHOLE)


def turn(a: Pair, b: Pair, c: Pair) -> Any:
    """Twice the area of the triangle: positive where the way from a over b to c turns left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def is_between(a: Pair, b: Pair, c: Pair) -> Any:
    """Whether b, which is on the line of a and c up to rounding, is between them."""
    return (b[0] - a[0]) * (c[0] - b[0]) + (b[1] - a[1]) * (c[1] - b[1]) > 0


def turn_slack(points: tuple[Pair, ...], rounded: tuple[Pair, ...]) -> Any:
    """By how much rounding may change `turn`, in units of `ROUNDING`.

    Args:
        points: the arguments of `turn`.
        rounded: of each coordinate 1 where it may be off by rounding, else 0.
    """
    slack: Any = 0
    for axis in (0, 1):
        size = sum(abs(p[axis]) for p in points)
        for k in range(3):
            change = points[(k + 1) % 3][1 - axis] - points[(k + 2) % 3][1 - axis]
            slack = slack + rounded[k][axis] * size * abs(change)
    return slack


def in_circle(a: Pair, b: Pair, c: Pair, p: Pair) -> Any:
    """Positive where p lies inside the circle through a, b and c, which turn left.

    The determinant of the points lifted to a paraboloid.
    """
    ax, ay, bx, by = a[0] - p[0], a[1] - p[1], b[0] - p[0], b[1] - p[1]
    cx, cy = c[0] - p[0], c[1] - p[1]
    return (
        (ax * ax + ay * ay) * (bx * cy - by * cx)
        + (bx * bx + by * by) * (cx * ay - cy * ax)
        + (cx * cx + cy * cy) * (ax * by - ay * bx)
    )


def circle_slack(points: tuple[Pair, ...], rounded: tuple[Pair, ...]) -> Any:
    """By how much rounding may change `in_circle`, in units of `ROUNDING`, to first order.

    Args:
        points: the four arguments of `in_circle`.
        rounded: of each coordinate 1 where it may be off by rounding, else 0.
    """
    p = points[3]
    corners = [(q[0] - p[0], q[1] - p[1]) for q in points[:3]]
    gradients = [_lifted_gradient(*(corners[(k + m) % 3] for m in range(3))) for k in range(3)]
    gradients.append((-sum(g[0] for g in gradients), -sum(g[1] for g in gradients)))
    slack: Any = 0
    for axis in (0, 1):
        size = sum(abs(q[axis]) for q in points)
        for gradient, weight in zip(gradients, rounded, strict=True):
            slack = slack + weight[axis] * size * abs(gradient[axis])
    return slack


def _lifted_gradient(a: Pair, b: Pair, c: Pair) -> Pair:
    """The derivatives of `in_circle` by the coordinates of a; a, b and c are seen from p."""
    cross = 2 * (b[0] * c[1] - b[1] * c[0])
    lift_b, lift_c = b[0] * b[0] + b[1] * b[1], c[0] * c[0] + c[1] * c[1]
    return a[0] * cross - lift_b * c[1] + lift_c * b[1], a[1] * cross + lift_b * c[0] - lift_c * b[
        0
    ]
