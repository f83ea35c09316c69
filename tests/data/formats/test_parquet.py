"""Parquet files, compared with what pyarrow reads and with recorded bytes."""

import base64
import zlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.formats import parquet as parquet_format
from ptrnet.data.infer_task import infer_task
from ptrnet.errors import InputError
from ptrnet.types import LARGEST, Example

HULL, SORT = tasks.get("hull"), tasks.get("sort")
DELAUNAY, TSP = tasks.get("delaunay"), tasks.get("tsp")
POINTS = np.array([[0.0, 0.5], [1.0, 0.25], [0.1, 1e-7], [0.30000000000000004, 0.2]])
LISTS = pa.list_(pa.list_(pa.float64()))

# Two rows: three points with the answer [0, 1, 2] and the id "a", one point without an answer.
RECORDED = zlib.decompress(
    base64.b85decode(
        b"c-nQ6%}T>S5XU#$bq%G5TxRJ)4!tBOw8g3|9)iJ(Xz8JN@)~NyKtE!VD)<Jzf$cL0o`oL02p$9vUVVh(6F8fu_"
        b"5&Se`De5L`DJ!D?W40A5EyHiWiarO12+jFIW->cDT=W{R^rQ@=`_=KcRW(@?4CSL#^0ZJhx>afKC<_(E@GR|EQ"
        b"7w_D{zjdUvYoQTBbBpv<nbrU~6@nGJ3$|W1SRv+`0059&l2pMIQ9SVG;uc-g3}XXGPWx;smH#-SoSD&+jLHEko"
        b"W~7*g|KnEb~Awrqw1&S-F9k(O#vFlkE1CMM*i#fd!6no5i3MJp2^!VoVSrmdfvp!Q9Pv)y1!mzU{D7&sJ>rNo1"
        b"IZ|f9Ygd()xv?Ykmm^{W);~All5>&hBXTlMVJ)sM~ppr|Qs$&*YDwwUKkgZbaMb|?=sdU1y;ziNmwshl1aWLqY"
        b"b{o~5YE3%0^;wb;UQZi;tRK9=Z6p"
    )
)


def written(path, examples, task=HULL):
    formats.write(str(path), examples, task)
    return parquet.read_table(path)


def read(path, task=HULL):
    return list(formats.read(str(path), task))


def test_reads_recorded_bytes(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(RECORDED)
    first, second = read(path)
    assert first.inputs.tolist() == [[0.0, 0.5], [1.0, 0.25], [0.1, 1e-7]]
    assert first.outputs.tolist() == [0, 1, 2] and first.extra == {"id": "a"}
    assert second.inputs.tolist() == [[0.30000000000000004, 0.2]]
    assert second.outputs is None and second.extra == {}
    assert second.source == f"{path}: row 2"


@pytest.mark.parametrize(
    ("task", "outputs", "kind"),
    [
        (HULL, [0, 2, 1], pa.list_(pa.int64())),
        (TSP, [0, 2, 1, 3], pa.list_(pa.int64())),
        (DELAUNAY, [[0, 2, 3], [1, 2, 3]], pa.list_(pa.list_(pa.int64()))),
    ],
    ids=["hull", "tsp", "delaunay"],
)
def test_written_columns_have_the_documented_types(tmp_path, task, outputs, kind):
    path = tmp_path / "a.parquet"
    table = written(path, [Example(POINTS, np.array(outputs)), Example(POINTS[:3])], task)
    assert table.schema.names == ["inputs", "outputs"]
    assert table.schema.types == [LISTS, kind]
    assert table.to_pylist() == [
        {"inputs": POINTS.tolist(), "outputs": outputs},
        {"inputs": POINTS[:3].tolist(), "outputs": None},
    ]
    first = path.read_bytes()
    written(path, read(path, task), task)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    "kind",
    [
        LISTS,
        pa.list_(pa.list_(pa.float32())),
        pa.list_(pa.list_(pa.int8())),
        pa.large_list(pa.large_list(pa.float64())),
        pa.list_(pa.list_(pa.float64(), 2)),
    ],
    ids=str,
)
def test_reads_every_type_of_list_and_number(tmp_path, kind):
    path = tmp_path / "a.parquet"
    values = [[[0, 1], [2, 3]], [[4, 5]]]
    parquet.write_table(pa.table({"inputs": pa.array(values, kind)}), path)
    assert [e.inputs.tolist() for e in read(path)] == values
    parquet.write_table(pa.table({"inputs": [[0.5, 0.25]]}), path)
    assert read(path, SORT)[0].inputs.tolist() == [[0.5], [0.25]]


