"""Long tables are read as sets of elements, and written again."""

import csv
import json
from decimal import Decimal
from functools import partial

import numpy as np
import pytest

import ptrnet
from ptrnet import InputError
from ptrnet.cli import run
from ptrnet.data import formats
from ptrnet.data.arrays import rows_of
from ptrnet.data.columns import Columns
from ptrnet.data.infer_schema import Reading, infer_schema
from ptrnet.data.infer_task import infer_task, loosest_task, task_of
from ptrnet.data.tables import Table, answered, infer_sets, read_sets, sets_for_task
from ptrnet.errors import AmbiguousInputWarning
from ptrnet.settings import to_mapping
from ptrnet.tasks.schema import Numbers, Schema
from tests.support.small_models import small_solver

TABLE = """order,price,colour,title,place
A, 3.5,red,"one, two",2
B,2,blue,x,1
A,1,blue,y,
A,0.25,red,z,1
"""
ROWS = [
    {"order": "A", "price": 3.5, "colour": "red", "title": "one, two", "place": 2},
    {"order": "B", "price": 2, "colour": "blue", "title": "x", "place": 1},
    {"order": "A", "price": 1, "colour": "blue", "title": "y", "place": None},
    {"order": "A", "price": 0.25, "colour": "red", "title": "z", "place": 1},
]


