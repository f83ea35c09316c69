"""TSPLIB's files: published tours have their published lengths, recorded bytes, forms of headers.

Coordinates, optima and optimal tours: TSPLIB95, G. Reinelt, Heidelberg.
"""

import json

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.labels import label_dataset
from ptrnet.metrics.tour import length
from ptrnet.types import Example, Nodes, TourRules

TSP = tasks.get("tsp")

# Distance, length of the shortest tour, coordinates.
INSTANCES = {
    "burma14": (
        "GEO",
        3323,
        "16.47,96.10 16.47,94.44 20.09,92.54 22.39,93.37 25.23,97.24 22.00,96.05 20.47,97.02 "
        "17.20,96.29 16.30,97.38 14.05,98.12 16.53,97.38 21.52,95.59 19.41,97.13 20.09,94.55 ",
    ),
    "ulysses16": (
        "GEO",
        6859,
        "38.24,20.42 39.57,26.15 40.56,25.32 36.26,23.12 33.48,10.54 37.56,12.19 38.42,13.11 "
        "37.52,20.44 41.23,9.10 41.17,13.05 36.08,-5.21 38.47,15.13 38.15,15.35 37.51,15.17 "
        "35.49,14.32 39.36,19.56 ",
    ),
    "ulysses22": (
        "GEO",
        7013,
        "38.24,20.42 39.57,26.15 40.56,25.32 36.26,23.12 33.48,10.54 37.56,12.19 38.42,13.11 "
        "37.52,20.44 41.23,9.10 41.17,13.05 36.08,-5.21 38.47,15.13 38.15,15.35 37.51,15.17 "
        "35.49,14.32 39.36,19.56 38.09,24.36 36.09,23.00 40.44,13.57 40.33,14.15 40.37,14.23 "
        "37.57,22.56 ",
    ),
    "att48": (
        "ATT",
        10628,
        "6734,1453 2233,10 5530,1424 401,841 3082,1644 7608,4458 7573,3716 7265,1268 "
        "6898,1885 1112,2049 5468,2606 5989,2873 4706,2674 4612,2035 6347,2683 6107,669 "
        "7611,5184 7462,3590 7732,4723 5900,3561 4483,3369 6101,1110 5199,2182 1633,2809 "
        "4307,2322 675,1006 7555,4819 7541,3981 3177,756 7352,4506 7545,2801 3245,3305 "
        "6426,3173 4608,1198 23,2216 7248,3779 7762,4595 7392,2244 3484,2829 6271,2135 "
        "4985,140 1916,1569 7280,4899 7509,3239 10,2676 6807,2993 5185,3258 3023,1942 ",
    ),
    "eil51": (
        "EUC_2D",
        426,
        "37,52 49,49 52,64 20,26 40,30 21,47 17,63 31,62 52,33 51,21 42,41 31,32 5,25 12,42 "
        "36,16 52,41 27,23 17,33 13,13 57,58 62,42 42,57 16,57 8,52 7,38 27,68 30,48 43,67 "
        "58,48 58,27 37,69 38,46 46,10 61,33 62,63 63,69 32,22 45,35 59,15 5,6 10,17 21,10 "
        "5,64 30,15 39,10 32,39 25,32 25,55 48,28 56,37 30,40 ",
    ),
    "berlin52": (
        "EUC_2D",
        7542,
        "565,575 25,185 345,750 945,685 845,655 880,660 25,230 525,1000 580,1175 650,1130 "
        "1605,620 1220,580 1465,200 1530,5 845,680 725,370 145,665 415,635 510,875 560,365 "
        "300,465 520,585 480,415 835,625 975,580 1215,245 1320,315 1250,400 660,180 410,250 "
        "420,555 575,665 1150,1160 700,580 685,595 685,610 770,610 795,645 720,635 760,650 "
        "475,960 95,260 875,920 700,500 555,815 830,485 1170,65 830,610 605,625 595,360 "
        "1340,725 1740,245 ",
    ),
}

