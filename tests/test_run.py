"""Jobs: what a stopped run leaves, which run may resume it, and which damage is noticed."""

import json
import multiprocessing
import os
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import ptrnet
from ptrnet import run as road
from ptrnet import sinks, tasks
from ptrnet.data import formats
from ptrnet.errors import InputError, OutputError
from ptrnet.files import locked
from ptrnet.run import CHUNK, Source
from ptrnet.sinks import sink_for
from ptrnet.types import Dataset, Example

TASK = tasks.get("sort")
ROWS = 3 * CHUNK + 7


def sorted_chunk(number):
    """Return chunk `number` of 757 examples; example k has the random numbers of seed k."""
    rows = range(number * CHUNK, min(ROWS, (number + 1) * CHUNK))
    numbers = [np.random.default_rng(k).random((4, 1)) for k in rows]
    return Dataset.of([Example(x, np.argsort(x[:, 0])) for x in numbers])


def write_chunks(function, source, task, path, activity, key, processes=1):
    """Run a function with the sink for a file; return the number of unproved answers."""
    sink = sink_for(path, source, task, activity, key)
    road.run(source, function, sink, activity, processes)
    return sink.unproved


def run(path, function=sorted_chunk, key=None, processes=1, can_resume=True):
    source = Source(range(4), ROWS, {} if can_resume else None)
    write_chunks(function, source, TASK, str(path), "sorting", key or {"seed": 1}, processes)


def interrupt(*_):
    raise KeyboardInterrupt


def stop(path, monkeypatch, at="_join"):
    """Run the job until it is interrupted; return its folder."""
    with monkeypatch.context() as patch:
        patch.setattr(sinks, at, interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(path)
    return path.with_name(f"{path.name}.partial")


def sorted_and_noted(computed, number):
    computed.append(number)
    return sorted_chunk(number)


def unproved_chunk(number):
    return Dataset.of([e.replace(extra={"proved": False}) for e in sorted_chunk(number)[:2]])


def refuse(number):
    raise AssertionError(f"chunk {number} was computed again")


@pytest.fixture
def expected(tmp_path):
    run(tmp_path / "expected.txt")
    return (tmp_path / "expected.txt").read_bytes()


def test_a_job_writes_its_rows_in_order_and_leaves_nothing_else(tmp_path):
    run(tmp_path / "a.jsonl", processes=2)
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]
    examples = list(formats.read(str(tmp_path / "a.jsonl"), TASK))
    assert len(examples) == ROWS
    for k, (inputs, outputs) in enumerate(examples):
        assert np.array_equal(inputs, np.random.default_rng(k).random((4, 1)))
        assert np.array_equal(inputs[outputs, 0], np.sort(inputs[:, 0]))