def write_text(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    return [pandas.DataFrame(ROWS), polars.DataFrame(ROWS)]


def test_rows_with_one_id_become_one_instance(tmp_path):
    for table in (write_text(tmp_path, TABLE), ROWS, iter(ROWS), *frames()):
        a, b = ptrnet.read_table(table, set_id="order", rank="place")
        assert a.outputs.tolist() == [2, 0] and b.outputs.tolist() == [0]
        assert a.elements[0] == {"price": 3.5, "colour": "red", "title": "one, two"}
        assert [e["price"] for e in a.elements] == [3.5, 1, 0.25]
        assert (a.extra, b.extra) == ({"order": "A"}, {"order": "B"})


@pytest.mark.parametrize(
    ("name", "mark"),
    [("t.tsv", "\t"), ("t.dat", "\t"), ("t.txt", "\t"), ("t.csv", ";"), ("t.csv", "\t")]
    + [("t.tsv", ";"), ("t.dat", ","), ("t.txt", ",")],
)
def test_tables_have_the_delimiter_of_their_header(tmp_path, name, mark):
    """The oracle is pandas with the right delimiter."""
    pandas = pytest.importorskip("pandas")
    rows = [["s", "price, net", "a;b"], ["x", "3.5", "red; or, blue"], ["x", "2", 'a\t"b"']]
    with (tmp_path / name).open("w", newline="") as stream:
        csv.writer(stream, delimiter=mark, lineterminator="\n").writerows(rows)
    expected = pandas.read_csv(tmp_path / name, sep=mark)
    table = formats.table_of(tmp_path / name)
    assert list(table.columns) == list(expected.columns) == rows[0]
    assert [list(row.values()) for row in table.elements(rows[0])] == expected.to_numpy().tolist()
    formats.write_table(str(tmp_path / "out.tsv"), table)
    assert formats.table_of(tmp_path / "out.tsv").columns == table.columns


def test_a_tsv_without_set_id_is_one_instance(tmp_path, capsys):
    (tmp_path / "p.tsv").write_text("city\tx\ty\na\t0\t0\nb\t1\t0\nc\t0\t1\nd\t.2\t.2\n")
    assert run(["solve", "hull", str(tmp_path / "p.tsv")]) == 0
    assert capsys.readouterr().out == "city\tx\ty\na\t0\t0\nb\t1\t0\nc\t0\t1\n"
    (tmp_path / "p.txt").write_text("0 0 1 0 0 1 .2 .2\n")
    assert run(["solve", "hull", str(tmp_path / "p.txt")]) == 0
    assert capsys.readouterr().out.endswith("output 1 2 3 1\n")


def test_member_column_gives_a_set_and_no_column_gives_no_answer(tmp_path):
    path = write_text(tmp_path, "s,x,in\n1,5,true\n1,6,No\n1,7,1\n2,8,0\n")
    first, second = ptrnet.read_table(path, set_id="s", member="in")
    assert first.outputs.tolist() == [0, 2] and second.outputs.tolist() == []
    assert ptrnet.read_table(path, set_id="s")[0].outputs is None
    assert ptrnet.read_table(path, set_id="s")[0].elements[0] == {"x": 5, "in": "true"}


@pytest.mark.parametrize("answers", [["1", "2"], [1, 2], [1.0, 2.0], ["car", "bus"]], ids=repr)
def test_a_wide_table_that_is_read_as_a_long_one_is_refused_with_the_option(answers):
    wide = [{"ID": k, "choice": answer} for k, answer in enumerate(answers)]
    with pytest.raises(
        InputError, match=r"got .*; if each row is a set of its own.*--alternatives"
    ):
        ptrnet.read_table(wide, set_id="ID", chosen="choice")


def test_answers_of_random_tables_equal_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = [
            {
                "set": int(s),
                "x": k,
                "rank": rng.permutation(99)[0] / 4,
                "grade": int(rng.integers(3)),
            }
            for k, s in enumerate(rng.integers(0, 6, 30))
        ]
        sets = {row["set"]: [r for r in rows if r["set"] == row["set"]] for row in rows}
        for members in sets.values():
            for k, row in enumerate(members):
                row["chosen"], row["in"] = k == len(members) // 2, row["x"] % 3 == 0
        ranked = ptrnet.read_table(rows, set_id="set", rank="rank")
        graded = ptrnet.read_table(rows, set_id="set", grade="grade")
        chosen = ptrnet.read_table(rows, set_id="set", chosen="chosen")
        inside = ptrnet.read_table(rows, set_id="set", member="in")
        for k, (key, members) in enumerate(sets.items()):
            places = range(len(members))
            assert ranked[k].extra == {"set": key}
            assert [e["x"] for e in ranked[k].elements] == [row["x"] for row in members]
            assert ranked[k].outputs.tolist() == sorted(places, key=lambda i: members[i]["rank"])
            assert graded[k].grades.tolist() == [row["grade"] for row in members]
            assert graded[k].outputs.tolist() == sorted(places, key=lambda i: -members[i]["grade"])
            assert chosen[k].outputs.tolist() == [len(members) // 2]
            assert inside[k].outputs.tolist() == [i for i in places if members[i]["in"]]


def test_ranks_with_ties_become_grades_in_opposite_order():
    rows = [{"s": s, "r": r} for s, r in (("a", 1), ("a", 2), ("a", 1), ("b", 3), ("a", None))]
    a, b = ptrnet.read_table(rows, set_id="s", rank="r")
    assert a.grades.tolist() == [2, 1, 2, 0] and a.outputs.tolist() == [0, 2, 1, 3]
    assert b.grades.tolist() == [1] and b.outputs.tolist() == [0]


@pytest.mark.parametrize("as_text", [False, True])
def test_long_whole_numbers_are_not_rounded_in_ranks_and_ids(tmp_path, as_text):
    ranks = [1700000000000000002, 1700000000000000001, 1700000000000000003]
    ids = [2**53, 2**53 + 1, 2**53]
    table = [{"id": i, "r": r} for i, r in zip(ids, ranks, strict=True)]
    if as_text:
        table = write_text(
            tmp_path, "id,r\n" + "".join(f"{row['id']},{row['r']}\n" for row in table)
        )
    first, second = ptrnet.read_table(table, set_id="id", rank="r")
    assert first.outputs.tolist() == [0, 1] and first.grades is None
    assert [str(e.extra["id"]) for e in (first, second)] == [str(2**53), str(2**53 + 1)]
    one_set = ptrnet.read_table(table, set_id="id") and ptrnet.read_table(
        [{"id": 1, "r": r} for r in ranks], set_id="id", rank="r"
    )
    assert one_set[0].outputs.tolist() == [1, 0, 2] and one_set[0].grades is None


def test_refuses_ids_and_ranks_that_may_have_been_rounded():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [2**53, 2**53 + 1, None], "r": [1, 2, 3]})
    with pytest.raises(InputError, match=r'^row 0: "id": 9007199254740992 may have been another'):
        ptrnet.read_table(frame.head(2), set_id="id", rank="r")
    rows = [{"id": 1, "r": 1.7e18}, {"id": 1, "r": 2.0}]
    with pytest.raises(InputError, match=r'^row 0: "r": .* may have been another whole number'):
        ptrnet.read_table(rows, set_id="id", rank="r")


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        (TABLE, {"set_id": "set"}, 't.csv: expected the column "set", got'),
        (TABLE, {"set_id": "order", "rank": "r"}, 't.csv: expected the column "r", got'),
        (
            TABLE,
            {"set_id": "order", "rank": "title"},
            't.csv:2: "title": expected a number or an empty cell',
        ),
        (TABLE, {"set_id": "order", "member": "place"}, "expected 1 or 0, got '2'"),
        (TABLE, {"set_id": "order", "rank": "a", "member": "b"}, "got rank and member"),
        (TABLE, {"set_id": "", "rank": "place"}, "rank: needs set_id"),
        (
            "s,c\n1,0\n1,0\n",
            {"set_id": "s", "chosen": "c"},
            "got 0; if none of them is an answer, name it, such as --outside none",
        ),
        ("s,c\n1,1\n1,1\n", {"set_id": "s", "chosen": "c"}, "got 2; use --member"),
        ("s,c\n1,1\n1,x\n", {"set_id": "s", "chosen": "c"}, "expected 1 or 0, got 'x'"),
        ("s,c\n1,1\n", {"set_id": "", "chosen": "c"}, "see docs/own-examples.md#wide-tables"),
        ("s,c\n1,1\n2,1\n1,1\n", {"set_id": "s", "chosen": "c"}, 't.csv:2: "c": expected one'),
        ("s,g\n1,1\n1,\n", {"set_id": "s", "grade": "g"}, 't.csv:3: "g": expected a grade'),
        ("s,g\n1,1\n1,x\n", {"set_id": "s", "grade": "g"}, '"g": expected a number, got '),
        ("s,x\n1,2,3\n", {"set_id": "s"}, "t.csv:2: expected 2 columns, got 3"),
        (
            "s,s\n1,2\n",
            {"set_id": "s"},
            "t.csv:1: duplicate column name 's'",
        ),
        ("s,r\n1,2\n1,x\n", {"set_id": "s", "rank": "r"}, 't.csv:3: "r": expected a number'),
        (
            f"s,r\n1,2\n1,1e{10**19}\n",
            {"set_id": "s", "rank": "r"},
            't.csv:3: "r": expected a number',
        ),
        ("s,x\n,2\n", {"set_id": "s"}, "t.csv:2: \"s\": expected a name or a number, got ''"),
        (",s\n0,1\n", {"set_id": "s"}, "t.csv:1: column 1: expected a name, got none"),
        ("7;8\n1;2\n", {"set_id": "s"}, "t.csv: expected the column \"s\", got '7;8'"),
        ("s;x\n1;2\n1;\n1;2,5\n", {"set_id": "s"}, 't.csv:4: "x": expected numbers such as'),
        ("s;x\n1;2;3\n", {"set_id": "s"}, "t.csv:2: expected 2 columns, got 3"),
        ("s,x\n", {"set_id": 0}, "set_id: expected a text, got 0"),
        ("s,x\n", {"set_id": "s"}, "t.csv: expected a header and at least one row"),
        ('s,x\n1,"2\n', {"set_id": "s"}, "not CSV"),
        (f"s,{'x' * 200_000}\n1,2\n", {"set_id": "s"}, "t.csv:1: a cell has more than 131,072"),
    ],
)
def test_refuses_malformed_table_and_names_the_line(tmp_path, text, options, complaint):
    with pytest.raises(InputError) as error:
        ptrnet.read_table(write_text(tmp_path, text), **options)
    assert complaint in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e400", "9" * 5000])
