"""The defaults of a training on own examples, and options that replace them."""

import csv
import json

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet.data.infer_task import infer_task_of, loosest_task
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.training import own_data
from ptrnet.training.own_data import infer_recipe, recipe_of
from ptrnet.training.run import SMALL_STEP
from ptrnet.types import Dataset, Example


@pytest.fixture
def file_of(tmp_path):
    """Return a function that writes examples of a kind, and returns the file's path."""

    def write(kind, count=20, highest=4):
        rng = np.random.default_rng(0)
        path = tmp_path / "mine.jsonl"
        with path.open("w") as stream:
            for _ in range(count):
                inputs, order = rng.random((5, 2)), rng.permutation(5).tolist()
                answers = {
                    "permutation": {"outputs": order},
                    "subset": {"outputs": order[: rng.integers(1, 4)]},
                    "sequence": {"outputs": order[:2] * 2},
                    "set": {"outputs": sorted(order[:2])},
                    "choice": {"outputs": order[:1]},
                    "grades": {"grades": rng.integers(0, highest, 5, endpoint=True).tolist()},
                }[kind]
                stream.write(json.dumps({"inputs": inputs.tolist(), **answers}) + "\n")
        return str(path)

    return write


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("permutation", "set-ptr-net"),
        ("subset", "set-ptr-net"),
        ("sequence", "transformer-ptr-net"),
        ("set", "set-ptr-net"),
        ("choice", "set-ptr-net"),
        ("grades", "set-ptr-net"),
    ],
)
def test_the_network_follows_from_the_kind_and_sees_no_order(file_of, kind, model):
    recipe, summary, _ = infer_recipe(file_of(kind), {"kind": kind})
    assert recipe.model == model and not recipe.network.sees_order
    assert f"taken as {kind}" in summary and f"{model} of 64 units" in summary
    assert "does not see the order of the elements (with --ordered it does)" in summary
    assert recipe.objective.loss == ("gains" if kind == "grades" else "tokens")


def ordered_by(score, count=6_000):
    """Return sets of 4 elements, of which some are in the order of a score."""
    rng = np.random.default_rng(0)
    points = rng.random((count, 4, 3)) + 0.1
    answers = [np.argsort(score(p))[: rng.integers(1, 5)] for p in points]
    return [Example(p, a) for p, a in zip(points, answers, strict=True)]


@pytest.mark.parametrize(
    ("score", "model"),
    [
        (lambda p: p[:, 0] / p[:, 1], "set-ptr-net"),
        (lambda p: p[:, 2] - p[:, 1], "set-ptr-net"),
        (lambda p: np.hypot(p[:, 0] - 0.6, p[:, 1] - 0.6), "transformer-ptr-net"),
    ],
)
def test_an_order_by_a_linear_score_needs_no_decoder(score, model):
    recipe = recipe_of(
        infer_task_of(Dataset.of(ordered_by(score)), loosest_task(3), "here"), "here", {}
    )
    assert recipe.model == model
    if model == "set-ptr-net":
        assert recipe.network.see_logs and not recipe.network.dropout


@pytest.mark.parametrize("kind", ["permutation", "choice", "set"])
def test_small_data_has_more_dropout_and_several_networks(file_of, kind):
    small, _, _ = infer_recipe(file_of(kind, 100), {"kind": kind})
    large, summary, _ = infer_recipe(file_of(kind, 6_000), {"kind": kind})
    assert small.network.dropout > 0 and small.network.ensemble > 1
    assert large.network.ensemble == (3 if kind == "choice" else 1)
    assert large.data.batch_size > small.data.batch_size
    assert large.model == ("transformer-ptr-net" if kind == "permutation" else "set-ptr-net")
    assert "times" not in summary


@pytest.mark.parametrize(
    ("kind", "options", "share"),
    [
        ("choice", {}, 0.2),
        ("grades", {"ensemble": 10}, 0.1),
        ("choice", {"ensemble": 1}, 0.1),
        ("choice", {"valid_share": 0.3}, 0.3),
        ("set", {}, 0.1),
    ],
)
def test_ensembles_for_judgements_of_people_validate_on_all_examples(file_of, kind, options, share):
    recipe, _, _ = infer_recipe(file_of(kind, 100), {"kind": kind, **options})
    assert recipe.data.valid_share == share
    assert recipe.run.patience == (10 if kind == "set" else 6)


