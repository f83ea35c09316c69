"""svmlight files with `qid:`, with LETOR's comments, and with LightGBM's `.query` files."""

import numpy as np
import pytest

import ptrnet
from ptrnet import InputError
from ptrnet.cli import run
from ptrnet.data import formats
from ptrnet.data.columns import Columns
from ptrnet.data.infer_task import infer_task, loosest_task
from ptrnet.data.tables import Table, read_sets
from ptrnet.types import Example, ranking

LETOR = """# made by hand
2 qid:10 1:0.5 3:-2e1 46:1 # GX000-00 inc = 1
0 qid:10 1:0.25
1 qid:9 3:4 46:7 #docid = b

1 qid:10 46:2
"""


def written(tmp_path, text, name="r.svmlight"):
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def test_lines_of_one_query_are_a_set_and_missing_features_are_zero(tmp_path):
    ten, nine = infer_task(written(tmp_path, LETOR)).examples
    assert ten.inputs.tolist() == [[0.5, -20, 1], [0.25, 0, 0], [0, 0, 2]]
    assert ten.grades.tolist() == [2, 0, 1] and ten.outputs.tolist() == [0, 2, 1]
    assert nine.inputs.tolist() == [[0, 4, 7]] and nine.extra == {"qid": "9"}
    task = infer_task(written(tmp_path, LETOR, "r.svm")).task
    assert task.kind == "grades" and task.fields == ("1", "3", "46")


def test_model_ignores_features_that_it_does_not_know(tmp_path):
    task = infer_task(written(tmp_path, LETOR)).task
    later = written(tmp_path, "0 qid:1 2:9 46:3\n", "later.svm")
    (example,) = formats.read(later, task)
    assert example.inputs.tolist() == [[0, 0, 3]]


def test_query_file_sets_the_sizes_for_any_extension(tmp_path):
    path = written(tmp_path, "1 0:1\n0 0:2\n2 0:3\n", "rank.train")
    written(tmp_path, "2\n1\n", "rank.train.query")
    first, second = infer_task(path).examples
    assert first.grades.tolist() == [1, 0] and second.inputs.tolist() == [[3]]
    written(tmp_path, "2\n2\n", "rank.train.query")
    with pytest.raises(InputError, match=r"rank\.train\.query: expected 3 rows in all, .*got 4"):
        infer_task(path)
    for size in ("-1", "1.5", "1" * 5000):
        written(tmp_path, f"3\n{size}\n", "rank.train.query")
        with pytest.raises(InputError, match=r"rank\.train\.query:2: number of rows: expected"):
            infer_task(path)


def test_random_rankings_survive_a_write_and_a_read(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {
            "s": f"q{s}",
            "grade": int(rng.integers(5)),
            **{str(k): float(rng.normal()) for k in (3, 20)},
        }
        for s in range(8)
        for _ in range(rng.integers(1, 6))
    ]
    examples = read_sets(Table.of(rows), Columns(set_id="s", grade="grade"))
    path = str(tmp_path / "r.svmlight")
    formats.write(path, [e.replace(extra={"qid": e.extra["s"]}) for e in examples], loosest_task(1))
    again = read_sets(*formats.open_table(path))
    for known, read in zip(examples, again, strict=True):
        assert read.elements == known.elements and read.extra == {"qid": known.extra["s"]}
        assert read.grades.tolist() == known.grades.tolist()


@pytest.mark.parametrize("command", ["solve", "evaluate"])
def test_models_of_other_tasks_refuse_the_format(tmp_path, capsys, command):
    assert run([command, "hull", written(tmp_path, LETOR)]) == 2
    assert ".svmlight files are for task custom, not for hull" in capsys.readouterr().err


def test_convert_keeps_comments_and_numbers(tmp_path):
    path, lines, again = written(tmp_path, LETOR), tmp_path / "r.jsonl", tmp_path / "again.svm"
    assert run(["convert", path, str(lines)]) == 0
    assert run(["convert", str(lines), str(again)]) == 0
    assert again.read_text().splitlines() == [
        "2 qid:10 1:0.5 3:-20 46:1 # GX000-00 inc = 1",
        "0 qid:10 1:0.25",
        "1 qid:10 46:2",
        "1 qid:9 3:4 46:7 # docid = b",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1 1:2\n", "r.svmlight: expected qid:ID after the grade, or a file"),
        ("1 qid:1 1:2\n1 1:2\n", ":2: expected qid:ID after the grade in every line"),
        ("x qid:1 1:2\n", ":1: grade: expected a number, got 'x'"),
        ("1 qid:1 a:2\n", ":1: expected INDEX:VALUE, got 'a:2'"),
        ("1 qid:1 1\n", ":1: expected INDEX:VALUE, got '1'"),
        ("1 qid:1 1:nan\n", ":1: feature 1: expected a finite number"),
        ("1 qid:1 1:2 1:3\n", ":1: feature 1 occurs twice"),
        ("# nothing\n", "holds no instance"),
    ],
)
def test_refuses_malformed_lines_and_names_them(tmp_path, text, complaint):
    with pytest.raises(InputError) as error:
        infer_task(written(tmp_path, text))
    assert complaint in str(error.value) and "\n" not in str(error.value)


def test_refuses_examples_that_the_format_cannot_hold(tmp_path):
    path = str(tmp_path / "r.svm")
    plain = Example(np.ones((2, 1)), np.array([0, 1]), "here")
    named = plain.replace(elements=[{"price": 1}, {"price": 2}], grades=np.ones(2))
    missing = named.replace(elements=[{"1": float("nan")}, {"1": 2}])
    no_numbers = "needs numbers, and indices"
    for example, words in ((plain, "needs grades"), (named, no_numbers), (missing, no_numbers)):
        with pytest.raises(InputError, match=f"^here.*{words}"):
            formats.write(path, [example], loosest_task(1))
    with pytest.raises(InputError, match="files are for task custom"):
        formats.write(path, [plain], ptrnet.tasks.get("hull"))


def test_refuses_an_answer_that_is_not_in_the_order_of_the_grades(tmp_path):
    path = str(tmp_path / "r.svm")
    example = Example(np.ones((3, 1)), np.array([2, 0, 1]), "here", grades=np.array([1.0, 1, 2]))
    for outputs in ([2, 0, 1], [2, 1, 0]):  # a tie
        formats.write(path, [example.replace(outputs=np.array(outputs))], loosest_task(1))
    for outputs in ([0, 1, 2], [2]):
        with pytest.raises(InputError, match=r"^here: .*lose the answer"):
            formats.write(path, [example.replace(outputs=np.array(outputs))], loosest_task(1))


def test_lines_are_not_counted_as_sets(tmp_path):
    assert formats.count_instances(written(tmp_path, LETOR)) is None


def test_rankings_of_arrays_are_numbered_from_one(tmp_path):
    path = str(tmp_path / "r.svm")
    grades = np.array([0.5, 2])
    example = Example(np.array([[1, 0.1], [0, 3]]), ranking(grades), grades=grades)
    formats.write(path, [example, example], loosest_task(2))
    assert (tmp_path / "r.svm").read_text().splitlines()[:2] == [
        "0.5 qid:1 1:1 2:0.1",
        "2 qid:1 2:3",
    ]
    assert [e.inputs.tolist() for e in infer_task(path).examples] == [example.inputs.tolist()] * 2
