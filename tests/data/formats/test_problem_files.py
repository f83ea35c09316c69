"""Files of CVRPLIB, OPLib and job shops: optima of published instances, and errors."""

import re

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.data import formats
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.labels import label_dataset
from ptrnet.metrics import summary
from ptrnet.types import Example
from tests.data.formats.test_tsp import INSTANCES

BERLIN52 = INSTANCES["berlin52"][2]
VRP = """NAME : small
COMMENT : (by hand)
TYPE : CVRP
DIMENSION : 4
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 6
NODE_COORD_SECTION
1 3 4
2 0 0
3 6 8
4 10.4 0
DEMAND_SECTION
1 2
2 0
3 4
4 3
DEPOT_SECTION
 2
 -1
EOF
"""
OP = """NAME : small
TYPE : OP
DIMENSION : 3
COST_LIMIT : 20
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 3 4
3 6 8
NODE_SCORE_SECTION
1 0
2 7
3 9
DEPOT_SECTION
1
-1
EOF
"""
# Fisher and Thompson 1963, 6 jobs on 6 machines; the shortest makespan is 55.
FT06 = """# ft06
6 6
2 1 0 3 1 6 3 7 5 3 4 6
1 8 2 5 4 10 5 10 0 10 3 4
2 5 3 4 5 8 0 9 1 1 4 7
1 5 0 5 2 5 3 3 4 8 5 9
2 9 1 3 4 5 5 4 0 3 3 1
1 3 3 3 5 9 0 10 4 4 2 1
"""


def read(tmp_path, name, text, task):
    file = tmp_path / name
    file.write_text(text)
    (example,) = formats.read(str(file), tasks.get(task))
    return example


def test_cost_of_routes_is_the_sum_of_rounded_distances(tmp_path):
    """The depot is node 2, so customers 1, 2 and 3 of the solution are nodes 1, 3 and 4."""
    (tmp_path / "small.sol").write_text("Route #1: 1 2\nRoute #2: 3\nCost 40\n")
    example = read(tmp_path, "small.vrp", VRP, "cvrp")
    assert example.nodes.ids == [2, 1, 3, 4]
    np.testing.assert_array_equal(example.outputs, [1, 2, 0, 3])
    assert summary.answer_stats(tasks.get("cvrp"), example) == {"cost": 5 + 5 + 10 + 10 + 10}


def test_reads_and_writes_solution_files(tmp_path):
    (tmp_path / "small.sol").write_text("Route #1: 1 2\nRoute #2: 3\nCost 40\n")
    read(tmp_path, "small.vrp", VRP, "cvrp")
    task = tasks.get("cvrp")
    (example,) = formats.read(str(tmp_path / "small.sol"), task)
    again = tmp_path / "again.sol"
    formats.write(str(again), [example], task)
    assert again.read_text() == (tmp_path / "small.sol").read_text()


@pytest.mark.parametrize(
    ("name", "text", "task"),
    [("a.vrp", VRP, "cvrp"), ("a.oplib", OP, "orienteering"), ("a.jsp", FT06, "job-shop")],
)
def test_instances_survive_a_write_and_a_read(name, text, task, tmp_path):
    example = read(tmp_path, name, text, task)
    again = tmp_path / f"again-{name}"
    formats.write(str(again), [example], tasks.get(task))
    (other,) = formats.read(str(again), tasks.get(task))
    np.testing.assert_array_equal(other.inputs, example.inputs)


def test_warns_that_the_number_of_vehicles_is_ignored(tmp_path):
    with pytest.warns(AmbiguousInputWarning, match="a.vrp:6: VEHICLES : 2 is ignored"):
        read(tmp_path, "a.vrp", VRP.replace("CAP", "VEHICLES : 2\nCAP"), "cvrp")


