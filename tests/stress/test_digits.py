"""Check last digits: rounded distances, nearly equal elements, and long integers."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ptrnet
from ptrnet import labellers
from ptrnet.geometry.distances import between
from ptrnet.geometry.predicates import RESOLUTION
from ptrnet.types import Floats, Indices
from tests.stress import exact_answers

SIZE = 10  # elements of an instance
LARGEST_GAP = 18  # gaps range from 1 to 1e-17


def _distances(rng: np.random.Generator, folder: Path) -> str:
    """TSPLIB's distances equal its own expressions, in Python.

    Every other pair of nodes is 1 to 1e-17 from a half apart. Where rounding errors are too small
    to matter, the expression has to give the whole number that exact fractions give.
    """
    if is_near := bool(rng.integers(2)):
        far = int(rng.integers(1000)) + 0.5 + float(rng.choice([-1, 1])) * _gap(rng)
        a, b = [0.0, 0.0], [far * x for x in ((1, 0), (0, 1), (0.6, 0.8))[rng.integers(3)]]
    else:
        digits = int(rng.integers(0, 4))
        a, b = np.round(rng.random((2, 2)) * 10.0 ** rng.integers(0, 5), digits).tolist()
    (folder / "points.txt").write_text(repr((a, b)))
    xd, yd = a[0] - b[0], a[1] - b[1]
    square = xd * xd + yd * yd
    rij = math.sqrt(square / 10.0)
    tij = int(rij + 0.5)
    expected = {
        "EUC_2D": int(math.sqrt(square) + 0.5),
        "CEIL_2D": math.ceil(math.sqrt(square)),
        "ATT": tij + 1 if tij < rij else tij,
        "MAN_2D": int(abs(xd) + abs(yd) + 0.5),
        "MAX_2D": max(int(abs(xd) + 0.5), int(abs(yd) + 0.5)),
    }
    actual = {name: int(between(np.array(a), np.array(b), name)) for name in expected}
    assert actual == expected, (actual, expected)
    exact = sum((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(a, b, strict=True))
    nearest = (math.isqrt(math.floor(4 * exact)) + 1) // 2
    is_clear = abs(math.sqrt(square) % 1 - 0.5) > 1e-9
    assert not is_clear or actual["EUC_2D"] == nearest, (actual, nearest)
    return "equal, near a half" if is_near else "equal"


def _gap(rng: np.random.Generator) -> float:
    return 10.0 ** -int(rng.integers(LARGEST_GAP))


def _solved(
    is_right: Callable[[Floats, Indices], bool],
    solver: ptrnet.Solver,
    rng: np.random.Generator,
    folder: Path,
) -> str:
    """The model answers instances with nearly equal elements as well as with equal ones."""
    inputs = rng.random((SIZE, solver.task.facts.num_features))
    i, j = rng.choice(SIZE, 2, replace=False)
    gap = _gap(rng)
    direction = rng.normal(size=solver.task.facts.num_features)
    inputs[j] = inputs[i] + gap * direction / np.linalg.norm(direction)
    (folder / "inputs.txt").write_text(repr(inputs.tolist()))
    if is_right(inputs, solver.solve(inputs)):
        return "right"
    assert gap >= RESOLUTION or not _is_right_if_equal(is_right, solver, inputs, i, j)
    return "wrong, as the model is"


def _is_right_if_equal(
    is_right: Callable[[Floats, Indices], bool],
    solver: ptrnet.Solver,
    inputs: Floats,
    i: int,
    j: int,
) -> bool:
    """Whether the model answers the instance if the elements i and j are equal."""
    equal = inputs.copy()
    equal[j] = equal[i]
    return is_right(equal, solver.solve(equal))


def _is_sorted(inputs: Floats, answer: Indices) -> bool:
    values = [Fraction(x) for x in inputs[:, 0].tolist()]
    return answer.tolist() == sorted(range(SIZE), key=lambda k: (values[k], k))


def _is_hull(points: Floats, answer: Indices) -> bool:
    """Whether the ring is exact, or the label's, which allows for rounded coordinates."""
    exact = exact_answers.whole_points(points)
    (label,) = labellers.label(ptrnet.tasks.get("hull"), points[None])
    ring = {exact[k] for k in answer}
    return len(ring) == len(answer) and (
        ring == set(exact_answers.hull_of(exact)) or ring == {exact[k] for k in label}
    )


def _is_delaunay(points: Floats, answer: Indices) -> bool:
    triangles = [tuple(triangle) for triangle in answer.tolist()]
    return exact_answers.is_delaunay(exact_answers.whole_points(points), triangles)


def _tables(rng: np.random.Generator, folder: Path) -> str:
    """Identifiers of 16 to 19 digits, and nearly equal ranks, stay as they are in the file.

    Ranks are whole numbers of 19 digits, or decimals that differ by 1 to 1e-17. They are ordered as
    Python's integers and fractions are.
    """
    start = int(rng.integers(2**53, 2**62))
    ids = [str(start + int(k)) for k in rng.integers(3, size=SIZE)]
    steps, places = rng.permutation(SIZE).tolist(), int(rng.integers(LARGEST_GAP))
    ranks = [f"{start + k}" for k in steps]
    if places:
        ranks = [f"{start}.{k:0{places}}" for k in steps]
    lines = [f"{i},{r}" for i, r in zip(ids, ranks, strict=True)]
    (folder / "t.csv").write_text("\n".join(["id,r", *lines, ""]))
    sets = ptrnet.read_table(str(folder / "t.csv"), set_id="id", rank="r")
    expected = []
    for i in dict.fromkeys(ids):
        of_set = [Fraction(r) for other, r in zip(ids, ranks, strict=True) if other == i]
        expected.append(sorted(range(len(of_set)), key=of_set.__getitem__))
    assert [example.outputs.tolist() for example in sets] == expected
    return "equal"


@pytest.mark.parametrize(("case", "count"), [(_distances, 20_000), (_tables, 2_000)])
def test_last_digits_of_distances_and_tables_are_right(case, count, try_cases):
    try_cases(case, count)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "is_right"), [("sort", _is_sorted), ("hull", _is_hull), ("delaunay", _is_delaunay)]
)
def test_models_answer_nearly_equal_elements_as_well_as_equal_ones(name, is_right, try_cases):
    try_cases(partial(_solved, is_right, ptrnet.load(name)), 2_000)
