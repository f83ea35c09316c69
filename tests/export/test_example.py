"""`example.py` of an export gives the solver's answers without PyTorch and without ptrnet."""

import functools
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ptrnet
from ptrnet.errors import InputError
from ptrnet.export import example
from ptrnet.tasks.custom import KINDS
from ptrnet.tasks.schema import Layout
from ptrnet.views import canonicalize_valid
from tests.export.cases import build

STANDARD = {"center": (100.0, -5.0), "spread": (3.0, 0.1)}
CASES = [
    ("ptr-net", "hull", {}, {}),
    ("remaining-ptr-net", "hull", {"closed": True}, {"repeats": True}),
    ("transformer-ptr-net", "hull", {"order": "hilbert"}, {"see_indices": True}),
    ("ptr-net", "sort", {}, {}),
    ("ptr-net", "tsp", {"order": "lexicographic"}, {}),
    ("remaining-ptr-net", "tsp", {}, {}),
    *(
        ("ptr-net", "custom", {**STANDARD, "kind": kind, "longest_share": 1.5}, {})
        for kind in KINDS
    ),
]


@pytest.fixture
def kept_sessions(monkeypatch):
    """Let the example open each graph once, not for every instance, which took half of the time."""
    opened = functools.cache(example.onnxruntime.InferenceSession)
    monkeypatch.setattr(example, "onnxruntime", SimpleNamespace(InferenceSession=opened))


@pytest.mark.usefixtures("kept_sessions")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_answers_equal_those_of_the_solver(case, tmp_path):
    """For points inside and outside the unit square, close together, and for one or two points."""
    solver = build(*case)
    manifest = ptrnet.export_onnx(solver, tmp_path, instances=5)
    assert manifest["constraint"]["obeyed_by_example"]
    rng = np.random.default_rng(5)
    for n in [6] * 3 if solver.model.n else [1, 2, 3, 12]:
        unit = rng.random((n, solver.task.facts.num_features))
        for points in (
            unit,
            unit / 900,
            7 * unit - [3.0],
            unit * 2 + np.resize([99.0, -6.0], unit.shape[1]),
        ):
            expected = solver.solve(points, constrained=True, improve=False)
            answer, scores = example.solve_and_score(points, tmp_path)
            actual = np.array(answer, np.int64)
            if solver.task.name == "custom":
                (expected_scores,) = solver.scores([points])
                np.testing.assert_allclose(scores, expected_scores, rtol=1e-4, atol=1e-4)
            else:
                assert scores is None
            if solver.task.order != "given":  # the solver starts tours at city 0
                actual = canonicalize_valid(solver.task, points, actual)
            assert actual.tolist() == expected.tolist()


def test_triangles_are_listed(tmp_path):
    """The example groups free tokens by three, as the manifest says, without the constraint."""
    solver = build("ptr-net", "delaunay")
    manifest = ptrnet.export_onnx(solver, tmp_path, instances=5)
    assert not manifest["constraint"]["obeyed_by_example"]
    triangles = example.solve(np.random.default_rng(0).random((5, 2)), tmp_path)
    assert triangles and all(1 <= len(triangle) <= 3 for triangle in triangles)


@pytest.mark.usefixtures("kept_sessions")
def test_grown_triangulations_equal_those_of_the_solver(tmp_path):
    solver = ptrnet.load("delaunay")
    manifest = ptrnet.export_onnx(solver, tmp_path, instances=3)
    assert manifest["constraint"]["obeyed_by_example"]
    rng = np.random.default_rng(0)
    for n in (3, 4, 5, 9, 15):
        points = 9 * rng.random((n, 2)) - 3
        triangles = {tuple(sorted(triangle)) for triangle in example.solve(points, tmp_path)}
        expected = map(sorted, solver.solve(points).tolist())
        assert triangles == set(map(tuple, expected))


@pytest.mark.usefixtures("kept_sessions")
def test_nearly_equal_numbers_are_sorted_exactly(tmp_path):
    """After scaling to float32, such numbers are equal, or the model swaps them."""
    ptrnet.export_onnx(ptrnet.load("sort"), tmp_path, instances=3)
    rng = np.random.default_rng(7)
    instances = [np.array([1e9 + 1, 0, 1e9, 5e8, 3, 7e8])]
    for gap in (1e-5, 1e-6, 1e-8, 1e-12, 1e-16):
        numbers = rng.random(10)
        numbers[3] = numbers[8] + gap
        instances += [numbers, numbers[::-1]]
    for numbers in instances:
        exact = sorted(range(len(numbers)), key=lambda k: Fraction(float(numbers[k])))
        assert example.solve(numbers[:, None], tmp_path) == exact