@pytest.mark.parametrize("cost", ["39", "40.37", "1e3", "-40", "40,0", "1e999"])
def test_warns_of_a_cost_that_is_not_the_length_of_the_routes(cost, tmp_path):
    """The routes are 40 long, and 5 + 5 + 10 + 2 hypot(10.4, 0) without rounding."""
    (tmp_path / "small.vrp").write_text(VRP)
    (tmp_path / "small.sol").write_text(f"Route #1: 1 2\nRoute #2: 3\nCost {cost}\n")
    message = f"small.sol:3: Cost {cost}: the routes cost 40, or 40.80 if distances are not rounded"
    for name in ("small.vrp", "small.sol"):
        with pytest.warns(AmbiguousInputWarning, match=re.escape(message)) as warned:
            list(formats.read(str(tmp_path / name), tasks.get("cvrp")))
        assert len(warned) == 1


@pytest.mark.parametrize("line", ["Cost 40", "cost: 40.0", " Cost : 4e1 ", "Time 12"])
def test_a_right_cost_is_read_without_a_warning(line, tmp_path):
    (tmp_path / "small.vrp").write_text(VRP)
    (tmp_path / "small.sol").write_text(f"{line}\nRoute #1: 1 2\nRoute #2: 3\n")
    list(formats.read(str(tmp_path / "small.sol"), tasks.get("cvrp")))


def test_every_tour_collects_the_score_of_the_depot(tmp_path):
    task = tasks.get("orienteering")
    example = read(tmp_path, "a.oplib", OP.replace("1 0\n2 7", "1 5\n2 7"), "orienteering")
    tours = [np.array(tour, np.int64) for tour in ([1, 2], [2, 1])]
    assert task.costs(example, tours).tolist() == [-(5 + 7 + 9)] * 2
    example = read(
        tmp_path, "b.oplib", OP.replace("1 0\n2 7", "1 5\n2 7").replace("20", "2"), task.name
    )
    assert task.costs(example, [np.zeros(0, np.int64)]).tolist() == [-5]