TOURS = {
    "ulysses16": ("1 14 13 12 7 6 15 5 11 9 10 16 3 2 4 8 "),
    "ulysses22": ("1 14 13 12 7 6 15 5 11 9 10 19 20 21 16 3 2 17 22 4 18 8 "),
    "att48": (
        "1 8 38 31 44 18 7 28 6 37 19 27 17 43 30 36 46 33 20 47 21 32 39 48 5 42 24 10 45 35 "
        "4 26 2 29 34 41 16 22 3 23 14 25 13 11 12 15 40 9 "
    ),
    "eil51": (
        "1 22 8 26 31 28 3 36 35 20 2 29 21 16 50 34 30 9 49 10 39 33 45 15 44 42 40 19 41 13 "
        "25 14 24 43 7 23 48 6 27 51 46 12 47 18 4 17 37 5 38 11 32 "
    ),
    "berlin52": (
        "1 49 32 45 19 41 8 9 10 43 33 51 11 52 14 13 47 26 27 28 12 25 4 6 15 5 24 48 38 37 "
        "40 39 36 35 34 44 46 16 29 50 20 23 30 2 7 42 21 17 3 18 31 22 "
    ),
}


def text_of(name):
    distance, _, coordinates = INSTANCES[name]
    nodes = [point.replace(",", " ") for point in coordinates.split()]
    rows = "".join(f" {k} {node} \n" for k, node in enumerate(nodes, 1))
    return (
        f"NAME: {name}\nTYPE: TSP\nDIMENSION: {len(nodes)}\nEDGE_WEIGHT_TYPE: {distance}\n"
        f"NODE_COORD_SECTION\n{rows}EOF\n"
    )


def read(path, text):
    path.write_text(text)
    (example,) = formats.read(str(path), TSP)
    return example


@pytest.mark.parametrize("name", TOURS)
def test_published_tours_have_the_published_lengths(tmp_path, name):
    (tmp_path / f"{name}.tsp").write_text(text_of(name))
    tour = "\n".join(TOURS[name].split())
    example = read(
        tmp_path / f"{name}.opt.tour",
        f"NAME : {name}\nTYPE : TOUR\nTOUR_SECTION\n{tour}\n-1\nEOF\n",
    )
    assert length(example.inputs, example.outputs, example.distance) == INSTANCES[name][1]
    copy = tmp_path / f"{name}.tour"
    formats.write(str(copy), [example], TSP)
    lines = copy.read_text().splitlines()
    assert lines[1] == f"COMMENT : length {INSTANCES[name][1]}"
    assert lines[5:-2] == TOURS[name].split()


@pytest.mark.parametrize("name", INSTANCES)
def test_exact_labeller_finds_the_published_length(tmp_path, name):
    example = read(tmp_path / f"{name}.tsp", text_of(name))
    (answered,) = label_dataset(TSP, "exact", [example])
    assert length(example.inputs, answered.outputs, example.distance) == INSTANCES[name][1]


PLAIN = (
    b"NAME : a\nTYPE : TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : CEIL_2D\nNODE_COORD_SECTION\n"
    b"1 0.0 0.30000000000000004\n2 -3.5 1e-07\n3 10000000000.0 4.0\nEOF\n"
)
POINTS = np.array([[0.0, 0.30000000000000004], [-3.5, 1e-7], [1e10, 4.0]])


def test_writes_and_reads_recorded_bytes(tmp_path):
    path = tmp_path / "a.tsp"
    example = Example(POINTS, nodes=Nodes("a", [1, 2, 3]), distance="CEIL_2D")
    formats.write(str(path), [example], TSP)
    assert path.read_bytes() == PLAIN
    (copy,) = formats.read(str(path), TSP)
    assert copy.inputs.tolist() == POINTS.tolist()
    assert (copy.distance, copy.nodes, copy.outputs) == ("CEIL_2D", example.nodes, None)
    formats.write(str(path), [example.replace(nodes=None)], TSP)
    assert path.read_bytes() == PLAIN.replace(b"NAME : a", b"NAME : unnamed")


