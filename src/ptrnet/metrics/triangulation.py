"""Metrics of Delaunay triangulations: accuracy and triangle coverage."""

from collections.abc import Iterable, Sequence

import numpy as np

from ptrnet.geometry import first_equal
from ptrnet.geometry.predicates import Predicates
from ptrnet.metrics import Scores
from ptrnet.types import Example, Floats, Indices


def score(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """Return `accuracy` and `triangle_coverage` of `(B,)` answers.

    - accuracy: the answer is the example's set of triangles, or another Delaunay triangulation. If
      four points or more lie on one circle, points may have several Delaunay triangulations.
    - triangle_coverage: the share of the example's triangles that were predicted; 1 if the answer
      is accurate.
    """
    right, covered = [], []
    for example, answer in zip(examples, answers, strict=True):
        assert example.outputs is not None
        truth, predicted = triangles(example.outputs), triangles(answer)
        is_right = predicted == truth or (
            len(predicted) > 0 and is_delaunay(example.inputs, np.array(sorted(predicted)))
        )
        right.append(is_right)
        covered.append(1.0 if is_right else len(truth & predicted) / len(truth))
    return {"accuracy": np.array(right, bool), "triangle_coverage": np.array(covered, np.float64)}


def triangles(outputs: Indices) -> set[tuple[int, ...]]:
    """Return `(t, 3)` indices as a set that ignores the order of triangles and of vertices."""
    return set(map(tuple, np.sort(outputs, 1).tolist()))


def is_delaunay(points: Floats, outputs: Indices) -> bool:
    """Whether triangles `(t, 3)` are a Delaunay triangulation of points `(n, 2)`.

    Triangles are a Delaunay triangulation if:

    - no point lies inside a triangle's circumcircle,
    - two triangles with a common edge lie on different sides of the edge, and
    - no point lies beyond an edge that belongs to only one triangle.

    The last two conditions imply that every part of the hull is covered once. Coordinates are
    rounded numbers. If a point may have been on a circle or an edge before the rounding, it counts
    as a point on the circle or edge (`ptrnet.geometry.predicates`).
    """
    predicates, first = Predicates(points), first_equal(points)
    vertices = first[outputs]  # equal points are one vertex
    turns = predicates.turn(*vertices.T)
    if (turns == 0).any():
        return False
    vertices[turns < 0] = vertices[turns < 0][:, [0, 2, 1]]  # counter-clockwise
    distinct = np.unique(first)
    # Proving that a triangle's own vertices are on its circle is slow, so skip these vertices.
    rows, columns = (distinct != vertices[..., None]).all(1).nonzero()
    i, j, k = vertices[rows].T
    if (predicates.in_circle_beyond_rounding(i, j, k, distinct[columns]) > 0).any():
        return False
    return _covers_hull(predicates, vertices, distinct)


def _covers_hull(predicates: Predicates, vertices: Indices, distinct: Indices) -> bool:
    """Whether triangles cover every part of the hull once.

    Triangles cover the hull once if each edge has one triangle on each side, or one triangle and no
    point on the other side. The triangles `(t, 3)` are counter-clockwise. `distinct` are indices of
    the points, without repeats of equal points.
    """
    edges = np.concatenate([vertices[:, [0, 1]], vertices[:, [1, 2]], vertices[:, [2, 0]]])
    directed = set(map(tuple, edges.tolist()))
    if len(directed) < len(edges):  # two triangles on one side of an edge
        return False
    rim = np.array([(i, j) for i, j in directed if (j, i) not in directed], np.int64)
    rows, columns = (distinct != rim[..., None]).all(1).nonzero()
    beyond = predicates.turn_beyond_rounding(rim[rows, 0], rim[rows, 1], distinct[columns])
    return not (beyond < 0).any()