def test_other_columns_survive_reading_and_writing(tmp_path):
    path = tmp_path / "a.parquet"
    columns = {"id": ["a", None], "w": [[1, 2], []], "inputs": [[[0.0, 1.0]], [[2.0, 3.0]]]}
    parquet.write_table(pa.table(columns), path)
    table = written(tmp_path / "b.parquet", read(path))
    assert table.select(["id", "w", "inputs"]).to_pydict() == columns
    first = Example(1000 * POINTS, extra={"id": 7}, distance="EUC_2D")
    table = written(tmp_path / "c.parquet", [first, Example(POINTS)], TSP)
    assert table.select(["distance", "id"]).to_pylist() == [
        {"distance": "EUC_2D", "id": 7},
        {"distance": None, "id": None},
    ]
    assert [e.distance for e in read(tmp_path / "c.parquet", TSP)] == ["EUC_2D", "euclidean"]


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([{"w": 1}, {"w": "b"}], r'^row 0 or after it: "w": does not fit .* column: .*b'),
        ([{"w": 1}, {}, {}, {"w": "b"}], r'^row 2 or after it: "w": does not fit .* column: .*b'),
        ([{"w": 1}, {}, {"v": 1}], r'^row 2: "v": earlier examples have no such key$'),
        ([{"w": 2**70}], r'^row 0 or after it: "w": does not fit .* column: '),
    ],
)
def test_refuses_keys_that_do_not_fit_a_column(tmp_path, monkeypatch, rows, complaint):
    monkeypatch.setattr(parquet_format, "_GROUP_ELEMENTS", 2 * len(POINTS))
    examples = [Example(POINTS, source=f"row {k}", extra=row) for k, row in enumerate(rows)]
    with pytest.raises(InputError, match=complaint) as error:
        written(tmp_path / "a.parquet", examples)
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


def test_types_that_json_lacks_become_texts_or_are_refused(tmp_path):
    path, text = tmp_path / "a.parquet", tmp_path / "a.jsonl"
    columns = {
        "day": pa.array([18262], pa.date32()),
        "price": pa.array([Decimal("1.10")]),
        "seen": pa.array([1], pa.timestamp("ns")),
    }
    parquet.write_table(pa.table({"inputs": [[[0.0, 1.0]]], **columns}), path)
    formats.write(str(text), read(path), HULL)
    assert text.read_text() == (
        '{"inputs": [[0.0, 1.0]], "day": "2020-01-01", "price": "1.10", '
        '"seen": "1970-01-01 00:00:00.000000001"}\n'
    )
    parquet.write_table(pa.table({"inputs": [[[0.0, 1.0]]], "b": [b"x"]}), path)
    with pytest.raises(InputError, match=r"row 1: cannot be written as JSON: no type for bytes$"):
        formats.write(str(text), read(path), HULL)
    with pytest.raises(InputError, match=r"^row 1: cannot be written as Parquet: "):
        written(path, [Example(POINTS, source="row 1", extra={"a": {}})])


def test_writes_row_groups_and_reads_them_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_format, "_GROUP_ELEMENTS", 20 * len(POINTS))
    path = tmp_path / "a.parquet"
    taken = 0

    def examples():
        nonlocal taken
        for k in range(200):
            taken = k
            yield Example(POINTS + k)

    written(path, examples())
    assert taken == 199 and parquet.ParquetFile(path).metadata.num_row_groups == 10
    examples = read(path)
    assert [e.inputs[0, 0] for e in examples] == list(range(200))


