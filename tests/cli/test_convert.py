"""`ptrnet convert`, and TSPLIB's files in the other verbs."""

import json

import pytest

SQUARE = (
    "NAME : square\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
    "1 0 0\n2 30 40\n3 30 0\n4 0 40\nEOF\n"
)
TOUR = "TYPE : TOUR\nTOUR_SECTION\n1 3 2 4 -1\nEOF\n"
LINE = (
    b'{"inputs": [[0.0, 0.0], [30.0, 40.0], [30.0, 0.0], [0.0, 40.0]], '
    b'"outputs": [0, 2, 1, 3], "distance": "EUC_2D"}\n'
)


@pytest.fixture
def square(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "square.tsp").write_text(SQUARE)
    (tmp_path / "square.opt.tour").write_text(TOUR)
    return tmp_path


def test_tsplib_to_jsonl_and_parquet_and_back(square, ptrnet):
    assert ptrnet("convert", "square.opt.tour", "a.jsonl") == (0, "", "")
    assert (square / "a.jsonl").read_bytes() == LINE
    assert ptrnet("convert", "a.jsonl", "a.parquet", "--task", "tsp") == (0, "", "")
    assert ptrnet("convert", "a.parquet", "b.jsonl", "--task", "tsp") == (0, "", "")
    assert (square / "b.jsonl").read_bytes() == LINE
    assert ptrnet("convert", "square.tsp", "a.tsp") == (0, "", "")
    assert ptrnet("convert", "b.jsonl", "a.tour") == (0, "", "")
    assert (square / "a.tour").read_text() == (
        "NAME : square\nCOMMENT : length 140\nTYPE : TOUR\nDIMENSION : 4\nTOUR_SECTION\n"
        "1\n3\n2\n4\n-1\nEOF\n"
    )


def test_standard_streams_are_txt(square, ptrnet, points):
    code, out, _ = ptrnet("convert", points, "-", "--task", "hull")
    assert code == 0 and out == points.read_text()


def test_a_tour_uses_the_ids_of_the_tsp_file_next_to_it(square, ptrnet):
    ids = zip((1, 2, 3, 4), (40, 7, 12, 0), strict=True)
    text = SQUARE
    for old, new in ids:
        text = text.replace(f"\n{old} ", f"\n{new} ")
    (square / "a.tsp").write_text(text)
    (square / "a.jsonl").write_bytes(LINE)
    assert ptrnet("convert", "a.jsonl", "a.tour")[0] == 0
    assert "\n40\n12\n7\n0\n-1\n" in (square / "a.tour").read_text()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "a.jsonl a.parquet",
            "expected --task, one of delaunay, hull, reading-order, sort, tsp, cvrp, job-shop, "
            "knapsack, orienteering: the formats of a.jsonl and a.parquet do not tell it",
        ),
        (
            "a.jsonl a.xls",
            "unknown file format 'xls': save the sheet as .csv",
        ),
        ("a.jsonl no/a.tour", "no/a.tour: cannot be written: there is no folder no"),
        (
            "square.tsp a.jsonl --task hull",
            "square.tsp: .tsp files are for task tsp, not for hull",
        ),
        (
            "a.jsonl a.tsp",
            "a.jsonl:1: a .tsp file would lose the answer; write to .jsonl, .parquet or .tour",
        ),
        ("plain.jsonl a.csv --task tsp", "plain.jsonl:1: a .csv file would lose the answer"),
        ("square.tsp a.txt", "square.tsp: a .txt file cannot say that distances are EUC_2D"),
        ("a.jsonl b.tour", "b.tour: expected its cities in b.tsp"),
        ("other.jsonl square.tour", "square.tsp holds other cities than other.jsonl:1"),
        ("square.tsp square.tour", "square.tsp: has no answer"),
        ("skips.tour b.jsonl", "skips.tour:3: the tour leaves out city 4"),
        ("two.jsonl a.tsp", "a .tsp file holds one instance"),
    ],
)
def test_refused_in_one_line_with_nothing_written(square, ptrnet, refused, line, words):
    (square / "a.jsonl").write_bytes(LINE)
    (square / "other.jsonl").write_bytes(LINE.replace(b"40.0", b"40.5"))
    (square / "plain.jsonl").write_bytes(LINE.replace(b', "distance": "EUC_2D"', b""))
    (square / "two.jsonl").write_bytes(LINE.replace(b'"outputs": [0, 2, 1, 3], ', b"") * 2)
    (square / "skips.tsp").write_text(SQUARE)
    (square / "skips.tour").write_text("TOUR_SECTION\n1 2 3\n-1\n")
    before = sorted(square.iterdir())
    refused(ptrnet("convert", *line.split()), words)
    assert sorted(square.iterdir()) == before


def test_solve_and_label_write_a_tour_for_a_tsp(square, ptrnet, small):
    small("tsp", seed=1, scale=8.0).save_pretrained(square / "model")
    code, out, _ = ptrnet("solve", "tsp", "square.tsp", "--model", "model")
    assert code == 0 and out.startswith("NAME : square\nCOMMENT : length 1")
    assert ptrnet("solve", "square.tsp", "--model", "model", "--output", "square.tour")[0] == 0
    assert (square / "square.tour").read_text() == out
    code, out, _ = ptrnet("label", "tsp", "square.tsp")
    assert code == 0 and out.splitlines()[1] == "COMMENT : length 140"
    for verb in (("solve", "--model", "model"), ("label", "tsp")):
        outcome = ptrnet(*verb, "square.tsp", "--output", "a.txt")
        assert outcome[0] == 2 and "cannot say that distances are" in outcome[2]
        assert not list(square.glob("a.txt*"))


def test_evaluate_measures_in_the_files_units(square, ptrnet, small, refused):
    small("tsp", seed=1, scale=8.0).save_pretrained(square / "model")
    code, out, _ = ptrnet("evaluate", "square.opt.tour", "--model", "model", "--json")
    metrics = json.loads(out)["metrics"]
    assert code == 0 and metrics["length"]["value"] in (140, 160, 180)  # the three tours of four
    assert metrics["gap"]["value"] == pytest.approx(metrics["length"]["value"] / 140 - 1)
    outcome = ptrnet("evaluate", "square.tsp", "--model", "model")
    refused(outcome, "square.tsp: has no answer to measure against; ptrnet label tsp")


def test_answers_to_parquet_are_printed_as_jsonl(square, ptrnet, points):
    assert ptrnet("convert", points, "a.parquet", "--task", "hull")[0] == 0
    assert ptrnet("convert", points, "a.jsonl", "--task", "hull")[0] == 0
    printed = ptrnet("label", "hull", "a.parquet")
    assert printed == ptrnet("label", "hull", "a.jsonl") and printed[1].startswith('{"inputs"')