@pytest.mark.parametrize(
    ("kind", "options", "epochs"),
    [
        ("choice", {}, 8),
        ("choice", {"trees": 50}, 8),
        ("choice", {"trees": 0}, 20),
        ("choice", {"valid_share": 0}, 20),
        ("grades", {}, 20),
    ],
)
def test_a_network_beside_trees_learns_few_choices_in_fewer_epochs(
    file_of, monkeypatch, kind, options, epochs
):
    pytest.importorskip("lightgbm")
    monkeypatch.setattr(own_data, "FEWEST_STEPS", 1)
    recipe, _, _ = infer_recipe(file_of(kind, 320), {"kind": kind, **options})
    assert recipe.run.steps == epochs * 320 / 16
    monkeypatch.setattr(own_data, "FEW_CHOICES", 319)
    recipe, _, _ = infer_recipe(file_of(kind, 320), {"kind": kind, **options})
    assert recipe.run.steps == 20 * 320 / 16


def test_one_network_without_waves_reads_many_numbers(file_of, monkeypatch):
    monkeypatch.setattr(own_data, "MANY_NUMBERS", 999)  # 100 sets of 5 elements have 1,000
    for kind in ("choice", "grades"):
        recipe = infer_recipe(file_of(kind, 100), {"kind": kind})[0]
        network, steps = recipe.network, recipe.run.steps
        assert network.ensemble == 1 and network.octaves == 0 and network.see_logs
        assert recipe.data.batch_size == 8 and recipe.run.valid_every == steps // 5  # each epoch
    monkeypatch.setattr(own_data, "MANY_NUMBERS", 1_000)
    network = infer_recipe(file_of("choice", 100), {"kind": "choice"})[0].network
    assert network.ensemble == 5 and network.octaves == own_data.OCTAVES


def test_options_of_the_user_override_defaults(file_of):
    path = file_of("choice")
    given = {"dropout": 0.0, "ensemble": 1, "steps": 60, "batch_size": 7, "precision": "auto"}
    recipe, _, _ = infer_recipe(path, given)
    assert {key: recipe.table()[key] for key in given} == given
    assert recipe.run.valid_every == 3  # still a 20th of the steps
    recipe, _, _ = infer_recipe(path, {"model": "ptr-net"})
    assert recipe.run.steps == 20_000 and recipe.network.hidden_size == 256 and recipe.data.augment
    recipe, _, _ = infer_recipe(path, {"score": "dot"})
    assert recipe.model == "ptr-net" and recipe.network.score == "dot"


@pytest.mark.parametrize("model", ["set-ptr-net", "transformer-ptr-net", "ptr-net"])
def test_default_steps_are_a_multiple_of_the_cycles(file_of, model):
    path = file_of("choice")
    steps = infer_recipe(path, {"model": model})[0].run.steps
    recipe, _, _ = infer_recipe(path, {"model": model, "cycles": 7})
    assert recipe.run.steps % 7 == 0 and steps <= recipe.run.steps < steps + 7
    with pytest.raises(InputError, match="steps: expected a multiple of cycles 7, got 60"):
        infer_recipe(path, {"model": model, "cycles": 7, "steps": 60})
    with pytest.raises(InputError, match="cycles: expected a whole number of 1 or more, got 0"):
        infer_recipe(path, {"model": model, "cycles": 0})


def test_an_order_that_means_something_is_seen(file_of):
    recipe, summary, _ = infer_recipe(file_of("choice"), {"ordered": True})
    assert recipe.network.sees_order and not recipe.data.augment
    assert "the network sees the order of the elements" in summary
    recipe, _, _ = infer_recipe(file_of("choice"), {"ordered": True, "model": "ptr-net"})
    assert not recipe.data.augment


def test_gains_are_learned_only_from_grades_that_have_some(file_of):
    recipe, _, _ = infer_recipe(file_of("grades", highest=1000), {})
    assert recipe.objective.loss == "tokens"
    with pytest.raises(InputError, match="loss gains needs the model set-ptr-net, got ptr-net"):
        infer_recipe(file_of("grades"), {"loss": "gains", "model": "ptr-net"})
    with pytest.raises(InputError, match="loss gains needs answers of the kind grades"):
        infer_recipe(file_of("choice"), {"loss": "gains"})


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [
        (lambda rng, n: np.arange(n), "100% of the answers are the first elements"),
        (lambda rng, n: np.arange(n)[::-1], "the last elements in reverse order"),
        (lambda rng, n: np.arange(rng.integers(1, n)), "the first elements in order"),
        (lambda rng, n: np.array([2, 0]), "the same positions"),
        (lambda rng, n: rng.permutation(n), None),
        (lambda rng, n: rng.integers(n, size=1), None),
    ],
)
def test_answers_that_follow_from_positions_give_a_warning(tmp_path, recwarn, answer, doubt):
    rng = np.random.default_rng(1)
    path = tmp_path / "mine.jsonl"
    with path.open("w") as stream:
        for n in rng.integers(3, 6, 40):
            row = {"inputs": rng.random((n, 2)).tolist(), "outputs": answer(rng, n).tolist()}
            stream.write(json.dumps(row) + "\n")
    infer_recipe(str(path), {})
    doubts = [str(w.message) for w in recwarn if w.category is AmbiguousInputWarning]
    assert len(doubts) == (doubt is not None) and (doubt is None or doubt in doubts[0])
    recwarn.clear()
    infer_recipe(str(path), {"ordered": True})
    assert not recwarn.list


