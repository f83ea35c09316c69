"""Inputs that other programs had wrong, rebuilt with numbers of our own.

Each table's keys say where the fault was seen. Right values come from exact fractions, from another
formula, or by hand.
"""

import json
import math
from fractions import Fraction

import numpy as np
import pandas
import pytest

import ptrnet
from ptrnet import labellers, tasks
from ptrnet.data import formats
from ptrnet.data.formats import svmlight
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.geometry.distances import between
from ptrnet.metrics import ranking
from ptrnet.types import Example
from tests.stress import exact_answers

HULL, DELAUNAY, TSP = (tasks.get(name) for name in ("hull", "delaunay", "tsp"))
CVRP, SHOP, ORIENTEERING = (tasks.get(name) for name in ("cvrp", "job-shop", "orienteering"))


def table(cases):
    """Return the cases as arguments of pytest, with the bug reports as names."""
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
    """The oracle compares the exact square with the squares of integers and halves."""
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
    """The haversine is another formula for the same sphere. It uses TSPLIB's value of pi."""
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
    "TSP #7: a triangle by rows, broken elsewhere": (
        f"DIMENSION: 4\n{EXPLICIT.format('LOWER_DIAG_ROW')}"
        "EDGE_WEIGHT_SECTION\n0 7 0 2 9 0 4 5\n6 0\nEOF\n",
        [[0, 7, 2, 4], [7, 0, 9, 5], [2, 9, 0, 6], [4, 5, 6, 0]],
    ),
    "Clp #73: a colon behind the section": (
        f"DIMENSION: 3\n{FULL}EDGE_WEIGHT_SECTION:\n0 3 4\n3 0 5\n4 5 0\nEOF\n",
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


MATRICES = {
    "LKH: a large number instead of no arc": ("ATSP", "9999 1 9 9 9999 1 1 9 9999", [0, 1, 2], 3),
    "LKH: the other direction is shorter": ("ATSP", "0 9 1 1 0 9 9 1 0", [0, 2, 1], 3),
    "OR-Tools: all distances are 0": ("TSP", "0 0 0 0 0 0 0 0 0", None, 0),
    "python-tsp: a distance below 0": ("TSP", "0 -3 4 -3 0 5 4 5 0", None, 6),
}


@pytest.mark.parametrize(("kind", "weights", "tour", "length"), table(MATRICES))
def test_tours_of_matrices_are_the_shortest(tmp_path, kind, weights, tour, length):
    path = tmp_path / f"a.{kind.lower()}"
    path.write_text(f"TYPE: {kind}\nDIMENSION: 3\n{FULL}EDGE_WEIGHT_SECTION\n{weights}\nEOF\n")
    ptrnet.label("tsp", path, output=tmp_path / "a.tour")
    (example,) = formats.read(str(path), TSP)
    (answer,) = formats.read(str(tmp_path / "a.tour"), TSP)
    assert tour is None or answer.outputs.tolist() == tour
    assert TSP.costs(example, [answer.outputs]).tolist() == [length]


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


# ---- Routes.

VRP = """TYPE : CVRP
DIMENSION : 3
EDGE_WEIGHT_TYPE : EUC_2D
{keywords}CAPACITY : 5
NODE_COORD_SECTION
1 0 0
2 30 0
3 0 40
DEMAND_SECTION
1 {first}
2 2
3 {last}
DEPOT_SECTION
{depots}
-1
EOF
"""


def read_vrp(tmp_path, keywords="", first="0", last="3", depots="1"):
    path = tmp_path / "a.vrp"
    path.write_text(VRP.format(keywords=keywords, first=first, last=last, depots=depots))
    (example,) = formats.read(str(path), CVRP)
    return example


REFUSED_ROUTES = {
    "VRPLIB #126: several depots": ({"depots": "1\n2"}, "expected the id of one node, got '1, 2'"),
    "pylkh #7: two demands of a node": ({"last": "3 0"}, "a.vrp:12: expected an id and a number"),
    "or-tools #2235: negative demands": ({"last": "-3"}, "expected demands of 0 or more, got -3"),
}


@pytest.mark.parametrize(("changed", "complaint"), table(REFUSED_ROUTES))
def test_files_of_other_routing_problems_are_refused(tmp_path, changed, complaint):
    with pytest.raises(InputError, match=complaint):
        read_vrp(tmp_path, **changed)


IGNORED = {
    "HGS-CVRP #42: the number of vehicles": "VEHICLES : 2",
    "rl4co #137: how long a customer takes": "SERVICE_TIME : 10",
}


@pytest.mark.parametrize("keyword", [pytest.param(word, id=seen) for seen, word in IGNORED.items()])
def test_unsupported_keywords_of_routes_are_reported(tmp_path, keyword):
    with pytest.warns(AmbiguousInputWarning, match=f"a.vrp:4: {keyword} is ignored"):
        read_vrp(tmp_path, keywords=f"{keyword}\n")


def test_the_depot_may_be_the_last_node(tmp_path):
    """HGS-CVRP #42: node 3 is the depot, 50 from node 2 and 40 from node 1."""
    example = read_vrp(tmp_path, first="1", last="0", depots="3")
    assert example.nodes.ids == [3, 1, 2]
    assert CVRP.costs(example, [np.array([1, 2])]).tolist() == [40 + 30 + 50]


@pytest.mark.parametrize("task", ["cvrp", "orienteering"])
def test_rounded_routes_are_as_long_as_tsplib_writes(task):
    """PyVRP/Instances #14: halves. The two places are 142.5 apart, but hypot gives a bit less."""
    a, b = (347.42, 278.65), (461.42, 193.15)
    leg = int(math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) + 0.5)
    fields = (
        {"demand": [0, 1], "capacity": 1} if task == "cvrp" else {"prize": [0, 1], "limit": 285}
    )
    problem = tasks.get(task)
    inputs = problem.problem.from_fields({"position": [a, b], "rounded": 1, **fields}, "")
    assert leg == 143
    (cost,) = problem.costs(Example(inputs), [np.array([1])])
    assert cost == (2 * leg if task == "cvrp" else np.inf)  # 286 is over the limit of 285