def test_refuses_to_learn_from_infinite_numbers(tmp_path, cell):
    table = formats.table_of(write_text(tmp_path, f"s,x\n1,2\n1,{cell}\n"))
    with pytest.raises(InputError, match=r't\.csv:3: "x": expected a finite number, got -?inf'):
        infer_sets(table, Columns(set_id="s"))


def test_names_that_look_like_numbers_stay_texts(tmp_path):
    """007 and 7 are two ids. A column is numeric only if all its cells are plain numbers."""
    text = "id,zip,sku,n,x,y\n007,01234,9007199254740993,nan,1,1.50\n7,02222,12,1_1,,-2e1\n"
    first, second = ptrnet.read_table(write_text(tmp_path, text), set_id="id")
    assert (first.extra, second.extra) == ({"id": "007"}, {"id": "7"})
    assert first.elements == [
        {"zip": "01234", "sku": 9007199254740993, "n": "nan", "x": 1, "y": 1.5}
    ]
    assert second.elements == [{"zip": "02222", "sku": 12, "n": "1_1", "x": None, "y": -20.0}]


def tables_with_categories(folder):
    """Return tables whose column `size` has the same three levels, and is categorical by type."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    order, sizes = [1, 1, 2, 2], [10, 2, None, 10]
    texts = ["10", "2", None, "10"]
    frame = pandas.DataFrame({"order": order, "size": pandas.Categorical(sizes, ordered=True)})
    frame.to_parquet(folder / "t.parquet")
    yield frame
    yield frame.assign(size=pandas.Categorical([10.0, 2.0, None, 10.0]))
    yield frame.assign(size=pandas.Categorical(texts))
    for dtype in (polars.Categorical, polars.Enum(["2", "10"])):
        yield polars.DataFrame({"order": order, "size": polars.Series(texts, dtype=dtype)})
    yield pa.table({"order": order, "size": pa.array(sizes).dictionary_encode()})
    yield folder / "t.parquet"


def tables_of_arrays(columns, tmp_path):
    """Return tables with the columns of NumPy arrays: frames of three libraries, and a file."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    frame, path = pandas.DataFrame(columns), tmp_path / "numbers.parquet"
    parquet.write_table(pyarrow.table(columns), path, row_group_size=64)
    return [frame, polars.DataFrame(columns), pyarrow.table(columns), str(path)]


