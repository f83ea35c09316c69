"""The task `delaunay` as a sequence of apexes, against SciPy and a plain queue."""

from collections import deque

import numpy as np
import pytest
from scipy.spatial import Delaunay

from ptrnet import labellers, tasks
from ptrnet.errors import InputError

TASK = tasks.get("delaunay", sequence="apexes")
PLAIN = tasks.get("delaunay")
NONE = 1  # so token 2 is the first element
POINTS = np.array([[0.9, 0.1], [0.1, 0.2], [0.5, 0.9], [0.5, 0.4], [0.9, 0.8]])


def cross(points, i, j, k):
    (ux, uy), (vx, vy) = points[j] - points[i], points[k] - points[i]
    return ux * vy - uy * vx


def plain_tokens(points, triangles):
    """Tokens computed from geometry: an apex is on the left of its edge; hull edges have NONE."""
    apex_of = {}
    for i, j, k in triangles:
        if cross(points, i, j, k) < 0:
            j, k = k, j
        apex_of |= {(i, j): k, (j, k): i, (k, i): j}
    a = min(apex_of, key=lambda edge: tuple(points[edge[0]]))[0]
    (b,) = [j for i, j in apex_of if i == a and (j, i) not in apex_of]
    tokens, queue = [a + 2, b + 2], deque([(a, b)])
    while queue:
        u, v = queue.popleft()
        if (u, v) not in apex_of:
            tokens.append(NONE)
            continue
        apex = apex_of[u, v]
        tokens.append(apex + 2)
        for start, end in ((v, apex), (apex, u)):
            if (start, end) in queue:
                queue.remove((start, end))
            else:
                queue.append((end, start))
    return [*tokens, 0]


def instances():
    rng = np.random.default_rng(3)
    square = np.stack(np.meshgrid(range(4), range(3)), -1).reshape(-1, 2) / 4.0
    on_hull = np.array([[0, 0], [1, 0], [0, 1], [0.25, 0], [0.75, 0], [0, 0.5], [0.5, 0.5]])
    kinds = ("uniform", "clustered", "curves", "stretched", "grid")
    drawn = [
        tasks.get("delaunay", points=points).sample(rng, 1, n)[0]
        for points in kinds
        for n in (3, 4, 7, 12, 30)
    ]
    left = [[0, 0], [0, 1], [0, 0.5], [1, 0.5]]  # three points on the hull's leftmost edge
    return [square, square[::-1] * 1e6, on_hull, np.array(left), rng.random((60, 2)), *drawn]


def test_tokens_by_hand():
    answers = labellers.label(TASK, POINTS[None])
    (tokens,) = TASK.to_tokens(answers)
    # From 1 along the bottom to 0, with 3 above. Then (3, 0), (1, 3), (4, 0), (3, 4), (2, 3), of
    # which the last is closed by the triangle of 3, 4 and 2; the hull's edges (1, 2) and (2, 4).
    assert (tokens - 2).tolist() == [1, 0, 3, 4, 2, -1, 2, -1, -1, -2]
    assert tokens.tolist() == plain_tokens(POINTS, Delaunay(POINTS).simplices.tolist())
    assert answers[0].tolist() == [[1, 0, 3], [3, 0, 4], [1, 3, 2], [3, 4, 2]]


@pytest.mark.parametrize("points", instances(), ids=len)
def test_tokens_equal_those_of_a_plain_queue_and_round_trip(points):
    answers = labellers.label(TASK, points[None])
    (tokens,), (triangles,) = TASK.to_tokens(answers), answers
    distinct = np.unique(points, axis=0)
    assert len(distinct) == len(points)
    assert tokens.tolist() == plain_tokens(points, triangles.tolist())
    expected = np.sort(Delaunay(points).simplices, 1).tolist()
    assert sorted(np.sort(triangles, 1).tolist()) == sorted(expected)
    assert TASK.from_tokens(tokens[:-1]).tolist() == triangles.tolist()
    assert all(cross(points, *t) > 0 for t in triangles.tolist())
    assert len(tokens) - 1 <= min(TASK.max_length(len(points)), 2 * len(points) - 1)


