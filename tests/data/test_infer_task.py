"""The task inferred from a user's own examples follows its definition."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats, infer_task
from ptrnet.data.columns import Columns
from ptrnet.errors import InputError
from ptrnet.types import Example


@pytest.fixture
def write_examples(tmp_path):
    """Return a function that writes examples and returns the path of the file."""

    def write(answers, n=3, d=2, extension="jsonl"):
        rng = np.random.default_rng(0)
        task = tasks.get("custom", center=(0.0,) * d, spread=(1.0,) * d)
        path = tmp_path / f"mine.{extension}"
        examples = [Example(rng.random((n, d)), np.array(a, np.int64)) for a in answers]
        formats.write(str(path), examples, task)
        return str(path)

    return write


@pytest.fixture(params=[2**20, 1], ids=["one chunk", "a chunk for each row"])
def chunks(request, monkeypatch):
    monkeypatch.setattr(infer_task, "_CHUNK", request.param)


@pytest.mark.parametrize("extension", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([[2, 0, 1], [0, 1, 2]], "permutation"),
        ([[2, 0, 1], [0, 1]], "subset"),
        ([[2], []], "subset"),
        ([[2], [0], [1]], "choice"),
        ([[0, 1], [1]] * 19, "subset"),
        ([[0, 1], [1]] * 20, "set"),
        ([[0, 1], [1]] * 40 + [[2, 1]], "subset"),
        ([[2, 0, 1], [0, 1, 2], [1, 1, 2]], "sequence"),
        ([[0, 1, 2, 0], [0, 1, 2]], "sequence"),
    ],
)
def test_infers_the_strictest_kind(write_examples, chunks, answers, expected, extension):
    inferred = infer_task.infer_task(write_examples(answers, extension=extension))
    assert inferred.task.kind == expected
    assert inferred.task.longest_answer == max(map(len, answers))
    assert inferred.task.longest_share == max(map(len, answers)) / 3
    assert inferred.examples.lengths.tolist() == [len(a) for a in answers]


def test_refuses_answers_of_another_kind_and_names_the_line(write_examples, chunks):
    path = write_examples([[2, 0, 1], [0, 1], [1, 1], [2, 2], [1]])
    assert infer_task.infer_task(path).task.kind == "sequence"
    for kind, line, complaint in (
        ("permutation", 2, "expected all 3 indices, got 2"),
        ("subset", 3, "each index at most once, got 1 twice"),
        ("choice", 1, "expected one index, got 3"),
        ("grades", 2, "expected all 3 indices, got 2"),
    ):
        with pytest.raises(InputError, match=rf'mine.jsonl:{line}: "outputs": answer: {complaint}'):
            infer_task.infer_task(path, kind)
    assert infer_task.infer_task(write_examples([[2, 0, 1]]), "sequence").task.kind == "sequence"


@pytest.mark.parametrize(
    ("extension", "third"), [("jsonl", "jsonl:3"), ("parquet", "parquet: row 3")]
)
def test_answers_for_a_known_task_are_refused_as_by_its_reader(
    write_examples, chunks, extension, third
):
    path = write_examples([[2, 0, 1], [0, 1], [1, 1], [0, 1, 2, 0], [2, 2]], extension=extension)
    free = infer_task.infer_task(path).task
    infer_task.open_for_task(path, free)
    for kind in ("subset", "permutation"):
        task = replace(free, kind=kind)
        with pytest.raises(InputError) as checked:
            infer_task.open_for_task(path, task)
        with pytest.raises(InputError) as read:
            list(formats.read(path, task))
        assert str(checked.value) == str(read.value)
    short = replace(free, longest_answer=1, longest_share=1 / 3)
    with pytest.raises(InputError, match=r"mine.* expected at most 1 indices, got 3"):
        infer_task.open_for_task(path, short)
    path = write_examples([[1], [0], [1, 1], [0, 0, 0]], extension=extension)
    with pytest.raises(InputError, match=f"mine.{third}: expected at most 1 indices, got 2"):
        infer_task.open_for_task(path, short)
    with pytest.raises(InputError, match="expected elements of 3 numbers, got 2"):
        wider = replace(free, center=(0.0,) * 3, spread=(1.0,) * 3, lowest=())
        infer_task.open_for_task(path, wider)


def test_reads_the_file_once_if_no_answer_is_refused(write_examples, monkeypatch):
    path = write_examples([[2, 0, 1], [0, 1]])
    task = infer_task.infer_task(path).task
    monkeypatch.setattr(formats, "read_instances", None)  # not called
    infer_task.open_for_task(path, task)
    assert infer_task.infer_task(path, "subset").task == task


def test_refuses_a_file_that_changes_while_it_is_checked(write_examples, monkeypatch):
    path = write_examples([[2, 0, 1], [0, 0]])
    task = replace(infer_task.infer_task(path).task, kind="subset")
    monkeypatch.setattr(formats, "read_instances", lambda path, task: iter(()))
    with pytest.raises(InputError, match=r"mine\.jsonl: was changed while it was read"):
        infer_task.open_for_task(path, task)


def test_feature_scaling_equals_mean_and_deviation_in_long_double(tmp_path, chunks):
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=(n, 4)) * [1, 1e150, 1e-9, 0] + [1e9, 0, 5, 7] for n in (3, 8, 5)]
    path = tmp_path / "mine.jsonl"
    path.write_text(
        "".join(json.dumps({"inputs": i.tolist(), "outputs": [0]}) + "\n" for i in inputs)
    )
    task = infer_task.infer_task(str(path)).task
    every = np.concatenate(inputs).astype(np.longdouble)
    np.testing.assert_allclose(task.center, every.mean(0).astype(float), rtol=1e-14, atol=1e137)
    expected = every.std(0).astype(float)
    expected[3] = 1
    np.testing.assert_allclose(task.spread, expected, rtol=1e-5)
    seen = np.concatenate([task.normalize(i) for i in inputs])
    np.testing.assert_allclose(seen[:, :3].std(0), 1, rtol=1e-5)
    assert (seen[:, 3] == 0).all()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "holds no instance"),
        ('{"inputs": [], "outputs": []}', "expected elements of one number or more"),
        ('{"inputs": [[]], "outputs": []}', "expected elements of one number or more"),
        ('{"outputs": [1]}', '"inputs": expected a list of elements, got none; a problem'),
        (
            '{"inputs": [["a"]], "outputs": [0]}',
            "expected elements of one number or more, got strings",
        ),
        ('{"inputs": [[1, 2]]}', "mine.jsonl:1: has no answer to train on"),
        ('{"inputs": [[1, 2]], "outputs": []}', "every answer is empty"),
        ('{"inputs": [[1, 2]], "outputs": [1]}', "index 1: expected 0 to 0, got 1"),
        (
            '{"inputs": [[1, 2]], "outputs": [0]}\n{"inputs": [[1, 2, 3]], "outputs": [0]}',
            r"mine.jsonl:2: .*expected shape \(n, 2\) for custom, got \(1, 3\)",
        ),
        ("[1]", "expected a JSON object"),
        (
            '{"inputs": [{"x": 1}, 3]}',
            'mine.jsonl:1: "inputs": element 2: expected an object, got 3',
        ),
    ],
)
def test_refuses_files_without_usable_examples(tmp_path, text, complaint):
    path = tmp_path / "mine.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        infer_task.infer_task(str(path))


def test_refuses_tables_whose_answers_are_all_empty(tmp_path):
    (tmp_path / "sets.csv").write_text("basket,price,bought\na,1,0\na,2,0\nb,3,0\n")
    columns = Columns(set_id="basket", member="bought")
    with pytest.raises(InputError, match=r"sets\.csv: every answer is empty"):
        infer_task.infer_task(str(tmp_path / "sets.csv"), columns=columns)


def test_refuses_formats_that_do_not_tell_the_number_of_features(tmp_path):
    (tmp_path / "mine.txt").write_text("1 2 3 output 1\n")
    with pytest.raises(InputError, match=r"a .txt file does not say .* to \.jsonl or \.parquet"):
        infer_task.infer_task(str(tmp_path / "mine.txt"))
    with pytest.raises(InputError, match="cannot be read: No such file"):
        infer_task.infer_task(str(tmp_path / "none.jsonl"))


def test_refuses_parquet_columns_that_cannot_hold_examples(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    tables = {
        'column "inputs" occurs twice': pa.Table.from_arrays(
            [pa.array([[[1.0]]])] * 2, names=["inputs", "inputs"]
        ),
        'expected a column "inputs", got outputs': pa.table({"outputs": [[0]]}),
        'row 1: "inputs": expected .* got booleans': pa.table({"inputs": [[[True]]]}),
        'row 1: "inputs": expected .* got strings': pa.table({"inputs": ["a text"]}),
    }
    for complaint, table in tables.items():
        parquet.write_table(table, tmp_path / "mine.parquet")
        with pytest.raises(InputError, match=complaint):
            infer_task.infer_task(str(tmp_path / "mine.parquet"))
