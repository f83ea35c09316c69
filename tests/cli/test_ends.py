"""`--start`, `--end` and `--open` of `ptrnet label` and `ptrnet solve`."""

import json

import pytest

CITIES = (
    "NAME : square\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
    "10 0 0\n20 30 40\n30 30 0\n40 0 40\nEOF\n"
)


@pytest.fixture
def square(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "square.tsp").write_text(CITIES)
    (tmp_path / "a.txt").write_text("0 0 30 40 30 0 0 40\n")
    return tmp_path


def test_labels_of_a_tsplib_file_go_by_its_ids(square, ptrnet):
    """Corner to corner: 30 along a side, 50 diagonally, 30 along a side; 50 back if closed."""
    ends = ["--start", "20", "--end", "10"]
    assert ptrnet("label", "tsp", "square.tsp", *ends, "--open", "--output", "a.tour")[0] == 0
    assert (square / "a.tour").read_text() == (
        "NAME : square\nCOMMENT : open path, length 110\nTYPE : TOUR\nDIMENSION : 4\n"
        "TOUR_SECTION\n20\n40\n30\n10\n-1\nEOF\n"
    )
    _, out, _ = ptrnet("label", "tsp", "square.tsp", *ends)
    assert "COMMENT : length 160\n" in out and "\n20\n40\n30\n10\n-1\n" in out


@pytest.mark.parametrize("verb", ["label", "solve"])
def test_ends_in_other_files_are_0_based(square, ptrnet, verb):
    code, out, _ = ptrnet(verb, "tsp", "a.txt", "--start", "1", "--end", "0", "--open")
    assert code == 0 and out.split("output ")[1] == "2 4 3 1\n"
    code, out, _ = ptrnet(verb, "tsp", "a.txt", "--start", "2")
    assert code == 0 and out.split("output ")[1] == "3 2 4 1 3\n"


def test_lengths_of_open_paths_have_no_way_back(square, ptrnet):
    options = ["--start", "20", "--end", "10", "--json"]
    for extra, length in ((["--open"], 110), ([], 160)):
        code, out, _ = ptrnet("solve", "tsp", "square.tsp", *options, *extra)
        (answer,) = json.loads(out)["answers"]
        assert code == 0 and (answer["outputs"], answer["length"]) == ([1, 3, 2, 0], length)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("label hull a.txt --start 0", "start, end and open need task tsp, got hull"),
        ("label tsp square.tsp --start 1", "square.tsp: start: expected an id of the file, got 1"),
        ("solve tsp a.txt --end 4", "a.txt:1: end: expected 0 to 3, got 4"),
        ("solve tsp a.txt --open --free", "start, end and open need constrained decoding"),
    ],
)
def test_refused_in_one_line_with_nothing_written(square, ptrnet, words, complaint):
    before = sorted(square.iterdir())
    outcome = ptrnet(*words.split(), "--output", "b.jsonl")
    assert outcome == (2, "", f"ptrnet: {complaint}\n")
    assert sorted(square.iterdir()) == before


def test_a_picture_of_a_path_has_no_way_back(square, ptrnet):
    assert ptrnet("solve", "tsp", "a.txt", "--open", "--plot", "a.svg", "--output", "b.txt")[0] == 0
    assert (square / "a.svg").exists()
