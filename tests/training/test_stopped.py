"""Every training leaves its best model so far when it is stopped."""

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.labels import generate_dataset
from ptrnet.model_folder import is_there, load
from ptrnet.training.loop import BestWeights
from ptrnet.training.module import TrainingModule
from ptrnet.training.own_data import infer_recipe
from ptrnet.training.recipe import Recipe
from ptrnet.training.reports import Hooks
from ptrnet.training.run import train

SMALL = {"hidden_size": 8, "batch_size": 8, "precision": "float32"}
VALIDATIONS = {"steps": 20, "valid_every": 4, "valid_batches": 1, "checkpoint_every": 20}
PROBLEM = {"task": "knapsack", "n": "5", "samples": 4, "encoder_layers": 1, "feed_forward": 16}
TARDINESS = Path(__file__).parents[2] / "examples" / "plugins" / "tardiness.py"


def of_task(folder, **options):
    return Recipe.from_table(task="sort", n="3", **SMALL, **options), None


def of_file(folder, **options):
    task, path = tasks.get("hull"), str(folder / "hull.txt")
    formats.write(path, generate_dataset(task, [5], 40, seed=3), task)
    return Recipe.from_table(task="hull", n="5", data=path, valid=path, **SMALL, **options), None


def of_costs(folder, **options):
    return Recipe.from_table(PROBLEM, learning="self-labelling", **SMALL, **options), None


def of_rewards(folder, **options):
    return Recipe.from_table(PROBLEM, learning="reinforce", **SMALL, **options), None


def of_answers(folder, **options):
    return Recipe.from_table(PROBLEM, learning="answers", **SMALL, **options), None


def of_own_data(folder, **options):
    path, rng = folder / "mine.jsonl", np.random.default_rng(0)
    rows = [
        {"inputs": x.tolist(), "outputs": [int(x[:, 0].argmax())]} for x in rng.random((60, 4, 2))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe, _, data = infer_recipe(str(path), {"kind": "choice", **SMALL, **options})
    return recipe, data


def of_ensemble(folder, **options):
    return of_own_data(folder, ensemble=2, **options)


KINDS = [of_task, of_file, of_costs, of_rewards, of_answers, of_own_data, of_ensemble]


@pytest.fixture(autouse=True)
def networks(monkeypatch):
    """The networks that trainings have built, in this order."""
    init = TrainingModule.__init__

    def noted(self, model, *arguments):
        StopAt.networks.append(model)
        init(self, model, *arguments)

    monkeypatch.setattr(StopAt, "networks", [])
    monkeypatch.setattr(TrainingModule, "__init__", noted)


class StopAt:
    """Sends a signal to this process after a step, and keeps the weights of each step."""

    networks = ()

    def __init__(self, step, signal_number, folder=None):
        self.step, self.signal_number, self.folder = step, signal_number, folder
        self.weights = {}

    def __call__(self, step, metrics):
        state = self.networks[-1].state_dict()
        self.weights[step] = {name: w.clone() for name, w in state.items()}
        if step == self.step:
            if self.folder:  # a killed process leaves the folder as it is at this moment
                shutil.copytree(self.folder, self.folder.with_name("killed"))
            os.kill(os.getpid(), self.signal_number)


def left_by(folder, stop):
    """Check that the model in a folder has the weights of its step, and return the step."""
    saved = load(folder)
    weights = saved.model.state_dict()
    expected = stop.weights[saved.trained["steps"]]
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    elements = np.random.default_rng(0).random((4, 2))
    if saved.task.name != tasks.CUSTOM:  # which cannot draw instances
        (elements,) = saved.task.sample(np.random.default_rng(0), 1, 4)
    assert len(ptrnet.load(folder).solve(elements))
    return saved.trained["steps"]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_training_leaves_its_best_model(tmp_path, kind, signal_number):
    recipe, data = kind(tmp_path, **VALIDATIONS)
    stop = StopAt(10, signal_number, tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "run", hooks=Hooks((stop,)), data=data)
    assert left_by(tmp_path / "run", stop) in (4, 8)
    assert left_by(tmp_path / "killed", stop) in (4, 8)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", KINDS)
def test_a_training_stopped_before_its_first_validation_leaves_its_weights(
    tmp_path, kind, signal_number
):
    recipe, data = kind(tmp_path, **{**VALIDATIONS, "valid_every": 20})
    stop = StopAt(3, signal_number)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "run", hooks=Hooks((stop,)), data=data)
    assert left_by(tmp_path / "run", stop) == 3