def test_columns_that_are_arrays_are_read_as_lists_are(tmp_path):
    rng = np.random.default_rng(0)
    columns = {
        "id": np.repeat(np.arange(50), 4).astype(np.uint32),
        "place": np.tile([3, 1, 2, 4], 50).astype(np.int8),
        "code": rng.integers(0, 3, 200),
        "single": rng.random(200).astype(np.float32),
        "double": np.where(rng.random(200) < 0.5, -1.0, rng.random(200)),
        "small": rng.random(200).astype(np.float16),
    }
    columns = {name: column[rng.permutation(200)] for name, column in columns.items()}
    rows = [
        dict(zip(columns, row, strict=True))
        for row in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
    names, reading = Columns(set_id="id", rank="place"), Reading(categories=["code"])
    schema, expected = infer_sets(Table.of(rows), names, reading)
    assert schema.common[1:3] == ((), (-1.0,))
    for values in tables_of_arrays(columns, tmp_path):
        table = formats.table_of(values)
        assert {name for name in columns if isinstance(table.columns[name], Numbers)} == {*columns}
        own, found = infer_sets(table, names, reading)
        assert own == schema and found.fingerprint == expected.fingerprint
        assert json.dumps(found.column("extra")) == json.dumps(expected.column("extra"))
        assert found.column("rows") == expected.column("rows")
        for one in (table, table.take(np.arange(200))):
            elements = json.dumps([row.elements for row in read_sets(one, names)])
            assert elements == json.dumps(
                [row.elements for row in read_sets(Table.of(rows), names)]
            )


@pytest.mark.parametrize("label", ["type", "dtype", "null_count", "hasnans", "combine_chunks"])
def test_labels_of_an_index_do_not_matter(label):
    """Once, `series.type` was the cell of the row "type", so a category was read as a number."""
    pandas = pytest.importorskip("pandas")
    columns = {"id": [1, 1, 2, 2], "size": pandas.Categorical([2, 1, 2, 1]), "x": [3, 4, 5, 7]}
    schemas = [
        infer_sets(Table.of(pandas.DataFrame(columns, index=index)), Columns(set_id="id"))[0]
        for index in (range(4), [label, 1, 2, 3], [label] * 4)
    ]
    assert schemas[0].categories == (("1", "2"), ())
    assert schemas == schemas[:1] * 3


def test_columns_of_other_types_are_refused_in_one_line():
    pyarrow = pytest.importorskip("pyarrow")
    structs = pyarrow.array([{}, {}], pyarrow.struct([]))
    table = pyarrow.table({"id": [1, 1], "s": structs})
    with pytest.raises(InputError, match='row 0: "s": expected a number'):
        infer_sets(Table.of(table), Columns(set_id="id"))
    batch = pyarrow.RecordBatch.from_pydict({"id": [1, 1], "x": [3, 4]})
    assert infer_sets(Table.of(batch), Columns(set_id="id"))[1].elements.tolist() == [[3], [4]]


def test_arrays_with_gaps_or_large_numbers_are_read_as_lists_are(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    large = {"id": np.array([1, 1]), "x": np.array([3, 2**53 + 1])}
    for values in tables_of_arrays(large, tmp_path):
        with pytest.raises(InputError, match=r'"x": .*9007199254740993, which it rounds to'):
            infer_sets(formats.table_of(values), Columns(set_id="id"))
    nan = {"id": np.array([2.0, np.nan, 1.0]), "x": np.arange(3)}
    for values in tables_of_arrays(nan, tmp_path)[1:]:  # pandas reads NaN as a gap
        with pytest.raises(InputError, match=r'row \d: "id": expected a name or a number, got nan'):
            read_sets(formats.table_of(values), Columns(set_id="id"))
    gaps = {"id": [1, 1, 1], "x": [3, None, 7]}
    for frame in (
        pandas.DataFrame(gaps),
        pandas.DataFrame(gaps).astype({"x": "Int64"}),
        pandas.DataFrame(gaps).astype({"x": "float32"}),
        polars.DataFrame(gaps),
        polars.DataFrame(gaps).with_columns(x=polars.Series([3.0, float("nan"), 7.0])),
    ):
        schema, data = infer_sets(Table.of(frame), Columns(set_id="id"))
        assert schema.fills == (("x", 5.0),)
        assert data.elements.tolist() == [[3, 0], [5, 1], [7, 0]]


def test_the_type_of_a_column_makes_whole_numbers_categories(tmp_path):
    """Once, the numbers of a pandas `category` column were read as numbers."""
    for values in tables_with_categories(tmp_path):
        schema, data = infer_sets(formats.table_of(values), Columns(set_id="order"))
        assert (schema.fields, schema.categories) == (("size",), (("", "10", "2"),))
        assert data.elements.tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
        plain = Table.of([{"size": size} for size in (2, 10.0, "10")])
        assert plain.encode(schema).tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0]]


