"""The formats byte for byte, and what is refused with its exact complaint."""

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
from ptrnet.types import Example

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


def test_txt_is_the_authors_format(tmp_path):
    example = Example(POINTS, np.array([0, 2, 1]))
    assert written(tmp_path, "txt", [example, Example(POINTS[:1])]) == (
        b"0.0 0.5 1.0 0.25 0.1 1e-07 0.30000000000000004 0.2 output 1 3 2 1\n0.0 0.5\n"
    )
    numbers = Example(POINTS[:, :1], np.array([0, 2, 3, 1]))
    assert written(tmp_path, "txt", [numbers], SORT) == (
        b"0.0 1.0 0.1 0.30000000000000004 output 1 3 4 2\n"
    )


def test_txt_of_triangles_and_tours(tmp_path):
    triangles = Example(POINTS, np.array([[0, 2, 3], [1, 2, 3]]))
    numbers = b"0.0 0.5 1.0 0.25 0.1 1e-07 0.30000000000000004 0.2 output "
    assert written(tmp_path, "txt", [triangles], DELAUNAY) == numbers + b"1 3 4 <ENDT> 2 3 4\n"
    tour = Example(POINTS, np.array([0, 2, 1, 3]))
    assert written(tmp_path, "txt", [tour], TSP) == numbers + b"1 3 2 4 1\n"


@pytest.mark.parametrize(
    "answer", ["1 2 3 <ENDT> 2 3 4", "1 2 3 2 3 4", "1 2 3 <ENDT> 2 3 4 <ENDT>"]
)
def test_txt_with_and_without_marks_between_triangles(tmp_path, answer):
    (example,) = read(tmp_path, "txt", f"0 0 1 0 0 1 2 2 output {answer}\n", DELAUNAY)
    assert example.outputs.tolist() == [[0, 1, 2], [1, 2, 3]]


def test_jsonl_of_triangles_and_of_distances(tmp_path):
    line = b'{"inputs": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "outputs": [[0, 1, 2]]}\n'
    assert written(tmp_path, "jsonl", read(tmp_path, "jsonl", line, DELAUNAY), DELAUNAY) == line
    line = b'{"inputs": [[0.0, 0.0], [1.0, 0.0]], "outputs": [0, 1], "distance": "ATT"}\n'
    (example,) = read(tmp_path, "jsonl", line, TSP)
    assert example.distance == "ATT" and not example.extra
    assert written(tmp_path, "jsonl", [example], TSP) == line
    (hull,) = read(tmp_path, "jsonl", line, HULL)  # where nothing is measured, a key like any
    assert hull.distance == "euclidean" and written(tmp_path, "jsonl", [hull]) == line


def test_jsonl_refuses_what_json_has_no_word_for(tmp_path):
    for value in (float("nan"), {1, 2}):
        example = Example(POINTS, source="a.parquet: row 7", extra={"w": value})
        with pytest.raises(InputError, match=r"^a.parquet: row 7: cannot be written as JSON: "):
            written(tmp_path, "jsonl", [example])


def test_txt_with_and_without_the_closing_repeat(tmp_path):
    lines = "0 0 1 0 0 1 output 1 2 3 1 \n\n0 0 1 0 0 1 output 1 2 3\r\n5 5 output 1 1"
    examples = read(tmp_path, "txt", lines)
    assert [e.outputs.tolist() for e in examples] == [[0, 1, 2], [0, 1, 2], [0]]
    assert [e.source.rsplit(":", 1)[1] for e in examples] == ["1", "3", "4"]
    assert all(e.inputs.shape[1] == 2 for e in examples)


def test_jsonl_keeps_other_keys(tmp_path):
    line = '{"id": "a\u00e9", "inputs": [[0, 0.5], [1, 0.25]], "outputs": [1, 0], "w": [1]}\n'
    (example,) = read(tmp_path, "jsonl", line)
    assert example.outputs.tolist() == [1, 0]
    assert written(tmp_path, "jsonl", [example]).decode() == (
        '{"inputs": [[0.0, 0.5], [1.0, 0.25]], "outputs": [1, 0], "id": "a\\u00e9", "w": [1]}\n'
    )


def test_csv_rows_come_back_in_the_answers_order(tmp_path):
    table = 'name,x,y\n"Oslo, N",10.75,59.91\nRome,12.5,41.90\nBern,7.45,46.95\n'
    (example,) = read(tmp_path, "csv", table)
    assert example.inputs.tolist() == [[10.75, 59.91], [12.5, 41.9], [7.45, 46.95]]
    answered = example.replace(outputs=np.array([2, 1]))
    assert written(tmp_path, "csv", [answered]) == b"name,x,y\nBern,7.45,46.95\nRome,12.5,41.90\n"