@pytest.mark.parametrize("labeller", tasks.get("orienteering").facts.labellers)
def test_labels_of_rounded_tours_keep_the_limit(labeller):
    """The same two places: there and back are 286; 284 if halves were rounded down."""
    if labeller == "circuit":
        pytest.importorskip("ortools")
    problem, at = tasks.get("orienteering"), [(347.42, 278.65), (461.42, 193.15), (347.42, 279.65)]
    fields = {"position": at, "prize": [0, 9, 1], "rounded": 1}
    for limit, best in ((285, [2]), (286, [1])):
        inputs = problem.problem.from_fields({**fields, "limit": limit}, "")
        (tour,) = labellers.label(problem, inputs[None], labeller)
        assert tour.tolist() == best


# How large a capacity, a limit or a duration is if it means "none", or does not fit into 64 bits.
LARGE = [1e9, 1e15, 1e19, 3e200]


@pytest.mark.parametrize("large", LARGE)
@pytest.mark.parametrize("labeller", [*CVRP.facts.labellers, *ORIENTEERING.facts.labellers])
def test_a_large_capacity_or_limit_is_like_none(labeller, large):
    """One vehicle serves all customers, and a tour visits all places."""
    if labeller != "best-tour":
        pytest.importorskip("pyvrp" if labeller in CVRP.facts.labellers else "ortools")
    at = [(0, 0), (300, 0), (0, 400), (300, 400)]
    for rounded in (0, 1):
        if labeller in CVRP.facts.labellers:
            task, fields = CVRP, {"demand": [0, 1, 2, 0.5], "capacity": large}
        else:
            task, fields = ORIENTEERING, {"prize": [0, 1, 2, 0.5], "limit": large}
        inputs = task.problem.from_fields({"position": at, "rounded": rounded, **fields}, "")
        (answer,) = labellers.label(task, inputs[None], labeller)
        assert sorted(answer.tolist()) == [1, 2, 3]
        assert task.infeasible([inputs], [answer]) == [None]


@pytest.mark.parametrize("large", LARGE)
@pytest.mark.parametrize("labeller", [*CVRP.facts.labellers, *ORIENTEERING.facts.labellers])
def test_answers_do_not_depend_on_the_unit_of_demands_and_prizes(labeller, large):
    if labeller != "best-tour":
        pytest.importorskip("pyvrp" if labeller in CVRP.facts.labellers else "ortools")
    at = [(0, 0), (300, 0), (0, 400), (300, 400)]
    found = []
    for unit in (1, large):
        numbers = [0, 1 * unit, 2 * unit, unit]
        if labeller in CVRP.facts.labellers:
            task, fields = CVRP, {"demand": numbers, "capacity": 3.5 * unit}
        else:
            task, fields = ORIENTEERING, {"prize": numbers, "limit": 1000}
        inputs = task.problem.from_fields({"position": at, **fields}, "")
        (answer,) = labellers.label(task, inputs[None], labeller)
        found.append(answer.tolist())
        assert task.infeasible([inputs], [answer]) == [None]
    assert found[0] == found[1]


