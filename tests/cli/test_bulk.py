"""Long labelling runs that are killed, resumed, and shared among processes."""

import os
import signal
import time

import pytest

import ptrnet as library
from ptrnet import labellers, tasks
from ptrnet.data import formats
from ptrnet.run import CHUNK

DEADLINE = 120  # seconds to wait for work that takes two seconds on a quiet machine

# After its first chunk is on the disk, the run writes `waiting` and waits to be stopped.
WAITING = """
import pathlib
import signal
import sys
import threading
from ptrnet import sinks

write, interrupted = sinks._write_chunk, threading.Event()

def write_and_wait(*arguments):
    write(*arguments)
    pathlib.Path("waiting").touch()
    interrupted.wait(300)

def interrupt(*arguments):
    interrupted.set()
    signal.default_int_handler(*arguments)

sinks._write_chunk = write_and_wait
signal.signal(signal.SIGINT, interrupt)
"""
PROGRAM = WAITING + "from ptrnet.cli import run; sys.exit(run(sys.argv[1:]))"
LIBRARY = WAITING + (
    "import ptrnet\n"
    "if __name__ == '__main__':\n"
    "    ptrnet.generate('sort', 5, 1000, output=sys.argv[-1], jobs=int(sys.argv[-3]))"
)

SORT = ["generate", "sort", "--n", "5", "--count", "1000"]
GENERATE = ["generate", "sort", "--n", "5", "--jobs", "1"]


def stop_after_a_chunk(process, folder, signal_number):
    """Stop a process while it waits in a folder; return its exit code and messages."""
    deadline = time.monotonic() + DEADLINE
    try:
        while not (folder / "waiting").exists():
            assert process.poll() is None, f"it ended before its first chunk: {process.stderr}"
            assert time.monotonic() < deadline, f"no chunk was written in {DEADLINE} seconds"
            time.sleep(0.02)
        os.killpg(process.pid, signal_number)
        code = process.wait(DEADLINE)
    finally:
        process.kill()
    (folder / "waiting").unlink()
    return code, process.stderr


@pytest.mark.parametrize(
    ("code", "jobs", "signal_number"),
    [
        (PROGRAM, 2, signal.SIGKILL),
        (PROGRAM, 1, signal.SIGINT),
        (LIBRARY, 2, signal.SIGINT),
    ],
    ids=["killed with its workers", "interrupted", "library"],
)
def test_a_stopped_job_resumes(ptrnet, fork_server, tmp_path, capsys, code, jobs, signal_number):
    """A kill runs no code of ours, so the library is only interrupted."""
    whole, resumed = tmp_path / "whole.txt", tmp_path / "resumed.txt"
    folder = tmp_path / "resumed.txt.partial"
    assert ptrnet(*SORT, "--jobs", "1", "--output", whole)[0] == 0
    words = [*SORT, "--jobs", jobs, "--output", resumed]
    process = fork_server.start(code, *words, cwd=tmp_path)
    exit_code, errors = stop_after_a_chunk(process, tmp_path, signal_number)
    assert exit_code not in (0, 1) and not resumed.exists() and folder.exists()
    if signal_number == signal.SIGINT:
        assert "the same command continues" in errors
    if code == PROGRAM and signal_number == signal.SIGINT:
        assert exit_code == 130 and "Traceback" not in errors
    (first,) = folder.glob("000000-*.txt")
    done = first.read_bytes()
    if code == PROGRAM:
        assert ptrnet(*SORT, "--jobs", 3 - jobs, "--output", resumed)[0] == 0
    else:
        capsys.readouterr()
        library.generate("sort", "5", 1000, output=resumed, jobs=3 - jobs)
        assert f"resuming after {CHUNK} examples" in capsys.readouterr().err
    assert resumed.read_bytes() == whole.read_bytes()
    assert resumed.read_bytes().startswith(done)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["resumed.txt", "whole.txt"]