def test_csv_rows_of_triangles(tmp_path):
    answered = Example(POINTS, np.array([[0, 2, 3], [1, 2, 3]]))
    a, b, c, d = b"0.0,0.5\n", b"1.0,0.25\n", b"0.1,1e-07\n", b"0.30000000000000004,0.2\n"
    assert written(tmp_path, "csv", [answered], DELAUNAY) == a + c + d + b + c + d


@pytest.mark.parametrize("table", ["0,1\n2,3\n", "\ufeffx,y\n0,1\n2,3\n", "0, 1\r\n2, 3"])
def test_csv_with_and_without_a_header(tmp_path, table):
    assert read(tmp_path, "csv", table)[0].inputs.tolist() == [[0, 1], [2, 3]]


def test_files_that_are_not_there(tmp_path):
    for path, reason in (("none.txt", "No such file"), ("", "Is a directory|expected an ext")):
        with pytest.raises(InputError, match=reason):
            list(formats.read(str(tmp_path / path), HULL))


def test_unknown_extension_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean 'jsonl'"):
        formats.format_of("a.json")
    with pytest.raises(InputError, match="expected an extension"):
        formats.format_of("points")


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("ptrnet.data.formats.parts.lines.LONGEST_LINE", 1000)
    with pytest.raises(InputError, match="longer than 1000 bytes"):
        read(tmp_path, "txt", "0 " * 1000)


def test_standard_input_and_output(monkeypatch, capsys):
    stdin = io.TextIOWrapper(io.BytesIO(b"0 0 1 0 0 1 output 1 2 3\n"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)
    examples = list(formats.read("-", HULL))
    assert examples[0].source == "standard input:1"
    formats.write("-", examples, HULL)
    assert capsys.readouterr().out == "0.0 0.0 1.0 0.0 0.0 1.0 output 1 2 3 1\n"


def test_a_csv_holds_one_instance_and_nothing_is_left_behind(tmp_path):
    with pytest.raises(InputError, match="holds one instance"):
        formats.write(str(tmp_path / "a.csv"), [Example(POINTS)] * 2, HULL)
    assert not list(tmp_path.iterdir())


def test_what_a_format_cannot_hold_names_those_that_can(tmp_path):
    example = Example(POINTS, source="f.jsonl:1", distance="GEO")
    for extension in ("txt", "csv"):
        with pytest.raises(InputError) as error:
            written(tmp_path, extension, [example], TSP)
        assert str(error.value) == (
            f"f.jsonl:1: a .{extension} file says nothing of distances, here GEO; "
            "write to .jsonl, .parquet, .tour or .tsp"
        )
    with pytest.raises(InputError, match=r"instance; write several to .jsonl, .parquet or .txt$"):
        written(tmp_path, "csv", [Example(POINTS)] * 2)
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r'^.parquet needs the extra "parquet": pip inst'):
        formats.check_output(str(tmp_path / "a.parquet"), HULL)


def test_an_error_while_writing_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def broken():
        yield Example(POINTS)
        raise InputError("half way")

    with pytest.raises(InputError, match="half way"):
        formats.write(str(path), broken(), HULL)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_keys_of_json_lines_and_cells_of_tables_do_not_meet(tmp_path):
    (line,) = read(tmp_path, "jsonl", '{"inputs": [[0, 0], [1, 0]], "rows": 3, "header": "h"}')
    assert written(tmp_path, "csv", [line]) == b"0.0,0.0\n1.0,0.0\n"
    (table,) = read(tmp_path, "csv", "name,x,y\na,1,2\n")
    assert written(tmp_path, "jsonl", [table]) == b'{"inputs": [[1.0, 2.0]]}\n'


def test_text_that_utf8_cannot_hold_is_kept(tmp_path):
    (example,) = read(tmp_path, "jsonl", '{"inputs": [[0, 0]], "name": "\\ud800"}')
    assert b'"\\ud800"' in written(tmp_path, "jsonl", [example])


def test_names_too_long_for_a_file_are_refused_in_words(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        formats.write(str(tmp_path / ("n" * 300 + ".txt")), [Example(POINTS)], HULL)


def test_the_examples_of_the_specification_are_read(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:text|json)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    _, lines, objects, cities, tour = blocks
    for content, extension in ((lines, "txt"), (objects, "jsonl")):
        rows = zip(content.splitlines(), ("hull", "delaunay", "tsp", "sort"), strict=False)
        for row, task in rows:
            (example,) = read(tmp_path, extension, row, tasks.get(task))
            (truth,) = label_dataset(tasks.get(task), None, [example])
            assert tasks.get(task).is_correct(truth, example.outputs)
    assert read(tmp_path, "tsp", cities, TSP)[0].distance == "EUC_2D"
    assert read(tmp_path, "tour", tour, TSP)[0].outputs.tolist() == [0, 1, 2]
