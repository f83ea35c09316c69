"""Delaunay triangulations: accuracy and triangle coverage (V 4.3)."""

from collections.abc import Iterable, Sequence

import numpy as np

from ptrnet.geometry.points import first_equal
from ptrnet.geometry.predicates import Predicates
from ptrnet.metrics.interval import Scores
from ptrnet.types import Example, Floats, Indices


def score(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Scores]:
    """`accuracy` and `triangle_coverage` of `(B,)` answers, by the triangles of the examples.

    - accuracy: the same set of triangles; or, where points lie on one circle and several answers
      are right, any triangulation whose circumcircles are empty.
    - triangle_coverage: the share of the true triangles that were predicted, 1 for a right answer.
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
    """`(t, 3)` indices as a set: the order of triangles and that of vertices do not matter."""
    return set(map(tuple, np.sort(outputs, 1).tolist()))


def is_delaunay(points: Floats, outputs: Indices) -> bool:
    """Whether `(t, 3)` triangles are a Delaunay triangulation of `(n, 2)` points.

    No point lies inside a circumcircle, two triangles at an edge lie on its two sides, and an
    edge of one triangle alone has no point beyond it. Then every part of the hull is covered
    once. What is on a circle or on the hull up to the rounding of the points' own coordinates
    counts as on it (`ptrnet.geometry.predicates`).
    """
    predicates, first = Predicates(points), first_equal(points)
    vertices = first[outputs]  # equal points are one vertex
    if not len(vertices):
        return False
    turns = predicates.turn(*vertices.T)
    if (turns == 0).any():
        return False
    vertices[turns < 0] = vertices[turns < 0][:, [0, 2, 1]]  # counter-clockwise
    distinct = np.unique(first)
    # Skip the triangles' own vertices: to prove that they are exactly on the circle takes long.
    rows, columns = (distinct != vertices[..., None]).all(1).nonzero()
    i, j, k = vertices[rows].T
    if (predicates.in_circle_beyond_rounding(i, j, k, distinct[columns]) > 0).any():
        return False
    return _covers_hull(predicates, vertices, distinct)


def _covers_hull(predicates: Predicates, vertices: Indices, distinct: Indices) -> bool:
    """Whether triangles cover the hull once.

    At each edge two triangles lie on its two sides, or one, and no point beyond the edge.

    Args:
        predicates: of the points.
        vertices: `(t, 3)`, counter-clockwise.
        distinct: indices of the points, of equal ones the first.
    """
    edges = np.concatenate([vertices[:, [0, 1]], vertices[:, [1, 2]], vertices[:, [2, 0]]])
    directed = set(map(tuple, edges.tolist()))
    if len(directed) < len(edges):  # two triangles on one side of an edge
        return False
    rim = np.array([(i, j) for i, j in directed if (j, i) not in directed], np.int64)
    rows, columns = (distinct != rim[..., None]).all(1).nonzero()
    beyond = predicates.turn_beyond_rounding(rim[rows, 0], rim[rows, 1], distinct[columns])
    return not (beyond < 0).any()
