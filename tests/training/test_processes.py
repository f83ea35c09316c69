"""One training in two processes: the batches, the gradients and the resume of one."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.generate import generate_examples
from ptrnet.data.streams.example_stream import ExampleStream
from ptrnet.data.streams.file_stream import FileStream
from ptrnet.data.streams.ranks import rows_of
from ptrnet.errors import InputError
from ptrnet.pretrained.model_folder import load
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train

COMMAND = [sys.executable, "-m", "ptrnet", "train"]
OPTIONS = ["--hidden-size", "16", "--batch-size", "16", "--n", "5-9", "--valid-every", "4"]
OPTIONS += ["--valid-batches", "1", "--checkpoint-every", "6", "--precision", "float32"]


@pytest.mark.parametrize("count", [0, 1, 5, 16])
@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_parts_are_the_whole(count, ranks):
    rows = [list(range(count))[rows_of(count, rank, ranks)] for rank in range(ranks)]
    assert [i for part in rows for i in part] == list(range(count))
    assert max(map(len, rows)) - min(map(len, rows)) <= 1


def elements_and_tokens(batch):
    for inputs, n, targets, m in zip(*batch, strict=True):
        if m:
            yield inputs[:n].tolist(), targets[:m].tolist()


@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_share_the_batches_of_one(tmp_path, ranks):
    task = tasks.get("hull")
    path = str(tmp_path / "hull.txt")
    formats.write(path, generate_examples(task, [3, 5, 8], 19, seed=1), task)
    for stream in (ExampleStream(task, [4, 7], 9, seed=2), FileStream(path, task, [3, 5, 8], 6, 2)):
        for k in range(8):
            whole = list(elements_and_tokens(stream.batch(k)))
            parts = [stream.batch(k, rank, ranks) for rank in range(ranks)]
            assert [row for part in parts for row in elements_and_tokens(part)] == whole
            assert all(len(part.lengths) for part in parts)


def trained(folder, *options):
    command = [*COMMAND, "hull", *OPTIONS, *options, "--output", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder}\n"
    return load(folder).model.state_dict()


def test_two_processes_learn_what_one_does(tmp_path):
    """By plain gradient descent, where the weights are as near as the gradients are."""
    two = trained(
        tmp_path / "two",
        *("--steps", "12", "--optimizer", "sgd", "--learning-rate", "0.5", "--devices", "2"),
    )
    recipe = replace(Recipe.read(tmp_path / "two" / "recipe.toml"), devices=1)
    one = train(recipe, tmp_path / "one").model.state_dict()
    start = train(replace(recipe, steps=1, learning_rate=1e-9), tmp_path / "start")
    one, two, start = (
        torch.cat([w.ravel() for w in weights.values()])
        for weights in (one, two, start.model.state_dict())
    )
    assert (one - two).norm() < 1e-4 * (one - start).norm()


def test_two_processes_that_were_killed_resume_to_the_same_weights(tmp_path, stalled_training):
    options = ["--steps", "20", "--checkpoint-every", "10", "--devices", "2"]
    straight = trained(tmp_path / "straight", *options)
    folder = tmp_path / "killed"
    stalled_training(folder, "hull", *OPTIONS, *options, stall_at=15).kill()
    assert not (folder / "config.json").exists()
    assert torch.load(folder / "checkpoint.ckpt", weights_only=True)["global_step"] == 10
    resumed = subprocess.run([*COMMAND, "--output", folder, "--resume"], timeout=240)
    assert resumed.returncode == 0
    for name, weights in load(folder).model.state_dict().items():
        assert torch.equal(weights, straight[name])


def test_two_processes_take_a_file_of_ones_own_and_speak_once(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"inputs": [[1], [2]], "outputs": [1]}\n' * 20)
    options = ["--data", str(path), "--steps", "2", "--hidden-size", "4", "--devices", "2"]
    command = [*COMMAND, *options, "--output", str(tmp_path / "m")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path / 'm'}\n"
    assert done.stderr.count("taken as subset (guessed") == 1
    assert done.stderr.count("step 2/2") == 1


def test_batches_must_be_shared_evenly():
    with pytest.raises(InputError, match="a batch of 16 cannot be shared evenly by 3 processes"):
        Recipe("hull", batch_size=16, devices=3)
    Recipe("hull", batch_size=16, devices=2, nodes=4)
