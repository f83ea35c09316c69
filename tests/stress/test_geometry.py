"""Compare labels and metrics of degenerate sets of points with exact rational numbers."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.metrics import summary
from ptrnet.types import Example, Floats, Indices
from tests.stress import exact_answers
from tests.stress.degenerate import degenerate_points

HULL, DELAUNAY = tasks.get("hull"), tasks.get("delaunay")
ROUNDING = Fraction(1, 2**52)  # relative rounding error of a coordinate that is not an integer


def _points(rng: np.random.Generator, folder: Path, fewest: int = 3) -> tuple[str, Floats]:
    kind, points = degenerate_points(rng, int(rng.integers(fewest, 13)))
    (folder / "points.txt").write_text(repr(points.tolist()))
    return kind, points


def _is_whole(points: Floats) -> bool:
    return bool(((points == np.rint(points)) & (np.abs(points) <= 2.0**64)).all())


def _hull(rng: np.random.Generator, folder: Path) -> str:
    """Integers have the exact hull. With floats, no point is outside by more than rounding."""
    kind, points = _points(rng, folder)
    exact = exact_answers.whole_points(points)
    (answer,) = labellers.label(HULL, points[None])
    ring = [exact[i] for i in answer]
    assert all(exact.index(exact[i]) == i for i in answer), "of equal points the first counts"
    if _is_whole(points):
        assert ring == exact_answers.hull_of(exact), (ring, exact_answers.hull_of(exact))
        return kind
    truth = exact_answers.hull_of(exact)
    # Of the largest coordinates; as often as there are points, as one is left out for another.
    slack = [4 * len(exact) * ROUNDING * max(abs(p[axis]) for p in exact) for axis in (0, 1)]
    assert all(_is_vertex(p, truth, slack) for p in ring), "a vertex that is none"
    assert not any(_is_outside(p, ring, slack) for p in exact), "a point outside"
    corners = zip(ring[-1:] + ring, ring, ring[1:] + ring[:1], strict=False)
    assert len(ring) < 3 or not any(_is_on_edge(*corner) for corner in corners)
    return kind


def _is_vertex(p, ring, slack) -> bool:
    """Whether a point is a vertex of the exact hull, or within rounding of its edges."""
    edges = zip(ring, ring[1:] + ring[:1], strict=True)
    return p in ring or any(
        abs(exact_answers.turn(a, b, p)) <= _edge_slack(a, b, slack) for a, b in edges
    )


def _is_outside(p, ring, slack) -> bool:
    """Whether a point lies outside a ring by more than rounding."""
    edges = zip(ring, ring[1:] + ring[:1], strict=True)
    return any(exact_answers.turn(a, b, p) < -_edge_slack(a, b, slack) for a, b in edges)


def _edge_slack(a, b, slack) -> Fraction:
    """How much an error of `slack` on each axis may change twice the areas along an edge."""
    return slack[0] * abs(a[1] - b[1]) + slack[1] * abs(a[0] - b[0])


def _is_on_edge(a, b, c) -> bool:
    """Whether a vertex is on the line between its neighbours, up to a tenth of the rounding."""
    dot = (b[0] - a[0]) * (c[0] - b[0]) + (b[1] - a[1]) * (c[1] - b[1])
    return dot > 0 and exact_answers.turn(a, b, c) <= ROUNDING * _turn_slack(a, b, c) / 10


def _turn_slack(a, b, c) -> int:
    """How much a relative error of 1 in each coordinate may change twice an area."""
    slack = 0
    for axis in (0, 1):
        size = sum(abs(p[axis]) for p in (a, b, c))
        for p, q in ((a, b), (b, c), (c, a)):
            slack += size * abs(p[1 - axis] - q[1 - axis])
    return slack


def _hull_metrics(rng: np.random.Generator, folder: Path) -> str:
    """Compare the metrics of the label, and of a randomly changed answer."""
    kind, points = _points(rng, folder)
    (label,) = labellers.label(HULL, points[None])
    example = Example(points, label)
    assert summary.measure(HULL, [example], [label])["accuracy"].value == 1
    answer = _changed(label, len(points), rng)
    exact = exact_answers.whole_points(points)
    ring, truth = ([exact[i] for i in indices] for indices in (answer, label))
    ring = ring[:-1] if len(ring) > 1 and ring[0] == ring[-1] else ring  # closed or not
    measured = summary.measure(HULL, [example], [answer])
    assert measured["accuracy"].value == _same_ring(ring, truth), (answer, label)
    whole = abs(exact_answers.area(truth))
    if not whole or len(truth) < 3:
        return kind
    is_simple = exact_answers.is_simple(ring)
    assert measured["simple"].value == is_simple, (answer, label)
    if is_simple:
        covered = float(Fraction(abs(exact_answers.area(ring)), whole))
        assert abs(measured["area"].value - covered) < 1e-6, (answer, label, covered)
    return kind


def _changed(answer: Indices, n: int, rng: np.random.Generator) -> Indices:
    """Remove an element of an answer, insert one, or move one."""
    changed = answer.tolist()
    kind = rng.integers(4)
    if kind == 0 and len(changed) > 1:
        del changed[rng.integers(len(changed))]
    elif kind == 1:
        others = sorted(set(range(n)) - set(changed))
        if others:
            changed.insert(rng.integers(len(changed) + 1), others[rng.integers(len(others))])
    elif kind == 2:
        changed = rng.permutation(changed).tolist()
    else:
        changed = np.roll(changed[:: rng.choice([1, -1])], rng.integers(9)).tolist()
    return np.array(changed, np.int64)


def _same_ring(a: list, b: list) -> bool:
    """Whether two rings are the same polygon, for any start and direction."""
    turned = [b[k:] + b[:k] for k in range(len(b))]
    return any(a in (ring, ring[::-1]) for ring in turned)


def _delaunay(rng: np.random.Generator, folder: Path) -> str:
    """Each label is exactly Delaunay; points on one line are refused."""
    kind, points = _points(rng, folder)
    exact = exact_answers.whole_points(points)
    (flat,) = labellers.label(DELAUNAY, points[None])
    triangles = [tuple(t) for t in flat.reshape(-1, 3).tolist()]
    on_a_line = len(exact_answers.hull_of(exact)) < 3
    assert on_a_line == (not triangles), triangles
    assert on_a_line or exact_answers.is_delaunay(exact, triangles), triangles
    return kind


def _delaunay_metrics(rng: np.random.Generator, folder: Path) -> str:
    """The label is right. For integers, a changed answer is right if exact numbers say so."""
    kind, points = _points(rng, folder, fewest=4)
    (flat,) = labellers.label(DELAUNAY, points[None])
    label = flat.reshape(-1, 3)
    if not len(label):
        return "on a line"
    example = Example(points, label)
    assert summary.measure(DELAUNAY, [example], [label])["accuracy"].value == 1
    answer = label.copy()
    row, column = rng.integers(len(label)), rng.integers(3)
    answer[row, column] = rng.choice(np.setdiff1d(np.arange(len(points)), answer[row]))
    if rng.random() < 0.3:
        answer = np.delete(label, row, axis=0)
    actual = summary.measure(DELAUNAY, [example], [answer])["accuracy"].value
    exact = exact_answers.whole_points(points)
    expected = exact_answers.is_delaunay(exact, [tuple(t) for t in answer.tolist()])
    # Where rounding decides, an answer is taken that exact numbers would not take.
    assert actual == expected or (actual and not _is_whole(points)), answer.tolist()
    return kind


@pytest.mark.parametrize("case", [_hull, _hull_metrics, _delaunay, _delaunay_metrics])
def test_labels_and_metrics_agree_with_rational_numbers(case, try_cases):
    try_cases(case, 10_000)