def test_a_clearly_wrong_order_is_not_corrected(tmp_path, monkeypatch):
    ptrnet.export_onnx(ptrnet.load("sort"), tmp_path, instances=3)
    numbers = np.array([[0.5], [0.3], [0.7]])
    assert example.solve(numbers, tmp_path) == [1, 0, 2]
    monkeypatch.setattr(example, "decode", lambda points, folder: ([1, 2, 3], None))
    assert example.solve(numbers, tmp_path) == [0, 1, 2]


@pytest.mark.usefixtures("kept_sessions")
def test_nearly_equal_points_are_warned_of(tmp_path, capsys):
    ptrnet.export_onnx(ptrnet.load("hull"), tmp_path, instances=3)
    points = 50 * np.random.default_rng(3).random((9, 2))
    for gap, is_near in ((1.0, False), (1e-2, False), (1e-4, True), (1e-12, True), (0.0, False)):
        points[6] = points[2] + [gap, 0]
        example.solve(points, tmp_path)
        expected = "elements 2 and 6 are nearly equal: the answer may be wrong there\n"
        assert capsys.readouterr().err == (expected if is_near else "")


def test_the_program_needs_neither_torch_nor_ptrnet(tmp_path):
    ptrnet.export_onnx(ptrnet.load("hull"), tmp_path / "hull-onnx", instances=4)
    points = 100 * np.random.default_rng(2).random((12, 2)) - 50
    np.savetxt(tmp_path / "points.csv", points, delimiter=",", fmt="%.17g")
    code = (
        "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], None, '__main__');"
        "sys.exit(bool({'torch', 'ptrnet'} & sys.modules.keys()))"
    )
    command = [
        sys.executable,
        "-c",
        code,
        tmp_path / "hull-onnx" / "example.py",
        tmp_path / "points.csv",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ptrnet.load("hull").solve(points).tolist()


@pytest.mark.parametrize("unknown", ["refuse", "missing"])
def test_fields_are_read_by_their_names(unknown, tmp_path):
    """The table has its columns in another order, and a column that the model does not read."""
    schema = {"fields": ("price", "colour"), "categories": ((), ("blue", "red"))}
    scaling = {"center": (2.0, 0.0, 0.0), "spread": (3.0, 1.0, 1.0)}
    solver = build("ptr-net", "custom", {**schema, **scaling, "unknown": unknown}, {})
    manifest = ptrnet.export_onnx(solver, tmp_path, instances=3)
    elements = [{"price": 1.5 * k, "colour": ["red", "blue"][k % 2]} for k in range(7)]
    if unknown == "missing":
        elements[3]["colour"] = "pink"
    rows = [f"{e['colour']},x{k},{e['price']}\n" for k, e in enumerate(elements)]
    (tmp_path / "table.csv").write_text("colour,title,price\n" + "".join(rows))
    points = example.read(str(tmp_path / "table.csv"), manifest["inputs"]["fields"])
    assert points.tolist() == solver.task.facts.schema.encode(elements, "").tolist()
    assert example.solve(points, tmp_path) == solver.solve(elements).tolist()


@pytest.mark.parametrize("common", [(), ((4.0, 1.5),)])
def test_missing_and_common_numbers_become_the_features_that_the_model_reads(common, tmp_path):
    features = {"fields": ("price",), "categories": ((),), "filled": ("price",), "common": common}
    marks = [0.0] * (1 + 2 * len(common))
    scaling = {"center": (2.25, *marks), "spread": (3.0, *(1.0 for _ in marks))}
    solver = build("ptr-net", "custom", {**features, **scaling}, {})
    manifest = ptrnet.export_onnx(solver, tmp_path, instances=3)
    cells = ["1.5", "", "n/a", "4", "NaN"]
    (tmp_path / "table.csv").write_text("price,x\n" + "".join(f"{cell},1\n" for cell in cells))
    points = example.read(str(tmp_path / "table.csv"), manifest["inputs"]["fields"])
    expected = solver.task.facts.schema.encode(
        [{"price": c} for c in (1.5, None, None, 4, None)], ""
    )
    assert points.tolist() == expected.tolist()


@pytest.mark.parametrize("missing", ["fill", "refuse"])
def test_unseen_values_become_the_features_that_the_model_reads(missing, tmp_path, capsys):
    schema = {"fields": ("price", "colour", "size"), "categories": ((), ("b", "r"), ("", "L"))}
    scaling = {"center": (2.5, 0.0, 0.0, 0.0, 0.0), "spread": (3.0, *[1.0] * 4)}
    solver = build("ptr-net", "custom", {**schema, **scaling, "missing": missing}, {})
    fields = ptrnet.export_onnx(solver, tmp_path, instances=3)["inputs"]["fields"]
    elements = [(1.5, "r", "L"), (4, "pink", "S"), (2, "pink", ""), (3, "x", "L")]
    gaps = [(None, "b", "L"), (None, "", "")] * (missing == "fill")
    elements = [dict(zip(schema["fields"], e, strict=True)) for e in [*elements, *gaps]]
    rows = [",".join("" if v is None else str(v) for v in e.values()) for e in elements]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["price,colour,size", *rows, ""]))
    points = example.read(str(table), fields)
    assert points.tolist() == solver.task.facts.schema.encode(elements, "").tolist()
    said = "treated as missing, because no training example had it"
    assert capsys.readouterr().err.splitlines() == [
        *[f"{table}: {said}: price: no value (2)"] * (missing == "fill"),
        f"{table}: {said}: colour: pink (2), x (1)" + ", no value (1)" * (missing == "fill"),
        f"{table}: {said}: size: S (1)",
    ]
    for row in (",b,L", "1,,L") if missing == "refuse" else ():
        table.write_text(f"price,colour,size\n{row}\n")
        with pytest.raises((SystemExit, ValueError), match=r"unknown in colour|could not convert"):
            example.read(str(table), fields)