@pytest.mark.parametrize("labeller", ["best-tour", "circuit"])
def test_the_score_of_the_depot_does_not_change_the_best_tour(labeller):
    """A score far above the others must not hide them when `circuit` scales scores."""
    if labeller == "circuit":
        pytest.importorskip("ortools")
    task = tasks.get("orienteering", limit=1.6)
    (inputs,) = task.sample(np.random.default_rng(2), 1, 8)
    (tour,) = labellers.label(task, inputs[None], labeller)
    for score in (0.5, 7, 1e9):
        inputs[0, 2] = score
        (other,) = labellers.label(task, inputs[None], labeller)
        assert other.tolist() == tour.tolist()
    problem = task.problem
    features = [part.copy() for part in problem.features(problem.start(inputs[None]))]
    inputs[0, 2] = 0
    again = problem.features(problem.start(inputs[None]))
    for before, after in zip(features, again, strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_published_optimum_of_a_map_of_oplib(tmp_path):
    """Berlin52 of the first generation, by Fischetti et al. (1998): 37 of 52, depot included."""
    pytest.importorskip("ortools")
    points = [place.replace(",", " ") for place in BERLIN52.split()]
    lines = [
        *("TYPE : OP", "DIMENSION : 52", "TSP_SOLUTION : 7542", "COST_LIMIT : 3771"),
        *("EDGE_WEIGHT_TYPE : EUC_2D", "NODE_COORD_SECTION"),
        *(f"{k} {place}" for k, place in enumerate(points, 1)),
        *("NODE_SCORE_SECTION", *(f"{k} 1" for k in range(1, 53)), "DEPOT_SECTION", "1", "-1"),
    ]
    example = read(tmp_path, "a.oplib", "\n".join(lines), "orienteering")
    (labelled,) = label_dataset(tasks.get("orienteering"), "circuit", [example], strict=True)
    assert summary.answer_stats(tasks.get("orienteering"), labelled)["cost"] == -37


@pytest.mark.parametrize("end", ["vrp", "oplib"])
def test_warns_of_coordinates_that_are_too_small_to_be_rounded(end, tmp_path):
    text, task = (VRP, "cvrp") if end == "vrp" else (OP, "orienteering")
    for line in ("1 3 4", "3 6 8", "4 10.4 0", "2 3 4"):
        node, *place = line.split()
        small = " ".join(f"{float(x) / 10:g}" for x in place)
        text = text.replace(f"\n{line}\n", f"\n{node} {small}\n")
    with pytest.warns(AmbiguousInputWarning, match=f"a.{end}: EUC_2D rounds .* become 1 here"):
        read(tmp_path, f"a.{end}", text, task)


def test_warns_of_jobs_with_fewer_operations_than_machines(tmp_path):
    text = FT06.replace(" 4 6\n1 8", "\n1 8").replace("1 3 3 3 5 9 0 10 4 4 2 1", "1 3")
    message = "a.jsp: 2 of 6 jobs have fewer operations than there are machines, 6"
    with pytest.warns(AmbiguousInputWarning, match=message) as warned:
        read(tmp_path, "a.jsp", text, "job-shop")
    assert len(warned) == 1


def test_a_tour_may_be_as_long_as_the_limit(tmp_path):
    task, tour = tasks.get("orienteering"), [np.array([1, 2])]
    example = read(tmp_path, "small.oplib", OP, "orienteering")
    assert task.costs(example, tour)[0] == -16
    example = read(tmp_path, "less.oplib", OP.replace("20", "19"), "orienteering")
    assert task.costs(example, tour)[0] == np.inf


def test_the_optimum_of_ft06(tmp_path):
    example = read(tmp_path, "ft06.jsp", FT06, "job-shop")
    order = [2, 1, 0, 2, 0, 3, 1, 2, 5, 3, 4, 1, 5, 0, 2, 5, 4, 3]
    order += [4, 2, 3, 1, 5, 0, 3, 4, 5, 1, 5, 0, 2, 3, 4, 1, 0, 4]
    assert tasks.get("job-shop").costs(example, [np.array(order)])[0] == 55


@pytest.mark.parametrize(
    ("name", "task", "text", "complaint"),
    [
        ("a.vrp", "cvrp", VRP.replace("EUC_2D", "GEO"), "EDGE_WEIGHT_TYPE: expected EUC_2D"),
        ("a.vrp", "cvrp", VRP.replace("4 3\nDEPOT", "DEPOT"), "expected a number for node 4"),
        ("a.vrp", "cvrp", VRP.replace("3 4\n4 3", "3 4\n4 x"), "a.vrp:16: field 2"),
        ("a.vrp", "cvrp", VRP.replace("CAPACITY : 6\n", ""), "CAPACITY"),
        (
            "a.vrp",
            "cvrp",
            VRP.replace(" 2\n -1", " 2\n 3\n -1"),
            "expected the id of one node, got '2, 3'",
        ),
        (
            "a.vrp",
            "cvrp",
            VRP.replace(" 2\n -1", " 9\n -1"),
            "expected the id of one node, got '9'",
        ),
        ("a.oplib", "orienteering", OP.replace(": 20", ": -20"), "expected a limit of 0 or more"),
        ("a.vrp", "cvrp", VRP.replace("3 4\n4 3", "3 7\n4 3"), "more than the capacity"),
        ("a.vrp", "cvrp", VRP.replace("3 6 8", "3 6 3e200"), "a.vrp: EUC_2D: expected coordinates"),
        ("a.vrp", "cvrp", VRP.replace("3 6 8", "3 6 3e300"), 'element 3, "position 2": expected'),
        ("a.oplib", "orienteering", OP.replace("2 7", "2 -7"), "expected prizes of 0 or more"),
        ("a.vrp", "cvrp", VRP.replace(": 6", ": -6"), "expected a capacity of 0 or more, got -6"),
        (
            "a.vrp",
            "cvrp",
            VRP.replace(" 2\n -1", " -1"),
            "expected the id of one node, got none",
        ),
        ("a.vrp", "cvrp", VRP.replace("EUC_2D", "EXPLICIT"), "got 'EXPLICIT'"),
        ("a.vrp", "cvrp", VRP.replace("CAP", "DISTANCE : 9\nCAP"), "a.vrp:6: DISTANCE: routes of"),
        ("a.oplib", "orienteering", OP.replace("OP\n", "TSP\n"), "TYPE"),
        (
            "a.jsp",
            "job-shop",
            FT06.replace("6 6", "7 6"),
            "a.jsp:2: expected 7 jobs below this line, got 6",
        ),
        (
            "a.jsp",
            "job-shop",
            "2 2\n3 2\n2 1\n1 2\n2 1\n",
            "2 jobs below this line, got 4; times and",
        ),
        (
            "a.jsp",
            "job-shop",
            "2 2 84 39\nTimes\n",
            "a.jsp:1: expected two numbers, of jobs and of",
        ),
        ("a.jsp", "job-shop", FT06.replace("6 6", "0 6"), "a.jsp:2: expected at least one job"),
        ("a.jsp", "job-shop", FT06.replace("2 9 1 3", "2 9 6 3"), "a.jsp:7: machine: expected 0"),
        ("a.jsp", "job-shop", FT06.replace("2 9 1 3", "2 9 1"), "a.jsp:7: expected pairs"),
        ("a.jsp", "cvrp", FT06, "files are for task job-shop"),
        ("a.txt", "job-shop", FT06[7:], "the extension sets the format, which may also be .jsp"),
        (
            "a.csv",
            "knapsack",
            "weight,value\n3,5\n",
            "expected 3 numeric columns (weight, value, capacity) and any number of others, got 2",
        ),
        (
            "a.csv",
            "knapsack",
            "value,weight,capacity\n3,5,6\n",
            "a.csv:1: expected the columns weight, value, capacity in this order, got value, weigh",
        ),
        (
            "a.csv",
            "knapsack",
            "weight,value,capacity\n3,5,6\n4,6,7\n2,3,6\n",
            "a.csv: capacity: expected the same number in all elements, got 6 and 7",
        ),
    ],
)
def test_refuses_malformed_files(name, task, text, complaint, tmp_path):
    with pytest.raises(InputError, match=re.escape(complaint)):
        read(tmp_path, name, text, task)


@pytest.mark.parametrize(("name", "extension"), [("cvrp", "vrp"), ("orienteering", "oplib")])
def test_refuses_to_write_distances_that_are_not_rounded(tmp_path, name, extension):
    task = tasks.get(name)
    (inputs,) = task.sample(np.random.default_rng(0), 1, 4)
    with pytest.raises(InputError, match=r"file of TYPE \w+ are whole numbers.* write to \.jsonl"):
        formats.write(str(tmp_path / f"a.{extension}"), [Example(inputs, source="here")], task)


@pytest.mark.parametrize(
    ("name", "text", "task"),
    [("a.vrp", VRP, "cvrp"), ("a.oplib", OP, "orienteering"), ("a.jsp", FT06, "job-shop")],
)
def test_refuses_to_write_an_answer_that_the_file_would_lose(name, text, task, tmp_path):
    example = read(tmp_path, name, text, task).replace(outputs=np.array([1]))
    with pytest.raises(InputError, match=r"file would lose the answer; write to \.jsonl, "):
        formats.write(str(tmp_path / f"again-{name}"), [example], tasks.get(task))
    assert not (tmp_path / f"again-{name}").exists()


def test_a_table_may_lack_optional_columns_and_have_ids(tmp_path):
    rows = "id,x,y,demand,capacity\n7,0,0,0,9\n8,1,2,4,9\n9,3,1,5,9\n"
    example = read(tmp_path, "a.csv", rows, "cvrp")
    expected = [[0, 0, 0, 9, 0], [1, 2, 4, 9, 0], [3, 1, 5, 9, 0]]
    np.testing.assert_array_equal(example.inputs, expected)
    bare = "\n".join(",".join(map(str, row)) for row in expected)
    np.testing.assert_array_equal(read(tmp_path, "b.csv", bare, "cvrp").inputs, expected)


def test_warns_of_columns_with_other_names(tmp_path):
    with pytest.warns(AmbiguousInputWarning, match="profit, size, capacity are read as weight, va"):
        read(tmp_path, "a.csv", "profit,size,capacity\n3,5,6\n4,6,6\n", "knapsack")


def test_other_programs_write_the_depot_and_the_end_of_its_list_in_a_line(tmp_path):
    expected = read(tmp_path, "a.vrp", VRP, "cvrp").inputs
    text = VRP.replace(" 2\n -1", " 2 -1").replace("CAP", "EDGE_WEIGHT_FORMAT : FUNCTION\nCAP")
    found = read(tmp_path, "b.vrp", text, "cvrp").inputs
    np.testing.assert_array_equal(found, expected)