def test_categorical_columns_of_single_sets_and_of_ids_and_answers_are_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": [10, 2, 10]}).astype("category")
    assert infer_schema([(rows_of(frame), "frame")]).categories == (("10", "2"),)
    rows = pandas.DataFrame(ROWS).assign(grade=[0, 2, 1, 1], chosen=[1, 1, 0, 0])
    typed = rows.astype({"order": "category", "place": "category", "grade": "category"})
    typed = typed.astype({"chosen": "category"})
    for role, name in (("rank", "place"), ("grade", "grade"), ("chosen", "chosen")):
        columns = Columns(set_id="order", **{role: name})
        for given, expected in zip(
            read_sets(Table.of(typed), columns),
            read_sets(Table.of(rows), columns),
            strict=True,
        ):
            assert given.outputs.tolist() == expected.outputs.tolist()


def test_quoted_text_keeps_its_blank_lines(tmp_path):
    path = write_text(tmp_path, 'id,t\n\n1,"one\n\ntwo"\n \n1,x\n')
    (example,) = ptrnet.read_table(path, set_id="id")
    assert [e["t"] for e in example.elements] == ["one\n\ntwo", "x"]


def test_ranks_may_be_decimals():
    rows = [{"id": 1, "rank": Decimal(rank)} for rank in ("3", "NaN", "1.5")]
    assert ptrnet.read_table(rows, set_id="id", rank="rank")[0].outputs.tolist() == [2, 0]


def test_ranks_may_have_any_number_of_digits(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"s,r\n1,{'1' * 5000}\n1,{'1' * 4999}0\n1,3\n")
    assert ptrnet.read_table(path, set_id="s", rank="r")[0].outputs.tolist() == [2, 1, 0]


def test_refuses_booleans_as_ranks():
    """True sorts after False, so the chosen element would have come last."""
    rows = [{"id": 1, "rank": True}, {"id": 1, "rank": False}]
    with pytest.raises(InputError, match=r"row 0: .* got True; if the column marks the elements"):
        ptrnet.read_table(rows, set_id="id", rank="rank")
    assert ptrnet.read_table(rows, set_id="id", member="rank")[0].outputs.tolist() == [0]


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), ""])
def test_missing_cell_is_not_in_the_answer_and_is_refused_as_an_id(missing):
    rows = [{"id": 1, "rank": rank, "in": "yes"} for rank in (3, missing, 1, missing, 0)]
    (example,) = ptrnet.read_table(rows, set_id="id", rank="rank")
    assert example.outputs.tolist() == [4, 2, 0]
    rows = [{"id": 1, "in": label} for label in (True, missing, 1, 0)]
    assert ptrnet.read_table(rows, set_id="id", member="in")[0].outputs.tolist() == [0, 2]
    for key in (missing, True, [1]):
        with pytest.raises(InputError, match=r'^row 0: "id": expected a name or a number'):
            ptrnet.read_table([{"id": key}], set_id="id")


