"""A training in two processes has the batches and gradients of one, and resumes like it."""

import json
import os
import signal
import socket
import subprocess

import numpy as np
import pytest
import torch

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.stored import open_file
from ptrnet.data.streams import DatasetStream, FreshStream, rows_of_rank
from ptrnet.errors import InputError
from ptrnet.labels import generate_dataset
from ptrnet.model_folder import load
from ptrnet.training import checkpoint
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train
from tests.test_parallel import is_running, wait_until

OPTIONS = ["--devices", "2", "--steps", "12", "--checkpoint-every", "6", "--hidden-size", "16"]
OPTIONS += ["--batch-size", "16", "--valid-batches", "0", "--precision", "float32"]
OPTIONS += ["--optimizer", "sgd", "--learning-rate", "0.5"]

# The processes of two ranks, started as torchrun does, because those that Lightning starts would
# import everything again.
RANKS = """
import os, sys
from lightning_fabric.utilities.rank_zero import rank_zero_only
from ptrnet.cli import run

other = os.fork()
rank_zero_only.rank = int(other == 0)
os.environ["LOCAL_RANK"] = str(rank_zero_only.rank)
code = run(sys.argv[1:])
if other:
    code = code or os.waitstatus_to_exitcode(os.waitpid(other, 0)[1])
sys.exit(code)
"""


# Adds a callback that would end each process at another step.
ENDED = """
import os
from ptrnet.training import run as of_runs
from ptrnet.training.reports import Hooks

def ended(recipe, output, *arguments, **others):
    def ends(step, metrics):
        return step == 3 + 4 * int(os.environ["LOCAL_RANK"])
    return train(recipe, output, *arguments, **{**others, "hooks": Hooks((ends,))})

train, of_runs.train = of_runs.train, ended
"""