def test_durations_that_cp_sat_cannot_add_are_refused():
    pytest.importorskip("ortools")
    with pytest.raises(InputError, match=r"sum of at most 1e\+15, got 2e\+19"):
        ptrnet.label("job-shop", {"jobs": [[[0, 1e19]], [[1, 1e19]]]}, labeller="cp-sat")


FEW = {
    "PyVRP: one customer": ([(0, 0), (3, 4)], [0, 1], 1, 10),
    "PyVRP: all at the depot": ([(2, 2)] * 5, [0, 1, 1, 1, 1], 2, 0),
    "PyVRP: each customer fills a vehicle": ([(0, 0), (3, 4), (0, 2)], [0, 3, 3], 3, 14),
    "VRPy: no capacity and no demand": ([(0, 0), (3, 0), (3, 4)], [0, 0, 0], 0, 12),
    "PyVRP: demands whose sum is infinite": (
        [(0, 0), (3, 4), (0, 2)],
        [0, 1e300, 1e300],
        1e300,
        14,
    ),
}


@pytest.mark.parametrize(("position", "demand", "capacity", "cost"), table(FEW))
@pytest.mark.parametrize("labeller", CVRP.facts.labellers)
def test_routes_of_few_places_are_the_shortest(labeller, position, demand, capacity, cost):
    pytest.importorskip("pyvrp")
    fields = {"position": position, "demand": demand, "capacity": capacity}
    inputs = CVRP.problem.from_fields(fields, "")
    routes = labellers.label(CVRP, inputs[None], labeller)
    assert CVRP.costs(Example(inputs), routes).tolist() == [cost]


LIMITS = {
    "a tour as long as the limit, in decimals": ([(0, 0), (0.1, 0), (0.3, 0)], [0, 1, 1], 0.6, 2),
    "four legs of a tenth": ([(0, 0), (0.1, 0), (0.1, 0.1), (0, 0.1)], [0, 1, 1, 1], 0.4, 3),
    "OR-Tools: no limit is left at the depot": ([(1, 1)] * 4, [0, 1, 2, 3], 0, 6),
    "OR-Tools: the best place is out of reach": ([(0, 0), (1, 0), (9, 9)], [0, 1, 5], 2, 1),
}


@pytest.mark.parametrize(("position", "prize", "limit", "best"), table(LIMITS))
@pytest.mark.parametrize("labeller", ORIENTEERING.facts.labellers)
def test_tours_may_be_as_long_as_the_limit(labeller, position, prize, limit, best):
    """In floats the sum of the legs is larger than the limit."""
    if labeller != "best-tour":
        pytest.importorskip("ortools" if labeller == "circuit" else "pyvrp")
    inputs = ORIENTEERING.problem.from_fields(
        {"position": position, "prize": prize, "limit": limit}, ""
    )
    tours = labellers.label(ORIENTEERING, inputs[None], labeller)
    assert ORIENTEERING.costs(Example(inputs), tours).tolist() == [-best]


LOADS = {
    "rl4co #101: three tenths": ([0.1, 0.1, 0.1], 0.3),
    "rl4co #137: seven parts of 0.7": ([0.1] * 7, 0.7),
    "vrpy #22: whole numbers": ([2, 1, 4], 7),
    "attention-learn-to-route #49: no demand": ([0, 0, 0], 1),
}


@pytest.mark.parametrize(("demand", "capacity"), table(LOADS))
def test_a_vehicle_may_be_full(demand, capacity):
    """In decimals the demands fit the capacity exactly; in floats their sum is larger."""
    assert sum(Fraction(str(x)) for x in demand) <= Fraction(str(capacity))
    places = [(math.cos(k), math.sin(k)) for k in range(len(demand) + 1)]
    fields = {"position": places, "demand": [0, *demand], "capacity": capacity}
    inputs = CVRP.problem.from_fields(fields, "")
    customers = range(1, len(places))
    assert CVRP.infeasible([inputs], [np.array(customers)]) == [None]
    pytest.importorskip("pyvrp")
    (route,) = labellers.label(CVRP, inputs[None], "pyvrp")
    assert sorted(route.tolist()) == list(customers)  # without a 0: one vehicle


