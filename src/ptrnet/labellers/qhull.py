"""Delaunay triangulations by Qhull (Barber, Dobkin, Huhdanpaa 1996), through SciPy; each proved.

Floats prove nearly all; what they cannot decide is computed in whole numbers, and so are the
triangulations that Qhull has wrong, where points are very near each other or a line.

What degenerate input gets:

- of equal points only the first index is a vertex, and every other point is one;
- where more than three points lie on one empty circle, Qhull chooses among the right answers;
- points that are all on one line have no triangulation: their answer is empty.
"""

import numpy as np
from scipy.spatial import Delaunay, QhullError

from ptrnet.geometry.orders import first_equal
from ptrnet.geometry.predicates import UNDERFLOW, Predicates
from ptrnet.geometry.scaling import scale_by_power_of_two
from ptrnet.labellers.triangulation.proof import unresolved
from ptrnet.labellers.triangulation.whole_numbers import flip, triangulate
from ptrnet.types import Answers, Floats, Indices

FAILURE = "all points lie on one line: they have no triangulation"


def label(inputs: Floats) -> Answers:
    """Triangles of `(B, n, 2)` points: three indices each, one after another, in no order."""
    corner = inputs.min(axis=1, keepdims=True)
    # Far from the origin Qhull's paraboloid would lose the digits that differ.
    shifted = scale_by_power_of_two(inputs / 2 - corner / 2)  # halves: it cannot overflow
    scaled = scale_by_power_of_two(inputs)
    lost = ((np.abs(scaled) < UNDERFLOW) & (inputs != 0)).any(axis=(1, 2))  # digits, by scaling
    answers = [
        (
            triangulate(inputs[b]) if lost[b] else _triangles(inputs[b], scaled[b], shifted[b])
        ).ravel()
        for b in range(len(inputs))
    ]
    lengths = np.array([len(answer) for answer in answers], np.int64)
    indices = np.zeros((len(answers), lengths.max(initial=0)), np.int64)
    for row, answer in zip(indices, answers, strict=True):
        row[: len(answer)] = answer
    return Answers(indices, lengths)


def _triangles(inputs: Floats, scaled: Floats, shifted: Floats) -> Indices:
    """`(t, 3)` of `(n, 2)` points; none where all are on one line.

    Args:
        inputs: the points.
        scaled: the same by a power of two, no digit lost.
        shifted: as Qhull takes them, rounded.
    """
    try:
        delaunay = Delaunay(shifted)
    except QhullError:  # also of fewer than three points
        return triangulate(inputs)
    triangles, count = delaunay.simplices.astype(np.int64), len(inputs)
    if len(delaunay.coplanar):  # points that Qhull left out, most of them equal to another
        first = first_equal(inputs)
        triangles, count = first[triangles], len(np.unique(first))
    glued, (flat, corners, edges) = unresolved(scaled, triangles, delaunay.neighbors, count)
    if glued and not (len(flat) or len(corners) or len(edges)):
        return triangles
    predicates = Predicates(inputs)
    if (
        not glued
        or (predicates.turn(*flat.T) <= 0).any()
        or (predicates.turn(*corners.T) < 0).any()
    ):
        return triangulate(inputs)
    wrong = edges[predicates.in_circle(*edges.T) > 0]
    return flip(inputs, triangles, wrong[:, :2]) if len(wrong) else triangles