# Asserts that no thread of a process group runs after the group is destroyed.
NO_THREADS = """
from pathlib import Path
from torch import distributed

def destroyed():
    destroy()
    names = [name.read_text() for name in Path("/proc/self/task").glob("*/comm")]
    assert not any("gloo" in name for name in names), names

destroy, distributed.destroy_process_group = distributed.destroy_process_group, destroyed
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


@pytest.fixture
def train_ranks(fork_server, tmp_path):
    """Return a function that runs `ptrnet train` in two processes, and returns its messages."""

    def run(*arguments, before=""):
        port = free_port()
        done = fork_server.run(before + RANKS, "train", *arguments, cwd=tmp_path, MASTER_PORT=port)
        assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'run'}\n"), done.stderr
        return done.stderr

    return run


@pytest.mark.parametrize("count", [0, 1, 5, 16])
@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
def test_the_parts_of_all_processes_make_up_the_batch(count, world_size):
    rows = [list(range(count))[rows_of_rank(count, rank, world_size)] for rank in range(world_size)]
    assert [i for part in rows for i in part] == list(range(count))
    assert max(map(len, rows)) - min(map(len, rows)) <= 1


def elements_and_tokens(batch):
    for inputs, n, targets, m in zip(*batch[:4], strict=True):
        if m:
            yield inputs[:n].tolist(), targets[:m].tolist()


@pytest.mark.parametrize("world_size", [2, 3])
def test_processes_share_the_batches_of_one(tmp_path, world_size):
    task = tasks.get("hull")
    path = str(tmp_path / "hull.txt")
    formats.write(path, generate_dataset(task, [3, 5, 8], 19, seed=1), task)
    for stream in (
        FreshStream(task, [4, 7], 9, seed=2),
        DatasetStream(task, [3, 5, 8], 6, 2, open_file(path, task)),
    ):
        for k in range(8):
            whole = list(elements_and_tokens(stream.batch(k)))
            parts = [stream.batch(k, rank, world_size) for rank in range(world_size)]
            assert [row for part in parts for row in elements_and_tokens(part)] == whole
            assert all(len(part.lengths) for part in parts)


def test_two_killed_and_resumed_processes_learn_the_same_as_one(
    tmp_path, stalled_training, train_ranks
):
    """With plain gradient descent, weights differ as little as the gradients.

    Sizes and answers are of different lengths: no process has as many tokens as the other.
    """
    path, rng = tmp_path / "mine.jsonl", np.random.default_rng(0)
    rows = [rng.random((n, 2)) for n in rng.integers(2, 9, 60)]
    lines = [
        {"inputs": x.tolist(), "outputs": np.flatnonzero(x[:, 0] > 0.5).tolist()} for x in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = tmp_path / "run"
    training = stalled_training(
        run, "--data", str(path), "--dropout", "0", *OPTIONS, stall_at=10, code=None
    )  # because each process would drop other units
    children = children_of(training.process.pid)
    assert children
    training.process.send_signal(signal.SIGKILL)  # only the first; the second ends with it
    training.process.wait(60)
    wait_until(lambda: not any(map(is_running, children)))
    assert training.process.stderr.count("taken as set (guessed") == 1  # by one process

    assert torch.load(run / "checkpoint.ckpt", weights_only=True)["global_step"] == 6
    assert train_ranks("--output", run, "--resume").count("step 12/12") == 1
    two = load(run).model.state_dict()

    recipe = Recipe.read(run / "recipe.toml", devices=1)
    one = train(recipe, tmp_path / "one").model.state_dict()
    start = train(recipe.replace(steps=1, learning_rate=1e-9), tmp_path / "start")
    one, two, start = (
        torch.cat([w.ravel() for w in weights.values()])
        for weights in (one, two, start.model.state_dict())
    )
    assert (one - two).norm() < 1e-4 * (one - start).norm()


def test_sigterm_to_all_processes_ends_them(tmp_path, stalled_training):
    """As a cluster stops a training. Each process may be in another operation then."""
    run, options = tmp_path / "run", [*OPTIONS, "--steps", "1000000"]
    words, port = ["sort", "--n", "5", *options], free_port()
    training = stalled_training(run, *words, stall_at=-1, code=RANKS, MASTER_PORT=port)
    children = children_of(training.process.pid)
    os.killpg(training.process.pid, signal.SIGTERM)
    assert training.process.wait(60) == 130
    wait_until(lambda: not any(map(is_running, children)))
    assert "resume with: ptrnet train" in training.process.stderr
    assert load(run).trained["steps"] > 0


def children_of(process):
    command = ["ps", "-o", "pid=", "--ppid", str(process)]
    listed = subprocess.run(command, capture_output=True, timeout=60).stdout
    return [int(pid) for pid in listed.split()]


def test_two_processes_that_learn_from_costs_resume_to_the_same_weights(tmp_path, train_ranks):
    """Without its last checkpoint, the run resumes from the one before, of step 4."""
    options = ["tsp", "--learning", "self-labelling", "--devices", "2", "--steps", "8"]
    options += ["--n", "6", "--batch-size", "4", "--samples", "2", "--hidden-size", "8"]
    options += ["--checkpoint-every", "4", "--valid-batches", "0", "--precision", "float32"]
    run = tmp_path / "run"
    train_ranks("--output", run, *options)
    expected = load(run).model.state_dict()
    (run / "checkpoint.ckpt").unlink()
    (run / "model.safetensors").unlink()
    assert torch.load(run / "previous.ckpt", weights_only=True)["global_step"] == 4
    train_ranks("--output", run, "--resume")
    resumed = load(run).model.state_dict()
    assert all(torch.equal(expected[key], resumed[key]) for key in expected)


def test_the_main_process_decides_whether_a_callback_ends_the_training(tmp_path, train_ranks):
    """A process that ended alone would leave the other one waiting for it.

    Once, a process waited at its end for a thread of its process group, which waited for the GIL.
    """
    words = ["sort", "--n", "5", *OPTIONS, "--output", tmp_path / "run"]
    train_ranks(*words, before=ENDED + NO_THREADS)
    assert checkpoint.read_last(tmp_path / "run").step == 3


def test_batches_must_be_shared_evenly():
    with pytest.raises(InputError, match="a batch of 16 cannot be shared evenly by 3 processes"):
        Recipe.from_table(task="hull", batch_size=16, devices=3)
    Recipe.from_table(task="hull", batch_size=16, devices=2, nodes=4)
