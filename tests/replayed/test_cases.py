"""Inputs that other programs had wrong, rebuilt with numbers of our own.

Each table's keys say where the fault was seen. Right values come from exact fractions, from another
formula, or by hand.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
from ptrnet.geometry.distances import between
from ptrnet.metrics import ranking
from tests.stress import exact_answers

HULL, DELAUNAY, SORT, TSP = (tasks.get(name) for name in ("hull", "delaunay", "sort", "tsp"))


def table(cases):
    """The cases as arguments of pytest, named by where they were seen."""
    return [pytest.param(*case, id=seen) for seen, case in cases.items()]


# ---- Distances of TSPLIB: name, two points, the distance.

DISTANCES = {
    "netgen #29: EUC_2D not rounded": ("EUC_2D", (0, 0), (1, 1), 1),
    "PyVRP/Instances #14: halves to even": ("EUC_2D", (0, 0), (2.5, 0), 3),
    "PyVRP/Instances #14: half of an odd number": ("EUC_2D", (0, 0), (0.5, 0), 1),
    "toolbox-rs #519: 3-4-5": ("EUC_2D", (-3, 7), (0, 11), 5),
    "tsplib95 #14: rounded up from .5 on": ("EUC_2D", (0, 0), (1, 1.2), 2),
    "TSPLib.Net #15: CEIL_2D": ("CEIL_2D", (0, 0), (1, 1), 2),
    "VRPLIB #130: CEIL_2D of a whole number": ("CEIL_2D", (0, 0), (5, 12), 13),
    "tsplib95 #11: ATT": ("ATT", (0, 0), (10, 0), 4),
    "tsplib95 #11: ATT of a whole number": ("ATT", (0, 0), (30, 10), 10),
}


@pytest.mark.parametrize(("name", "a", "b", "expected"), table(DISTANCES))
def test_planar_distances(name, a, b, expected):
    """The square is exact; so is where its root lies among whole numbers and halves."""
    square = sum((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(a, b, strict=True))
    square /= 10 if name == "ATT" else 1
    low = Fraction(expected) - (1 if name in ("CEIL_2D", "ATT") else Fraction(1, 2))
    high = low + 1
    is_rounded = low**2 < square <= high**2 or (name == "EUC_2D" and square == low**2)
    assert is_rounded
    assert between(np.array(a, float), np.array(b, float), name) == expected


GEO = {
    "tsplib95 #11: GEO truncates": ((10.30, 20.15), (11.45, 22.50)),
    "teeline #127: degrees and minutes": ((48.51, 2.21), (52.31, 13.24)),
    "jgrapht #1067: southern and western": ((-33.27, -70.40), (-12.03, -77.03)),
    "jgrapht #1067: more than 60 minutes": ((40.62, 13.11), (40.05, 13.59)),
}


@pytest.mark.parametrize(("a", "b"), table(GEO))
def test_geographical_distances_are_those_of_the_haversine(a, b):
    """Another formula of the same sphere, in the radians of TSPLIB's own pi."""
    (lat_a, lon_a), (lat_b, lon_b) = (
        [3.141592 * (int(x) + 5 * (x - int(x)) / 3) / 180 for x in place] for place in (a, b)
    )
    half = math.sin((lat_a - lat_b) / 2) ** 2
    half += math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_a - lon_b) / 2) ** 2
    expected = math.floor(2 * 6378.388 * math.asin(math.sqrt(half)) + 1)
    assert between(np.array(a), np.array(b), "GEO") == expected


# ---- Files of TSPLIB: the text, and the distances from the first city, or the cities.

MATRIX = [[0, 3, 4], [3, 0, 5], [4, 5, 0]]
CITIES = [[0, 0], [30, 0], [0, 40]]
EXPLICIT = "EDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: {}\n"
FULL = EXPLICIT.format("FULL_MATRIX")
FILES = {
    "VRPLIB #118: keywords after the data": (
        f"DIMENSION: 3\nEDGE_WEIGHT_SECTION\n0 3 4\n3 0 5\n4 5 0\n{FULL}EOF\n",
        MATRIX,
    ),
    "teeline #58: a lone number ends the section": (
        f"DIMENSION: 3\n{FULL}EDGE_WEIGHT_SECTION\n0 3 4 3 0 5 4 5\n0\nEOF\n",
        MATRIX,
    ),
    "teeline #58: a triangle with its diagonal": (
        f"DIMENSION: 3\n{EXPLICIT.format('LOWER_DIAG_ROW')}"
        "EDGE_WEIGHT_SECTION\n0\n3 0\n4 5 0\nEOF\n",
        MATRIX,
    ),
    "RouteOpt #19: a type of the coordinates before them": (
        "DIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_TYPE: TWOD_COORDS\n"
        "NODE_COORD_SECTION\n1 0 0\n2 30 0\n3 0 40\nEOF\n",
        CITIES,
    ),
    "VRPLIB #15: no EOF, and numbers with exponents": (
        "DIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
        "1 0 0\n2 3e1 0\n3 0.0 4.0E+01",
        CITIES,
    ),
}


