"""A caller's callbacks and loggers are used, and do not change the weights."""

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet.errors import DivergedError, InputError, MissingExtraError
from ptrnet.training import reports
from ptrnet.training.checkpoint import read_last
from ptrnet.training.module import TrainingModule
from ptrnet.training.reports import Hooks

OPTIONS = {"hidden_size": 8, "batch_size": 8, "steps": 60, "valid_every": 20, "seed": 5}
NUMBERS = np.random.default_rng(0).random((60, 4))
PAIRS = [(x, np.argsort(x)) for x in NUMBERS]


class Steps:
    def __init__(self):
        self.steps = []
        self.metrics = set()

    def __call__(self, step, metrics):
        self.steps.append(step)
        self.metrics |= metrics.keys()


class Memory:
    def __init__(self):
        self.facts, self.metrics, self.status = {}, [], None

    def log_hyperparams(self, params):
        self.facts.update(params)

    def log_metrics(self, metrics, step=None):
        self.metrics.append((step, metrics))

    def finalize(self, status):
        self.status = status


def test_callbacks_and_loggers_do_not_change_the_weights():
    options = {**OPTIONS, "steps": 20}
    plain = ptrnet.fit(PAIRS, **options)
    steps, memory = Steps(), Memory()
    seen = ptrnet.fit(PAIRS, **options, callbacks=[steps], loggers=[memory])
    assert steps.steps == [*range(1, 21)]
    assert {"loss", "accuracy", "valid_loss", "valid_accuracy"} <= steps.metrics
    assert memory.facts["hidden_size"] == 8 and memory.facts["task"] == "custom"
    logged = {key for _, metrics in memory.metrics for key in metrics}
    assert {"loss", "accuracy", "valid_loss"} <= logged
    assert memory.status == "success"
    first, second = (solver.model.state_dict() for solver in (plain, seen))
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_a_logger_that_fails_leaves_no_other_logger_open():
    class Failing(Memory):
        def finalize(self, status):
            raise OSError("no space")

    first, last = Memory(), Memory()
    with pytest.raises(OSError, match="no space"):
        ptrnet.fit(PAIRS, **{**OPTIONS, "steps": 1}, loggers=[first, Failing(), last])
    assert (first.status, last.status) == ("success", "success")


def test_a_validation_leaves_frozen_parts_of_the_network_frozen(monkeypatch):
    forward, modes = TrainingModule.forward, []

    def noted(self, batch, step):
        part = next(self.model.children())
        if step == 0:
            part.eval()
        modes.append((self.training, self.model.training, part.training))
        return forward(self, batch, step)

    monkeypatch.setattr(TrainingModule, "forward", noted)
    ptrnet.fit(PAIRS, **{**OPTIONS, "steps": 2, "valid_every": 1})
    assert modes == 2 * [(True, True, False)]


def test_a_callback_may_end_the_training(tmp_path):
    def stop(step, metrics):
        return "valid_loss" in metrics and metrics["valid_loss"] < 1e9

    solver = ptrnet.fit(PAIRS, **OPTIONS, callbacks=[stop], output=tmp_path / "run")
    assert solver.trained["steps"] == 20
    assert (tmp_path / "run" / "config.json").exists()


def test_a_callback_that_ends_the_training_leaves_no_diverged_checkpoint(tmp_path, monkeypatch):
    """Step 25 is not due for a check, a validation or a checkpoint."""
    forward, modules = TrainingModule.forward, []

    def noted(self, batch, step):
        modules.append(self)
        return forward(self, batch, step)

    def spoil(step, metrics):
        if step == 25:
            with torch.no_grad():
                next(modules[-1].parameters()).fill_(torch.nan)
        return step == 25

    monkeypatch.setattr(TrainingModule, "forward", noted)
    with pytest.raises(DivergedError, match="step 25"):
        ptrnet.fit(PAIRS, **OPTIONS, callbacks=[spoil], output=tmp_path / "run")
    assert read_last(tmp_path / "run").step == 20


@pytest.mark.parametrize("answer", [torch.tensor(True), np.True_])
def test_a_comparison_of_a_metric_ends_the_training(answer):
    assert Hooks((lambda step, metrics: answer,)).after_step(1, {})
    assert not Hooks((lambda step, metrics: ~answer,)).after_step(1, {})
    assert not Hooks((lambda step, metrics: step,)).after_step(1, {})  # such as a count of bytes


def test_callbacks_and_loggers_work_with_costs():
    def first(x, answer):
        return float(x[answer[0], 0])

    steps = Steps()
    options = {**OPTIONS, "steps": 2, "samples": 2}
    ptrnet.fit(
        list(NUMBERS[:20, :, None]), None, "permutation", cost=first, **options, callbacks=[steps]
    )
    assert steps.steps == [1, 2] and {"loss", "cost"} <= steps.metrics


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"callbacks": [Memory()]},
            r"callbacks: expected functions callback\(step, metrics\), got ",
        ),
        ({"callbacks": Steps()}, "callbacks: expected a list, got Steps"),
        ({"loggers": [Steps()]}, "loggers: expected objects with the methods log_hyperparams, "),
        ({"loggers": [Memory]}, "loggers: expected objects .*, got builtins.type"),
        ({"loggers": "wandb"}, "loggers: expected a list, got str"),
        ({"loggers": ["wandv"]}, "unknown logger 'wandv'; did you mean 'wandb'"),
    ],
)
def test_invalid_callbacks_and_loggers_are_refused(options, message, tmp_path):
    with pytest.raises(InputError, match=message):
        ptrnet.fit(PAIRS, **OPTIONS, **options, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", reports.LOGGERS)
def test_a_missing_logger_package_is_named(monkeypatch, name):
    monkeypatch.setattr("ptrnet.errors.find_spec", lambda package: None)
    with pytest.raises(MissingExtraError, match=rf"ptrnet\[{name}\]"):
        Hooks(loggers=(name,))


def test_ptrnet_train_accepts_names_of_loggers(tmp_path, capsys):
    from ptrnet.cli import run

    words = ["train", "sort", "--logger", "tensorbord", "--output", str(tmp_path / "run")]
    assert run(words) == 2 and "unknown logger 'tensorbord'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_not_called_a_value_that_cannot_be_logged(tmp_path, monkeypatch):
    """TensorBoard's logger raises a ValueError about the value for any failure of its writer."""

    def full(writer, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torch.utils.tensorboard.SummaryWriter.add_scalar", full)
    with pytest.raises(OSError, match="No space left"):
        ptrnet.fit(PAIRS, **OPTIONS, output=tmp_path / "run")
