"""Runs resume after a kill to the same bits, and learn."""

import contextlib
import csv
import shutil
import threading
from pathlib import Path

import pytest
import torch

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.batches import batch_of
from ptrnet.data.streams import DatasetStream
from ptrnet.errors import InputError
from ptrnet.metrics import summary
from ptrnet.model_folder import load
from ptrnet.training import run_folder
from ptrnet.training.loop import _quiet_log_threads
from ptrnet.training.losses import losses
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train
from ptrnet.types import Dataset

OPTIONS = ["hull", "--n", "5-9", "--steps", "60", "--hidden-size", "32", "--batch-size", "32"]
OPTIONS += ["--valid-every", "25", "--valid-batches", "2", "--checkpoint-every", "30"]


def test_stopped_and_resumed_is_bit_exact(tmp_path, stalled_training):
    """The test interrupts the run, and resumes a copy of the folder as a kill would leave it."""
    run, killed = tmp_path / "run", tmp_path / "killed"
    training = stalled_training(run, *OPTIONS, stall_at=45)
    for name in ("previous.ckpt", "checkpoint.ckpt"):  # of the steps 25 (a validation) and 30
        training.wait_for(run / name)
    shutil.copytree(run, killed)
    recipe = Recipe.read(run / "recipe.toml")
    with pytest.raises(InputError, match=r"/run: another process is writing it$"):
        train(recipe, run, resume=True)
    code, out, err = training.interrupt()
    assert code == 130 and out == ""
    assert err.endswith(f"resume with: ptrnet train --output {run} --resume\n")

    assert load(run).trained["steps"] == load(killed).trained["steps"] == 25  # of the validation
    assert torch.load(killed / "checkpoint.ckpt", weights_only=True)["global_step"] == 30
    train(recipe, killed, resume=True)
    logs = sorted((killed / "logs" / "csv").glob("*/metrics.csv"))
    assert len(logs) == 2 and "valid_accuracy" in logs[-1].read_text()
    assert list((killed / "logs" / "tensorboard").rglob("events.*"))
    straight = train(recipe, tmp_path / "straight").model.state_dict()
    weights = load(killed).model.state_dict()
    assert all(torch.equal(straight[name], weights[name]) for name in straight)
    with pytest.raises(InputError, match="already holds a run; resume it with --resume, or name"):
        train(recipe, killed)