@pytest.mark.parametrize(("text", "expected"), table(FILES))
def test_files_of_tsplib_are_read(tmp_path, text, expected):
    path = tmp_path / "a.tsp"
    path.write_text(f"NAME: a\nTYPE: TSP\n{text}")
    (example,) = formats.read(str(path), TSP)
    assert example.inputs.tolist() == expected


def test_an_unknown_distance_is_refused_in_one_line(tmp_path):
    """Tsplib95 #13: GEOM."""
    path = tmp_path / "a.tsp"
    path.write_text("TYPE: TSP\nDIMENSION: 1\nEDGE_WEIGHT_TYPE: GEOM\nNODE_COORD_SECTION\n1 0 0\n")
    with pytest.raises(InputError, match="GEOM") as error:
        list(formats.read(str(path), TSP))
    assert "\n" not in str(error.value)


TOURS = {
    "jgrapht #1067: a tour in one row": "1 3 2 -1\nEOF\n",
    "visualization #3: space behind the numbers": "1 \n3  \n2\t\n-1 \n",
}


@pytest.mark.parametrize("section", [pytest.param(text, id=seen) for seen, text in TOURS.items()])
def test_tours_are_read(tmp_path, section):
    (tmp_path / "a.tsp").write_text(
        "NAME: a\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\n"
        "NODE_COORD_SECTION\n1 0 0\n2 30 0\n3 0 40\nEOF\n"
    )
    path = tmp_path / "a.tour"
    path.write_text(f"NAME: a\nTYPE: TOUR\nDIMENSION: 3\nTOUR_SECTION\n{section}")
    (example,) = formats.read(str(path), TSP)
    assert example.outputs.tolist() == [0, 2, 1]


# ---- Hulls and triangulations, against exact fractions.

RING = [(5, 0), (4, 3), (3, 4), (0, 5), (-3, 4), (-4, 3), (-5, 0), (0, -5)]  # on one circle
HULLS = {
    "scipy #14185: an axis of 1e8": [(0, 1), (1, 2e4), (2, 3e8), (2, -1), (0, -1)],
    "scipy #14185: a corner that sticks out by 1": [
        (0, 1),
        (1, 1.5e8 + 2),
        (2, 3e8),
        (2, -1),
        (0, 0),
    ],
    "box2d #296: nearly on a line": [(-1.7, -1.4), (0.5, -0.5), (-0.6, -0.95), (0.1, 0.9)],
    "pcl #6161: three on a line come first": [(0, 0), (0, 900), (0, 400), (500, 500)],
    "neural-chessboard #17: all on a line": [(1, 1), (3, 3), (2, 2), (7, 7)],
    "scipy #9852: rows that repeat, and tiny numbers": [
        *([(6e-15, 0.08), (3e-16, -2e-18), (2e-30, -6e-13)] * 3)
    ],
    "scipy #12546: a grid": [(x, y) for x in range(4) for y in range(3)],
}


@pytest.mark.parametrize("points", [pytest.param(p, id=seen) for seen, p in HULLS.items()])
def test_hulls_are_exact(points):
    points = np.array(points, float)
    exact = exact_answers.whole_points(points)
    (ring,) = HULL.label(points[None]).rows()
    truth = exact_answers.hull_of(exact)
    assert [exact[k] for k in ring] == truth
    (far,) = HULL.label(points[None, ::-1]).rows()  # whatever the order of the points
    assert [exact[::-1][k] for k in far] == truth


TRIANGULATED = {
    "d3 #891: duplicates": [(26, 35), (28, 41), (26, 35), (33, 30), (29, 28), (28, 41), (26, 35)],
    "matplotlib #846: a duplicate of a corner": [(0, 0), (9, 0), (0, 9), (9, 9), (0, 0)],
    "qhull #137: a grid": [(x, y) for x in range(4) for y in range(4)],
    "scipy #16094: cells of 8": [(8 * x, 8 * y) for x in range(3) for y in range(2)],
    "SACCELERATOR #316: all on one circle": RING,
    "scipy #18365: nearly flat": [(0, 0), (1, 1e-9), (2, 0), (3, 1e-9), (1.5, 1)],
    "alpha_shapes #3: near points": [
        (142.1, -12.3),
        (142.1, -12.3 + 1e-12),
        (142.2, -12.4),
        (141, -12),
    ],
    "SACCELERATOR #316: duplicates moved by 1e-6": [(0, 0), (1e-6, 1e-6), (3, 1), (1, 3), (3, 3)],
}