def test_answers_of_different_sizes_are_not_at_the_same_positions(tmp_path, recwarn):
    """Each size has one example, so no two answers can be compared."""
    rng = np.random.default_rng(1)
    path = tmp_path / "mine.jsonl"
    with path.open("w") as stream:
        for n in range(3, 18):
            row = {"inputs": rng.random((n, 2)).tolist(), "outputs": rng.permutation(n).tolist()}
            stream.write(json.dumps(row) + "\n")
    infer_recipe(str(path), {})
    assert not [w for w in recwarn if w.category is AmbiguousInputWarning]


def test_choices_by_a_rule_are_learned_with_calibrated_probabilities(tmp_path):
    """Utilities with Gumbel noise: the right probabilities are the softmax of the utilities."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(1500, 4, 3))
    utilities = inputs @ [1.5, -1.0, 0.0]
    chosen = (utilities + rng.gumbel(size=utilities.shape)).argmax(1)
    model = ptrnet.fit(list(inputs[:1200]), chosen[:1200, None], ensemble=1, steps=300)
    assert model.task.kind == "choice"
    shares = np.exp(utilities[1200:]) / np.exp(utilities[1200:]).sum(1, keepdims=True)
    best = np.log(shares[np.arange(300), chosen[1200:]]).mean()
    pairs = list(zip(inputs[1200:], chosen[1200:, None], strict=True))
    assert model.log_likelihoods(pairs).mean() > best - 0.05


def test_a_messy_table_gives_a_line_for_each_kind_of_doubt_and_a_short_summary(tmp_path):
    """Once, each doubtful column had its own line, and the summary listed all columns."""
    path, k = tmp_path / "t.csv", range(12)
    columns = [f"{kind}{j}" for kind in ("typo", "empty", "comma", "tiny", "x") for j in range(7)]
    rows = [
        ["0.5.1" if i == j else i for j in range(7)]
        + [""] * 7
        + [f"{i},5" for j in range(7)]
        + [i * 1e-300 for j in range(7)]
        + [i * j for j in range(1, 8)]
        for i in k
    ]
    lines = [["s", "y", *columns], *([i // 2, i % 2, *row] for i, row in zip(k, rows, strict=True))]
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(lines)
    with pytest.warns(AmbiguousInputWarning) as caught:
        _, summary, _ = infer_recipe(str(path), {"set_id": "s", "chosen": "y"})
    assert [str(warning.message) for warning in caught] == [
        f"{path}:2: \"typo0\": expected a number, as in most rows, got '0.5.1'; because of such "
        'cells, 7 columns are read as texts: "typo0", "typo1", "typo2", "typo3", "typo4", and 2 '
        "more",
        '"empty0", "empty1", "empty2", "empty3", "empty4", and 2 more: no training example has a '
        "value, so the model does not read these fields",
        '"comma0", "comma1", "comma2", "comma3", "comma4", and 2 more: texts such as \'0,5\' are '
        "read as categories; write numbers as 1234.5, without quotes or units",
        "'tiny0', 'tiny1', 'tiny2', 'tiny3', 'tiny4', and 2 more: all values are within 1e-299 of "
        "each other, so the model reads them as equal; write them in a smaller unit",
    ]
    first, _ = summary.splitlines()
    assert "features from 28 fields: typo0 (0.5.1, 1, 10, " in first
    assert first.endswith(", and 23 more; answers of 1 to 1 indices, taken as choice")


@pytest.mark.parametrize(("most", "threads"), [(SMALL_STEP, 1), (100, 2)])
def test_small_steps_use_one_thread(most, threads, monkeypatch):
    """A second thread would make them slower on a busy machine. The caller's setting comes back."""
    monkeypatch.setattr("ptrnet.training.run.SMALL_STEP", most)
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        ptrnet.fit(
            [(np.eye(5)[:, :2], [k % 5]) for k in range(20)],
            kind="choice",
            steps=1,
            ensemble=1,
            batch_size=16,
            callbacks=[lambda step, metrics: seen.append(torch.get_num_threads())],
        )
        assert (seen, torch.get_num_threads()) == ([threads], 2)
    finally:
        torch.set_num_threads(before)
