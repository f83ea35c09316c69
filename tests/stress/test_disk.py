"""Full or broken disks: one clear error, the old file intact, and no incomplete new file.

When the disk works again, the same command gives what it would have given.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.labels import generate_dataset
from tests.stress.failing_disk import failing, library
from tests.stress.programs import only_in_stress, run, start
from tests.stress.test_kills import TRAIN
from tests.support.fork_server import ForkServer
from tests.support.small_models import small_solver

OLD = b"old\n"
CALLS = 40  # the disk fails at one of the first 40 calls, or at one after it


class Command(NamedTuple):
    """A command that writes one file. `{inputs}` stands for a folder of inputs."""

    arguments: str
    output: str


GENERATE = "generate sort --n 4 --count 600 --jobs 1 --output {output}"
COMMANDS = {
    "generate-txt": Command(GENERATE, "a.txt"),
    "generate-parquet": Command(GENERATE, "a.parquet"),
    "label": Command("label hull {inputs}/in.jsonl --jobs 1 --output {output}", "a.jsonl"),
    "solve": Command(
        "solve --model {inputs}/model {inputs}/in.jsonl --jobs 1 --output {output}", "a.txt"
    ),
    "convert": Command("convert {inputs}/in.jsonl {output} --task hull", "a.parquet"),
    "plot": Command(
        "solve --model {inputs}/model {inputs}/in.jsonl --output - --plot {output}", "a.svg"
    ),
}


class Whole(NamedTuple):
    """The result of a command on a disk that works."""

    inputs: Path
    content: bytes


def _arguments(command: Command, inputs: Path, output: Path) -> list[str]:
    return command.arguments.format(inputs=inputs, output=output).split()


def _prepare(server: ForkServer, command: Command, folder: Path) -> Whole:
    small_solver(scale=8.0).save_pretrained(folder / "model")
    task = tasks.get("hull")
    formats.write(str(folder / "in.jsonl"), generate_dataset(task, [5], 300, seed=1), task)
    output = folder / command.output
    run(server, _arguments(command, folder, output))
    return Whole(folder, output.read_bytes())


def _case(
    server: ForkServer, command: Command, whole: Whole, rng: np.random.Generator, folder: Path
) -> str:
    (folder / "files").mkdir()
    output = folder / "files" / command.output
    old = OLD if rng.random() < 0.5 else None
    if old is not None:
        output.write_bytes(old)
    name, environment = failing(output.parent, rng, CALLS)
    arguments = _arguments(command, whole.inputs, output)
    program = start(server, arguments, **environment)
    code = program.wait()
    if code == 0:
        assert output.read_bytes() == whole.content
        return "done before it failed"
    _check_complaint(code, program.stderr)
    content = output.read_bytes() if output.exists() else None
    assert content == old, f"half a file, or no old one: {content!r}"[:300]
    assert not [p for p in output.parent.iterdir() if p.name.startswith(".")], "temporary files"
    run(server, arguments)
    assert output.read_bytes() == whole.content, "other bytes than on a disk that works"
    return name


def _check_complaint(code: int, text: str) -> None:
    """Refuses what is no one clear line; beside it may stand where the beginning is kept."""
    lines = [line for line in text.splitlines() if not line.startswith(("kept in", "going on"))]
    assert code in (1, 2), (code, text[-2000:])
    complaints = [line for line in lines if line.startswith("ptrnet: ")]
    assert len(complaints) == 1 and "Traceback" not in text, text[-3000:]


def _prepare_training(server: ForkServer, folder: Path) -> Whole:
    run(server, [*TRAIN, "--output", folder / "run"])
    return Whole(folder, (folder / "run" / "model.safetensors").read_bytes())


def _train(server: ForkServer, whole: Whole, rng: np.random.Generator, folder: Path) -> str:
    (folder / "files").mkdir()
    output = folder / "files" / "run"
    name, environment = failing(output, rng, 2 * CALLS)
    program = start(server, [*TRAIN, "--output", output], **environment)
    code = program.wait()
    if code:
        _check_complaint(code, program.stderr)
        begun = (output / "recipe.toml").exists()
        rest = ["train", "--resume"] if begun else TRAIN
        run(server, [*rest, "--output", output])
    content = (output / "model.safetensors").read_bytes()
    assert content == whole.content, "other weights than on a disk that works"
    return name if code else "done before it failed"


needs_compiler = pytest.mark.skipif(library() is None, reason="needs Linux and a C compiler")


@only_in_stress
@needs_compiler
@pytest.mark.parametrize("name", COMMANDS)
def test_a_failing_disk_is_one_line_of_error(name, programs, try_cases, tmp_path):
    whole = _prepare(programs, COMMANDS[name], tmp_path)
    try_cases(partial(_case, programs, COMMANDS[name], whole), 100)


@only_in_stress
@needs_compiler
def test_a_training_on_a_failing_disk_can_be_finished(programs, try_cases, tmp_path):
    try_cases(partial(_train, programs, _prepare_training(programs, tmp_path)), 100)
