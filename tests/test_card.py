"""Model cards are copied with their model, and the hub can read them."""

import re

import numpy as np
import pytest
from huggingface_hub import ModelCard

import ptrnet
from ptrnet import tasks, weights
from ptrnet.cli import run as program
from ptrnet.labels import generate_dataset
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train

FAST = {"n": "2-4", "steps": 30, "hidden_size": 16, "batch_size": 16, "valid_batches": 4}


def test_saving_a_model_keeps_its_card(tmp_path):
    shipped = ptrnet.load("sort")
    assert shipped.card == (weights.folder("sort") / "README.md").read_text()
    shipped.save_pretrained(tmp_path / "copy")
    copy = ptrnet.load(tmp_path / "copy")
    assert copy.card.startswith("---\n") and copy.card.endswith(f"---\n\n{shipped.card}")
    copy.save_pretrained(tmp_path / "third")
    assert ptrnet.load(tmp_path / "third").card == copy.card


def test_saving_a_model_without_a_card_writes_a_basic_one(small, tmp_path):
    solver = small("sort")
    solver.save_pretrained(tmp_path / "mine")
    card = (tmp_path / "mine" / "README.md").read_text()
    assert "\n---\n\n# mine\n" in card and "task `sort`" in card and "`ptr-net`" in card
    assert ModelCard(card, ignore_metadata_errors=False).data.library_name == "ptrnet"
    (tmp_path / "mine" / "README.md").unlink()
    assert ptrnet.load(tmp_path / "mine").card == ""
    (tmp_path / "mine" / "README.md").mkdir()
    assert ptrnet.load(tmp_path / "mine").card == ""


def test_a_pushed_card_has_metadata_and_scores_for_the_hub(pushed):
    solver = ptrnet.load("sort")
    assert solver.push_to_hub("me/sort", private=True) == "hub:me/sort (private)"
    card = ModelCard(pushed["me/sort"], ignore_metadata_errors=False)
    assert card.data.library_name == "ptrnet" and "pointer-network" in card.data.tags
    values = {r.dataset_name: r.metric_value for r in card.data.eval_results}
    expected = {s["n"]: s["value"] for s in solver.trained["scores"]}
    assert values == {
        f"instances of {n} elements": pytest.approx(v, abs=1e-6) for n, v in expected.items()
    }
    assert card.text.strip() == solver.card.strip()


def test_scores_on_own_examples_are_not_called_synthetic(small, tmp_path):
    solver = small("custom", center=(0.0, 0.0), spread=(1.0, 1.0), kind="choice")
    score = {"n": "2-3", "metric": "accuracy", "value": 0.5, "low": 0.4, "high": 0.6, "count": 90}
    solver.trained["scores"] = [score]
    solver.save_pretrained(tmp_path / "mine")
    (result,) = ModelCard((tmp_path / "mine" / "README.md").read_text()).data.eval_results
    assert result.dataset_type == "own-examples"
    assert result.dataset_name == "held-out examples of 2-3 elements"


def test_ptrnet_push_uploads_weights_and_card(small, tmp_path, pushed, capsys):
    small("sort").save_pretrained(tmp_path / "mine")
    assert program(["push", str(tmp_path / "mine"), "me/mine"]) == 0
    assert capsys.readouterr().out == "hub:me/mine\n"
    assert pushed["me/mine"].startswith("---\n") and "# mine" in pushed["me/mine"]
    assert program(["push", str(tmp_path / "none"), "me/mine"]) == 2
    assert program(["push", "sort", "mine"]) == 2
    assert "expected OWNER/NAME" in capsys.readouterr().err


def test_the_card_of_a_training_has_scores_on_other_random_examples(tmp_path):
    recipe = Recipe.from_table(task="sort", **FAST)
    train(recipe, tmp_path / "run")
    solver = ptrnet.load(tmp_path / "run")
    assert "Measured on 64 random examples that were not used for training" in solver.card
    row = re.search(r"\| accuracy \| ([\d.]+) \(.*\| ([\d.]+) \(", solver.card)
    test = list(generate_dataset(tasks.get("sort"), [2, 3, 4], 64, recipe.run.seed))
    for shown, constrained in zip(row.groups(), (False, True), strict=True):
        measured = solver.evaluate(test, constrained=constrained)["accuracy"]["value"]
        assert float(shown) == pytest.approx(measured, abs=5e-5)


def test_the_card_of_a_training_on_a_file_names_no_folder_and_has_scores(tmp_path, pushed):
    """Once, cards named folders of the machine, and their metadata had no scores."""
    (tmp_path / "data.txt").write_text("0.5 0.25 output 2 1\n" * 30)
    recipe = Recipe.from_table(
        task="sort", **{**FAST, "n": "2", "data": str(tmp_path / "data.txt"), "valid_share": 0.2}
    )
    train(recipe, tmp_path / "run")
    solver = ptrnet.load(tmp_path / "run")
    solver.push_to_hub("me/mine", license="mit")
    text = pushed["me/mine"]
    assert str(tmp_path) not in text and "Trained on: data.txt" in text
    card = ModelCard(text, ignore_metadata_errors=False)
    (result,) = card.data.eval_results
    (score,) = solver.trained["scores"]
    assert card.data.license == "mit" and result.metric_type == "accuracy" == score["metric"]
    assert result.metric_value == pytest.approx(score["value"], abs=1e-6)
    assert "accuracy" in repr(solver)


def test_without_validation_examples_the_card_says_not_measured(tmp_path):
    train(Recipe.from_table(task="sort", **{**FAST, "valid_batches": 0}), tmp_path / "run")
    assert "Not measured: " in (tmp_path / "run" / "README.md").read_text()


def test_the_card_of_own_examples_has_the_main_metric_of_their_kind():
    rng = np.random.default_rng(0)
    examples = [(rng.random((4, 1)), rng.permutation(4)) for _ in range(40)]
    solver = ptrnet.fit(examples, kind="permutation", steps=1, ensemble=1, hidden_size=8)
    assert "kendall_tau" in {score["metric"] for score in solver.trained["scores"]}
