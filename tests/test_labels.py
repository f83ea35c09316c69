"""`ptrnet.generate` and `ptrnet.label`, in memory and into files."""

import sys

import numpy as np
import pytest

import ptrnet
from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.run import CHUNK


def pairs_in(path, task):
    return [(e.inputs, e.outputs) for e in formats.read(str(path), tasks.get(task))]


def assert_same(pairs, others):
    for (inputs, outputs), (other_inputs, other_outputs) in zip(pairs, others, strict=True):
        assert np.array_equal(inputs, other_inputs) and np.array_equal(outputs, other_outputs)


@pytest.mark.parametrize("task", tasks.names())
@pytest.mark.parametrize("extension", ["txt", "jsonl", "parquet"])
def test_pairs_and_files_hold_the_same(tmp_path, task, extension):
    path = tmp_path / f"a.{extension}"
    pairs = ptrnet.generate(task, n="3-6", count=20, seed=3)
    assert ptrnet.generate(task, n="3-6", count=20, seed=3, output=path) is None
    assert_same(pairs, pairs_in(path, task))
    assert {len(inputs) for inputs, _ in pairs} == {3, 4, 5, 6}
    assert all(
        inputs.dtype == np.float64 and outputs.dtype == np.int64 for inputs, outputs in pairs
    )
    if task == "reading-order":  # its labellers are rules, and the answers those of the grammar
        return
    assert_same(ptrnet.label(task, path), pairs)
    labelled = tmp_path / f"b.{extension}"
    assert ptrnet.label(task, str(path), output=str(labelled)) is None
    assert labelled.read_bytes() == path.read_bytes()


def test_pairs_do_not_depend_on_count_or_jobs():
    pairs = ptrnet.generate("hull", 5, CHUNK + 9, seed=1)
    assert_same(ptrnet.generate("hull", "5", CHUNK + 9, seed=1, jobs=2), pairs)
    assert_same(ptrnet.generate("hull", 5, 4, seed=1), pairs[:4])
    other = ptrnet.generate("hull", 5, 1, seed=2)[0]
    assert not np.array_equal(other[0], pairs[0][0])


def test_the_labeller_and_the_tasks_settings_are_used():
    # Two exact algorithms must agree.
    cities = ptrnet.generate("tsp", 8, 5, labeller="held-karp")
    assert_same(ptrnet.generate("tsp", 8, 5, labeller="exact"), cities)
    leftmost = ptrnet.generate(tasks.get("hull", start="leftmost"), 8, 20)
    for inputs, outputs in leftmost:
        assert outputs[0] == inputs[:, 0].argmin()


def test_standard_output_has_the_format_of_the_input(capsys, monkeypatch, tmp_path):
    assert ptrnet.generate("sort", 2, 3, output="-") is None
    out = capsys.readouterr().out
    assert out.count(" output ") == 3
    (tmp_path / "a.tsp").write_text(
        "TYPE : TSP\nDIMENSION : 2\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
        "1 0 0\n2 3 4\nEOF\n"
    )
    assert ptrnet.label("tsp", tmp_path / "a.tsp", output="-") is None
    assert "COMMENT : length 10\nTYPE : TOUR\n" in capsys.readouterr().out
    ((_, outputs),) = ptrnet.label("tsp", tmp_path / "a.tsp")
    assert outputs.tolist() == [0, 1]


CUSTOM = tasks.get(tasks.CUSTOM, center=(0.0,), spread=(1.0,))
VALID = {"n": 5, "count": 3}