def test_sets_with_other_elements_than_in_training_are_refused(tmp_path):
    """Files with available elements and one option to choose none are answered as by the solver."""
    schema = {"fields": ("price", "none"), "categories": ((), ()), "filled": ("price",)}
    scaling = {"center": (2.0, 0.0, 0.0), "spread": (3.0, 1.0, 1.0)}
    layout = {"layout": str(Layout(available=("can",), outside="none"))}
    solver = build("ptr-net", "custom", {**schema, **scaling, **layout, "kind": "choice"}, {})
    inputs = ptrnet.export_onnx(solver, tmp_path, instances=3)["inputs"]
    names, none = ("price", "none", "can"), (None, 1, 1)
    for rows, complaint in (
        ([(1.5, 0, 1), (4, 0, 1), none], ""),
        ([(1.5, 0, 1), (4, 0, 0), none], "cannot be chosen"),
        ([(1.5, 0, 1), (4, 0, 1)], "choose none"),
        ([(1.5, 0, 1), none, none], "choose none"),
    ):
        cells = [["" if cell is None else str(cell) for cell in row] for row in (names, *rows)]
        (tmp_path / "t.csv").write_text("\n".join(map(",".join, cells)))
        elements = [dict(zip(names, row, strict=True)) for row in rows]
        if complaint:
            with pytest.raises(SystemExit, match=complaint):
                example.read(str(tmp_path / "t.csv"), inputs["fields"], inputs)
            with pytest.raises(InputError, match=complaint):
                solver.scores(elements)
            continue
        points = example.read(str(tmp_path / "t.csv"), inputs["fields"], inputs)
        answer, scores = example.solve_and_score(points, tmp_path)
        assert answer == solver.solve(elements).tolist()
        np.testing.assert_allclose(scores, solver.scores(elements), rtol=1e-4, atol=1e-4)


FIELDS = [
    {"name": name, "categories": texts, "unknown": "refuse", "missing": None, "common": []}
    | {"marks_missing": False}
    for name, texts in (("price", []), ("colour", ["blue", "red"]))
]
POINTS = [[0, 0.5], [1, 0]]
NONE = r"t\.csv: expected an element in each line, got none"


@pytest.mark.parametrize(
    ("fields", "text", "expected"),
    [
        ([], "0,0.5\n1,0\n", POINTS),
        ([], "x,y\n0,0.5\n1,0\n", POINTS),
        ([], "\ufeff0,0.5\n1,0\n", POINTS),
        ([], "\nlongitude, latitude \n\n0,0.5\n1,0\n", POINTS),
        ([], 'name,x,y\noak,0,0.5\n"elm, old",1,0\n', POINTS),
        ([], "0,0.5,oak\n1,0,elm\n", POINTS),
        (FIELDS, "\ufeffprice , colour\r\n 1.5, red\r\n\r\n2,blue \r\n", [[1.5, 0, 1], [2, 1, 0]]),
    ],
)
def test_headers_names_and_the_marks_of_spreadsheets_are_skipped(fields, text, expected, tmp_path):
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert example.read(str(tmp_path / "t.csv"), fields).tolist() == expected


