"""Delaunay triangulations by Qhull (Barber, Dobkin, Huhdanpaa 1996), through SciPy.

What degenerate input gets:

- of equal points only the first index is a vertex;
- where more than three points lie on one empty circle, Qhull chooses among the right answers;
- points that are all on one line have no triangulation: their answer is empty;
- so it is where points are so near each other, or to a line, that Qhull leaves one of them out.
"""

import numpy as np
from scipy.spatial import Delaunay, QhullError

from ptrnet.geometry.orders import first_equal
from ptrnet.geometry.scaling import scale_by_power_of_two
from ptrnet.types import Answers, Floats, Indices

FAILURE = "points are too near one line, or one another, for Qhull: no triangulation was found"


def label(inputs: Floats) -> Answers:
    """Triangles of `(B, n, 2)` points: three indices each, one behind another, in no order."""
    corner = inputs.min(axis=1, keepdims=True)
    # Far from the origin Qhull's paraboloid would lose the digits that differ.
    scaled = scale_by_power_of_two(inputs / 2 - corner / 2)  # halves: it cannot overflow
    answers = [_triangles(points).ravel() for points in scaled]
    lengths = np.array([len(answer) for answer in answers], np.int64)
    indices = np.zeros((len(answers), lengths.max(initial=0)), np.int64)
    for row, answer in zip(indices, answers, strict=True):
        row[: len(answer)] = answer
    return Answers(indices, lengths)


def _triangles(points: Floats) -> Indices:
    """`(t, 3)`; none where all points are on one line, or too near one to be told from it."""
    try:
        delaunay = Delaunay(points)
    except QhullError:  # also of fewer than three points
        return np.empty((0, 3), np.int64)
    triangles = delaunay.simplices.astype(np.int64)
    if not len(delaunay.coplanar):
        return triangles
    # Points that Qhull left out, most of them equal to another.
    first = first_equal(points)
    triangles = first[triangles]
    complete = len(np.unique(triangles)) == len(np.unique(first))
    return triangles if complete else np.empty((0, 3), np.int64)
