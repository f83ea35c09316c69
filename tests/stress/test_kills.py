"""Kill work at any moment and start it again: its files equal those of uninterrupted work."""

import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.stress.programs import check_alone, only_in_stress, run, start
from tests.support.fork_server import ForkServer
from tests.support.small_models import small_solver

DEADLY = [signal.SIGKILL] * 3 + [signal.SIGTERM]
ONE_JOB = ["--jobs", "1"]
LINES = 1500

TRAIN = ["train", "sort", "--n", "3-4", "--steps", "24", "--hidden-size", "8", "--batch-size", "8"]
TRAIN += ["--checkpoint-every", "4", "--valid-batches", "0", "--precision", "float32"]


class Work(NamedTuple):
    """A command that takes a while and writes files."""

    begin: Callable[[Path, Path], list[object]]  # from a folder of inputs and an output path
    results: tuple[str, ...]  # files to compare, below the output path; if empty, that path


def _train(inputs: Path, output: Path) -> list[object]:
    """Return the command that starts a training, or resumes it if a killed one left a folder."""
    if (output / "recipe.toml").exists():
        return ["train", "--resume", "--output", output]
    return [*TRAIN, "--output", output]


def _label(inputs: Path, output: Path) -> list[object]:
    return ["label", "sort", inputs / "in.txt", "--output", output.with_suffix(".txt"), *ONE_JOB]


def _solve(inputs: Path, output: Path) -> list[object]:
    command = ["solve", "--model", inputs / "model", inputs / "in.txt"]
    return [*command, "--output", output.with_suffix(".jsonl"), *ONE_JOB]


WORKS = {
    "training": Work(_train, ("model.safetensors", "config.json")),
    "labelling": Work(_label, ()),
    "solving": Work(_solve, ()),
}


class Whole(NamedTuple):
    """The result of uninterrupted work."""

    inputs: Path
    seconds: float
    content: list[bytes]


def _content(work: Work, output: Path) -> list[bytes]:
    if work.results:
        return [(output / name).read_bytes() for name in work.results]
    (path,) = [p for p in output.parent.iterdir() if p.suffix in (".txt", ".jsonl")]
    return [path.read_bytes()]


def _prepare(server: ForkServer, work: Work, folder: Path) -> Whole:
    inputs, output = folder / "inputs", folder / "whole" / "out"
    inputs.mkdir()
    output.parent.mkdir()
    small_solver("sort", scale=8.0).save_pretrained(inputs / "model")
    rows = np.random.default_rng(0).random((LINES, 4)).tolist()
    text = "".join(" ".join(map(repr, row)) + "\n" for row in rows)
    (inputs / "in.txt").write_text(text, encoding="utf-8")
    command = work.begin(inputs, output)
    run(server, command)  # once more, because the first run may compile
    for path in output.parent.rglob("*"):
        if path.is_file():
            path.unlink()
    seconds = run(server, command)
    return Whole(inputs, seconds, _content(work, output))


def _case(
    server: ForkServer, work: Work, whole: Whole, rng: np.random.Generator, folder: Path
) -> str:
    output = folder / "files" / "out"
    output.parent.mkdir()
    command = work.begin(whole.inputs, output)
    if command[-2:] == ONE_JOB and rng.random() < 0.1:
        command[-1] = "2"
    program = start(server, command)
    # At random on purpose: the kill may come at any moment, or after the end.
    time.sleep(rng.uniform(0, 1.1 * whole.seconds))
    deadly = DEADLY[rng.integers(len(DEADLY))]
    is_running = program.poll() is None
    program.send_signal(deadly)
    program.wait()
    check_alone(program)
    begun = any(output.parent.iterdir())
    run(server, work.begin(whole.inputs, output))
    assert _content(work, output) == whole.content, "other bytes than without a kill"
    left = [p.name for p in output.parent.iterdir() if ".partial" in p.name and p.name[0] != "."]
    assert not left, f"left behind: {left}"
    if not is_running:
        return "had ended"
    return f"{deadly.name} {'in the midst' if begun else 'at the start'}"


@only_in_stress
@pytest.mark.parametrize("name", WORKS)
def test_killed_work_resumes_to_the_same_bytes(name, programs, try_cases, tmp_path):
    (tmp_path / "shared").mkdir()
    whole = _prepare(programs, WORKS[name], tmp_path / "shared")
    try_cases(partial(_case, programs, WORKS[name], whole), 100)