@pytest.mark.parametrize(
    "text",
    [
        "NAME : x\nTYPE : TSP\nDIMENSION : 2\nEDGE_WEIGHT_TYPE : GEO\n"
        "NODE_COORD_SECTION\n1 1 2\n2 3 4\nEOF\n",
        "NAME: x\nTYPE: TSP\nCOMMENT: a: b\nCOMMENT: c\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: GEO\n"
        "EDGE_WEIGHT_FORMAT: FUNCTION \nDISPLAY_DATA_TYPE: COORD_DISPLAY\nNODE_COORD_SECTION\n"
        "   1  1.0       2.00\n   2  3e0       +4.\n\n\n",
        "EDGE_WEIGHT_TYPE:GEO\r\nDIMENSION:2  \r\nTYPE:TSP (M.~Hofmeister)\r\nNAME:x\r\n"
        "NODE_COORD_SECTION :\r\n1\t1\t2\r\n2\t3\t4\r\n EOF\r\nwhat stands behind\r\n",
        "NODE_COORD_SECTION\n1 1 2\n2 3 4\nEDGE_WEIGHT_TYPE : GEO\nDIMENSION : 2\nNAME : x",
    ],
    ids=["plain", "comments", "windows", "keywords behind"],
)
def test_reads_headers_in_any_form(tmp_path, text):
    example = read(tmp_path / "x.tsp", text)
    assert example.inputs.tolist() == [[1, 2], [3, 4]]
    assert (example.distance, example.nodes) == ("GEO", Nodes("x", [1, 2]))


def test_refuses_to_write_examples_that_tsplib_cannot_hold(tmp_path):
    tour = np.array([0, 1, 2])
    plain = Example(POINTS, source="a.csv")
    for extension, example, complaint in [
        (
            "tsp",
            plain,
            "a .tsp file would round every distance to a whole number, in the unit square to 0 or "
            "1; write to .csv, .jsonl, .parquet, .tsv or .txt",
        ),
        (
            "tsp",
            plain.replace(outputs=tour, distance="ATT"),
            "a .tsp file would lose the answer; write to .jsonl, .parquet or .tour",
        ),
        (
            "tour",
            plain.replace(distance="ATT"),
            "has no answer to write to a .tour file",
        ),
        (
            "tour",
            plain.replace(distance="ATT", outputs=tour[:2]),
            "the answer is not a tour: expected each of 3 cities once, got no 3",
        ),
    ]:
        with pytest.raises(InputError) as error:
            formats.write(str(tmp_path / f"a.{extension}"), [example], TSP)
        assert str(error.value) == f"a.csv: {complaint}"
    with pytest.raises(InputError, match=r"a.tour: .tour files are for task tsp, not for hull"):
        formats.check_output(str(tmp_path / "a.tour"), tasks.get("hull"))
    assert not list(tmp_path.iterdir())


UNIT = np.random.default_rng(0).random((20, 2)).tolist()
GEO = """NAME: x\nTYPE: TSP\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: GEO
NODE_COORD_SECTION\n1 52.31 13.24\n2 {} 2.21\nEOF\n"""


def test_warns_of_decimal_degrees(tmp_path):
    """Paris is at 48.86 degrees. GEO would read this as 48 degrees and 86 minutes."""
    path, lines = tmp_path / "a.tsp", tmp_path / "a.jsonl"
    for latitude in (48.51, -48.59, 48):
        path.write_text(GEO.format(latitude))
        assert len(list(formats.read(str(path), TSP))) == 1
    path.write_text(GEO.format(48.86))
    lines.write_text('{"inputs": [[52.31, 13.24], [-48.6, 2.21]], "distance": "GEO"}')
    for name in (path, lines):
        with pytest.warns(
            AmbiguousInputWarning, match=r"a\.[a-z]+: GEO takes .* more than 59 minutes"
        ):
            list(formats.read(str(name), TSP))