@pytest.mark.parametrize(("demand", "capacity"), [([0.1] * 4, 0.3), ([1 / 3, 2 / 3, 1e-6], 1.0)])
def test_a_vehicle_is_not_overloaded(demand, capacity):
    places = [(math.cos(k), math.sin(k)) for k in range(len(demand) + 1)]
    fields = {"position": places, "demand": [0, *demand], "capacity": capacity}
    inputs = CVRP.problem.from_fields(fields, "")
    assert CVRP.infeasible([inputs], [np.arange(1, len(places))]) != [None]
    pytest.importorskip("pyvrp")
    (route,) = labellers.label(CVRP, inputs[None], "pyvrp")
    assert 0 in route and CVRP.infeasible([inputs], [route]) == [None]


# ---- Schedules.

SHOPS = {
    "an operation of no length where two others meet": (
        [[[1, 2]], [[2, 2]], [[1, 1], [2, 0], [0, 2]]],
        3,
    ),
    "a job of no length": ([[[0, 2], [1, 2]], [[1, 0], [0, 0]]], 4),
    "all operations of no length": ([[[0, 0], [1, 0]], [[1, 0], [0, 0]]], 0),
    "a job that stays on its machine": (
        [[[0, 2]], [[2, 2], [2, 1], [0, 2]], [[1, 2], [2, 3], [0, 2], [0, 2]]],
        10,
    ),
    "job-shop-lib: one machine, which is not the first": ([[[19, 3]], [[19, 1]], [[19, 2]]], 6),
    "job-shop-lib: one job": ([[[0, 3], [1, 2], [0, 1]]], 6),
    "job-shop-lib: equal jobs": ([[[0, 1], [1, 1]]] * 4, 5),
    "OR-Tools: durations that float32 rounds": (
        [[[0, 10**14], [1, 1]], [[1, 10**14], [0, 1]]],
        10**14 + 1,
    ),
}


@pytest.mark.parametrize(("jobs", "shortest"), table(SHOPS))
@pytest.mark.parametrize("labeller", SHOP.facts.labellers)
def test_schedules_are_the_shortest(labeller, jobs, shortest):
    """The shortest makespans were found by trying all orders."""
    if labeller == "cp-sat":
        pytest.importorskip("ortools")
    inputs = SHOP.problem.from_fields({"jobs": jobs}, "")
    answers, proved = labellers.label_with_proof(SHOP, inputs[None], labeller)
    assert SHOP.costs(Example(inputs), answers).tolist() == [shortest]
    assert proved.all()


# ---- Knapsacks.

KNAPSACKS = {
    "a worthless item fits": ([5, 1, 2], [4, 0, 3], 9, [0, 1, 2]),
    "all items are worthless": ([5, 1, 2], [0, 0, 0], 3, [1, 2]),
    "items without weight or value": ([0, 4, 0], [0, 1, 2], 3, [0, 2]),
    "all that fits has the same value": ([2, 2, 2], [1, 1, 1], 5, None),
    "an item as heavy as the capacity": ([3, 4], [1, 1], 3, [0]),
    "OR-Tools: weights are cut to whole numbers": ([1.9, 1.9], [1.5, 1.4], 2, [0]),
    "OR-Tools: values are cut to whole numbers": ([1, 1], [0.1, 0.9], 1, [1]),
    "OR-Tools: a table as long as the capacity": (
        [10**12, 10**12 + 1, 10**6],
        [5, 6, 1],
        2 * 10**12 + 1,
        [0, 1],
    ),
    "pulp: three tenths": ([0.1, 0.2, 0.3], [1, 1, 1.5], 0.3, [0, 1]),
    "pulp: an infinite sum of values": ([1, 2, 3], [1e300, 1e300, 1e300], 5, None),
}


@pytest.mark.parametrize(("weight", "value", "capacity", "items"), table(KNAPSACKS))
def test_knapsacks_are_full(tmp_path, weight, value, capacity, items):
    """`label` writes an answer that all other commands read."""
    fields = {"weight": weight, "value": value, "capacity": capacity}
    (tmp_path / "a.jsonl").write_text(json.dumps(fields))
    ptrnet.label("knapsack", tmp_path / "a.jsonl", output=tmp_path / "b.jsonl")
    (example,) = formats.read(str(tmp_path / "b.jsonl"), tasks.get("knapsack"))
    assert items is None or sorted(example.outputs.tolist()) == items


