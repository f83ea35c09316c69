"""The formats byte for byte, and what is refused with its exact complaint."""

import io
import sys

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.sizes import LARGEST, parse_sizes
from ptrnet.errors import InputError
from ptrnet.types import Example

HULL, SORT = tasks.get("hull"), tasks.get("sort")
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


def test_txt_with_and_without_the_closing_repeat(tmp_path):
    lines = "0 0 1 0 0 1 output 1 2 3 1 \n\n0 0 1 0 0 1 output 1 2 3\r\n5 5 output 1 1"
    found = read(tmp_path, "txt", lines)
    assert [e.outputs.tolist() for e in found] == [[0, 1, 2], [0, 1, 2], [0]]
    assert [e.where.rsplit(":", 1)[1] for e in found] == ["1", "3", "4"]
    assert all(e.inputs.shape[1] == 2 for e in found)


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
    answered = example._replace(outputs=np.array([2, 1]))
    assert written(tmp_path, "csv", [answered]) == b"name,x,y\nBern,7.45,46.95\nRome,12.5,41.90\n"


@pytest.mark.parametrize("table", ["0,1\n2,3\n", "\ufeffx,y\n0,1\n2,3\n", "0, 1\r\n2, 3"])
def test_csv_with_and_without_a_header(tmp_path, table):
    assert read(tmp_path, "csv", table)[0].inputs.tolist() == [[0, 1], [2, 3]]


MALFORMED = [
    ("txt", "", "{f}: holds no instance"),
    ("txt", "\n \n", "{f}: holds no instance"),
    ("txt", "0 0 1", "{f}:1: expected 2 numbers for each element, got 3 numbers; a cut line?"),
    ("txt", "0 0\n0 0 1 0 outp", "{f}:2: expected 2 numbers for each element, got 5 numbers"),
    ("txt", "0 0 1 x", "{f}:1: field 4: expected a number, got 'x'"),
    ("txt", "0 0 nan 1", "{f}:1: field 3: expected a finite number, got 'nan'"),
    ("txt", "0 0 1 -inf", "{f}:1: field 4: expected a finite number, got '-inf'"),
    ("txt", "1e400 0", "{f}:1: field 1: expected a finite number, got '1e400'"),
    ("txt", "1_0 0", "{f}:1: field 1: expected a finite number, got '1_0'"),
    ("txt", "0 0 1 1 output", "{f}:1: expected indices after 'output', got none; a cut line?"),
    ("txt", "output 1", "{f}:1: expected 2 numbers for each element, got 0 numbers"),
    ("txt", "0 0 1 1 output 1 3", "{f}:1: index 2: expected 1 to 2, got 3"),
    ("txt", "0 0 1 1 output 0 1", "{f}:1: index 1: expected 1 to 2, got 0"),
    ("txt", "0 0 1 1 output 1 -1", "{f}:1: index 2: expected 1 to 2, got -1"),
    ("txt", "0 0 1 1 output 1 2.5", "{f}:1: field 7: expected an index, got '2.5'"),
    ("txt", "0 0 1 1 output 1 2 2", "{f}:1: answer: each index at most once, got 2 twice"),
    ("txt", b"0 0\n0 \xff\xfe", "{f}:2: not UTF-8 text (byte 3 of the line)"),
    ("txt", "0 0\n".encode("utf-16"), "{f}:1: not UTF-8 text (byte 1 of the line)"),
    ("txt", "0 " * (2 * LARGEST + 2), f"{{f}}:1: expected at most {LARGEST} elements, got 100001"),
    ("txt", "0 0 1 0\r0 1 1 1\r", "{f}:1: lines must end in"),
    ("txt", "\uff11 0", "{f}:1: field 1: expected a finite number"),
    ("jsonl", "{", "{f}:1: not JSON at column 2"),
    ("jsonl", "[1]", "{f}:1: expected a JSON object, got list"),
    ("jsonl", '{"outputs": [0]}', '{f}:1: expected the key "inputs"'),
    ("jsonl", '{"inputs": [[0, NaN]]}', "{f}:1: expected a finite number, got NaN"),
    (
        "jsonl",
        '{"inputs": [[0, 1e400]]}',
        "{f}:1: expected a finite number, got 1e400",
    ),
    ("jsonl", '{"inputs": [[0, "1"]]}', '{f}:1: "inputs": element 1: expected a number, got "1"'),
    ("jsonl", '{"inputs": [[0, true]]}', '{f}:1: "inputs": element 1: expected a number, got true'),
    ("jsonl", '{"inputs": 3}', '{f}:1: "inputs": expected a list of elements'),
    ("jsonl", '{"inputs": []}', '{f}:1: "inputs": expected at least one element, got none'),
    ("jsonl", '{"inputs": [[1, 2], [3]]}', '{f}:1: "inputs": expected elements of 2 numbers each'),
    ("jsonl", '{"inputs": [[1, 2, 3]]}', '{f}:1: "inputs": expected shape (n, 2) for hull'),
    ("jsonl", '{"inputs": [[0, 0]], "outputs": [1]}', '{f}:1: "outputs": index 1: expected 0 to 0'),
    (
        "jsonl",
        '{"inputs": [[0, 0]], "outputs": [0.0]}',
        '{f}:1: "outputs": expected a list of whole',
    ),
    (
        "jsonl",
        '{"inputs": [[0, 0]], "outputs": []}',
        '{f}:1: "outputs": answer: expected at least one',
    ),
    ("jsonl", '{"inputs": [[' + "9" * 5000 + ", 0]]}", "{f}:1: "),
    ("jsonl", "[" * 100_000, "{f}:1: not JSON"),
    ("csv", "", "{f}: holds no instance"),
    ("csv", "x,y\n1,2\n3\n", "{f}:3: expected 2 columns, got 1"),
    ("csv", "x,y\n1,2\n3,b\n5,6\n7,8\n", "{f}:3: column 2: expected a number, got 'b'"),
    ("csv", "x,y\n1,2\n3,inf\n", "{f}:3: column 2: expected a finite number, got 'inf'"),
    ("csv", "x,y,z\n1,2,3\n", "{f}: expected 2 numeric columns and any number of others, got 3"),
    ("csv", "1;2\n3;4\n", "{f}:1: columns must be separated by commas, got one column"),
    ("csv", "a,b\nc,d\n", "{f}: expected 2 numeric columns and any number of others, got 0"),
    ("csv", 'x,y\n"1,2\n', "{f}:2: not CSV"),
    ("csv", "x,y\n1,\n3,4\n5,6\n", "{f}:2: column 2: expected a number, got ''"),
]