@pytest.mark.parametrize(
    ("task", "arguments", "complaint"),
    [
        ("hul", {}, "unknown task 'hul'; did you mean 'hull'"),
        (
            CUSTOM,
            {},
            "task custom has no labeller: no algorithm computes its answers; train a model",
        ),
        ("hull", {"n": "5-"}, "n: expected 50, 5-50 or 5,10,20-30, got '5-'"),
        ("hull", {"n": 0}, "n: expected 1 <= A <= B <= 100000, got '0'"),
        ("delaunay", {"n": 2}, "n: expected 3 or more for delaunay, got 2"),
        ("hull", {"count": 0}, "count: expected a whole number of 1 or more, got 0"),
        ("hull", {"count": 2.5}, "count: expected a whole number of 1 or more, got 2.5"),
        ("hull", {"seed": -1}, "seed: expected a whole number of 0 or more, got -1"),
        ("hull", {"jobs": 0}, "jobs: expected 1 or more, or -1 for one per core, got 0"),
        ("hull", {"backend": "spark"}, "unknown backend 'spark'"),
        ("hull", {"labeller": "qhul"}, "unknown labeller of task hull 'qhul'"),
        ("tsp", {"n": "5-81"}, "labeller exact: expected at most 80 elements, got 81"),
        ("hull", {"output": "a.xls"}, "unknown file format 'xls'"),
        ("hull", {"output": "no/a.txt"}, "no/a.txt: cannot be written: there is no folder no"),
        ("hull", {"output": "a.tour"}, "a.tour: .tour files are for task tsp, not for hull"),
        ("hull", {"output": "a.csv"}, "a .csv file holds one instance; write several to"),
    ],
)
def test_generate_refuses_bad_arguments_with_one_line_and_writes_nothing(
    tmp_path, monkeypatch, task, arguments, complaint
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        ptrnet.generate(task, **{**VALID, "output": "a.txt", **arguments})
    assert complaint in str(error.value) and "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "arguments", "complaint"),
    [
        ("0 0 1 0 0 1\n", {"file": "none.txt"}, "none.txt: cannot be read: No such file"),
        ("0 0 1 0 0 1\n", {"labeller": "held"}, "unknown labeller of task tsp 'held'"),
        ("0 0 1 0 0 1\n", {"jobs": -2}, "jobs: expected 1 or more, or -1"),
        ("0 0 1 0 0 1\n", {"output": "in.xls"}, "unknown file format 'xls'"),
        ("0 0 1 0\n0 0 1 x\n", {}, "in.txt:2: field 4: expected a number, got 'x'"),
        ("", {}, "in.txt: holds no instance"),
        (
            "0 0 1 1\n" + "0.5 " * 42 + "\n",
            {"labeller": "held-karp"},
            "in.txt:2: labeller held-karp: expected at most 20 elements, got 21",
        ),
    ],
)
@pytest.mark.parametrize("output", ["a.txt", None])
def test_label_refuses_bad_input_with_one_line_and_writes_nothing(
    tmp_path, monkeypatch, text, arguments, complaint, output
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text(text)
    with pytest.raises(InputError) as error:
        ptrnet.label("tsp", **{"file": "in.txt", "output": output, **arguments})
    assert complaint in str(error.value) and "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"ptrnet\[ray\]"):
        ptrnet.generate("sort", 5, 3, output=tmp_path / "a.txt", backend="ray")
    assert not list(tmp_path.iterdir())


def test_instances_in_memory_that_a_file_cannot_hold_are_refused(tmp_path):
    """A .txt file has no names of fields, so it would lose them silently."""
    corner = [{"x": 0.1, "y": 0.2}, {"x": 0.9, "y": 0.3}, {"x": 0.4, "y": 0.8}]
    with pytest.raises(InputError, match="would lose the names of the elements' fields"):
        ptrnet.label("hull", [corner, corner], output=tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())
    ptrnet.label("hull", [corner, corner], output=tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text().count('"x": 0.1') == 2


RAGGED = [[[[1.0], [1.0, 2.0]]] * 3] * 3


@pytest.mark.parametrize("values", [np.array(5.0), [np.array(1.0)] * 3, RAGGED])
def test_values_that_are_neither_points_nor_a_matrix_are_refused(values):
    with pytest.raises(InputError, match=r"^instance"):
        ptrnet.label("tsp", values)