def test_flipped_bits_are_refused_or_change_nothing(tmp_path):
    path = tmp_path / "a.parquet"
    examples = [Example(POINTS + k, np.array([0, 2, 1]), extra={"id": k}) for k in range(150)]
    written(path, examples)
    whole, rng = path.read_bytes(), np.random.default_rng(1)
    refused = 0
    for bit in rng.choice(len(whole) * 8, 150, replace=False):
        broken = bytearray(whole)
        broken[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(broken)
        try:
            read(path)
        except InputError as error:
            refused += 1
            assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
    assert refused > 50


def test_damage_in_a_later_row_group_names_the_row(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_format, "_GROUP_ELEMENTS", 100 * len(POINTS))
    path = tmp_path / "a.parquet"
    written(path, [Example(POINTS + k) for k in range(200)])
    broken = bytearray(path.read_bytes())
    column = parquet.ParquetFile(path).metadata.row_group(1).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    broken[start + column.total_compressed_size - 1] ^= 255
    path.write_bytes(broken)
    with pytest.raises(InputError, match=r"a.parquet: damaged at row 65 or after it$"):
        read(path)


def test_refuses_keys_that_are_not_unicode(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"inputs": [[0, 1]], "\\ud800": 1}\n')
    examples = read(path)
    with pytest.raises(InputError, match=r"a\.jsonl:1: cannot be written as Parquet: .*\\ud800"):
        written(tmp_path / "a.parquet", examples)
    formats.write(str(tmp_path / "b.jsonl"), examples, HULL)
    assert read(tmp_path / "b.jsonl")[0].extra == {"\ud800": 1}


def test_proved_may_be_false_only_after_the_first_row_group(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_format, "_GROUP_ELEMENTS", 4)
    path = tmp_path / "a.parquet"
    proved = Example(POINTS, np.arange(4))
    examples = [proved, proved.replace(extra={"proved": False}), proved]
    written(path, examples, TSP)
    extras = [example.extra for example in formats.read(str(path), TSP)]
    assert extras == [{}, {"proved": False}, {}]


def test_refuses_a_row_with_too_many_elements(tmp_path):
    n = LARGEST + 1
    points = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2 * n)), 2)
    table = pa.table({"inputs": pa.ListArray.from_arrays(pa.array([0, n], pa.int32()), points)})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r'row 1: "inputs": expected 1 to 100000 elements, got'):
        read(tmp_path / "a.parquet")


def test_refuses_a_damaged_count_of_dictionary_values(tmp_path):
    """Checksums do not cover the header of a dictionary page."""
    path = tmp_path / "a.parquet"
    names = [{"name": f"row {k}"} for k in range(30)]
    written(path, [Example(np.zeros((3, 2)), extra=name) for name in names])
    metadata = parquet.ParquetFile(path).metadata.row_group(0)
    columns = [metadata.column(k) for k in range(metadata.num_columns)]
    (start,) = [c.dictionary_page_offset for c in columns if c.path_in_schema == "name"]
    content = path.read_bytes()
    count = content.index(b"\x15\x3c", start)  # field 1 of the header: zigzag, 30 texts
    path.write_bytes(content[: count + 1] + b"\x34" + content[count + 2 :])
    with pytest.raises(InputError, match=r"a\.parquet: damaged|not a Parquet file"):
        read(path)


def test_structs_are_elements_with_named_fields(tmp_path):
    offers = [[{"price": 3.5, "colour": "red"}, {"price": None, "colour": "blue"}]] * 2
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"inputs": offers, "outputs": [[1], [0]]}), path)
    task, data = infer_task(str(path))
    assert task.fields == ("price", "colour") and task.kind == "choice"
    assert data.elements.tolist() == [[3.5, 0, 0, 1], [3.5, 1, 1, 0]] * 2
    assert read(path, task)[0].elements == offers[0]