@pytest.mark.parametrize(("extension", "content", "complaint"), MALFORMED)
def test_malformed(tmp_path, extension, content, complaint):
    with pytest.raises(InputError) as error:
        read(tmp_path, extension, content)
    message = str(error.value)
    assert message.startswith(complaint.format(f=tmp_path / f"f.{extension}")), message
    assert "\n" not in message and len(message) < 300


def test_sort_wants_every_index(tmp_path):
    with pytest.raises(InputError, match="answer: expected all 3 indices, got 2"):
        read(tmp_path, "txt", "0.1 0.3 0.2 output 1 3", SORT)


def test_files_that_are_not_there(tmp_path):
    for name, reason in (("none.txt", "No such file"), ("", "Is a directory|expected an ext")):
        with pytest.raises(InputError, match=reason):
            list(formats.read(str(tmp_path / name), HULL))


def test_unknown_extension_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean 'jsonl'"):
        formats.of("a.json")
    with pytest.raises(InputError, match="expected an extension"):
        formats.of("points")


def test_a_line_without_end_is_refused_before_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr("ptrnet.data.lines.LONGEST_LINE", 1000)
    with pytest.raises(InputError, match="longer than 1000 bytes"):
        read(tmp_path, "txt", "0 " * 1000)


def test_standard_input_and_output(monkeypatch, capsys):
    stdin = io.TextIOWrapper(io.BytesIO(b"0 0 1 0 0 1 output 1 2 3\n"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)
    examples = list(formats.read("-", HULL))
    assert examples[0].where == "standard input:1"
    formats.write("-", examples, HULL)
    assert capsys.readouterr().out == "0.0 0.0 1.0 0.0 0.0 1.0 output 1 2 3 1\n"


def test_a_csv_holds_one_instance_and_nothing_is_left_behind(tmp_path):
    with pytest.raises(InputError, match="holds one instance"):
        formats.write(str(tmp_path / "a.csv"), [Example(POINTS)] * 2, HULL)
    assert not list(tmp_path.iterdir())


def test_an_error_while_writing_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def broken():
        yield Example(POINTS)
        raise InputError("half way")

    with pytest.raises(InputError, match="half way"):
        formats.write(str(path), broken(), HULL)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("text", "sizes"), [("50", [50]), ("5-8", [5, 6, 7, 8]), ("5,10, 20-21", [5, 10, 20, 21])]
)
def test_sizes(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    "text", ["", "5-", "-5", "8-5", "0", "1-100001", "5.5", "a", "5,,6", "\u00b2", "\u0665"]
)
def test_sizes_that_are_none(text):
    with pytest.raises(InputError, match=r"^n: expected"):
        parse_sizes(text)


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


@pytest.mark.parametrize("first", ["O.1,0.2", "x,0.2", ",1"])
def test_a_damaged_first_row_is_no_header(tmp_path, first):
    with pytest.raises(InputError, match=r"f.csv:1: column 1: expected a number, or a header"):
        read(tmp_path, "csv", f"{first}\n0.9,0.1\n0.8,0.9\n0.2,0.8\n")