def test_tokens_do_not_depend_on_the_order_of_triangles():
    rng = np.random.default_rng(0)
    points = rng.random((6, 12, 2))
    expected = labellers.label(TASK, points)
    answers = [rng.permuted(rng.permutation(t), axis=1) for t in expected]
    again = TASK.canonicalize(points, answers)
    assert all(map(np.array_equal, again, expected))


def test_tokens_do_not_depend_on_the_order_of_points():
    rng = np.random.default_rng(1)
    points = rng.random((12, 2))
    order = rng.permutation(12)
    one, other = (
        TASK.to_tokens(labellers.label(TASK, p[None]))[0] for p in (points, points[order])
    )
    back = np.append([0, 1], order + 2)
    assert back[other].tolist() == one.tolist()
    assert not TASK.facts.depends_on_indices and PLAIN.facts.depends_on_indices


def test_unconnected_triangles_have_no_tokens():
    points = np.array([[0.0, 0], [1, 0], [0, 1], [5, 5], [6, 5], [5, 6]])
    answers = TASK.canonicalize(points[None], [np.array([[3, 4, 5], [2, 1, 0]])])
    assert answers[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert TASK.to_tokens(answers)[0].tolist() == [2, 3, 4, 1, 1, 0]


def test_tokens_of_any_triangles_decode_to_some_of_them():
    rng = np.random.default_rng(5)
    for _ in range(300):
        triples = rng.integers(0, 6, (rng.integers(1, 9), 3))
        outputs = np.unique(np.sort(triples[[len({*t}) == 3 for t in triples.tolist()]], 1), axis=0)
        if not len(outputs):
            continue
        points = rng.random((1, 6, 2))
        canonical = TASK.canonicalize(points, [outputs])
        expected = {frozenset(t) for t in outputs.tolist()}
        assert {frozenset(t) for t in canonical[0].tolist()} == expected
        (tokens,) = TASK.to_tokens(canonical)
        assert {frozenset(t) for t in TASK.from_tokens(tokens[:-1]).tolist()} <= expected


def test_empty_answer_has_an_empty_sequence():
    none = [np.zeros((0, 3), np.int64)]
    assert TASK.canonicalize(np.zeros((1, 3, 2)), none)[0].shape == (0, 3)
    assert TASK.to_tokens(none)[0].tolist() == [0]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([], []),
        ([1], []),
        ([2], [[0, 0, 0]]),
        ([2, 3], [[0, 1, 1]]),
        ([2, 1, 3], [[0, 1, 1]]),
        ([2, 3, 1], []),
        ([2, 3, 4], [[0, 1, 2]]),
        ([2, 3, 4, 1, 1, 5], [[0, 1, 2], [3, 3, 3]]),  # no edge is open
        ([2, 3, 3], [[0, 1, 1]]),
        ([2, 3, 4, 2], [[0, 1, 2], [2, 1, 0]]),  # the same three points
    ],
)
def test_invalid_tokens_decode_to_wrong_triangles(tokens, expected):
    answer = TASK.from_tokens(np.array(tokens, np.int64))
    assert answer.tolist() == expected
    assert (TASK.answer_error(4, answer) is None) == (expected == [[0, 1, 2]])


def test_separator_is_refused_with_apexes():
    with pytest.raises(InputError, match="task delaunay: separator: expected no, because"):
        tasks.get("delaunay", separator=True, sequence="apexes")


def test_scores_do_not_depend_on_the_sequence():
    points = np.random.default_rng(2).random((12, 2))
    (one,), (other,) = (labellers.label(t, points[None]) for t in (TASK, PLAIN))
    assert sorted(np.sort(one, 1).tolist()) == sorted(other.tolist())