def test_unproved_answers_of_an_earlier_run_are_counted(tmp_path, monkeypatch):
    source = Source(range(4), ROWS, {})
    arguments = (source, TASK, str(tmp_path / "a.txt"), "sorting", {})
    with monkeypatch.context() as patch:
        patch.setattr(sinks, "_join", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_chunks(unproved_chunk, *arguments)
    assert write_chunks(refuse, *arguments) == 8


@pytest.mark.parametrize("name", ["hull", "delaunay"])
def test_answers_that_break_the_rules_reach_a_binary_format(tmp_path, name):
    """A model that decodes without the constraint gives such answers."""
    parquet = pytest.importorskip("pyarrow.parquet")
    task = tasks.get(name)
    wrong = {"hull": [0, 1, 0], "delaunay": [[0, 0, 1], [0, 0, 1]]}[name]
    points = np.random.default_rng(1).random((5, 2))
    data = Dataset.of([Example(points, np.array(wrong)), Example(points, np.array(wrong[:0]))])
    path = tmp_path / "a.parquet"
    write_chunks(lambda chunk: chunk, Source([data], 2, {}), task, str(path), "solving", {})
    table = parquet.read_table(path).to_pydict()
    assert table["outputs"] == [wrong, []] and table["inputs"] == [points.tolist()] * 2


def test_finished_chunks_are_not_computed_again(tmp_path, monkeypatch, expected, capsys):
    stop(tmp_path / "a.txt", monkeypatch)
    assert "the same command continues from there" in capsys.readouterr().err
    run(tmp_path / "a.txt", refuse)
    assert (tmp_path / "a.txt").read_bytes() == expected
    assert f"resuming after {ROWS} examples" in capsys.readouterr().err


@pytest.mark.parametrize("number", range(4))
def test_a_missing_or_damaged_chunk_is_computed_again(
    tmp_path, monkeypatch, expected, capsys, number
):
    for damage in (lambda b: b[:-9], lambda b: b"1" + b[1:], lambda b: b""):
        folder = stop(tmp_path / "a.txt", monkeypatch)
        (file,) = folder.glob(f"{number:06}-*")
        file.write_bytes(damage(file.read_bytes()))
        computed = []
        run(tmp_path / "a.txt", partial(sorted_and_noted, computed))
        assert computed == [number]
        assert "incomplete or damaged" in capsys.readouterr().err
        assert (tmp_path / "a.txt").read_bytes() == expected
        (tmp_path / "a.txt").unlink()
    folder = stop(tmp_path / "a.txt", monkeypatch)
    next(folder.glob(f"{number:06}-*")).unlink()
    run(tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_bytes() == expected


def test_an_unfinished_job_with_another_key_is_refused_and_left_alone(tmp_path, monkeypatch):
    folder = stop(tmp_path / "a.txt", monkeypatch)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(InputError, match=r"with other options \(seed was 1, now 2\)"):
        run(tmp_path / "a.txt", key={"seed": 2})
    with pytest.raises(InputError, match=r"with other options \(extra was None, now"):
        run(tmp_path / "a.txt", key={"seed": 1, "extra": True})
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    (folder / sinks.KEY_FILE).write_text("{")
    with pytest.raises(InputError, match="not readable; delete"):
        run(tmp_path / "a.txt")


def test_the_key_holds_task_command_options_and_version(tmp_path, monkeypatch):
    folder = stop(tmp_path / "a.txt", monkeypatch)
    key = json.loads((folder / sinks.KEY_FILE).read_text())
    assert key["task"] == "sort" and key["command"] == "sorting" and key["seed"] == 1
    assert key["order"] == "given" and key["ptrnet"]


@pytest.mark.parametrize(
    ("name", "companion"),
    [("s.tour", "s.tsp"), ("s.sol", "s.vrp"), ("s.vrp", "s.sol"), ("s.svm", "s.svm.query")],
)
def test_a_job_is_not_resumed_if_a_file_that_is_read_with_its_input_changed(
    tmp_path, name, companion
):
    keys = []
    (tmp_path / name).write_text("input")
    for text in ("old", "new", "old"):
        (tmp_path / companion).write_text(text)
        keys.append(sinks.file_source(str(tmp_path / name), [], "a.jsonl").key)
    assert keys[0] == keys[2] != keys[1]


def test_two_runs_of_one_job_at_once_are_refused(tmp_path):
    folder = tmp_path / "a.txt.partial"
    folder.mkdir()
    with locked(folder), pytest.raises(InputError, match="another process is writing it"):
        run(tmp_path / "a.txt")


def test_an_error_removes_a_new_folder_and_keeps_chunks_of_an_earlier_run(tmp_path, monkeypatch):
    def fails(number):
        if number == 2:
            raise InputError("in.txt:501: bad")
        return sorted_chunk(number)

    with pytest.raises(InputError, match=r"in\.txt:501"):
        run(tmp_path / "a.txt", fails)
    assert not list(tmp_path.iterdir())
    folder = stop(tmp_path / "a.txt", monkeypatch)
    next(folder.glob("000002-*")).unlink()
    with pytest.raises(InputError):
        run(tmp_path / "a.txt", fails)
    assert len(list(folder.glob("*-*"))) == 3


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        run(tmp_path / "missing" / "a.txt", refuse)
    with pytest.raises(InputError, match="cannot be written: File name too long"):
        run(tmp_path / ("a" * 250 + ".txt"), refuse)


def test_an_error_of_the_function_is_not_reported_as_one_of_the_output(tmp_path):
    def fails(number):
        raise FileNotFoundError(2, "No such file or directory", "companion")

    for can_resume in (True, False):
        with pytest.raises(FileNotFoundError, match="companion"):
            run(tmp_path / "a.txt", fails, can_resume=can_resume)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("can_resume", [True, False])
def test_a_chunk_that_cannot_be_written_names_the_output(tmp_path, monkeypatch, can_resume):
    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sinks, "_write_chunk", fails)
    full = SimpleNamespace(write=fails)
    monkeypatch.setattr(sinks, "SpooledTemporaryFile", lambda *_, **__: nullcontext(full))
    with pytest.raises(OutputError, match=r"a\.txt: cannot be written: No space left"):
        run(tmp_path / "a.txt", can_resume=can_resume)
    assert not list(tmp_path.iterdir())


def test_standard_output_gets_all_rows_and_unknown_formats_are_refused(tmp_path, capsys):
    run("-")
    assert capsys.readouterr().out.count("\n") == ROWS
    with pytest.raises(InputError):
        write_chunks(refuse, Source([], 0, {}), TASK, str(tmp_path / "a.xyz"), "sorting", {})


def test_chunks_of_input_that_cannot_be_read_again_are_never_resumed(tmp_path):
    """A killed job on arrays in memory must not give its rows to a job on other arrays."""

    def kill(number):
        if number == 1:
            os._exit(9)
        return sorted_chunk(3)

    process = multiprocessing.get_context("fork").Process(
        target=run, args=(tmp_path / "a.txt", kill), kwargs={"can_resume": False}
    )
    process.start()
    process.join()
    assert process.exitcode == 9
    run(tmp_path / "a.txt", can_resume=False)
    run(tmp_path / "expected.txt")
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "expected.txt").read_bytes()


def test_nothing_is_hashed_for_a_job_that_cannot_be_resumed(tmp_path, small, monkeypatch):
    instances, answered = tmp_path / "a.txt", tmp_path / "b.jsonl"
    solver = small("sort")
    ptrnet.generate("sort", 4, 3, output=instances)

    def refuse(*_):
        raise AssertionError("hashed")

    solver.evaluate_file(instances)  # loads compiled code, whose cache is hashed
    with monkeypatch.context() as patch:
        patch.setattr("hashlib.sha256", refuse)
        patch.setattr("hashlib.file_digest", refuse)
        solver.solve_file(instances, "-")
        solver.evaluate_file(instances)
        ptrnet.label("sort", instances, output="-")
        with pytest.raises(AssertionError, match="hashed"):
            solver.solve_file(instances, answered)
