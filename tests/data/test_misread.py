"""Input that was read as something else without a word, each with what is said of it now."""

import contextlib
import json

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import InputError, tasks
from ptrnet.cli import run
from ptrnet.data import formats
from ptrnet.data.dataset import instances_of
from ptrnet.errors import AmbiguousInputWarning
from ptrnet.types import Example

HULL, SORT, TSP = (tasks.get(name) for name in ("hull", "sort", "tsp"))


def read(folder, text, task):
    path = folder / "a.csv"
    path.write_text("\n".join(text.split(" / ")) + "\n", encoding="utf-8")
    (example,) = formats.read(str(path), task)
    return example


@pytest.mark.parametrize(
    "text",
    [
        'zone,x,y / 1,"1,234",567 / 2,"2,345",678 / 3,"3,456",1',
        'zone,x,y / 1,1,567 / 2,"2,345",678 / 3,3,1 / 4,7,8',
        "zone,x,y / 1,\u22121,567 / 2,2,678 / 3,3,1 / 4,7,8",
        "zone,x,y / 1,1,3 / 2,4,4 / 3,#DIV/0!,1",
        "zone,x,y / 1,1,0 / 2,2, / 3,3, / 4,7,1",
        "zone,x,y / 1,1,0 / 2,2, / 3,3, / 4,7,",
        "year,lat,lon / 2020,52.5N,13.4 / 2021,48.1N,11.6",
        "zone,x,y / 1,3 m,567 / 2,4 m,678 / 3,1 m,1",
        "a,N/A,N/A / b,0,0 / c,1,0 / d,0,1",
        '"0,5","1,5" / 1,2 / 3,4',
        "52,5\t13,4 / 48,1\t11,6 / 50,9\t6,9",
        "0,5 0,7 / 1,5 2,5 / 0,1 0,3",
        "0,5 -1,7 / 1,5  2,5 / 0,1 0,3",
    ],
)
def test_points_of_a_table_that_are_written_otherwise(tmp_path, text):
    with pytest.raises(InputError, match=r"a\.csv:\d: (column|columns) "):
        read(tmp_path, text, HULL)


@pytest.mark.parametrize(
    "text",
    [
        'id,price / 1,"3,5" / 2,"2,1"',
        "id,weight / 1,3 kg / 2,1 kg",
        "id,weight / 1,$3.50 / 2,$2.10",
        "a, / b,2 / c,1",
        "N/A / 2 / 1",
        "Apple;3,5 / Pear;2,7 / Fig;4,1",
    ],
)
def test_numbers_of_a_table_that_are_written_otherwise(tmp_path, text):
    with pytest.raises(InputError, match=r"a\.csv:\d: (column|columns) "):
        read(tmp_path, text, SORT)


@pytest.mark.parametrize(
    ("text", "task", "expected"),
    [
        (",0 / 0,5 / 1,3 / 2,4", SORT, [[5], [3], [4]]),
        (",0,1 / 0,3,4 / 1,5,6 / 2,7,1", HULL, [[3, 4], [5, 6], [7, 1]]),
        ("house,x,y / 12,0,0 / 14a,1,0 / 16,0,1", HULL, [[0, 0], [1, 0], [0, 1]]),
        ("day,x,y / 2020-01-02,0,0 / 2020-01-03,1,0", HULL, [[0, 0], [1, 0]]),
        ("tag,x,y / a;b,0,0 / c,1,0", HULL, [[0, 0], [1, 0]]),
        ("stop,x,y / Area 51,0,0 / Area 52,1,0", HULL, [[0, 0], [1, 0]]),
        ("x,y, / 0,0, / 1,0,", HULL, [[0, 0], [1, 0]]),
        ("x,post,y / 0.5,114 55,0 / 1.5,114 56,0", HULL, [[0.5, 0], [1.5, 0]]),
        ("x,post,y / 5,114 55,0 / 1,114 56,0", HULL, [[5, 0], [1, 0]]),
        ("x,y,phone / 0,0,030 1234567 / 1,0,", HULL, [[0, 0], [1, 0]]),
    ],
)
def test_other_tables_are_read(tmp_path, text, task, expected):
    assert read(tmp_path, text, task).inputs.tolist() == expected


@pytest.mark.parametrize(
    "elements",
    [
        [{"place": 1, "osm": 2, "lat": "52.5"}, {"place": 3, "osm": 1, "lat": "48.1"}],
        [{"stop": 1, "x": "1,000", "y": 2}, {"stop": 2, "x": 5, "y": 3}],
        [{"stop": 1, "x": "5 m", "y": 2}, {"stop": 2, "x": "6 m", "y": 3}],
    ],
)
def test_objects_whose_numbers_are_written_otherwise(elements):
    with pytest.raises(InputError, match=r'element 1: "(lat|x)": expected a number'):
        instances_of(elements, HULL)


def test_missing_numbers_of_pandas():
    pandas = pytest.importorskip("pandas")
    for missing in (pandas.NA, pandas.NaT):
        with pytest.raises(InputError, match='element 1: "y": expected a number'):
            instances_of([{"x": 1, "y": missing, "z": 3}, {"x": 2, "y": 3, "z": 4}], HULL)


def test_codes_and_names_stay_beside_numbers():
    elements = [{"zip": "10115", "name": "1a", "x": 1, "y": 2}, {"zip": "04109", "x": 2, "y": 3}]
    (example,), _ = instances_of(elements, HULL)
    assert example.inputs.tolist() == [[1, 2], [2, 3]]