@pytest.mark.parametrize("key", ["inputs", "outputs", "group"])
def test_refuses_an_id_column_whose_name_has_a_meaning_in_jsonl(tmp_path, capsys, key):
    table, lines = write_text(tmp_path, TABLE.replace("order", key)), tmp_path / "t.jsonl"
    columns = ["--set-id", key, "--rank", "place"]
    assert run(["convert", table, str(lines), *columns]) == 2
    assert (
        f'the key "{key}" is reserved in a line' in capsys.readouterr().err and not lines.exists()
    )


def test_sets_that_a_column_named_group_tells_are_not_written_as_lines(tmp_path, capsys):
    """In a line, this key would say that the set is a group."""
    table = write_text(tmp_path, TABLE.replace("order", "group"))
    columns = Columns(set_id="group", rank="place")
    task = infer_task(table, columns=columns).task
    solver, lines = small_solver("custom", "set-ptr-net", **to_mapping(task)), tmp_path / "t.jsonl"
    for write in (
        partial(solver.solve_file, table, lines),
        partial(solver.evaluate_file, table, lines),
    ):
        with pytest.raises(InputError, match=r'^set_id: the key "group" is reserved in a line'):
            write(columns=columns)
        assert not lines.exists()
    assert solver.evaluate_file(table, columns=columns).groups == set()
    lines.write_text('{"inputs": [{"x": 1}, {"x": 2}], "outputs": [1, 0], "group": "a"}\n' * 2)
    convert = ["convert", str(lines), str(tmp_path / "b.csv"), "--set-id=group", "--rank=place"]
    assert run(convert) == 2 and 'the key "group" is reserved' in capsys.readouterr().err


LINE = {"inputs": [{"x": 1}, {"x": 2}], "outputs": [1, 0], "id": "a"}


@pytest.mark.parametrize(
    ("others", "options", "complaint"),
    [
        ({"inputs": [{"x": 1}], "outputs": [0]}, [], 'expected the key "id" with the id'),
        ({"inputs": [{"x": 1}], "id": "b"}, [], "has no answer"),
        ({**LINE, "id": "b", "customer": "c"}, [], "expected elements with the fields x, got"),
        (LINE, [], "\"id\": expected another id for each set, got 'a' twice"),
        ({**LINE, "inputs": [{"x": 1}, 3]}, [], "element 2: expected an object, got 3"),
        ({**LINE, "outputs": [1]}, ["--task", "hull"], "--task has no effect with a long table"),
        (LINE, ["--member", "y"], "got rank and member"),
    ],
)
def test_refuses_examples_that_do_not_fit_a_table(tmp_path, capsys, others, options, complaint):
    lines = write_text(tmp_path, f"{json.dumps(LINE)}\n{json.dumps(others)}\n", "t.jsonl")
    out = tmp_path / "t.csv"
    arguments = ["convert", lines, str(out), "--set-id", "id", "--rank", "place", *options]
    assert run(arguments) == 2
    assert complaint in capsys.readouterr().err and not out.exists()


def test_other_keys_of_a_json_line_become_columns(tmp_path, capsys):
    lines = write_text(tmp_path, json.dumps({**LINE, "customer": "ACME"}) + "\n", "t.jsonl")
    out = tmp_path / "t.csv"
    assert run(["convert", lines, str(out), "--set-id", "id", "--rank", "place"]) == 0
    assert out.read_text() == "id,place,customer,x\na,2,ACME,1\na,1,ACME,2\n"
    assert run(["convert", lines, str(out), "--set-id", "ordr", "--rank", "place"]) == 2
    assert 'expected the key "ordr" with the id' in capsys.readouterr().err
    for clash in ("x", "id", "customer"):
        assert run(["convert", lines, str(out), "--set-id", "id", "--rank", clash]) == 2


@pytest.mark.parametrize("table", [None, 3, {"a": [1]}, [1, 2], [], "t.jsonl"])
def test_refuses_values_that_are_not_a_table(tmp_path, monkeypatch, table):
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path, "{}\n", "t.jsonl")
    with pytest.raises(InputError, match=r"^(table|row 0|t\.\w+): expected"):
        ptrnet.read_table(table, set_id="a")


