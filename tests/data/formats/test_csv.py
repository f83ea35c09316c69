"""A .csv file of one instance: which columns are read, kept or refused."""

from functools import partial

import numpy as np
import pytest

import ptrnet
from ptrnet import tasks
from ptrnet.cli import run
from ptrnet.data import formats
from ptrnet.data.infer_task import task_of
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.tasks.schema import Schema
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


def read_table(tmp_path, text, task):
    """Return the instance of a table whose rows are separated by slashes."""
    (example,) = read(tmp_path, "csv", "\n".join(text.split(" / ")) + "\n", task)
    return example


def test_writes_the_rows_in_the_order_of_the_answer(tmp_path):
    table = 'name,x,y\n"Oslo, N",10.75,59.91\nRome,12.5,41.90\nBern,7.45,46.95\n'
    (example,) = read(tmp_path, "csv", table)
    assert example.inputs.tolist() == [[10.75, 59.91], [12.5, 41.9], [7.45, 46.95]]
    answered = example.replace(outputs=np.array([2, 1]))
    assert written(tmp_path, "csv", [answered]) == b"name,x,y\nBern,7.45,46.95\nRome,12.5,41.90\n"


def test_writes_three_rows_for_each_triangle(tmp_path):
    answered = Example(POINTS, np.array([[0, 2, 3], [1, 2, 3]]))
    a, b, c, d = b"0.0,0.5\n", b"1.0,0.25\n", b"0.1,1e-07\n", b"0.30000000000000004,0.2\n"
    assert written(tmp_path, "csv", [answered], DELAUNAY) == a + c + d + b + c + d


@pytest.mark.parametrize("table", ["0,5\n2,3\n", "\ufeffx,y\n0,5\n2,3\n", "0, 5\r\n2, 3"])
def test_reads_tables_with_and_without_a_header(tmp_path, table):
    assert read(tmp_path, "csv", table)[0].inputs.tolist() == [[0, 5], [2, 3]]


def test_other_columns_of_csv_and_keys_of_jsonl_do_not_mix(tmp_path):
    (line,) = read(tmp_path, "jsonl", '{"inputs": [[0, 0], [1, 0]], "rows": 3, "header": "h"}')
    assert written(tmp_path, "csv", [line]) == b"0.0,0.0\n1.0,0.0\n"
    (table,) = read(tmp_path, "csv", "name,x,y\na,1,2\n")
    assert written(tmp_path, "jsonl", [table]) == b'{"inputs": [[1.0, 2.0]]}\n'


def test_refuses_a_first_row_that_may_be_a_header_of_pandas(tmp_path):
    with pytest.raises(InputError, match=r"f\.csv:1: .* got 0,1; .* write an element as 0\.0,1\.0"):
        read_table(tmp_path, "0,1 / 0.5,0.25 / 0.75,0.1", HULL)
    for text, task in (("0.0,1.0 / 0.5,0.25", HULL), ("0 / 0.5", SORT)):
        assert len(read_table(tmp_path, text, task).inputs) == 2
    with pytest.warns(AmbiguousInputWarning, match="0,1 is read as an element; remove it if it is"):
        assert len(read_table(tmp_path, "0,1 / 0.5,2", HULL).inputs) == 2


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
        "zone,x,y / 1,1,567 / 2,007,678 / 3,3,1",
        "zone,x,y / 1,1,567 / 2,1_000,678 / 3,3,1",
        "007,1 / 2,3 / 4,5",
        "house,x,y / 12,0,0 / 14a,1,0 / 16,0,1",
        "x,post,y / 0.5,114 55,0 / 1.5,114 56,0",
        "x,y,phone / 0,0,030 1234567 / 1,0,",
        "0.5,0.1,1;2 / 0.2,0.3,a;b",
        ",0,1 / 0,3,4 / 1,5,6 / 2,7,1",
    ],
)
def test_refuses_to_skip_coordinates_in_foreign_notation(tmp_path, text):
    with pytest.raises(InputError, match=r"f\.csv:\d: (column|columns) "):
        read_table(tmp_path, text, HULL)


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
def test_refuses_to_skip_numbers_in_foreign_notation(tmp_path, text):
    with pytest.raises(InputError, match=r"f\.csv:\d: (column|columns) "):
        read_table(tmp_path, text, SORT)


@pytest.mark.parametrize(
    ("text", "task", "expected"),
    [
        ("id,x,y / 12,0,0 / 14a,1,0 / 16,0,1", HULL, [[0, 0], [1, 0], [0, 1]]),
        ("day,x,y / 2020-01-02,0,0 / 2020-01-03,1,0", HULL, [[0, 0], [1, 0]]),
        ("tag,x,y / a;b,0,0 / c,1,0", HULL, [[0, 0], [1, 0]]),
        ("stop,x,y / Area 51,0,0 / Area 52,1,0", HULL, [[0, 0], [1, 0]]),
        ("x,y, / 0,0, / 1,0,", HULL, [[0, 0], [1, 0]]),
        ("zip,x,y / 01067,0,0 / 04109,1,0", HULL, [[0, 0], [1, 0]]),
    ],
)
def test_skips_columns_that_are_not_features(tmp_path, text, task, expected):
    assert read_table(tmp_path, text, task).inputs.tolist() == expected


