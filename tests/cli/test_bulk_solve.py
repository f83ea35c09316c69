"""Files that are answered in chunks: killed, resumed, by several processes; lines as they come."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

import ptrnet as library
from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.jobs import CHUNK
from ptrnet.types import Example
from tests.cli.test_bulk import PROGRAM, interrupted, stop_after_a_chunk

COUNT = 2 * CHUNK + 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small model, instances of three sizes, and the answers that the library gives to them."""
    folder = tmp_path_factory.mktemp("bulk")
    rng = np.random.default_rng(0)
    numbers = [rng.random((int(n), 1)) for n in rng.integers(2, 5, COUNT)]
    formats.write(
        str(folder / "in.jsonl"),
        [Example(x, extra={"name": k}) for k, x in enumerate(numbers)],
        tasks.get("sort"),
    )
    library.fit(
        [(x, np.argsort(x[:, 0])) for x in numbers[:40]],
        "permutation",
        steps=3,
        hidden_size=8,
        output=folder / "model",
    )
    solver = library.load(folder / "model")
    answered = [
        Example(x, a, extra={"name": k})
        for k, (x, a) in enumerate(zip(numbers, solver.solve(numbers), strict=True))
    ]
    formats.write(str(folder / "out.jsonl"), answered, solver.task)
    return folder


def test_killed_and_started_again_it_goes_on(ptrnet, folder, tmp_path):
    """Begun by two processes, ended by one: the answers that the library gives in one call."""
    solve = ["solve", "--model", folder / "model", folder / "in.jsonl"]
    output = tmp_path / "out.jsonl"
    command = [*solve, "--output", output, "--jobs", 2]
    stop_after_a_chunk(PROGRAM, command, tmp_path, signal.SIGKILL)
    (first,) = (tmp_path / "out.jsonl.partial").glob("000000-*.jsonl")
    done = first.read_bytes()
    assert done.count(b"\n") == CHUNK and not output.exists()
    code, _, errors = ptrnet(*solve, "--output", output, "--jobs", 1)
    assert code == 0 and f"resuming after {CHUNK} examples" in errors
    assert output.read_bytes() == (folder / "out.jsonl").read_bytes()
    assert output.read_bytes().startswith(done)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.jsonl"]


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (["--decoder", "beam"], "decoder"),
        (["--free"], "constrained"),
        (["--augment", "2"], "augment"),
    ],
)
def test_other_work_is_not_gone_on_with(ptrnet, folder, tmp_path, monkeypatch, other, what):
    solve = ["solve", "--model", folder / "model", folder / "in.jsonl"]
    solve += ["--output", tmp_path / "out.jsonl"]
    monkeypatch.setattr("ptrnet.jobs._join", interrupted)
    assert ptrnet(*solve)[0] == 130
    monkeypatch.undo()
    code, _, errors = ptrnet(*solve, *other)
    assert code == 2 and f"unfinished job with other options ({what}" in errors


def test_another_network_is_other_work(folder, tmp_path, monkeypatch):
    solver = library.load(folder / "model")
    monkeypatch.setattr("ptrnet.jobs._join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solver.solve_file(folder / "in.jsonl", tmp_path / "out.jsonl")
    monkeypatch.undo()
    next(solver.model.parameters()).data[0] += 1
    with pytest.raises(library.InputError, match=r"unfinished job with other options \(weights"):
        solver.solve_file(folder / "in.jsonl", tmp_path / "out.jsonl")


def test_a_line_that_cannot_be_used_leaves_nothing(ptrnet, folder, tmp_path):
    lines = (folder / "in.jsonl").read_text().splitlines()
    lines[CHUNK + 3] = '{"inputs": [["x"]]}'
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    command = ["solve", "--model", folder / "model", tmp_path / "bad.jsonl"]
    code, out, errors = ptrnet(*command, "--output", tmp_path / "out.jsonl")
    assert (code, out) == (2, "") and f"bad.jsonl:{CHUNK + 4}: " in errors
    assert [p.name for p in tmp_path.iterdir()] == ["bad.jsonl"]
    code, out, errors = ptrnet(*command)
    assert (code, out) == (2, "") and f"bad.jsonl:{CHUNK + 4}: " in errors


def test_one_document_is_the_same_by_many_processes(ptrnet, folder):
    command = ["solve", "--model", folder / "model", folder / "in.jsonl", "--json"]
    code, document, _ = ptrnet(*command)
    assert code == 0 and len(json.loads(document)["answers"]) > CHUNK
    assert ptrnet(*command, "--jobs", "2")[:2] == (0, document)


def test_lines_are_answered_as_they_come():
    """Each before the next is written; what cannot be used ends it, after the answers before."""
    command = [sys.executable, "-m", "ptrnet", "solve", "sort", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        for line, answer in (("0.5 0.1 0.9", "2 1 3"), ("0.7 0.2", "2 1")):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{line} output {answer}\n"
        out, errors = process.communicate("0.4 0.3\n0.1 x\n", timeout=120)
        assert out == "0.4 0.3 output 2 1\n"
        assert process.returncode == 2 and "standard input:4: " in errors
        assert errors.count("\n") == 1