def test_a_knapsack_into_which_nothing_fits_is_refused():
    with pytest.raises(InputError, match="no item fits into the capacity"):
        ptrnet.label("knapsack", {"weight": [5, 4], "value": [1, 2], "capacity": 3})


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
    "geos #722: pairs around 0": [
        *((x, y) for y in (-0.3, 0.3) for x in (-0.5, 2e-17, 0.5, -2e-17)),
    ],
    "geo #905: three on a line": [(0, 0), (3, 3), (6, 6)],
    "graham_scan_js #8: one of four is inside": [(9, 1), (1, 9), (0, 0), (3, 2)],
    "LazySets #892: a zero with a sign": [(0.0, -1), (-0.0, 1), (0.0, 1), (0.0, -1)],
    "MIConvexHull #32: all on a level": [(26, 60), (28.5, 60), (31, 60), (33.5, 60)],
    "geometry #829: whole numbers on a line": [(2, 1), (7, 6), (3, 2), (4, 3)],
    "geometry #1208: a tenth of a line": [(0.1, 0.3), (0.2, 0.6), (0.3, 0.9), (0.4, 1.0)],
}


@pytest.mark.parametrize("points", [pytest.param(p, id=seen) for seen, p in HULLS.items()])
def test_hulls_are_exact(points):
    points = np.array(points, float)
    exact = exact_answers.whole_points(points)
    (ring,) = labellers.label(HULL, points[None])
    truth = exact_answers.hull_of(exact)
    assert [exact[k] for k in ring] == truth
    (far,) = labellers.label(HULL, points[None, ::-1])  # whatever the order of the points
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
    "delaunator #94: off a line by less than a unit": [
        (0, 0),
        (0.06, 0),
        (0.02, 5e-18),
        (0.01, 0.15),
        (0.05, 0.02),
        (0.02 - 1e-17, -5e-18),
    ],
    "hgeometry #209: three of four on a line": [(0, 0), (2, 2), (0, 4), (4, 0)],
    "delaunator #61: a tilted grid": [
        (x * 0.8 - y * 0.6, x * 0.6 + y * 0.8) for x in range(4) for y in range(4)
    ],
    "delabella #8: twelve on one circle": [
        (sx * x, sy * y) for x, y in [(7, 1), (5, 5), (1, 7)] for sx in (1, -1) for sy in (1, -1)
    ],
    "SACCELERATOR #316: duplicates moved by 1e-6": [(0, 0), (1e-6, 1e-6), (3, 1), (1, 3), (3, 3)],
}


@pytest.mark.parametrize("points", [pytest.param(p, id=seen) for seen, p in TRIANGULATED.items()])
def test_triangulations_have_empty_circles_and_every_vertex(points):
    points = np.array(points, float)
    exact = exact_answers.whole_points(points)
    (triangles,) = labellers.label(DELAUNAY, points[None])
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
    "recommenders #1749: grades are gains, not 0 and 1": (
        (2, 3, 0),
        (0, 1, 2),
        ((3 + 7 / math.log2(3)) / (7 + 3 / math.log2(3)), 1, 1),
    ),
    "scikit-learn #17639: grades below 0": ((-2, -5, 1), (2, 1, 0), (1, 1, 1)),
    "scikit-learn #17639: all below 0": ((-2, -5), (1, 0), (1, 1, 1)),
    "quepid #77: all alike": ((2, 2, 2), (2, 0, 1), (1, 1, 1)),
    "trectools #51: the only relevant one last": (
        (0, 0, 0, 1),
        (0, 1, 2, 3),
        (
            1 / math.log2(5),
            1 / 4,
            1 / 4,
        ),
    ),
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


def test_ndcg_is_at_most_1_with_more_relevant_elements_than_places():
    """Rated-ranking-evaluator #71 and search-relevance #191: the ideal order was cut elsewhere."""
    grades, order = np.array([1.0] * 12), np.arange(12)
    assert ranking.ndcg(grades, order, 10) == 1
    worse = np.append(grades, [0.0] * 3)
    shifted = np.arange(15)[::-1]  # three irrelevant ones first
    gains = [0] * 3 + [1] * 7
    discounts = [1 / math.log2(place + 2) for place in range(10)]
    expected = sum(g * d for g, d in zip(gains, discounts, strict=True)) / sum(discounts)
    assert ranking.ndcg(worse, shifted, 10) == pytest.approx(expected, abs=1e-15)