def test_rows_of_objects_stand_below_their_names(tmp_path, capsys):
    (tmp_path / "k.jsonl").write_text(
        '{"inputs": [{"x": 0, "y": 1, "n": null}, {"y": 5, "x": 40, "n": "b"}, '
        '{"n": "c", "x": 3, "y": 0}]}\n'
    )
    convert = ["convert", "--task", "hull", str(tmp_path / "k.jsonl"), str(tmp_path / "k.csv")]
    assert run(convert) == 0
    assert (tmp_path / "k.csv").read_text() == "x,y,n\n0,1,\n40,5,b\n3,0,c\n"
    (tmp_path / "k.jsonl").write_text(
        '{"inputs": [{"x": 0, "y": 1}, {"x": 0, "y": 5, "n": "b"}]}\n'
    )
    (tmp_path / "k.csv").unlink()
    assert run(convert) == 2 and not (tmp_path / "k.csv").exists()
    assert "has the same fields in every row: expected 'x, y'" in capsys.readouterr().err


def test_a_set_has_no_order():
    for values, task in (({(0, 0), (1, 0), (0, 1)}, HULL), (frozenset({3, 1, 2}), SORT)):
        with pytest.raises(InputError, match=r"expected a list or an array, got (frozen)?set"):
            instances_of(values, task)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_whole_numbers_of_frames_are_not_rounded(library):
    frame = pytest.importorskip(library).DataFrame({"x": [2**53 + 1, 1, 2], "y": [0.5, 1.0, 2.0]})
    with pytest.raises(InputError, match="got 9007199254740993, which it rounds to"):
        instances_of(frame, HULL)


def test_indices_of_examples_are_looked_at(small):
    solver, points = small(), np.random.default_rng(0).random((3, 2))
    for outputs, message in (
        ([1, 2, 3], "expected 0 to 2, got 3"),
        ([-1, 0, 1], "expected 0 to 2, got -1"),
        ([0.0, 1.0, 2.0], "expected whole numbers, got float64"),
    ):
        for measure in (solver.evaluate, solver.log_likelihoods):
            with pytest.raises(InputError, match=message):
                measure([Example(points, np.array(outputs))])


def test_a_number_a_line_is_doubted(tmp_path):
    (tmp_path / "s.txt").write_text("3\n1\n2\n")
    with pytest.warns(AmbiguousInputWarning, match="each of its 3 lines was read as"):
        assert len(list(formats.read(str(tmp_path / "s.txt"), SORT))) == 3


def test_a_field_that_the_first_element_lacks_is_not_forgotten():
    sets = [[{"price": 3}, {"price": 2, "weight": 5}], [{"price": 1}, {"price": 4, "weight": 2}]]
    options = {"steps": 1, "hidden_size": 8, "valid_batches": 0}
    with pytest.raises(InputError, match='element 2: "weight": the first element has no such'):
        ptrnet.fit(sets, [[1, 0], [0, 1]], **options)
    assert ptrnet.fit(sets, [[1, 0], [0, 1]], fields=["price"], **options).task.num_features == 1


def test_tensors_that_are_no_arrays():
    imaginary = torch.tensor([[1 + 2j, 3 + 1j], [1j, 2 + 0j]]).conj().imag
    (example,), _ = instances_of(imaginary, HULL)
    assert example.inputs.tolist() == [[-2, -1], [-1, 0]]
    for tensor in (torch.ones(3, 2, device="meta"), torch.ones(3, 2).to(torch.float8_e4m3fn)):
        with pytest.raises(InputError, match=r"expected an array, got a tensor of torch\."):
            instances_of(tensor, HULL)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"Outputs": [0, 1, 2]}, "'Outputs' is kept as a key of your own; ours is \"outputs\""),
        ({"output": [0, 1, 2]}, "'output' is kept as a key of your own; ours is \"outputs\""),
        ({"Distance": "EUC_2D"}, "'Distance' is kept as a key of your own; ours is \"distance\""),
        ({"outputs": [0, 1, 2], "output": [1], "Distance": 3.5, "distances": [1]}, None),
    ],
)
def test_keys_that_are_nearly_ours(tmp_path, keys, message):
    """An answer was passed over, and a tour measured by another distance, without a word."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"inputs": [[0, 0], [0, 1], [1, 0]], **keys}))
    warns = pytest.warns(AmbiguousInputWarning, match=message)
    with warns if message else contextlib.nullcontext():
        (example,) = formats.read(str(path), TSP)
    assert example.extra.keys() == keys.keys() - {"outputs"}


def test_a_doubt_is_told_once_a_file(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"inputs": [[0, 0], [0, 1], [1, 0]], "Outputs": [0, 1, 2]}\n' * 3)
    rows = tmp_path / "b.parquet"
    for source, target in ((path, rows), (rows, tmp_path / "c.jsonl")):
        assert run(["convert", str(source), str(target), "--task", "tsp"]) == 0
        said = capsys.readouterr().err
        assert said.count(f"{source.name}: 'Outputs' is kept as a key of your own") == 1


GEO = """NAME: x\nTYPE: TSP\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: GEO
NODE_COORD_SECTION\n1 52.31 13.24\n2 {} 2.21\nEOF\n"""


def test_decimal_degrees_are_doubted(tmp_path):
    """48.86 would be 48 degrees and 86 minutes: Paris lay 60 kilometres off without a word."""
    path, lines = tmp_path / "a.tsp", tmp_path / "a.jsonl"
    for latitude in (48.51, -48.59, 48):
        path.write_text(GEO.format(latitude))
        assert len(list(formats.read(str(path), TSP))) == 1
    path.write_text(GEO.format(48.86))
    lines.write_text('{"inputs": [[52.31, 13.24], [-48.6, 2.21]], "distance": "GEO"}')
    for name in (path, lines):
        message = r"a\.[a-z]+: GEO takes .* more than 59 minutes"
        with pytest.warns(AmbiguousInputWarning, match=message):
            list(formats.read(str(name), TSP))
