"""Compute hulls and triangulations in rational numbers: slow, simple and exact.

Points are `fractions.Fraction`s, here multiplied by their common denominator: the answers are the
same, and Python's whole numbers need no greatest common divisors.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

Point = tuple[int, int]


def whole_points(points) -> list[Point]:
    """Return floats `(n, 2)` as integers, all multiplied by the same factor."""
    fractions = [[Fraction(float(x)) for x in point] for point in points]
    scale = math.lcm(*(x.denominator for point in fractions for x in point))
    return [(int(x * scale), int(y * scale)) for x, y in fractions]


def turn(a: Point, b: Point, c: Point) -> int:
    """Return twice the signed area of a triangle: positive if a, b, c turn left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def in_circle(a: Point, b: Point, c: Point, p: Point) -> int:
    """Return a determinant: positive if p is inside the circle through a, b, c, which turn left."""
    rows = [(q[0] - p[0], q[1] - p[1]) for q in (a, b, c)]
    (ax, ay), (bx, by), (cx, cy) = rows
    la, lb, lc = (x * x + y * y for x, y in rows)
    return la * (bx * cy - cx * by) - lb * (ax * cy - cx * ay) + lc * (ax * by - bx * ay)


def hull_of(points: list[Point]) -> list[Point]:
    """Return the hull by gift wrapping, counter-clockwise from the leftmost (then lowest) point."""
    distinct = sorted(set(points))
    ring = [distinct[0]]
    while len(distinct) > 1:
        a, best = ring[-1], None
        for p in distinct:
            if p == a:
                continue
            side = 1 if best is None else turn(a, best, p)
            if best is None or side < 0 or (side == 0 and _is_beyond(a, best, p)):
                best = p
        if best == ring[0]:
            break
        ring.append(best)
        assert len(ring) <= len(distinct)
    return ring


def _is_beyond(a: Point, b: Point, p: Point) -> bool:
    """Whether p is farther from a than b is. All three must be on one line."""
    return max(abs(p[0] - a[0]), abs(p[1] - a[1])) > max(abs(b[0] - a[0]), abs(b[1] - a[1]))


def area(ring: list[Point]) -> int:
    """Return twice the signed area of a closed ring."""
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise([*ring, *ring[:1]]))


def is_simple(ring: list[Point]) -> bool:
    """Whether a ring is a polygon: at least three vertices, and only neighbouring edges meet."""
    m = len(ring)
    if m < 3 or len(set(ring)) < m:
        return False
    edges = list(pairwise([*ring, ring[0]]))
    for i in range(m):
        a, b = edges[i]
        c = edges[(i + 1) % m][1]
        backwards = (a[0] - b[0]) * (c[0] - b[0]) + (a[1] - b[1]) * (c[1] - b[1]) > 0
        if turn(a, b, c) == 0 and backwards:  # the ring turns back on itself
            return False
        for j in range(i + 2, m):
            if (i, j) != (0, m - 1) and _meet(*edges[i], *edges[j]):
                return False
    return True


def _meet(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether two segments have a point in common."""
    sides = turn(a, b, c), turn(a, b, d), turn(c, d, a), turn(c, d, b)
    if sides[0] * sides[1] < 0 and sides[2] * sides[3] < 0:
        return True
    ends = ((a, b, c, sides[0]), (a, b, d, sides[1]), (c, d, a, sides[2]), (c, d, b, sides[3]))
    return any(side == 0 and _in_box(p, q, r) for p, q, r, side in ends)


def _in_box(a: Point, b: Point, p: Point) -> bool:
    return all(min(a[k], b[k]) <= p[k] <= max(a[k], b[k]) for k in (0, 1))


def is_delaunay(points: list[Point], triangles: list[tuple[int, int, int]]) -> bool:
    """Whether triangles are a Delaunay triangulation: circles are empty, the hull is covered once.

    Triangles that turn left, of which no two are on one side of an edge, whose areas are together
    the hull's, and whose edges of one side alone are the hull's: areas may agree by chance. Every
    distinct point has to be a vertex; of a triangulation with empty circles that is so by itself.
    """
    rings = [_left(*(points[i] for i in triangle)) for triangle in triangles]
    if not rings or any(turn(*ring) == 0 for ring in rings):
        return False
    edges = Counter(edge for ring in rings for edge in pairwise([*ring, ring[0]]))
    if max(edges.values()) > 1 or sum(turn(*ring) for ring in rings) != area(hull_of(points)):
        return False
    distinct = set(points)
    rim = [edge for edge in edges if edge[::-1] not in edges]
    if any(turn(*edge, p) < 0 for edge in rim for p in distinct):
        return False
    return not any(in_circle(*ring, p) > 0 for ring in rings for p in distinct)


def _left(a: Point, b: Point, c: Point) -> tuple[Point, Point, Point]:
    return (a, b, c) if turn(a, b, c) >= 0 else (a, c, b)