# ---- Tables: identifiers, and the sets and orders that they make.

IDS = {
    "pandas #5697: an empty line before 19 digits": (
        "\n1111111111111111111,1\n1111111111111111112,1\n1111111111111111111,2\n",
        [2, 1],
    ),
    "pandas #12340: 16 digits and zeros behind the point": (
        "6144039378640938.0,1\n6144039378640937.0,1\n6144039378640938.0,2\n",
        [2, 1],
    ),
    "readr #976: 23 digits": (
        "11898508762506083287001,1\n11898508762506083287002,1\n11898508762506083287001,2\n",
        [2, 1],
    ),
    "gdal #12008: neighbours above 2^53": ("9007199254740993,1\n9007199254740992,1\n", [1, 1]),
    "LightGBM #3363: the rows of a set are apart": ("a,2\nb,1\na,1\nc,1\nb,2\n", [2, 2, 1]),
}


@pytest.mark.parametrize(("rows", "sizes"), table(IDS))
def test_ids_stay_what_they_are(tmp_path, rows, sizes):
    path = tmp_path / "t.csv"
    path.write_text(f"id,r\n{rows}")
    sets = ptrnet.read_table(str(path), set_id="id", rank="r")
    assert [len(example.inputs) for example in sets] == sizes


def test_ranks_beyond_64_bits_are_compared_as_whole_numbers(tmp_path):
    """CSV.jl #1082 and pandas #11612: the ends of the range of 64 bits."""
    ranks = [2**63 + 1, 2**63, -(2**63) - 1, 10**30 + 1, 10**30]
    path = tmp_path / "t.csv"
    path.write_text("id,r\n" + "".join(f"1,{rank}\n" for rank in ranks))
    (example,) = ptrnet.read_table(str(path), set_id="id", rank="r")
    assert example.outputs.tolist() == sorted(range(5), key=ranks.__getitem__)


def test_ids_that_floats_may_have_merged_are_refused(tmp_path):
    """Pandas #48170: an empty cell turns a column of whole numbers into floats."""
    frame = pandas.DataFrame({"id": [None, 1234567890123456789], "r": [1, 2]})
    with pytest.raises(InputError, match="id"):
        ptrnet.read_table(frame, set_id="id", rank="r")
    with pytest.raises(InputError, match="may have been another whole number"):
        ptrnet.read_table(frame[1:], set_id="id", rank="r")


LETOR = {
    "LightGBM #2538: a set and a feature 0": (
        "2 qid:0 0:5 1:2\n0 qid:0 1:1\n",
        [({"0": 5, "1": 2}, 2), ({"0": 0, "1": 1}, 0)],
    ),
    "LightGBM #1117: comments": (
        "1 qid:11 1:0.5 # docid = GX0 inc = 1\n0 qid:11 2:3 #docid = GX1\n",
        [({"1": 0.5, "2": 0}, 1), ({"1": 0, "2": 3}, 0)],
    ),
    "svmlight-loader #1: features in any order": (
        "1 qid:1 2:7 1:4\n0 qid:1 1:1\n",
        [({"1": 4, "2": 7}, 1), ({"1": 1, "2": 0}, 0)],
    ),
}


@pytest.mark.parametrize(("text", "expected"), table(LETOR))
def test_files_of_svmlight_are_read(tmp_path, text, expected):
    path = tmp_path / "a.svmlight"
    path.write_text(text)
    read = svmlight.table(str(path)).columns
    features = [name for name in read if name.isdecimal()]
    rows = [
        ({name: read[name][k] for name in features}, grade) for k, grade in enumerate(read["grade"])
    ]
    assert rows == expected


# ---- Networks.


@pytest.mark.parametrize("task", ["tsp", "sort"])
def test_no_element_is_chosen_twice(small, task):
    """Pointer-nn-pytorch #1 and neural-combinatorial-rl-pytorch #5: no mask of chosen elements."""
    solver = small(task)
    instances = [np.zeros((n, solver.task.facts.num_features)) for n in (1, 2, 7)]  # all alike
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
