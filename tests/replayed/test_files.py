"""Files that other programs refused, misread or overwrote, through the command line."""

import gzip
import json
import os
import re
import threading

import pytest

from ptrnet import tasks
from ptrnet.cli import run
from ptrnet.data import formats
from ptrnet.metrics import summary

LINE = '{"inputs": [[0, 0], [1, 0], [0, 1], [0.2, 0.2]]}'
HULL = [0, 1, 2]
TABLE = "order,price,colour,bought\nA,3.5,red,0\nA,2,green,1\nB,1,green,1\nB,4,red,0\n"
COLUMNS = ["--set-id", "order", "--chosen", "bought"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ptrnet(here, capsys):
    """Return a function from arguments to (exit code, standard output, standard error)."""

    def call(*arguments):
        code = run([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def is_refused(outcome, *words):
    """Whether a command ended with exit code 2 and one line that has these words."""
    code, out, err = outcome
    assert (code, out, err.count("\n")) == (2, "", 1), outcome
    return all(word in err for word in words)


# ---- Lines of JSON.


@pytest.mark.parametrize("mark", ["\u2028", "\u0085", "\u000b", "\u001c"], ids=ascii)
def test_only_a_line_feed_ends_a_line(ptrnet, here, mark):
    """Python: `str.splitlines` also cuts at eight other characters, in .csv files as well."""
    (here / "a.jsonl").write_text(
        f'{LINE[:-1]}, "name": {json.dumps(f"a{mark}b", ensure_ascii=mark < " ")}}}\n'
    )
    code, out, _ = ptrnet("label", "hull", "a.jsonl")
    assert code == 0 and json.loads(out)["name"] == f"a{mark}b"
    (here / "t.csv").write_text(TABLE.replace("red", f"r{mark}ed"))
    assert ptrnet("convert", "t.csv", "t.jsonl", *COLUMNS)[0] == 0
    assert (
        json.loads((here / "t.jsonl").read_text().split("\n")[0])["inputs"][0]["colour"]
        == f"r{mark}ed"
    )


OTHER_BYTES = {
    "gzip: a compressed file under another name": gzip.compress(LINE.encode()),
    "Excel: Unicode text": LINE.encode("utf-16"),
    "DOS: an end mark": f"{LINE}\n\x1a".encode(),
    "ext4: zeros after a crash": f"{LINE}\n".encode() + bytes(20),
}


@pytest.mark.parametrize("content", [pytest.param(b, id=seen) for seen, b in OTHER_BYTES.items()])
def test_other_bytes_are_refused_in_one_line(ptrnet, here, content):
    (here / "a.jsonl").write_bytes(content)
    assert is_refused(ptrnet("label", "hull", "a.jsonl", "--output", "b.jsonl"), "a.jsonl:")
    assert not (here / "b.jsonl").exists()


def test_a_value_that_parquet_cannot_hold_is_named_by_the_users_file(ptrnet, here):
    """Pyarrow: a column of numbers and texts. The message named a file of the job's own."""
    rows = [{**json.loads(LINE), "id": 1}, {**json.loads(LINE), "id": "a"}]
    (here / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = ptrnet("label", "hull", "a.jsonl", "--output", "b.parquet")
    assert is_refused(outcome, "ptrnet: b.parquet: row 1 or after it: ", '"id": does not fit')
    assert os.listdir(here) == ["a.jsonl"]  # noqa: PTH208


# ---- Paths.


@pytest.mark.parametrize("target", ["b.jsonl", "none/b.jsonl"])
def test_an_output_that_leads_nowhere_is_refused_before_anything_is_computed(
    ptrnet, here, target, monkeypatch
):
    """GNU coreutils: a link to itself, or into a missing folder."""
    (here / "a.jsonl").write_text(LINE)
    (here / "b.jsonl").symlink_to(target)
    monkeypatch.setattr("ptrnet.run.ordered_map", None)
    outcome = ptrnet("label", "hull", "a.jsonl", "--output", "b.jsonl")
    assert is_refused(outcome, "b.jsonl: cannot be written: ")
    assert sorted(os.listdir(here)) == ["a.jsonl", "b.jsonl"]  # noqa: PTH208


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_the_input_may_be_replaced_through_a_link(ptrnet, here, link):
    """Sort and sed: the input was emptied before it was read."""
    (here / "a.jsonl").write_text(LINE)
    link("a.jsonl", "b.jsonl")
    assert ptrnet("label", "hull", "a.jsonl", "--output", "b.jsonl")[0] == 0
    assert json.loads((here / "b.jsonl").read_text())["outputs"] == HULL


@pytest.mark.parametrize("name", ["100%.jsonl", "{x}.jsonl", "[b].jsonl", "a\nb.jsonl", "é.JSONL"])
def test_names_of_files_are_no_patterns(ptrnet, here, name):
    """Hydra and Dask: braces, brackets and percent signs were filled in."""
    (here / name).write_text(LINE)
    assert ptrnet("label", "hull", name, "--output", f"out-{name}")[0] == 0
    assert json.loads((here / f"out-{name}").read_text())["outputs"] == HULL


def test_an_input_may_be_a_fifo(ptrnet, here):
    """Pandas: a file was opened twice, and the second time waited forever."""
    os.mkfifo("a.jsonl")
    writing = threading.Thread(target=(here / "a.jsonl").write_text, args=[LINE], daemon=True)
    writing.start()
    code, out, _ = ptrnet("label", "hull", "a.jsonl")
    writing.join(10)
    assert code == 0 and json.loads(out)["outputs"] == HULL


# ---- Tables.


def test_a_long_cell_is_named_as_such(ptrnet, here):
    """Python: `csv` has a limit of 131,072 characters, which a quote without end soon exceeds."""
    (here / "t.csv").write_text(TABLE.replace("green", "g" * 131_073, 1))
    outcome = ptrnet("convert", "t.csv", "t.jsonl", *COLUMNS)
    assert is_refused(outcome, "t.csv:3: a cell has more than 131,072 characters")


def test_answers_replace_no_column(ptrnet, here):
    """Ptrnet: `--chosen price` replaced the prices without a word."""
    (here / "t.csv").write_text(TABLE)
    options = ["--steps", 1, "--valid-batches", 0, "--hidden-size", 4, "--ensemble", 1]
    assert ptrnet("train", "--data", "t.csv", *COLUMNS, *options, "--output", "m")[0] == 0
    given = ["solve", "--model", "m", "t.csv", "--set-id", "order", "--output", "out.csv"]
    for name in ("price", "order", "colour"):
        for role in ("--chosen", "--probability"):
            assert is_refused(ptrnet(*given, role, name), f't.csv: has a column "{name}" already')
    assert not (here / "out.csv").exists()


# ---- Routes and tours with a depot.

VRP = """TYPE : CVRP
DIMENSION : 3
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 5
NODE_COORD_SECTION
1 0 0
2 30 0
3 10.4 40
DEMAND_SECTION
1 0
2 2
3 3
DEPOT_SECTION
1
-1
EOF
"""
OP = """TYPE : OP
DIMENSION : 4
COST_LIMIT : {limit}
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 30 0
3 30 40
4 0 400
NODE_SCORE_SECTION
1 1
2 1
3 1
4 1
DEPOT_SECTION
1
-1
EOF
"""


@pytest.mark.parametrize(("limit", "cost"), [(120, -3), (119, -2), ("1e19", -4), ("3e200", -4)])
@pytest.mark.parametrize("labeller", ["best-tour", "circuit", "pyvrp-prizes"])
def test_the_score_of_a_depot_is_collected_within_any_limit(ptrnet, here, labeller, limit, cost):
    """OPLib: the first, second and fourth generation give the depot a score, as here.

    The tour of places 1 to 3 is 30 + 40 + 50 long. A limit of 1e19 does not fit into 64 bits.
    """
    if labeller != "best-tour":
        pytest.importorskip("ortools" if labeller == "circuit" else "pyvrp")
    (here / "a.oplib").write_text(OP.format(limit=limit))
    words = "label", "orienteering", "a.oplib", "--labeller", labeller, "--output", "b.jsonl"
    assert ptrnet(*words) == (0, "", "")
    task = tasks.get("orienteering")
    (example,) = formats.read("b.jsonl", task)
    assert summary.answer_stats(task, example)["cost"] == cost


SOLUTIONS = {
    "VRPLIB: a route without customers": "Route #1: 1 2\nRoute #2:\nCost 121\n",
    "PyVRP: no number sign": "Route 1: 1 2\ncost 121.0",
    "HGS-CVRP: Windows, and a mark": "\ufeffRoute #1: 1 2\r\nCost 121\r\n",
    "CVRPLIB: the cost comes first": "Cost : 121\n  route  #1 : 1   2 \n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=seen) for seen, text in SOLUTIONS.items()])
def test_solutions_are_read(ptrnet, here, text):
    """The way is 30 to customer 1, 45 (44.54) to customer 2, and 41 (41.33) back: 116 (115.87)."""
    (here / "a.vrp").write_text(VRP)
    (here / "a.sol").write_bytes(text.replace("121", "116").encode())
    assert ptrnet("convert", "a.sol", "b.jsonl", "--task", "cvrp") == (0, "", "")
    assert json.loads((here / "b.jsonl").read_text())["outputs"][:2] == [1, 2]


@pytest.mark.parametrize("cost", ["115.87", "115", "121"])
def test_a_cost_that_is_not_that_of_the_routes_is_reported(ptrnet, here, cost):
    """CVRPLIB: costs of the sets CMT, Golden and Li are of distances that are not rounded."""
    (here / "a.vrp").write_text(VRP)
    (here / "a.sol").write_text(f"Route #1: 1 2\nCost {cost}\n")
    code, _, err = ptrnet("evaluate", "cvrp", "a.sol")
    said = f"a.sol:2: Cost {cost}: the routes cost 116, or 115.87 if distances are not rounded"
    assert code == 0 and err.count(said) == 1


@pytest.mark.parametrize(("name", "text"), [("a.vrp", VRP), ("a.oplib", OP.format(limit=1.4))])
def test_distances_that_are_rounded_to_0_or_1_are_reported(ptrnet, here, name, text):
    """PyVRP: coordinates in degrees."""
    small = re.sub(
        r"(?m)^(\d) ([\d.]+) ([\d.]+)$",
        lambda m: f"{m[1]} {float(m[2]) / 1000} {float(m[3]) / 1000}",
        text,
    )
    (here / name).write_text(small)
    task = "cvrp" if name == "a.vrp" else "orienteering"
    code, _, err = ptrnet("solve", task, name)
    assert code == 0 and re.search(f"{name}: EUC_2D rounds distances to whole numbers, and", err)


def test_coordinates_that_distances_cannot_hold_are_refused_in_one_line(ptrnet, here):
    """PyVRP: coordinates of 3e200 gave warnings of NumPy and a `KeyError`."""
    (here / "a.vrp").write_text(VRP.replace("3 10.4 40", "3 3e200 40"))
    for command in ("label", "solve"):
        assert is_refused(
            ptrnet(command, "cvrp", "a.vrp"), "coordinates of at most 1e+10, got 3e+200"
        )
    exact = {"position": [[0, 0], [3e200, 0], [0, 3e200]], "demand": [0, 1, 1], "capacity": 2}
    (here / "a.jsonl").write_text(json.dumps(exact))
    pytest.importorskip("pyvrp")
    code, out, err = ptrnet("label", "cvrp", "a.jsonl")
    assert (code, err) == (0, "") and sorted(json.loads(out)["outputs"]) == [1, 2]