@pytest.mark.parametrize(
    ("distance", "points", "doubt"),
    [
        ("EUC_2D", UNIT, r"EUC_2D rounds .* of them become . here, .* by 1000"),
        ("CEIL_2D", UNIT, r"CEIL_2D rounds .* 9\d% of them become 1 here"),
        ("MAX_2D", UNIT, r"MAX_2D rounds .* become . here"),
        ("GEO", [[413, 3], [40, 3]], r"GEO takes .* beyond 90 or 360, such as 413; EUC_2D"),
        ("GEO", [[40, 1480], [40, 3]], r"GEO takes .* such as 1480;"),
        ("GEO", [[40.001, 3], [40.002, 3], [40.003, 3]], r"GEO rounds .* use EUC_2D, in metres"),
    ],
)
def test_warns_of_distances_that_rounding_makes_equal(tmp_path, distance, points, doubt):
    lines = tmp_path / "a.jsonl"
    lines.write_text(json.dumps({"inputs": points, "distance": distance}))
    rows = "".join(f"{k} {x} {y}\n" for k, (x, y) in enumerate(points))
    (tmp_path / "a.tsp").write_text(
        f"DIMENSION: {len(points)}\nEDGE_WEIGHT_TYPE: {distance}\nNODE_COORD_SECTION\n{rows}"
    )
    for path in (lines, tmp_path / "a.tsp"):
        with pytest.warns(AmbiguousInputWarning, match=f"{path.name}: {doubt}"):
            list(formats.read(str(path), TSP))


@pytest.mark.parametrize("points", [[[0, 0], [3, 0], [3, 4]], [[0, 0], [1000, 0], [0, 1000]]])
def test_does_not_warn_of_points_with_equal_distances(tmp_path, points, recwarn):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"inputs": points, "distance": "EUC_2D"}))
    list(formats.read(str(path), TSP))
    assert not recwarn.list


def test_refuses_too_many_nodes_before_the_end_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("ptrnet.data.formats.tsp.LARGEST", 5)
    path = tmp_path / "a.tsp"
    path.write_text("TYPE : TSP\nNODE_COORD_SECTION\n" + "".join(f"{k} 0 0\n" for k in range(9)))
    with pytest.raises(InputError, match=r"a\.tsp:8: expected at most 5 elements$"):
        list(formats.read(str(path), TSP))


ROWS = {  # of cities a, b, c with ab = 1, ac = 2, bc = 3; the diagonal is 9
    "UPPER_ROW": "1 2 3",
    "LOWER_ROW": "1 2 3",
    "UPPER_COL": "1 2 3",
    "LOWER_COL": "1 2 3",
    "UPPER_DIAG_ROW": "9 1 2 9 3 9",
    "LOWER_DIAG_ROW": "9 1 9 2 3 9",
    "UPPER_DIAG_COL": "9 1 9 2 3 9",
    "LOWER_DIAG_COL": "9 1 2 9 3 9",
    "FULL_MATRIX": "9 1 2 1 9 3 2 3 9",
}
MATRIX = (
    "NAME: m\nTYPE: {}\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\n"
    "EDGE_WEIGHT_FORMAT: {}\nEDGE_WEIGHT_SECTION\n{}\nEOF\n"
)