@pytest.mark.parametrize("points", [pytest.param(p, id=seen) for seen, p in TRIANGULATED.items()])
def test_triangulations_have_empty_circles_and_every_vertex(points):
    points = np.array(points, float)
    exact = exact_answers.whole_points(points)
    (triangles,) = DELAUNAY.unpad(DELAUNAY.label(points[None]))
    assert exact_answers.is_delaunay(exact, [tuple(t) for t in triangles.tolist()])
    assert {exact[k] for k in triangles.ravel()} == set(exact)


def test_points_on_one_line_have_no_triangulation():
    """Pyafv #1."""
    assert "on one line" in DELAUNAY.instance_error(np.array([[0, 0.1], [0.1, 0.2], [0.2, 0.3]]))


# ---- Rankings: grades, the order that is judged, and NDCG, reciprocal rank, average precision.

RANKINGS = {
    "pytrec_eval #56: the relevant one third": ((0, 0, 1), (0, 1, 2), (1 / 2, 1 / 3, 1 / 3)),
    "LightGBM #6823: one document": ((3,), (0,), (1, 1, 1)),
    "XGBoost #2208: none is relevant": ((0, 0), (1, 0), (1, 1, 1)),
    "XGBoost #3875: gains are exponential": (
        (1, 3),
        (0, 1),
        ((1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3)), 1, 1),
    ),
    "XGBoost #6707: grades above 31": ((60, 0, 59), (0, 2, 1), (1, 1, 1)),
    "XGBoost #6707: grades whose gain is no float": (
        (5000, 0),
        (1, 0),
        (1 / math.log2(3), 1 / 2, 1 / 2),
    ),
    "XGBoost #6352: grades near 0": ((0, 1e-20), (0, 1), (1 / math.log2(3), 1 / 2, 1 / 2)),
    "scholar #360: the last is the best": (
        (0, 0, 4),
        (0, 1, 2),
        (1 / 2, 1 / 3, 1 / 3),
    ),
}


@pytest.mark.parametrize(("grades", "order", "expected"), table(RANKINGS))
def test_rankings(grades, order, expected):
    grades, order = np.array(grades, float), np.array(order)
    measured = (
        ranking.ndcg(grades, order, 10),
        ranking.reciprocal_rank(grades, order),
        ranking.average_precision(grades, order),
    )
    assert measured == pytest.approx(expected, abs=1e-12)


def test_a_ranking_does_not_depend_on_the_order_of_rows():
    """LightGBM #2091 and #3363: ties are broken by the place in the file."""
    grades, order = np.array([2.0, 0, 1, 1, 0]), np.array([1, 2, 0, 4, 3])
    shuffled = np.array([4, 2, 0, 3, 1])
    moved = np.argsort(shuffled)[order]
    for metric in (ranking.reciprocal_rank, ranking.average_precision, ranking.kendall_tau):
        assert metric(grades, order) == metric(grades[shuffled], moved)
    assert ranking.ndcg(grades, order, 5) == ranking.ndcg(grades[shuffled], moved, 5)


# ---- Networks.


@pytest.mark.parametrize("task", ["tsp", "sort"])
def test_no_element_is_chosen_twice(small, task):
    """Pointer-nn-pytorch #1 and neural-combinatorial-rl-pytorch #5: no mask of chosen elements."""
    solver = small(task)
    instances = [np.zeros((n, solver.task.num_features)) for n in (1, 2, 7)]  # all alike
    for instance, answer in zip(instances, solver.solve(instances), strict=True):
        assert sorted(answer.tolist()) == list(range(len(instance)))


def test_an_answer_does_not_depend_on_its_batch(small):
    """Vision #2311 and onnxruntime #8910: sizes of the batch at export were kept."""
    solver = small("hull")
    rng = np.random.default_rng(0)
    instances = [rng.random((n, 2)) for n in (3, 9, 5)]
    together = solver.solve(instances)
    for instance, answer in zip(instances, together, strict=True):
        assert solver.solve(instance).tolist() == answer.tolist()