def test_a_resumed_training_without_validations_leaves_its_last_weights(tmp_path):
    """The model of the first stop is not the best one, only an earlier one."""
    recipe, _ = of_costs(tmp_path, **{**VALIDATIONS, "valid_batches": 0, "checkpoint_every": 2})
    for step in (3, 7):
        stop = StopAt(step, signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / "run", resume=step > 3, hooks=Hooks((stop,)))
        assert left_by(tmp_path / "run", stop) == step


def test_a_training_on_a_users_cost_leaves_its_best_model(tmp_path):
    stop = StopAt(10, signal.SIGINT)
    instances = list(np.random.default_rng(5).random((40, 4, 2)))
    with pytest.raises(KeyboardInterrupt):
        ptrnet.fit(
            instances,
            "permutation",
            cost=lambda inputs, outputs: float(inputs[outputs[0], 0]),
            output=tmp_path / "run",
            callbacks=[stop],
            **SMALL,
            **VALIDATIONS,
        )
    assert left_by(tmp_path / "run", stop) in (4, 8)


def test_a_model_is_better_than_a_later_one_with_a_higher_loss(tmp_path, monkeypatch):
    """A stopped training without patience keeps the weights of the lowest validation loss, too."""
    recipe, _ = of_task(tmp_path, **VALIDATIONS)
    update = BestWeights.update

    def worse_from_step_8(self, step, losses, model):
        return update(self, step, losses + step // 8, model)

    monkeypatch.setattr(BestWeights, "update", worse_from_step_8)
    stop = StopAt(18, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "run", hooks=Hooks((stop,)))
    assert left_by(tmp_path / "run", stop) == 4


def test_a_training_stopped_before_its_first_step_leaves_no_model(tmp_path, monkeypatch):
    recipe, _ = of_task(tmp_path, **VALIDATIONS)

    def stop(self, batch, step):
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainingModule, "forward", stop)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "run")
    assert not is_there(tmp_path / "run")


def test_a_stopped_training_of_a_users_problem_names_its_model(tmp_path, stalled_training):
    run = tmp_path / "run"
    options = ["--n", "4", "--steps", "1000000", "--valid-every", "2", "--checkpoint-every", "2"]
    options += ["--hidden-size", "8", "--batch-size", "4", "--samples", "2"]
    training = stalled_training(run, str(TARDINESS), *options, stall_at=-1)
    training.process.send_signal(signal.SIGTERM)
    assert training.process.wait(60) == 130
    message = training.process.stderr
    command = f"ptrnet train --plugins {TARDINESS} --output {run} --resume"
    assert f"the best model so far is in {run}\nresume with: {command}\n" in message
    config = json.loads((run / "config.json").read_text())
    assert config["task"] == "tardiness" and config["trained"]["steps"] >= 2


def weights_of(folder):
    return load(folder).model.state_dict()


def test_a_run_that_is_resumed_and_stopped_again_keeps_the_better_model(tmp_path):
    """Once, it began again at step 0, and then left the weights of its first steps."""
    recipe, data = of_own_data(tmp_path, **VALIDATIONS)
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(recipe, folder, hooks=Hooks([StopAt(6, signal.SIGINT)]), data=data)
    before, step = weights_of(folder), load(folder).trained["steps"]
    assert step == 4
    steps = []

    def note(step, metrics):
        steps.append(step)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(recipe, folder, resume=True, hooks=Hooks([note]), data=data)
    assert steps == [5]
    assert all(torch.equal(w, before[name]) for name, w in weights_of(folder).items())


def test_a_second_stop_before_the_first_validation_keeps_later_weights(tmp_path):
    recipe, data = of_own_data(tmp_path, **{**VALIDATIONS, "valid_every": 20})
    folder = tmp_path / "run"
    for resume, at, expected in ((False, 6, 6), (True, 2, 6), (True, 8, 8)):
        with pytest.raises(KeyboardInterrupt):
            train(recipe, folder, resume, hooks=Hooks([StopAt(at, signal.SIGINT)]), data=data)
        assert load(folder).trained["steps"] == expected
