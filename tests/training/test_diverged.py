"""A training whose numbers are not finite stops with a message, and leaves no broken files."""

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import model_folder
from ptrnet.cli import run
from ptrnet.errors import DivergedError, ModelError
from ptrnet.training.costs import CostModule
from ptrnet.training.module import TrainingModule
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train

SMALL = {"hidden_size": 8, "batch_size": 4, "valid_batches": 1, "valid_every": 5}
OPTIONS = [f"--{key.replace('_', '-')}={value}" for key, value in SMALL.items()]


@pytest.fixture
def break_weights(monkeypatch):
    """Return a function that makes the weights NaN at a step of a training."""
    forward = TrainingModule.forward

    def at(number):
        def broken(self, batch, step):
            if step == number - 1:
                with torch.no_grad():
                    next(self.model.parameters()).fill_(torch.nan)
            return forward(self, batch, step)

        monkeypatch.setattr(TrainingModule, "forward", broken)

    return at


def test_fit_with_an_absurd_learning_rate_stops(tmp_path):
    rng = np.random.default_rng(0)
    examples = [(x, np.argsort(x[:, 0])) for x in rng.random((40, 4, 1))]
    with pytest.raises(DivergedError, match=r"diverged at step \d+: .*smaller --learning-rate"):
        ptrnet.fit(
            examples, output=tmp_path / "run", steps=60, learning_rate=1e38, clip=1e30, **SMALL
        )
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert not (tmp_path / "run" / "config.json").exists()


def test_the_program_exits_with_1_and_names_the_last_good_checkpoint(
    tmp_path, break_weights, capsys
):
    break_weights(8)
    arguments = ["train", "sort", "--n=3", "--steps=20", "--checkpoint-every=6", *OPTIONS]
    assert run([*arguments, "--output", str(tmp_path / "run")]) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    checkpoint = tmp_path / "run" / "checkpoint.ckpt"
    assert "diverged at step 8" in message and f"of step 6, is {checkpoint}" in message
    content = torch.load(checkpoint, weights_only=True)
    assert all(tensor.isfinite().all() for tensor in content["state_dict"].values())
    assert model_folder.load(tmp_path / "run").trained["steps"] == 5  # of the validation


def test_a_diverged_run_resumes_from_the_last_good_checkpoint(tmp_path, break_weights, monkeypatch):
    recipe = Recipe.from_table(task="sort", n="3", steps=20, checkpoint_every=6, **SMALL)
    with monkeypatch.context():
        break_weights(8)
        with pytest.raises(DivergedError, match="step 8"):
            train(recipe, tmp_path / "run")
        monkeypatch.undo()
    resumed = train(recipe, tmp_path / "run", resume=True).model.state_dict()
    straight = train(recipe, tmp_path / "straight").model.state_dict()
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


def test_no_model_is_written_over_by_one_that_is_not_finite(small, tmp_path):
    solver = small()
    solver.save_pretrained(tmp_path)
    before = (tmp_path / model_folder.TENSORS).read_bytes()
    with torch.no_grad():
        next(solver.model.parameters()).fill_(torch.inf)
    with pytest.raises(ptrnet.InputError, match="values that are not finite"):
        solver.save_pretrained(tmp_path)
    assert (tmp_path / model_folder.TENSORS).read_bytes() == before


def test_a_run_shorter_than_its_validations_validates_at_its_end(tmp_path):
    recipe = Recipe.from_table(task="sort", n="3", steps=4, **{**SMALL, "valid_every": 1000})
    train(recipe, tmp_path / "run")
    (metrics,) = (tmp_path / "run" / "logs" / "csv").rglob("metrics.csv")
    header, *rows = metrics.read_text().splitlines()
    column = header.split(",").index("valid_loss")
    assert any(row.split(",")[column] for row in rows)
    assert torch.load(tmp_path / "run" / "checkpoint.ckpt", weights_only=True)["global_step"] == 4


def test_a_model_without_normalised_log_probs_is_refused(tmp_path, monkeypatch):
    """A network that returns scores has losses below 0, which once counted as good."""
    forward = TrainingModule.forward

    def scores(self, batch, step):
        outputs = forward(self, batch, step)
        return {**outputs, "loss": outputs["loss"] - 50}

    monkeypatch.setattr(TrainingModule, "forward", scores)
    with pytest.raises(ModelError, match=r"below 0: the model's log_probs must be log-prob"):
        train(Recipe.from_table(task="sort", n="3", steps=2, **SMALL), tmp_path / "run")


@pytest.mark.parametrize("learning", ["self-labelling", "reinforce"])
def test_a_diverged_training_from_costs_stops(tmp_path, monkeypatch, learning):
    """It searches for answers with the broken weights before it computes a loss."""
    forward = CostModule.forward

    def broken(self, batch, step):
        if step == 7:
            with torch.no_grad():
                next(self.model.parameters()).fill_(torch.nan)
        return forward(self, batch, step)

    monkeypatch.setattr(CostModule, "forward", broken)
    recipe = Recipe.from_table(
        task="tsp", n="5", steps=20, checkpoint_every=6, learning=learning, **SMALL
    )
    with pytest.raises(DivergedError, match=r"diverged at step 7: .* of step 6, is "):
        train(recipe, tmp_path / "run")
    assert model_folder.load(tmp_path / "run").trained["steps"] == 5  # of the validation


@pytest.mark.parametrize("has_validations", [True, False])
def test_another_run_can_begin_with_the_weights_of_a_diverged_one(
    tmp_path, break_weights, monkeypatch, has_validations
):
    """As the message suggests. With learning rate 0, the weights stay the same.

    Without validations, the diverged run left no model, but a checkpoint.
    """
    small = SMALL if has_validations else {**SMALL, "valid_batches": 0}
    with monkeypatch.context():
        break_weights(8)
        with pytest.raises(DivergedError, match=r"--weights \S+run with a smaller"):
            train(
                Recipe.from_table(task="sort", n="3", steps=20, checkpoint_every=6, **small),
                tmp_path / "run",
            )
        monkeypatch.undo()
    recipe = Recipe.from_table(
        task="sort", n="3", steps=1, learning_rate=1e-30, weights=str(tmp_path / "run"), **SMALL
    )
    begun = train(recipe, tmp_path / "other").model.state_dict()
    if has_validations:
        left = model_folder.load(tmp_path / "run").model.state_dict()
    else:
        left = torch.load(tmp_path / "run" / "checkpoint.ckpt", weights_only=True)["state_dict"]
    assert all(torch.equal(begun[name], left[name]) for name in begun)
    with pytest.raises(ptrnet.InputError, match="has hidden_size 8, the recipe has 16"):
        train(Recipe.from_table(recipe.table(), hidden_size=16), tmp_path / "third")