def test_ptrnet_generate_in_python_resumes_a_job_of_the_command(
    ptrnet, tmp_path, capsys, monkeypatch
):
    whole, output = tmp_path / "whole.txt", tmp_path / "a.txt"
    ptrnet(*SORT, "--output", whole)
    monkeypatch.setattr("ptrnet.sinks._join", interrupted)
    assert ptrnet(*SORT, "--output", output)[0] == 130
    monkeypatch.undo()
    library.generate("sort", n="5", count=1000, output=output)
    assert "resuming after 1,000 examples" in capsys.readouterr().err
    assert output.read_bytes() == whole.read_bytes()
    output.unlink()
    monkeypatch.setattr("ptrnet.sinks._join", interrupted)
    assert ptrnet("label", "sort", whole, "--output", output)[0] == 130
    monkeypatch.undo()
    with pytest.raises(library.InputError, match=r"unfinished job with other options \(command"):
        library.generate("sort", 5, 3, output=output)
    library.label("sort", whole, output=output, jobs=2)
    assert "resuming after 1,000 examples" in capsys.readouterr().err
    assert output.read_bytes() == whole.read_bytes()


def test_a_job_resumes_only_if_the_files_content_is_the_same(ptrnet, tmp_path, capsys, monkeypatch):
    source, output = tmp_path / "in.txt", tmp_path / "a.txt"
    source.write_text("0.5 0.25\n" * 300)
    monkeypatch.setattr("ptrnet.sinks._join", interrupted)
    assert ptrnet("label", "sort", source, "--output", output)[0] == 130
    monkeypatch.undo()
    before = source.stat()
    source.write_text("0.5 0.75\n" * 300)  # as long and as old
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    code, _, errors = ptrnet("label", "sort", source, "--output", output)
    assert code == 2 and "unfinished job with other options (sha256 " in errors
    source.write_text("0.5 0.25\n" * 300)
    code, _, errors = ptrnet("label", "sort", source, "--output", output)
    assert code == 0 and "resuming after 300 examples" in errors


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("output", ["-", "a.txt"])
def test_a_small_count_starts_no_other_process(ptrnet, tmp_path, monkeypatch, output):
    def refuse(*_, **__):
        pytest.fail("other processes were started")

    monkeypatch.setattr("joblib.Parallel", refuse)
    monkeypatch.chdir(tmp_path)
    arguments = ["--jobs", "-1", "--output", output]
    assert ptrnet(*GENERATE[:-2], "--count", CHUNK, *arguments)[0] == 0
    (tmp_path / "in.txt").write_text("0.5 0.25\n" * CHUNK)
    arguments[-1] = output.replace("a", "b")
    code, out, _ = ptrnet("label", "sort", "in.txt", *arguments)
    text = out if output == "-" else (tmp_path / "b.txt").read_text()
    assert code == 0 and text == "0.5 0.25 output 2 1\n" * CHUNK


def test_the_labeller_is_checked_once(ptrnet, monkeypatch, tmp_path):
    checked, check = [], labellers.check_labeller

    def counting(task, labeller):
        checked.append(labeller)
        check(task, labeller)

    monkeypatch.setattr(labellers, "check_labeller", counting)
    assert ptrnet(*GENERATE[:3], "5,7", "--count", 9, "--jobs", 1, "--output", "-")[0] == 0
    (tmp_path / "in.txt").write_text("0.5 0.25\n0.5\n0.3 0.2\n")
    assert ptrnet("label", "sort", tmp_path / "in.txt", "--labeller", "argsort")[0] == 0
    assert ptrnet("evaluate", "sort", "--random", 9, "--n", "5,7")[0] == 0
    assert checked == [None, "argsort", None]


