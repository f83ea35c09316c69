"""`ptrnet label`, and pictures of answers that no network gave."""

import json
import subprocess
import sys

import pytest

VRP = (
    "NAME : a\nTYPE : CVRP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 2\n"
    "NODE_COORD_SECTION\n1 0 0\n2 0 3\n3 4 3\n4 4 0\n"
    "DEMAND_SECTION\n1 0\n2 1\n3 1\n4 2\nDEPOT_SECTION\n1\n-1\nEOF\n"
)
OPLIB = (
    "NAME : a\nTYPE : OP\nDIMENSION : 4\nCOST_LIMIT : 12\nEDGE_WEIGHT_TYPE : EUC_2D\n"
    "NODE_COORD_SECTION\n1 0 0\n2 0 3\n3 4 3\n4 4 0\n"
    "NODE_SCORE_SECTION\n1 0\n2 1\n3 2\n4 2\nDEPOT_SECTION\n1\n-1\nEOF\n"
)
TSP = (
    "NAME : a\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
    "1 0 0\n2 30 40\n3 30 0\n4 0 40\nEOF\n"
)
KNAPSACK = json.dumps({"weight": [3, 4, 2], "value": [5, 6, 3], "capacity": 6}) + "\n"
SQUARE = "x,y\n0,0\n4,0\n4,3\n0,3\n2,1\n"
POINTS = '{"inputs": [[0, 0], [4, 0], [4, 3], [0, 3], [2, 1]]}\n'
# Each answer's cost follows by hand: 3 + 4 + 5 and 4 + 4; prizes 2 + 2 within 5 + 3 + 4; a machine
# that is busy for 2 + 3; the sides of a rectangle; and the items of weights 4 and 2.
FILES = {
    "a.vrp": ("", VRP, "cvrp of 4 elements, answered by pyvrp, cost 20"),
    "a.oplib": ("", OPLIB, "orienteering of 4 elements, answered by best-tour, cost -4, length 12"),
    "a.jsp": ("", "2 1\n0 2\n0 3\n", "job-shop of 2 elements, answered by tabu-search, cost 5"),
    "a.tsp": ("", TSP, "tsp of 4 elements, answered by exact, length 140"),
    "a.csv": ("tsp", SQUARE[: -len("2,1\n")], "tsp of 4 elements, answered by exact, length 14"),
    "b.csv": ("hull", SQUARE, "hull of 5 elements, answered by monotone-chain"),
    "c.jsonl": ("hull", POINTS, "hull of 5 elements, answered by monotone-chain"),
    "d.jsonl": ("delaunay", POINTS, "delaunay of 5 elements, answered by qhull"),
    "e.jsonl": (
        "knapsack",
        KNAPSACK,
        "knapsack of 3 elements, answered by dynamic-programming, cost -9",
    ),
    "f.txt": ("sort", "0.3 0.1 0.2\n", "sort of 3 elements, answered by argsort"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder with all `FILES`."""
    monkeypatch.chdir(tmp_path)
    for name, (_, text, _) in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_label_replaces_answers(tmp_path, ptrnet, points):
    bare = tmp_path / "bare.txt"
    bare.write_text("".join(f"{x.split(' output ')[0]}\n" for x in points.read_text().splitlines()))
    labelled = tmp_path / "labelled.txt"
    arguments = ("--labeller", "monotone-chain", "--output", labelled)
    assert ptrnet("label", "hull", bare, *arguments)[0] == 0
    assert labelled.read_bytes() == points.read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_labels_are_drawn_and_written_as_without_a_picture(folder, ptrnet, name):
    if name == "a.vrp":
        pytest.importorskip("pyvrp")
    task, _, title = FILES[name]
    words = ["label", *task.split(), name, "--jobs", "1"]
    code, out, err = ptrnet(*words)
    assert code == 0, err
    assert ptrnet(*words, "--plot", "p.svg") == (0, out, err)
    picture = (folder / "p.svg").read_text()
    assert f">{title}" in picture and "network" not in picture


def test_the_answer_of_the_file_is_compared_with_the_label(folder, ptrnet):
    """Along the diagonals, the tour has 50 + 40 + 50 + 40."""
    (folder / "a.tour").write_text("TYPE : TOUR\nTOUR_SECTION\n1 2 3 4 -1\nEOF\n")
    assert ptrnet("label", "a.tour", "--labeller", "held-karp", "--plot", "p.svg")[0] == 0
    assert "known answer 180, gap -22.22%" in (folder / "p.svg").read_text()
    assert ptrnet("label", "a.tour", "--open", "--plot", "q.svg")[0] == 0  # another question
    assert "known answer" not in (folder / "q.svg").read_text()


def test_answers_of_files_are_drawn_by_convert(folder, ptrnet):
    pytest.importorskip("pyvrp")
    tour = "TYPE : TOUR\nTOUR_SECTION\n1 2 3 4 -1\nEOF\n"
    (folder / "a.tour").write_text(tour)
    triangle = '{"inputs": [[0, 0], [3, 4], [3, 0]], "outputs": [2, 0, 1]}\n'
    (folder / "g.jsonl").write_text(triangle.replace("3", "6") + triangle)
    assert ptrnet("label", "a.vrp", "--output", "a.sol")[0] == 0
    for words, title in (
        ("a.tour", "tsp of 4 elements, length 180"),
        ("a.tour a.jsonl", "tsp of 4 elements, length 180"),
        ("a.sol", "cvrp of 4 elements, cost 20"),
        ("a.vrp", "cvrp of 4 elements, cost 20"),
        ("g.jsonl --task hull", "hull of 3 elements"),
        ("g.jsonl --task tsp --index 1", "tsp of 3 elements, length 12"),
    ):
        assert ptrnet("convert", *words.split(), "--plot", "p.svg") == (0, "", "")
        assert f">{title}<" in (folder / "p.svg").read_text()
        (folder / "p.svg").unlink()
    assert json.loads((folder / "a.jsonl").read_text())["outputs"] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            "label b.csv --plot p.svg",
            "expected TASK FILE; got: b.csv; TASK is one of delaunay, hull",
        ),
        ("label --plot p.svg", "expected TASK FILE; got: nothing"),
        ("label hull b.csv --plot p.svg --index 1", "--index: expected 0 to 0, got 1"),
        ("label hull b.csv --plot p.gif", "p.gif: expected a picture's name"),
        ("label tsp m.csv --plot p.svg", "m.csv: has distances and no coordinates"),
        ("label tsp b.csv --plot p.svg --output a.tour", "would round every distance"),
        ("convert a.vrp", "expected OUT, the file to write, or --plot; got: a.vrp"),
        ("convert a.tsp --plot p.svg", "use: ptrnet label tsp a.tsp --plot p.svg"),
        ("convert c.jsonl --plot p.svg", "the format of c.jsonl does not tell it"),
        ("convert c.jsonl --task hull --plot p.svg --index 3", "expected 0 to 0, got 3"),
        ("convert - o.txt --task hull --plot p.svg", "expected a file, got standard input"),
        ("convert a.csv --set-id x --plot p.svg", "use ptrnet solve --model MODEL a.csv"),
    ],
)
def test_pictures_are_refused_in_one_line_with_nothing_written(
    folder, ptrnet, refused, words, complaint
):
    (folder / "m.csv").write_text("0,1,2\n1,0,3\n2,3,0\n")
    before = sorted(folder.iterdir())
    refused(ptrnet(*words.split()), complaint)
    assert sorted(folder.iterdir()) == before


def test_a_picture_of_a_label_needs_no_network(folder):
    program = (
        "import sys; from ptrnet.cli import run; "
        "code = run(sys.argv[1:]); sys.exit(code or 3 * ('torch' in sys.modules))"
    )
    words = ["label", "hull", "b.csv", "--jobs", "1", "--plot", "p.png"]
    subprocess.run([sys.executable, "-c", program, *words], check=True)
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
