"""Long labelling runs, as they are killed, resumed, and shared among processes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from ptrnet.data.generate import CHUNK

SLOW = ["generate", "tsp", "--n", "13", "--count", "1000", "--labeller", "held-karp"]


def start(arguments):
    command = [sys.executable, "-m", "ptrnet", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, text=True)


def stop_after_a_chunk(arguments, lines, how):
    with start(arguments) as process:
        while not (lines.exists() and lines.read_bytes().count(b"\n") >= CHUNK):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        os.killpg(process.pid, how)
        _, errors = process.communicate(timeout=30)
    return process.returncode, errors


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_and_started_again_it_continues(ptrnet, tmp_path, how):
    whole, resumed = tmp_path / "whole.txt", tmp_path / "resumed.txt"
    lines = tmp_path / "resumed.txt.partial.txt"
    ptrnet(*SLOW[:-1], "exact", "--output", whole)  # other labeller, the same shortest tours
    code, errors = stop_after_a_chunk([*SLOW, "--jobs", "1", "--output", resumed], lines, how)
    assert not resumed.exists() and lines.exists()
    if how == signal.SIGINT:
        assert code == 130 and "the same command goes on" in errors and "Traceback" not in errors
    done = lines.read_bytes()
    code, _, errors = ptrnet(*SLOW, "--jobs", "2", "--output", resumed)
    assert code == 0 and "going on behind" in errors
    assert resumed.read_bytes() == whole.read_bytes()
    assert resumed.read_bytes().startswith(done[: done.rindex(b"\n", 0, len(done) // 2)])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["resumed.txt", "whole.txt"]


GENERATE = ["generate", "sort", "--n", "5", "--jobs", "1"]


@pytest.mark.parametrize("count", [100, 300, 500])
def test_a_stopped_run_may_be_made_shorter_or_only_lack_its_end(
    ptrnet, tmp_path, count, monkeypatch
):
    whole, again = tmp_path / "whole.txt", tmp_path / "again.txt"
    ptrnet(*GENERATE, "--count", count, "--output", whole)
    monkeypatch.setattr("ptrnet.data.resumable.ResumableFile.finish", interrupted)
    assert ptrnet(*GENERATE, "--count", 500, "--output", again)[0] == 130
    monkeypatch.undo()
    assert ptrnet(*GENERATE, "--count", count, "--output", again)[0] == 0
    assert again.read_bytes() == whole.read_bytes()


def interrupted(partial, task):
    raise KeyboardInterrupt


def test_a_full_disk_loses_nothing(ptrnet, tmp_path, monkeypatch):
    output, written = tmp_path / "a.txt", []

    def full(handle):
        written.append(handle)
        if len(written) == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("ptrnet.data.resumable.os.fsync", full)
    code, _, errors = ptrnet(*GENERATE, "--count", 1000, "--output", output)
    assert code == 2 and "No space left" in errors and "kept in" in errors
    monkeypatch.undo()
    code, _, errors = ptrnet(*GENERATE, "--count", 1000, "--output", output)
    assert (
        code == 0 and "going on behind" in errors and len(output.read_text().splitlines()) == 1000
    )


def test_labels_do_not_depend_on_jobs_and_keep_what_else_a_line_has(ptrnet, tmp_path):
    rows = [f'{{"inputs": [[0.{k}], [0.5]], "name": "n{k}"}}\n' for k in range(1, 1000)]
    (tmp_path / "in.jsonl").write_text("".join(rows))
    for jobs in ("1", "2"):
        arguments = ["--jobs", jobs, "--output", tmp_path / f"{jobs}.jsonl"]
        assert ptrnet("label", "sort", tmp_path / "in.jsonl", *arguments)[0] == 0
    found = (tmp_path / "1.jsonl").read_text()
    assert found == (tmp_path / "2.jsonl").read_text()
    assert '"name": "n7"' in found.splitlines()[6] and len(found.splitlines()) == 999


def test_a_bad_line_far_down_leaves_nothing(ptrnet, tmp_path):
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
        (["--jobs", "0"], "--jobs: expected 1 or more"),
        (["--backend", "spark"], "unknown backend 'spark'"),
        (["--n", "2"], "n: expected 3 or more for delaunay, got 2"),
    ],
)
def test_refused_before_anything_is_written(ptrnet, tmp_path, arguments, complaint):
    given = ["generate", "delaunay", "--n", "5", "--count", "3", "--output", tmp_path / "a.txt"]
    code, _, errors = ptrnet(*given, *arguments)
    assert code == 2 and complaint in errors and not list(tmp_path.iterdir())
