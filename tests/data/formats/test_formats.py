"""Reading and writing by extension, for all formats."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.labels import label_dataset
from ptrnet.metrics import summary
from ptrnet.types import Example
from tests.support.text import begins, matches

HULL, SORT, DELAUNAY = tasks.get("hull"), tasks.get("sort"), tasks.get("delaunay")
TSP = tasks.get("tsp")
POINTS = np.array([[0.0, 0.5], [1.0, 0.25], [0.1, 1e-7], [0.30000000000000004, 0.2]])


def written(tmp_path, extension, examples, task=HULL):
    path = tmp_path / f"f.{extension}"
    formats.write(str(path), examples, task)
    return path.read_bytes()


def read(tmp_path, extension, content, task=HULL):
    path = tmp_path / f"f.{extension}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(formats.read(str(path), task))


def test_refuses_missing_files_and_folders(tmp_path):
    for path, reason in (("none.txt", "No such file"), ("", "folders are for task reading-")):
        with pytest.raises(InputError, match=reason):
            list(formats.read(str(tmp_path / path), HULL))


def test_unknown_extension_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean 'jsonl'"):
        formats.format_of("a.jsonlines")
    with pytest.raises(InputError, match="expected an extension"):
        formats.format_of("points")


def test_standard_input_and_output(monkeypatch, capsys):
    content = io.BufferedReader(io.BytesIO(b"0 0 1 0 0 1 output 1 2 3\n"))
    stdin = io.TextIOWrapper(content, encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)
    examples = list(formats.read("-", HULL))
    assert examples[0].source == "standard input:1"
    formats.write("-", examples, HULL)
    assert capsys.readouterr().out == "0.0 0.0 1.0 0.0 0.0 1.0 output 1 2 3 1\n"


def test_refused_write_creates_no_file(tmp_path):
    with pytest.raises(InputError, match="holds one instance"):
        formats.write(str(tmp_path / "a.csv"), [Example(POINTS)] * 2, HULL)
    assert not list(tmp_path.iterdir())


def test_errors_list_the_formats_that_can_hold_the_example(tmp_path):
    example = Example(POINTS, source="f.jsonl:1", distance="GEO")
    for extension in ("txt", "csv"):
        with pytest.raises(InputError) as error:
            written(tmp_path, extension, [example], TSP)
        expected = f"f.jsonl:1: a .{extension} ... GEO; write to .jsonl, .parquet, .tour or .tsp"
        assert matches(str(error.value), expected)
    with pytest.raises(InputError, match=r"instance; write several to .jsonl, .parquet or .txt$"):
        written(tmp_path, "csv", [Example(POINTS)] * 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("extension", ["npy", "atsp"])
@pytest.mark.parametrize("distance", ["euclidean", "EUC_2D"])
def test_formats_of_matrices_refuse_points_and_keep_distances_exactly(
    tmp_path, extension, distance
):
    points = Example(POINTS, source="f.jsonl:1", distance=distance)
    with pytest.raises(InputError) as error:
        written(tmp_path, extension, [points], TSP)
    complaint, _, others = str(error.value).partition("; write to ")
    assert begins(complaint, f"f.jsonl:1: a .{extension} file holds a matrix of distances")
    for other in others.replace(" or", ",").split(", "):
        if other != ".tour":  # needs an answer
            written(tmp_path, other[1:], [points], TSP)
    dist = np.array([[0, 0.1, 1 / 3], [0.1, 0, 1e-7], [2.0, 1e-7, 0]])
    path = tmp_path / f"matrix.{extension}"
    formats.write(str(path), [Example(dist, distance="EXPLICIT")], TSP)
    (copy,) = formats.read(str(path), TSP)
    assert copy.inputs.tolist() == dist.tolist()


def test_check_output_names_a_missing_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r'^.parquet needs the extra "parquet": pip inst'):
        formats.check_output(str(tmp_path / "a.parquet"), HULL)


def test_check_output_refuses_formats_that_keep_answers_in_another_file(tmp_path):
    path = tmp_path / "a.tsp"
    with pytest.raises(InputError, match=r"a\.tsp: cannot hold answers; write them to \.tour$"):
        formats.check_output(str(path), TSP)
    formats.check_output(str(path), TSP, has_answers=False)


def test_error_while_writing_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def examples_with_an_error():
        yield Example(POINTS)
        raise InputError("half way")

    with pytest.raises(InputError, match="half way"):
        formats.write(str(path), examples_with_an_error(), HULL)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_refuses_file_names_that_are_too_long(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        formats.write(str(tmp_path / ("n" * 300 + ".txt")), [Example(POINTS)], HULL)


def test_examples_of_the_documentation_are_read(tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "format.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:text|json)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    _, lines, objects, cities, tour = blocks
    for content, extension in ((lines, "txt"), (objects, "jsonl")):
        rows = zip(content.splitlines(), ("hull", "delaunay", "tsp", "sort"), strict=False)
        for row, task in rows:
            (example,) = read(tmp_path, extension, row, tasks.get(task))
            (truth,) = label_dataset(tasks.get(task), None, [example])
            assert summary.is_correct(tasks.get(task), truth, example.outputs)
    assert read(tmp_path, "tsp", cities, TSP)[0].distance == "EUC_2D"
    assert read(tmp_path, "tour", tour, TSP)[0].outputs.tolist() == [0, 1, 2]