@pytest.mark.parametrize(
    ("fields", "text", "complaint"),
    [
        (FIELDS, "price,colour\n1,pink\n", "unknown in colour: pink"),
        (FIELDS, "price,colour\n1,\n", "unknown in colour: "),
        (FIELDS, "price,colour\nnan,red\n", "expected finite numbers"),
        (FIELDS, "price,colour\n1,red,2\n", "expected a header and rows of 2 columns"),
        (FIELDS, "price,colour\n1,red\n1\n", "expected a header and rows of 2 columns"),
        (FIELDS, "price,colour\n", "expected a header and rows of 2 columns"),
        (FIELDS, "price,color\n1,red\n", "expected one column colour, got price, color"),
        (FIELDS, "price,colour,price\n1,red,2\n", "expected one column price, got"),
        (FIELDS, "\n", NONE),
        ([], "\n", NONE),
        ([], "x,y\n", NONE),
        ([], "0,0\n1,0\nnan,1\n", "expected finite numbers"),
        ([], "0,0\ninf,1\n", "expected finite numbers"),
        ([], "0,0\n#2,0.5\n1,1\n", "#2"),  # a skipped row would move the indices of those below
        ([], "x;y\n52,5;13,4\n48,1;11,6\n", "expected the same number of cells in each line"),
        ([], "id,x,y\n1,0.5,\n2,0.1,\n", "leave out the column of ''"),
        ([], 'zone,x,y\n1,"1,234",567\n2,"2,345",678\n', "leave out the column of '1,234'"),
        ([], "name;x,y\nA;3,5\nB;2,7\n", "leave out the column of 'A;3'"),
        ([], "x,y\n1,2\n3,n/a\n", "expected a number in each row of its column, got 'n/a'"),
        ([], "0,1\n,2\n", "."),
        ([], "0,1\noak,2\n", "."),
        ([], "x,1\n0,2\n", "."),
        ([], "x,y\n0;1\n", "."),
        ([], "0,1\n0\n", "."),
        ([], "1,1_0\n", "."),
        ([], "0,1\n,\n1,0\n", "."),
    ],
)
def test_other_tables_are_refused(fields, text, complaint, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises((SystemExit, ValueError), match=complaint):
        example.read(str(tmp_path / "t.csv"), fields)


def test_too_few_points_are_refused(tmp_path):
    ptrnet.export_onnx(build("ptr-net", "delaunay"), tmp_path / "d", instances=2)
    with pytest.raises(SystemExit, match="expected 3 elements or more"):
        example.solve(np.array(POINTS), tmp_path / "d")


def test_a_cell_that_is_too_long_gives_one_line(tmp_path):
    (tmp_path / "example.py").write_bytes(Path(example.__file__).read_bytes())
    fields = [{**FIELDS[0], "name": "due"}]
    (tmp_path / "manifest.json").write_text(json.dumps({"inputs": {"fields": fields}, "files": {}}))
    (tmp_path / "t.csv").write_text('due\n"' + "1" * 200_000)
    command = [sys.executable, tmp_path / "example.py", tmp_path / "t.csv"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "field larger than field limit" in done.stderr


def test_the_program_says_what_is_wrong_with_its_call_and_its_files(tmp_path):
    ptrnet.export_onnx(build("ptr-net"), tmp_path / "out", instances=2)
    (tmp_path / "t.csv").write_text("x,y\n0,0.5\n1,0\n0.3,1\n")
    command = [sys.executable, tmp_path / "out" / "example.py", "--scores", tmp_path / "t.csv"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "--scores: the model gives no scores of single elements\n"
    step = tmp_path / "out" / "step.onnx"
    step.write_bytes(step.read_bytes()[:200])
    for words, complaint in (
        ([], "expected one file: python example.py points.csv [--scores]"),
        ([str(tmp_path / "t.csv")], f"{step}: damaged: it is not the file that was exported"),
    ):
        command = [sys.executable, str(tmp_path / "out" / "example.py"), *words]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{complaint}\n")