def test_a_run_cannot_have_the_name_of_a_shipped_model(tmp_path, monkeypatch):
    """Otherwise `--model hull` would use the shipped model."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="hull: is the name of a shipped model"):
        train(Recipe.from_table(task="hull", steps=1), Path("hull"))
    assert not list(tmp_path.iterdir())


def test_ptrnet_train_reaches_a_high_accuracy(tmp_path):
    """Sorting two numbers is learned in seconds: from right by chance (1/2) to nearly always."""
    recipe = Recipe.from_table(
        task="sort",
        n="2",
        steps=300,
        hidden_size=32,
        batch_size=64,
        valid_batches=0,
        learning_rate=0.01,
    )
    saved = train(recipe, tmp_path / "run")
    from ptrnet.solver import Solver

    solver = Solver(*saved)
    examples = list(_examples(solver.task))
    answers = [e.outputs for e in solver.predict(examples, constrained=False)]
    assert summary.measure(solver.task, examples, answers)["accuracy"].value > 0.85
    assert saved.trained == {"n": "2", "steps": 300, "batch_size": 64, "seed": 1}


def _examples(task):
    from ptrnet.labels import generate_dataset

    return generate_dataset(task, [2], 300, seed=3)


def test_resume_is_refused_for_another_recipe_and_for_no_run(tmp_path):
    recipe = Recipe.from_table(
        task="sort", n="2", steps=2, hidden_size=4, batch_size=2, valid_batches=0
    )
    train(recipe, tmp_path / "run")
    with pytest.raises(InputError, match="has steps = 2, and cannot be resumed with 9"):
        train(Recipe.from_table({**recipe.table(), "steps": 9}), tmp_path / "run", resume=True)
    with pytest.raises(InputError, match="there is no run to resume"):
        train(recipe, tmp_path / "other", resume=True)
    assert not (tmp_path / "other").exists()
    (tmp_path / "run" / "checkpoint.ckpt").write_bytes(b"no checkpoint")
    with pytest.raises(InputError, match="not a checkpoint of ours"):
        train(recipe, tmp_path / "run", resume=True)


def test_a_run_folder_is_locked_while_it_is_trained(tmp_path, monkeypatch):
    recipe = Recipe.from_table(
        task="sort", n="2", steps=2, hidden_size=4, batch_size=2, valid_batches=0
    )
    refusals = []

    def trained(recipe, *_):
        with pytest.raises(InputError) as refused:
            train(recipe, tmp_path / "run", resume=True)
        refusals.append(str(refused.value))
        return recipe.run.steps

    monkeypatch.setattr("ptrnet.training.run.run_steps", trained)
    train(recipe, tmp_path / "run")
    train(recipe, tmp_path / "run", resume=True)
    assert refusals == [f"{tmp_path / 'run'}: another process is writing it"] * 2
    create = run_folder.create

    def begun_meanwhile(folder):
        create(folder)
        locks.enter_context(run_folder.locked(folder))

    with contextlib.ExitStack() as locks:
        monkeypatch.setattr(run_folder, "create", begun_meanwhile)
        with pytest.raises(InputError, match="another process is writing it"):
            train(recipe, tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


def test_a_finished_run_resumes_to_itself(tmp_path):
    recipe = Recipe.from_table(
        task="sort", n="2", steps=2, hidden_size=4, batch_size=2, valid_batches=0
    )
    first = train(recipe, tmp_path / "run").model.state_dict()
    (tmp_path / "run" / "model.safetensors").unlink()
    again = train(recipe, tmp_path / "run", resume=True).model.state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_bfloat16_and_float32_start_with_equal_weights_and_differ(tmp_path):
    weights = {}
    for precision in ("bfloat16", "float32"):
        recipe = Recipe.from_table(
            task="hull",
            n="5",
            steps=3,
            hidden_size=16,
            batch_size=8,
            valid_batches=0,
            precision=precision,
        )
        weights[precision] = train(recipe, tmp_path / precision).model.state_dict()["v"]
    assert not torch.equal(*weights.values())
    torch.testing.assert_close(*weights.values(), rtol=0.1, atol=5e-3)


def test_a_file_is_used_for_validation(tmp_path):
    """The file's examples are validated, including mixed sizes and a clockwise answer."""
    path = tmp_path / "valid.txt"
    path.write_text("0 0 1 0 0 1 output 1 3 2 1\n0 0 1 0 1 1 0 1 0.5 0.5 output 1 2 3 4 1\n")
    recipe = Recipe.from_table(
        task="hull", n="5", steps=50, hidden_size=8, batch_size=4, valid=str(path), valid_every=50
    )
    train(recipe, tmp_path / "run")
    (log,) = (tmp_path / "run" / "logs" / "csv").glob("*/metrics.csv")
    rows = csv.DictReader(log.read_text().splitlines())
    last = [row for row in rows if row["valid_loss"]][-1]
    task = tasks.get("hull")
    batch = batch_of(Dataset.of(formats.read(str(path), task)), task)
    of_each, right = losses(load(tmp_path / "run").model, batch)
    assert float(last["valid_loss"]) == pytest.approx(of_each.mean().item(), rel=0.02)
    assert float(last["valid_accuracy"]) == right.float().mean().item()
    path.write_text("0 0 1 0 0 1\n")
    with pytest.raises(InputError, match="has no answer"):
        train(recipe, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    "fields",
    [{"model": "ptr-nett"}, {"hidden_size": 10**6}, {"device": "cuda"}, {"valid": "no.txt"}],
)
def test_a_refused_run_leaves_no_folder(tmp_path, fields):
    if fields.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("cuda is there")
    with pytest.raises(InputError):
        train(Recipe.from_table(task="sort", n="2", steps=2, **fields), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_with_a_model_is_not_overwritten(tmp_path, small):
    small().save_pretrained(tmp_path / "mine")
    with pytest.raises(InputError, match="already holds a model"):
        train(Recipe.from_table(task="sort", n="2", steps=2), tmp_path / "mine")
    assert load(tmp_path / "mine").task.name == "hull"


@pytest.mark.parametrize("resume", [False, True])
def test_the_folder_is_checked_before_the_examples_are_read(tmp_path, resume):
    recipe = Recipe.from_table(task="sort", n="2", data=str(tmp_path / "none.txt"))
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "recipe.toml").write_text(Recipe.from_table(task="sort").toml())
    with pytest.raises(InputError, match="cannot be resumed" if resume else "already holds a run"):
        train(recipe, tmp_path / "used", resume=resume)