def test_labels_do_not_depend_on_jobs_and_keep_what_else_a_line_has(ptrnet, tmp_path):
    rows = [f'{{"inputs": [[0.{k}], [0.5]], "name": "n{k}"}}\n' for k in range(1, 1000)]
    (tmp_path / "in.jsonl").write_text("".join(rows))
    for jobs in ("1", "2"):
        arguments = ["--jobs", jobs, "--output", tmp_path / f"{jobs}.jsonl"]
        assert ptrnet("label", "sort", tmp_path / "in.jsonl", *arguments)[0] == 0
    labelled = (tmp_path / "1.jsonl").read_text()
    assert labelled == (tmp_path / "2.jsonl").read_text()
    assert '"name": "n7"' in labelled.splitlines()[6] and len(labelled.splitlines()) == 999


@pytest.mark.parametrize("extension", ["jsonl", "parquet", "txt"])
def test_unproved_tours_are_counted_and_marked(ptrnet, tmp_path, monkeypatch, extension):
    from ptrnet.labellers import exact

    monkeypatch.setattr(exact, "WORK", 1)
    five = "0.1 0.2 0.9 0.3 0.4 0.8 0.7 0.7 0.2 0.6\n"  # proved by dynamic programming
    nine = "0.1 0.2 0.9 0.3 0.4 0.8 0.7 0.7 0.2 0.6 0.5 0.5 0.8 0.9 0.3 0.1 0.6 0.4\n"
    (tmp_path / "in.txt").write_text(five + nine + five + nine)
    output = tmp_path / f"a.{extension}"
    code, _, errors = ptrnet("label", "tsp", tmp_path / "in.txt", "--output", output)
    assert code == 0 and errors.startswith("2 answers are the best that was found, not proved")
    answered = list(formats.read(str(output), tasks.get("tsp")))
    assert all(sorted(e.outputs) == list(range(len(e.inputs))) for e in answered)
    said = [e.extra.get("proved", True) for e in answered]
    assert said == ([True] * 4 if extension == "txt" else [True, False] * 2)
    output.unlink()
    code, _, errors = ptrnet("label", "tsp", tmp_path / "in.txt", "--strict", "--output", output)
    assert code == 2 and "in.txt:2: no tour was proved" in errors and not output.exists()


def test_a_bad_line_late_in_the_file_leaves_nothing(ptrnet, tmp_path):
    (tmp_path / "in.txt").write_text("0.1 0.2\n" * 600 + "0.1 x\n")
    code, _, errors = ptrnet("label", "sort", tmp_path / "in.txt", "--output", tmp_path / "a.txt")
    assert code == 2 and "in.txt:601" in errors
    assert [p.name for p in tmp_path.iterdir()] == ["in.txt"]


def test_a_labeller_that_cannot_serve_is_refused_with_the_line(ptrnet, tmp_path):
    row = " ".join(["0.5"] * 2 * 21)
    (tmp_path / "in.txt").write_text("0.1 0.2 0.3 0.4\n" + row + "\n")
    code, _, errors = ptrnet("label", "tsp", tmp_path / "in.txt", "--labeller", "held-karp")
    assert code == 2 and "in.txt:2: labeller held-karp: expected at most 20 elements" in errors
    code, _, errors = ptrnet(
        "generate", "tsp", "--n", "5-100", "--count", "9", "--output", tmp_path / "b.txt"
    )
    assert code == 2 and "exact: expected at most 80" in errors and "local-search" in errors
    assert not (tmp_path / "b.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--jobs", "0"], "jobs: expected 1 or more"),
        (["--backend", "spark"], "unknown backend 'spark'"),
        (["--n", "2"], "n: expected 3 or more for delaunay, got 2"),
    ],
)
def test_refused_before_anything_is_written(ptrnet, tmp_path, arguments, complaint):
    valid = ["generate", "delaunay", "--n", "5", "--count", "3", "--output", tmp_path / "a.txt"]
    code, _, errors = ptrnet(*valid, *arguments)
    assert code == 2 and complaint in errors and not list(tmp_path.iterdir())