@pytest.mark.parametrize("name", ROWS)
def test_reads_every_format_of_a_matrix(tmp_path, name):
    text = MATRIX.format("TSP", name, ROWS[name].replace(" 2", "\n2"))
    example = read(tmp_path / "m.tsp", text)
    assert example.inputs.tolist() == [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    assert (example.distance, example.nodes) == ("EXPLICIT", Nodes("m", [1, 2, 3]))


def test_reads_triangular_matrices_of_four_cities(tmp_path):
    """Entry i, j is 10 i + j for i < j. From four cities on, rows and columns differ."""
    dist = np.array([[0, 1, 2, 3], [1, 0, 12, 13], [2, 12, 0, 23], [3, 13, 23, 0]])
    for name, entries in {
        "UPPER_ROW": [1, 2, 3, 12, 13, 23],
        "LOWER_COL": [1, 2, 3, 12, 13, 23],
        "LOWER_ROW": [1, 2, 12, 3, 13, 23],
        "UPPER_COL": [1, 2, 12, 3, 13, 23],
        "UPPER_DIAG_COL": [0, 1, 0, 2, 12, 0, 3, 13, 23, 0],
        "LOWER_DIAG_COL": [0, 1, 2, 3, 0, 12, 13, 0, 23, 0],
    }.items():
        text = MATRIX.format("TSP", name, " ".join(map(str, entries))).replace(": 3", ": 4")
        assert (read(tmp_path / "m.tsp", text).inputs == dist).all()


def test_directed_matrices_and_3d_points_survive_a_write_and_a_read(tmp_path):
    text = MATRIX.format("ATSP", "FULL_MATRIX", "0 1 2.5\n4 0 3\n-6 5 0")
    example = read(tmp_path / "m.atsp", text)
    assert example.inputs.tolist() == [[0, 1, 2.5], [4, 0, 3], [-6, 5, 0]]
    copy = tmp_path / "copy.atsp"
    formats.write(str(copy), [example], TSP)
    assert copy.read_text().splitlines()[1:] == [
        "TYPE : ATSP",
        "DIMENSION : 3",
        "EDGE_WEIGHT_TYPE : EXPLICIT",
        "EDGE_WEIGHT_FORMAT : FULL_MATRIX",
        "EDGE_WEIGHT_SECTION",
        "0 1 2.5",
        "4 0 3",
        "-6 5 0",
        "EOF",
    ]
    space = Example(
        np.arange(9.0).reshape(3, 3), distance="MAN_3D", rules=TourRules(fixed=((0, 2),))
    )
    formats.write(str(tmp_path / "s.tsp"), [space], TSP)
    (again,) = formats.read(str(tmp_path / "s.tsp"), TSP)
    assert again.inputs.tolist() == space.inputs.tolist()
    assert (again.distance, again.rules) == ("MAN_3D", space.rules)


def test_warns_of_an_asymmetric_matrix_and_of_ignored_keywords(tmp_path):
    text = MATRIX.format("TSP", "FULL_MATRIX", "0 1 2 4 0 3 6 5 0")
    with pytest.warns(AmbiguousInputWarning, match=r"m.tsp: distances depend on the direction"):
        read(tmp_path / "m.tsp", text)
    text = MATRIX.format("TSP\nDEPOT : 2", "LOWER_ROW", "1 2 3")
    with pytest.warns(AmbiguousInputWarning, match=r"m.tsp:3: DEPOT : 2 is ignored"):
        read(tmp_path / "m.tsp", text)


def test_labels_keep_the_fixed_edges(tmp_path):
    """The fixed edge is a diagonal of the square, which the shortest tour avoids."""
    text = (
        "DIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
        "10 0 0\n20 100 0\n30 100 100\n40 0 100\nFIXED_EDGES_SECTION\n30 10\n-1\nEOF\n"
    )
    example = read(tmp_path / "f.tsp", text)
    assert example.rules.fixed == ((2, 0),)
    (labelled,) = label_dataset(TSP, None, [example])
    assert labelled.outputs.tolist() in ([0, 2, 1, 3], [0, 1, 3, 2], [0, 2, 3, 1], [0, 3, 1, 2])
    assert length(example.inputs, labelled.outputs, "EUC_2D") == 200 + 2 * 141


@pytest.mark.parametrize("name", ["m.tsp", "m.atsp"])
def test_each_tour_of_a_file_is_an_example(tmp_path, name):
    read(tmp_path / name, MATRIX.format("TSP", "LOWER_ROW", "1 2 3"))
    path = tmp_path / "m.opt.tour"
    path.write_text("TYPE : TOUR\nDIMENSION : 3\nTOUR_SECTION\n1 2 3 -1\n3\n1\n2\n-1\n-1\nEOF\n")
    tours = [example.outputs.tolist() for example in formats.read(str(path), TSP)]
    assert tours == [[0, 1, 2], [2, 0, 1]]
