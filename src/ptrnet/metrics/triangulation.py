"""Delaunay triangulations: accuracy and triangle coverage (V 4.3)."""

from collections.abc import Iterable, Sequence

import numpy as np

from ptrnet.geometry.orders import first_equal
from ptrnet.geometry.scaling import scale_by_power_of_two
from ptrnet.metrics.interval import Measure, mean, share
from ptrnet.types import Example, Floats, Indices

# How far a coordinate of `scale_by_power_of_two` may be off, and a little: it carries a relative
# error of 2^-53 from its own rounding (0.1, 0.2 and 0.3 are not exact).
ROUNDING = 2.0**-52


def measure(examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, Measure]:
    """`accuracy` and `triangle_coverage` of answers, by the triangles of the examples.

    - accuracy: the same set of triangles; or, where points lie on one circle and several answers
      are right, any triangulation whose circumcircles are empty.
    - triangle_coverage: the share of the true triangles that were predicted, 1 for a right answer.
    """
    right, covered = [], []
    for example, answer in zip(examples, answers, strict=True):
        assert example.outputs is not None
        truth, predicted = triangles(example.outputs), triangles(answer)
        is_right = predicted == truth or (
            len(predicted) == len(truth)
            and is_delaunay(example.inputs, np.array(sorted(predicted)))
        )
        right.append(is_right)
        covered.append(1.0 if is_right else len(truth & predicted) / len(truth))
    return {"accuracy": share(right), "triangle_coverage": mean(covered)}


def triangles(outputs: Indices) -> set[tuple[int, ...]]:
    """`(t, 3)` indices as a set: the order of triangles and that of vertices do not matter."""
    return set(map(tuple, np.sort(outputs, 1).tolist()))


def is_delaunay(points: Floats, outputs: Indices) -> bool:
    """Whether `(t, 3)` triangles are a Delaunay triangulation of `(n, 2)` points.

    No point lies inside a circumcircle, two triangles at an edge lie on its two sides, and an
    edge of one triangle alone has no point beyond it. Then every part of the hull is covered
    once. What is on a circle or on a line up to the rounding of the points' own coordinates
    counts as on it.
    """
    points = scale_by_power_of_two(points)
    first = first_equal(points)
    vertices = first[outputs]  # equal points are one vertex
    turns = _sides(points, vertices[:, 0], vertices[:, 1], vertices[:, 2])
    if not len(vertices) or (turns == 0).any():
        return False
    vertices[turns < 0] = vertices[turns < 0][:, [0, 2, 1]]  # counter-clockwise
    return _covers_hull(points, vertices, np.unique(first)) and _circles_are_empty(points, vertices)


def _covers_hull(points: Floats, vertices: Indices, distinct: Indices) -> bool:
    """Whether triangles cover the hull once.

    At each edge two triangles lie on its two sides, or one, and no point beyond the edge.

    Args:
        points: `(n, 2)`.
        vertices: `(t, 3)`.
        distinct: indices of the points, of equal ones the first.
    """
    apexes_of: dict[tuple[int, int], list[int]] = {}
    for a, b, c in vertices.tolist():
        for i, j, apex in ((a, b, c), (b, c, a), (c, a, b)):
            apexes_of.setdefault((min(i, j), max(i, j)), []).append(apex)
    for (i, j), apexes in apexes_of.items():
        sides = _sides(points, i, j, np.array(apexes))
        if len(apexes) == 1:
            if (_sides(points, i, j, distinct) == -sides[0]).any():
                return False
        elif len(apexes) > 2 or sides[0] == sides[1]:
            return False
    return True


def _circles_are_empty(points: Floats, vertices: Indices) -> bool:
    """Whether no point lies inside a circumcircle of `(t, 3)` counter-clockwise vertices.

    By the sign of the determinant of the points lifted to a paraboloid.
    """
    a, b, c = (points[vertices[:, k]][:, None] - points for k in range(3))  # (t, n, 2)
    determinant = np.zeros(a.shape[:2])
    magnitude = np.zeros_like(determinant)  # of its terms, for its rounding
    for lifted, u, v in ((a, b, c), (b, c, a), (c, a, b)):
        lift = (lifted**2).sum(-1)
        plus, minus = u[..., 0] * v[..., 1], u[..., 1] * v[..., 0]
        determinant += lift * (plus - minus)
        magnitude += lift * (abs(plus) + abs(minus))
    max_difference = np.abs(np.stack([a, b, c])).max((0, -1))
    return not (determinant > 16 * ROUNDING * (magnitude + max_difference**3)).any()


def _sides(points: Floats, i: Indices | int, j: Indices | int, k: Indices) -> Indices:
    """1 where points k are left of the lines from i to j, 0 on them, -1 right of them."""
    u, v = points[j] - points[i], points[k] - points[i]
    plus, minus = u[..., 0] * v[..., 1], u[..., 1] * v[..., 0]
    max_difference = np.maximum(np.abs(u).max(-1), np.abs(v).max(-1))
    slack = 4 * ROUNDING * (abs(plus) + abs(minus) + max_difference)
    cross = plus - minus
    return np.where(abs(cross) > slack, np.sign(cross), 0).astype(np.int64)
