"""Put triangles into the order in which a queue of edges reaches them, and write them as apexes.

The queue starts with one directed edge. Each step takes the front edge, from u to v, and writes the
apex w of the triangle on the left of the edge. If there is no triangle, or if a former step has
reached the triangle, the step writes NO_APEX. A triangle (u, v, w) has two more sides, and the
edges (w, v) and (u, w) join the queue in this order. If the queue already has the reverse of such
an edge, the reverse was waiting for this triangle. The reverse then leaves the queue, and the edge
does not join, because the triangles on both sides of the edge are reached.
"""

from collections.abc import Sequence

import numpy as np

from ptrnet.jit import jit
from ptrnet.labellers.compiled import pair, turn
from ptrnet.types import Floats, Indices

NO_APEX = -1


def traverse(triangles: Indices, points: Floats) -> tuple[Indices, Indices]:
    """Traverse a triangulation by a queue that starts with the hull's edge at the smallest vertex.

    The smallest vertex has the smallest x and, among vertices with equal x, the smallest y.

    Args:
        triangles: `(t, 3)` indices of vertices; no triangle occurs twice.
        points: `(n, 2)`. Empty: start at the edge of the first triangle's first two vertices.

    Returns:
        The tail, head and apex of each triangle that is reached, `(num_reached, 3)`. And the first
        edge followed by an apex or NO_APEX for each step, at most `2 t + 3` indices.
    """
    if not len(triangles):
        return np.empty_like(triangles), np.empty(0, np.int64)
    # NumPy sorts, because compiling numba's merge sort takes two seconds and a half.
    edges = _edges(triangles)
    neighbours = _neighbours(edges, np.argsort(edges, kind="stable"))
    found: tuple[Indices, Indices] = _traverse(triangles, points, neighbours)
    return found


@jit
def _traverse(triangles: Indices, points: Floats, neighbours: Indices) -> tuple[Indices, Indices]:
    """Return what `traverse` does, given the result of `_neighbours`."""
    ordered, apexes = np.empty_like(triangles), np.empty(2 * len(triangles) + 3, np.int64)
    # The side to reach, its tail and its head. Side `3 t + k` is opposite to vertex k of triangle t
    side, tail, head = 2, triangles[0, 0], triangles[0, 1]
    if len(points):
        side, tail, head = _first_side(points, triangles, neighbours)
    count, length, front, end = 0, 2, 0, 1
    capacity = 2 * len(triangles) + 1
    queue = np.empty((capacity, 3), np.int64)
    queue[0, 0], queue[0, 1], queue[0, 2] = side, tail, head
    apexes[0], apexes[1] = tail, head
    waits_at = np.full(len(neighbours), -1, np.int64)  # for each side, its position in the queue
    is_reached = np.zeros(len(triangles), np.bool_)
    has_left = np.zeros(capacity, np.bool_)
    while front < end:
        side, tail, head = queue[front, 0], queue[front, 1], queue[front, 2]
        front += 1
        if has_left[front - 1]:
            continue
        if side < 0 or is_reached[side // 3]:
            apexes[length] = NO_APEX
            length += 1
            continue
        t, k = divmod(side, 3)
        apex = triangles[t, k]
        is_reached[t] = True
        ordered[count, 0], ordered[count, 1], ordered[count, 2] = tail, head, apex
        apexes[length] = apex
        count, length = count + 1, length + 1
        for opposite, u, v in ((tail, apex, head), (head, tail, apex)):
            across = 0
            for j in range(3):
                if triangles[t, j] == opposite:
                    across = 3 * t + j
            other = neighbours[across]
            if waits_at[across] >= 0:
                has_left[waits_at[across]] = True
            else:
                queue[end, 0], queue[end, 1], queue[end, 2] = other, u, v
                if other >= 0:
                    waits_at[other] = end
                end += 1
    return ordered[:count], apexes[:length]


@jit
def _edges(triangles: Indices) -> Indices:
    """Return `(3 T,)`, the number of the edge of each side of T triangles."""
    count = 3 * len(triangles)
    edges = np.empty(count, np.int64)
    largest = triangles.max() + 1
    for side in range(count):
        t, k = divmod(side, 3)
        i, j = triangles[t, (k + 1) % 3], triangles[t, (k + 2) % 3]
        edges[side] = min(i, j) * largest + max(i, j)
    return edges


@jit
def _neighbours(edges: Indices, order: Indices) -> Indices:
    """Return `(3 T,)`: for each side of T triangles, the side of another triangle on the same edge.

    `order` sorts the edges. The result is -1 for a side without another triangle.
    """
    neighbours = np.full(len(edges), -1, np.int64)
    position = 0
    while position + 1 < len(edges):
        one, other = order[position], order[position + 1]
        if edges[one] == edges[other]:
            neighbours[one], neighbours[other] = other, one
            position += 1
        position += 1
    return neighbours


@jit
def _first_side(points: Floats, triangles: Indices, neighbours: Indices) -> tuple[int, int, int]:
    """Return the side, as `3 t + k`, from which the queue starts, and its vertices a and b.

    a is the lexicographically smallest vertex. Two edges of the hull meet at a. We take the edge
    from a to b that has all points on its left.
    """
    a = triangles[0, 0]
    for vertex in triangles.flat:
        if pair(points, vertex) < pair(points, a):
            a = vertex
    first, b = -1, -1
    for side in range(len(neighbours)):
        t, k = divmod(side, 3)
        for i, j in ((1, 2), (2, 1)):
            if triangles[t, (k + i) % 3] != a:
                continue
            other = triangles[t, (k + j) % 3]
            if first < 0:
                first, b = side, other
                continue
            is_outer = neighbours[side] < 0
            if is_outer != (neighbours[first] < 0):
                is_better = is_outer
            else:
                is_better = turn(pair(points, a), pair(points, b), pair(points, other)) < 0
            if is_better:
                first, b = side, other
    return first, a, b


def triangles_of(apexes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the triangles `(tail, head, apex)` of a sequence of apexes, in the queue's order.

    An unconstrained model may give an apex after the queue is empty, may stop before the first
    apex, or may give NO_APEX in the first edge. We turn such an apex, or such a sequence, into a
    triangle that repeats a vertex. The answer is then wrong, because no right answer does this.
    """
    if len(apexes) < 3 or NO_APEX in apexes[:2]:
        elements = [apex for apex in apexes if apex != NO_APEX]
        return [(elements[0], elements[-1], elements[-1])] if elements else []
    triangles: list[tuple[int, int, int]] = []
    waiting = {(apexes[0], apexes[1]): None}  # in the order of the queue
    for apex in apexes[2:]:
        if waiting:
            tail, head = next(iter(waiting))
            del waiting[tail, head]
        else:
            tail = head = apex
        if apex == NO_APEX:
            continue
        triangles.append((tail, head, apex))
        if tail == head:
            continue
        sides = [(head, apex), (apex, tail)]
        joining = [side[::-1] for side in sides if side not in waiting]
        for side in sides:
            waiting.pop(side, None)
        waiting.update(dict.fromkeys(joining))
    return triangles