def test_refuses_duplicate_columns_lazy_frames_and_cells_with_lists():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame([[1, 2, 3]], columns=["x", "y", "x"])
    with pytest.raises(InputError, match="has duplicate column names: \\['x'\\]"):
        ptrnet.read_table(frame, set_id="x")
    arrow = pytest.importorskip("pyarrow").table([[1], [2], [3]], names=["q", "x", "x"])
    for table in (arrow, arrow.to_batches()[0]):
        with pytest.raises(InputError, match="duplicate column names: \\['x'\\]"):
            ptrnet.read_table(table, set_id="q")
    with pytest.raises(InputError, match="expected a frame of pandas or polars, got LazyFrame"):
        ptrnet.read_table(polars.DataFrame(ROWS).lazy(), set_id="order")
    with pytest.raises(InputError, match="expected a frame of pandas or polars, got LazyFrame"):
        ptrnet.load("hull").solve(polars.DataFrame({"x": [1.0], "y": [2.0]}).lazy())
    lists = polars.DataFrame({"order": [1, 1], "place": [[1, 2], [3, 4]]})
    for options in ({"set_id": "place"}, {"set_id": "order", "rank": "place"}):
        with pytest.raises(InputError, match=r'^row 0: "place": expected a n'):
            ptrnet.read_table(lists, **options)
    with pytest.raises(InputError, match=r'^row 0: "t": expected a name or a number'):
        ptrnet.read_table(pandas.DataFrame({"t": [pandas.NaT, pandas.NaT]}), set_id="t")


def test_convert_to_jsonl_and_back_keeps_the_table(tmp_path, capsys):
    table, lines, again = write_text(tmp_path, TABLE), tmp_path / "t.jsonl", tmp_path / "again.csv"
    columns = ["--set-id", "order", "--rank", "place"]
    assert run(["convert", table, str(lines), *columns]) == 0
    first, _ = map(json.loads, lines.read_text().splitlines())
    assert first["order"] == "A" and first["outputs"] == [2, 0]
    assert first["inputs"][0] == {"price": 3.5, "colour": "red", "title": "one, two"}
    assert run(["convert", str(lines), str(again), *columns]) == 0
    assert again.read_text().splitlines() == [
        "order,place,price,colour,title",
        'A,2,3.5,red,"one, two"',
        "A,,1,blue,y",
        "A,1,0.25,red,z",
        "B,1,2,blue,x",
    ]
    text = tmp_path / "t.txt"
    assert run(["convert", str(lines), str(text), *columns]) == 0
    assert text.read_text().splitlines()[1] == "A\t2\t3.5\tred\tone, two"
    with pytest.raises(InputError, match="would lose the names of the elements' fields"):
        formats.write(str(text), ptrnet.read_table(table, set_id="order"), loosest_task(1))
    assert run(["convert", str(lines), table, "--set-id", "order"]) == 2
    assert "expected the column of the answers" in capsys.readouterr().err
    assert run(["convert", str(lines), str(again), "--set-id", "order", "--rank", "price"]) == 2
    assert "expected elements with the fields" in capsys.readouterr().err
    assert "A,1,0.25" in again.read_text()