def test_a_run_that_was_killed_before_its_first_checkpoint_resumes_from_the_start(tmp_path):
    recipe = Recipe.from_table(
        task="sort", n="2", steps=3, hidden_size=4, batch_size=2, valid_batches=0
    )
    straight = train(recipe, tmp_path / "straight").model.state_dict()
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "recipe.toml").write_text(recipe.toml())
    again = train(recipe, tmp_path / "killed", resume=True).model.state_dict()
    assert all(torch.equal(straight[name], again[name]) for name in straight)


def test_a_run_on_a_file_resumes_to_the_same_bits(tmp_path, monkeypatch):
    """The run stops in its second epoch. The file has two sizes, and examples are augmented."""
    data = tmp_path / "hull.txt"
    task = tasks.get("hull")
    formats.write(str(data), _of_two_sizes(task), task)
    recipe = Recipe.from_table(
        task="hull",
        data=str(data),
        augment=True,
        n="5-6",
        steps=12,
        hidden_size=8,
        batch_size=8,
        valid_batches=0,
        checkpoint_every=1,
    )
    straight = train(recipe, tmp_path / "straight").model.state_dict()
    batch = DatasetStream.batch

    def stopping(stream, k, **part):
        if k == 8:
            raise InterruptedError
        return batch(stream, k, **part)

    monkeypatch.setattr(DatasetStream, "batch", stopping)
    with pytest.raises(InterruptedError):
        train(recipe, tmp_path / "stopped")
    monkeypatch.undo()
    again = train(recipe, tmp_path / "stopped", resume=True).model.state_dict()
    assert all(torch.equal(straight[name], again[name]) for name in straight)
    data.touch()
    train(recipe, tmp_path / "stopped", resume=True)
    data.write_text(data.read_text() + data.read_text().splitlines()[0] + "\n")
    with pytest.raises(InputError, match="has changed since the run began"):
        train(recipe, tmp_path / "stopped", resume=True)
    plain = Recipe.from_table({**recipe.table(), "augment": False})
    other = train(plain, tmp_path / "plain").model.state_dict()
    assert not all(torch.equal(straight[name], other[name]) for name in straight)


def _of_two_sizes(task):
    from ptrnet.labels import generate_dataset

    return generate_dataset(task, [5, 6], 40, seed=3)


def test_a_file_that_cannot_be_trained_on_leaves_no_folder(tmp_path):
    data = tmp_path / "hull.txt"
    data.write_text("0 0 1 0 0 1 output 1 2 3\n0 0 1 0 0 1\n")
    with pytest.raises(InputError, match=r"hull\.txt:2: has no answer to train on"):
        train(Recipe.from_table(task="hull", n="3", steps=2, data=str(data)), tmp_path / "run")
    data.write_text("0 0 1 0 0 1 output 1 2 3\n")
    with pytest.raises(InputError, match="expected instances of n = 5 elements, got 3 to 3"):
        train(Recipe.from_table(task="hull", n="5", steps=2, data=str(data)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_thread_that_cannot_write_prints_no_traceback(capfd):
    """On a full disk TensorBoard's thread prints nothing; other threads still print tracebacks."""

    def fail(error):
        raise error

    with pytest.raises(OSError), _quiet_log_threads():
        thread = threading.Thread(target=fail, args=(OSError(28, "full"),))
        thread.start()
        thread.join()
        raise OSError(28, "full")
    assert capfd.readouterr().err == ""