def test_elements_with_fields_become_rows_with_a_header(tmp_path, capsys):
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
    assert "needs elements with the same fields: expected 'x, y'" in capsys.readouterr().err


# A square A, B, C, D, whose diagonals are longer than its sides.
MATRICES = {
    "numbers alone": "0,1,5,2\n1,0,2,5\n5,2,0,1\n2,5,1,0\n",
    "a header": "A,B,C,D\n0,1,5,2\n1,0,2,5\n5,2,0,1\n2,5,1,0\n",
    "names": "A,,1,5,2\nB,1,,2,5\nC,5,2,,1\nD,2,5,1,\n",
    "both": ",A,B,C,D\nA,9,1,5,2\nB,1,9,2,5\nC,5,2,9,1\nD,2,5,1,9\n",
    "pandas": ",0,1,2,3\n0,0,1,5,2\n1,1,0,2,5\n2,5,2,0,1\n3,2,5,1,0\n",
}


@pytest.mark.parametrize("name", MATRICES)
def test_reads_a_square_matrix_of_distances(tmp_path, name):
    path = tmp_path / "m.csv"
    path.write_text(MATRICES[name])
    (example,) = formats.read(str(path), tasks.get("tsp"))
    assert example.distance == "EXPLICIT"
    assert example.inputs.tolist() == [[0, 1, 5, 2], [1, 0, 2, 5], [5, 2, 0, 1], [2, 5, 1, 0]]
    ptrnet.label("tsp", path, output=tmp_path / "answer.csv", start=2)
    names = "ABCD" if "A" in MATRICES[name] else "0123"
    assert (tmp_path / "answer.csv").read_text().split() in (
        [*names[2:], *names[:2]],
        [names[2], names[1], names[0], names[3]],
    )
    with pytest.raises(InputError, match=r"got [45] numeric|expected a number"):
        list(formats.read(str(path), tasks.get("hull")))


@pytest.mark.parametrize("name", MATRICES)
def test_writes_a_matrix_without_an_answer_as_a_matrix(tmp_path, name):
    first, second = tmp_path / "m.csv", tmp_path / "again.csv"
    first.write_text(MATRICES[name])
    task = tasks.get("tsp")
    formats.write(str(second), formats.read(str(first), task), task)
    (given,), (again,) = (formats.read(str(path), task) for path in (first, second))
    assert again.distance == "EXPLICIT" and again.inputs.tolist() == given.inputs.tolist()
    assert again.table.rows == given.table.rows  # the names


@pytest.mark.parametrize("cell", ["1_000", "007", "\uff11", "1,5", "nan", "1e400", ""])
@pytest.mark.parametrize("name", MATRICES)
def test_refuses_a_matrix_with_a_cell_that_is_not_a_number(tmp_path, name, cell):
    path = tmp_path / "m.csv"
    text = MATRICES[name].replace("1,5", f'1,"{cell}"')
    assert text != MATRICES[name]
    path.write_text(text)
    with pytest.raises(
        InputError, match=r"m\.csv:.*expected (a number|a finite distance|2 numeric)"
    ):
        list(formats.read(str(path), tasks.get("tsp")))


def test_refuses_infinite_distances_even_if_the_other_columns_could_be_points(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("0,1,2\ninf,0,3\ninf,4,0\n")
    with pytest.raises(InputError, match=r"row 2, column 1: expected a finite distance, got inf"):
        list(formats.read(str(path), tasks.get("tsp")))


@pytest.mark.parametrize(
    "text",
    [
        "id,x,y,size\n1,0,1,4\n2,1,0,4\n3,1,1,7\n",  # different numbers on the diagonal
        "x,y,z\ninf,1,2\ninf,2,3\ninf,3,1\n",  # infinite numbers are not names
        ",A,B,C\nA,0,1,2\nB,1,0,3\nX,2,3,0\n",  # rows and columns of other names
    ],
)
def test_other_tables_are_not_read_as_a_matrix(tmp_path, text):
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(InputError):
        list(formats.read(str(path), tasks.get("tsp")))


def test_model_of_named_fields_reads_columns_by_name(tmp_path):
    """Missing numbers are filled in. A text in a numeric column is refused."""
    schema = Schema(("x", "size"), ((), ("10", "XL")), fills=(("x", 2.5),))
    read = partial(read_table, tmp_path, task=task_of(schema))
    example = read("note,size,x / a,10,1 / b,XL, / ,10,n/a")
    assert example.inputs.tolist() == [[1, 0, 1, 0], [2.5, 1, 0, 1], [2.5, 1, 1, 0]]
    assert [e["size"] for e in example.elements] == ["10", "XL", "10"]
    with pytest.raises(InputError, match=r'f\.csv:3: "x": expected a number, got \'007\''):
        read("x,size / 1,10 / 007,XL")
    with pytest.raises(InputError, match=r'f\.csv: expected the column "size", got \'x\''):
        read("x / 1")