def test_parquet_and_csv_give_the_same_sets(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = {"set_id": "order", "rank": "place"}
    pandas.DataFrame(ROWS).to_parquet(tmp_path / "t.parquet")
    expected = ptrnet.read_table(write_text(tmp_path, TABLE), **names)
    for known, read in zip(
        expected, ptrnet.read_table(str(tmp_path / "t.parquet"), **names), strict=True
    ):
        assert read.elements == known.elements and read.extra == known.extra
        assert read.outputs.tolist() == known.outputs.tolist()


@pytest.mark.parametrize(
    ("extension", "target"), [("csv", "csv"), ("parquet", "parquet"), ("csv", "parquet")]
)
def test_writes_all_columns_and_the_ranks_of_answers(tmp_path, extension, target):
    pa = pytest.importorskip("pyarrow")
    path, out = tmp_path / f"t.{extension}", tmp_path / f"out.{target}"
    if extension == "csv":
        path.write_text(TABLE)
    else:
        types = {"when": pa.array([1, 2, 3, 4], pa.timestamp("ns"))}
        columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
        pa.parquet.write_table(pa.table({**columns, **types}), path)
    columns = Columns(set_id="order", rank="answer")
    table = formats.table_of(path)
    solved = read_sets(table, Columns(set_id="order"))
    solved = solved.with_answers([np.array([1, 2, 0]), np.array([0])])
    formats.write_table(str(out), answered(table, columns, solved, "permutation"))
    before, after = formats.table_of(path), formats.table_of(out)
    assert [*before.columns, "answer"] == list(after.columns)
    assert [int(place) for place in after.columns["answer"]] == [3, 1, 1, 2]
    for name in before.columns:
        assert list(before.values(name)) == list(after.values(name))
    for columns in (Columns(set_id="order"), Columns(set_id="order", rank="place")):
        with pytest.raises(InputError, match=r'has a column "place" already; name .* \(--rank'):
            answered(table, columns, solved, "grades")


def test_choices_are_written_as_ones_and_zeros():
    table, columns = Table.of(ROWS), Columns(set_id="order")
    sets = read_sets(table, columns)
    solved = sets.with_answers([np.array([2]), np.array([0])])
    assert answered(table, columns, solved, "choice").columns["chosen"] == [0, 1, 0, 1]
    twice = sets.with_answers([np.array([1, 1]), np.array([0])])
    with pytest.raises(
        InputError, match="order 'A': a column cannot hold an answer that has an element twice"
    ):
        answered(table, Columns(set_id="order", rank="answer"), twice, "sequence")


def test_columns_are_found_by_name_and_others_are_ignored():
    columns = Columns(set_id="order", rank="place")
    schema, data = infer_sets(Table.of(ROWS), columns, Reading(["price", "colour"]))
    shuffled = [{"new": 1, **dict(reversed(row.items()))} for row in ROWS]
    again = sets_for_task(Table.of(shuffled), Columns(set_id="order"), task_of(schema))
    assert again.elements.tolist() == data.elements.tolist()
    assert data.elements[:, 0].tolist() == [3.5, 1, 0.25, 2]
    with pytest.raises(InputError, match=r'^table: expected the column "price", got'):
        sets_for_task(Table.of([{"order": 1}]), Columns(set_id="order"), task_of(schema))


def test_ids_and_texts_of_many_values_are_not_fields_by_default():
    rows = [{"s": k // 2, "id": k, "title": f"t{k}", "x": k} for k in range(2002)]
    with pytest.warns(AmbiguousInputWarning, match=r'^"title": more than 1000 different texts'):
        schema, _ = infer_sets(Table.of(rows), Columns(set_id="s"))
    assert schema.fields == ("x",)
    with pytest.raises(InputError, match="expected at most 1000 different texts, got more"):
        infer_sets(Table.of(rows), Columns(set_id="s"), Reading(["title"]))


def test_doubts_a_column_of_numbers_that_has_a_text(tmp_path):
    text = "".join(f"{k // 2},{k},{'abcd'[k % 4]}\n" for k in range(8)).replace(",5,", ",0.5.1,")
    table = formats.table_of(write_text(tmp_path, "s,x,letter\n" + text))
    with pytest.warns(AmbiguousInputWarning) as seen:
        schema, _ = infer_sets(table, Columns(set_id="s"))
    assert [str(warning.message) for warning in seen] == [
        f"{tmp_path / 't.csv'}:7: \"x\": expected a number, as in most rows, got '0.5.1'; "
        "because of this cell, the column is read as texts"
    ]
    assert schema.fields == ("x", "letter")


def test_elements_of_a_json_line_may_have_their_fields_in_any_order(tmp_path):
    line = {"s": 1, "inputs": [{"x": 1, "c": "a"}, {"c": "b", "x": 2}], "outputs": [1]}
    path = write_text(tmp_path, json.dumps(line) + "\n", "t.jsonl")
    columns = ["--set-id", "s", "--chosen", "bought"]
    assert run(["convert", path, str(tmp_path / "t.csv"), *columns]) == 0
    assert (tmp_path / "t.csv").read_text() == "s,bought,x,c\n1,0,1,a\n1,1,2,b\n"


def test_standard_input_is_refused_as_a_long_table():
    with pytest.raises(InputError, match=r"^a long table cannot be read from standard input"):
        formats.open_table("-", Columns(set_id="s"))


def test_refuses_a_text_in_a_numeric_column_and_names_its_line(tmp_path):
    task = task_of(Schema(("x",), ((),)))
    path = write_text(tmp_path, "s,x\na,1\na,2\nb,007\n")
    with pytest.raises(InputError, match=r't\.csv:4: "x": expected a number, got \'007\''):
        list(formats.read(path, task, Columns(set_id="s")))
