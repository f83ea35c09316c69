"""Mixtures of networks, logits and trees: chosen, saved, resumed, exported, served, explained."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from torch.nn.utils.rnn import pad_sequence

import ptrnet
from ptrnet import models, tasks
from ptrnet.cli import run
from ptrnet.data.groups import code_of
from ptrnet.export.graphs import OnnxModel
from ptrnet.metrics import Moments
from ptrnet.models.parts.scores_once import mixed_log_probs, mixed_scores
from ptrnet.solver import Solver
from ptrnet.training import mixture as mixing
from ptrnet.training import own_data
from ptrnet.training import run as training
from ptrnet.training.mixture import (
    Shares,
    _likelihoods,
    _ranking_measures,
    _set_shares,
    _stages,
    best_mixture,
    mean_shares,
)
from ptrnet.training.own_data import infer_recipe
from ptrnet.training.reports import Hooks
from tests.serve.conftest import client_of
from tests.support.small_models import random_spaces, random_trees

CASES = [
    ("choice", Shares()),
    ("choice", Shares(0.6, 0.4, 0)),
    ("choice", Shares(0.5, 0, 0.5)),
    ("choice", Shares(0.2, 0.3, 0.5)),
    ("choice", Shares(0, 0, 1)),
    ("choice", Shares(0, 0, 0, 1)),
    ("choice", Shares(0.1, 0.2, 0.3, 0.4)),
    ("choice", Shares(0, 0.5095, 0.256, 0.2345)),  # their sum is above 1 in float32
    ("grades", Shares()),
    ("grades", Shares(0.3, 0, 0.7)),
    ("grades", Shares(0, 0, 1)),
    ("grades", Shares(0.2, 0, 0.3, 0.5)),
]
EVERY_CASE = pytest.mark.parametrize(("kind", "shares"), CASES)
CENTER = (0.5, -1.0, 0.0)
TINY = {"steps": 4, "hidden_size": 8, "batch_size": 8, "ensemble": 2, "valid_every": 2, "spaces": 0}


def mixture(kind, shares, members=2):
    """Return an ensemble whose members are mixtures with random logits and trees."""
    torch.manual_seed(0)
    task = tasks.get("custom", kind=kind, center=CENTER, spread=(1.0, 2.0, 1.0))
    sizes = {"hidden_size": 8, "encoder_layers": 1, "feed_forward": 8, "ensemble": members}
    model = models.build("set-ptr-net", 3, 1, answer=task.facts.answer, **sizes).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    for k, network in enumerate(model.networks()):
        if kind == "choice":
            network.logit_weights.normal_()
        read = 9 if kind == "choice" else 3
        trees = random_trees(5, read, seed=k) if shares.trees else None
        network.set_others(trees, random_spaces(3, 6, seed=k) if shares.spaces else None)
        _set_shares(network, shares)
    return Solver(model, task, {"n": "1-6"})


def instances(count=6, seed=3):
    rng = np.random.default_rng(seed)
    return [rng.normal(CENTER, (1.0, 2.0, 1.0), (int(rng.integers(1, 7)), 3)) for _ in range(count)]


def examples(kind, count=6):
    rng = np.random.default_rng(2)
    if kind == "choice":
        return [(x, [int(rng.integers(len(x)))]) for x in instances(count)]
    return [
        ptrnet.types.Example(x, rng.permutation(len(x)), grades=np.arange(len(x))[::-1] % 3.0)
        for x in instances(count)
    ]


def assert_equal_scores(actual, expected):
    for x in instances():
        np.testing.assert_allclose(actual.scores(x), expected.scores(x), atol=2e-5)
        assert actual.solve(x).tolist() == expected.solve(x).tolist()


@EVERY_CASE
def test_a_saved_mixture_answers_without_lightgbm(tmp_path, kind, shares):
    solver = mixture(kind, shares)
    solver.save_pretrained(tmp_path / "m")
    assert_equal_scores(ptrnet.load(tmp_path / "m"), solver)
    code = (
        "import sys; sys.modules['lightgbm'] = None; import ptrnet, numpy;"
        f"m = ptrnet.load({str(tmp_path / 'm')!r});"
        f"print(m.scores(numpy.array({instances(1)[0].tolist()})).tolist())"
    )
    if shares == Shares(0.1, 0.2, 0.3, 0.4):  # of all parts, so that one process is enough
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        np.testing.assert_allclose(eval(done.stdout), solver.scores(instances(1)[0]), atol=2e-5)


@EVERY_CASE
def test_an_exported_mixture_answers_like_the_model(tmp_path, kind, shares):
    solver = mixture(kind, shares)
    manifest = ptrnet.export_onnx(solver, tmp_path / "onnx", instances=30)
    assert manifest["checked"]["same_answers"] + manifest["checked"]["ties"] == 30
    graphs = Solver(OnnxModel(tmp_path / "onnx", solver.model), solver.task)
    assert_equal_scores(graphs, solver)


def test_trees_in_a_quantized_graph_are_not_rounded(tmp_path):
    solver = mixture("choice", Shares(0, 0, 1))
    ptrnet.export_onnx(solver, tmp_path / "onnx", weights="int8", instances=10)
    graphs = Solver(OnnxModel(tmp_path / "onnx", solver.model), solver.task)
    assert_equal_scores(graphs, solver)


@EVERY_CASE
def test_a_served_mixture_answers_like_the_model(kind, shares):
    import asyncio

    solver = mixture(kind, shares)

    async def ask():
        async with client_of({"mine": solver}) as client:
            question = {"instances": [x.tolist() for x in instances()]}
            return (await client.post("/v1/models/mine/solve", json=question)).json()

    answers = [answer["outputs"] for answer in asyncio.run(ask())["answers"]]
    assert answers == [solver.solve(x).tolist() for x in instances()]


@EVERY_CASE
def test_a_mixture_is_explained(kind, shares):
    """Trees that read only the first feature lose nothing if others are shuffled."""
    solver = mixture(kind, shares, members=1)
    if shares.trees == 1:
        solver.model.trees.features.zero_()
    importance = solver.explain(examples(kind, 40))["importance"]
    assert len(importance) == 3
    if shares.trees == 1:
        assert importance["feature 2"]["value"] == importance["feature 3"]["value"] == 0
        assert importance["feature 1"]["value"] != 0


@EVERY_CASE
def test_padding_does_not_change_a_mixture(kind, shares):
    solver = mixture(kind, shares)
    together = solver.scores(instances())
    for x, scores in zip(instances(), together, strict=True):
        np.testing.assert_allclose(solver.scores(x), scores, atol=1e-5)


def test_a_network_without_a_share_is_not_computed(monkeypatch):
    solver = mixture("choice", Shares(0, 0.5095, 0.256, 0.2345))
    (x, *_), networks = instances(), solver.model.networks()
    inputs = torch.from_numpy(solver.task.normalize(x)).float()[None]
    with torch.enable_grad():  # the network is computed, and gets no share
        whole = [network.encode(inputs).scores[0, 1:].softmax(-1) for network in networks]
    for network in networks:
        monkeypatch.setattr(network, "_own_scores", None)
    expected = torch.stack(whole).mean(0).detach().numpy()
    np.testing.assert_allclose(solver.predict_proba(x), expected, atol=1e-6)


def test_probabilities_of_choices_are_means_and_scores_of_rankings_are_standardised():
    shares, parts = torch.tensor([0.2, 0.0, 0.8]), torch.randn(3, 4, 5, dtype=torch.float64)
    expected = (shares[:, None, None] * parts.softmax(-1)).sum(0)
    torch.testing.assert_close(mixed_log_probs([*parts], [*shares]).exp(), expected)
    own, other = parts[0].numpy() * 3 + 1, parts[1].numpy()
    z, others = ((x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True) for x in (own, other))
    spreads = 0.75 * own.std(1, keepdims=True) + 0.25 * other.std(1, keepdims=True)
    actual = mixed_scores([torch.from_numpy(own), parts[1]], torch.tensor([0.75, 0.25]))
    np.testing.assert_allclose(actual, spreads * (0.75 * z + 0.25 * others))
    for share, alone in ((0.0, torch.from_numpy(own)), (1.0, parts[1])):
        mixed = mixed_scores([torch.from_numpy(own), parts[1]], torch.tensor([1 - share, share]))
        torch.testing.assert_close(mixed.softmax(-1), alone.softmax(-1))


def test_equal_scores_stay_equal():
    half, equal = torch.tensor([0.5, 0.5]), torch.ones(1, 3)
    mixed = mixed_scores([equal, torch.tensor([[1.0, 2.0, 4.0]])], half)
    assert mixed.isfinite().all() and mixed.argmax() == 2
    assert not mixed_scores([equal, equal], half).any()


def best(values, stages, groups=None):
    """The best mixture, if each group is in the sample once."""
    codes = np.arange(values.shape[1]) if groups is None else groups
    sums = np.array([np.bincount(codes, row) for row in values])
    return best_mixture(sums, np.bincount(codes), stages, np.ones(sums.shape[1], int))


def test_a_mixture_needs_a_gain_of_more_than_one_standard_error():
    """The mixtures gain 0.1 on average, with a standard deviation of 1."""
    gains = np.random.default_rng(0).normal(size=10_000)
    gains = (gains - gains.mean()) / gains.std() + 0.1
    values = np.stack([np.full(len(gains), -2.0), np.full(len(gains), -3.0), -2.0 + gains])
    assert best(values, [1, 2]) == best(values, [1, 1, 1]) == 2
    few = np.where(np.arange(64) % 2, 1.1, -0.9)  # the standard error is 0.125
    values = values[:, :64].copy()
    values[2] = -2.0 + few
    assert best(values, [1, 2]) == best(values, [1, 1, 1]) == 0


def test_a_gain_of_a_few_persons_is_not_clear_however_many_choices_they_have():
    """The gains of 4 persons, 0.1 on average, have a standard error of 0.11."""
    persons = np.repeat(np.arange(4), 100)
    values = np.stack([np.full(400, -2.0), -2.0 + np.array([0.4, 0.1, 0.0, -0.1])[persons]])
    assert best(values, [1, 1]) == 1
    assert best(values, [1, 1], persons) == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_resample_is_measured_like_examples_of_new_persons(seed):
    """A person that is drawn twice counts as two persons with the same examples."""
    rng = np.random.default_rng(seed)
    persons = np.sort(rng.integers(6, size=40))
    persons = np.unique(persons, return_inverse=True)[1]
    num_persons = persons[-1] + 1
    values = rng.normal(size=(2, 40))
    counts = rng.multinomial(num_persons, np.full(num_persons, 1 / num_persons))
    drawn = np.repeat(np.arange(num_persons), counts)
    rows = [np.flatnonzero(persons == person) for person in drawn]
    codes = np.repeat(np.arange(len(rows)), [*map(len, rows)])
    gains = (values[1] - values[0])[np.concatenate(rows)]
    expected = gains.mean() - Moments.of(gains, codes).standard_error()
    sums = np.array([np.bincount(persons, row) for row in values])
    for shift in (-1e-9, 1e-9):  # of each example's gain, so that it is just clear, or just not
        shifted = sums + np.outer([0, shift - expected], np.bincount(persons))
        assert best_mixture(shifted, np.bincount(persons), [1, 1], counts) == (shift > 0)


@pytest.mark.parametrize("loss", ["gains", "tokens"])
@pytest.mark.parametrize("gains", [(), (0, 1, 9, 10)])
def test_the_measure_of_a_ranking_is_its_loss(loss, gains, monkeypatch):
    """Compare with the formula for each set, at the scale that SciPy finds."""
    task = tasks.get("custom", kind="grades", center=(0.0,), spread=(1.0,), gains=gains)
    weights = (1.0, 0.5, 3.0)
    scores = [np.array(s) for s in ([1.0, 0.2], [1.5, 0.3, 1.2, 0.9, -0.4], [0.4, 0.6, 0.1])]
    grades = [np.array([1.0, 0]), np.array([2.0, 0, 3, 1, 0]), np.array([0.0, 1, 1])]
    data = ptrnet.types.Dataset.of(
        ptrnet.types.Example(x[:, None], np.argsort(-g, kind="stable"), grades=g, weight=w)
        for x, g, w in zip(scores, grades, weights, strict=True)
    )
    targets = [np.array(gains or [0, 1, 3, 7])[g.astype(int)] for g in grades]
    if loss == "tokens":
        targets = [np.exp(g) for g in grades]

    def likelihoods(factor):
        rows = zip(weights, targets, scores, strict=True)
        return np.array([w * t / t.sum() @ log_softmax(factor * x) for w, t, x in rows])

    best = minimize_scalar(lambda a: -likelihoods(a).sum(), (0, 1), tol=1e-12).x
    assert 0.1 < best < 10
    monkeypatch.setattr(mixing, "element_scores", lambda *_: scores)
    network = mixture("grades", Shares(), 1).model.networks()[0]
    recipe = SimpleNamespace(task=task, objective=SimpleNamespace(loss=loss))
    found = _ranking_measures(network, recipe, data, np.array([Shares()]))
    np.testing.assert_allclose(found, [likelihoods(best)], rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-5, 1, 1e4])
def test_rankings_are_measured_at_the_best_scale_of_their_scores(scale):
    """Compare with a search by SciPy over a loop of sets. One set says nothing."""
    rng, sizes = np.random.default_rng(0), [3, 7, 5, 1, 6]
    scores = [rng.normal(size=n) for n in sizes]
    targets = [np.exp(0.7 * x + rng.normal(size=len(x))) for x in scores]
    targets = [t / t.sum() * (k != 2) for k, t in enumerate(targets)]
    weights = np.array([1, 0.5, 1, 2, 3])

    def likelihoods(factor):
        rows = zip(weights, targets, scores, strict=True)
        return np.array([w * t @ log_softmax(factor * x) for w, t, x in rows])

    best = minimize_scalar(lambda a: -likelihoods(a).sum(), (0, 1), tol=1e-12).x
    assert 0.2 < best < 3
    padded = pad_sequence([torch.tensor(scale * x) for x in scores], True, -torch.inf)
    of_targets = pad_sequence([*map(torch.tensor, targets)], True)
    found = _likelihoods(padded, of_targets, torch.tensor(weights))
    np.testing.assert_allclose(found.numpy(), likelihoods(best), rtol=0, atol=1e-9)


def test_scores_that_say_nothing_are_measured_as_equal_scores():
    targets, weights = torch.tensor([[0.7, 0.3], [0.5, 0.5]]).double(), torch.ones(2).double()
    for scores in ([[2, 2], [1, 1]], [[0, 1], [1, 1]]):  # or prefer the worse element
        found = _likelihoods(torch.tensor(scores).double(), targets, weights)
        np.testing.assert_allclose(found.numpy(), np.log(0.5), atol=1e-3)


def test_the_loss_chooses_between_rankings_where_ndcg_is_noise(monkeypatch):
    """Two equally good models: half of each is best. By NDCG, shares are up to 0.65."""
    model = mixture("grades", Shares(0.5, 0, 0.5), 1).model.networks()[0]
    task = tasks.get("custom", kind="grades", center=(0.0,) * 2, spread=(1.0,) * 2)
    stages = [*map(np.array, _stages(False, True, False))]
    monkeypatch.setattr(
        mixing,
        "element_scores",
        lambda network, _, part: [e.inputs[:, int(bool(network.trees.share))] for e in part],
    )
    for seed in range(8):
        rng = np.random.default_rng(seed)
        utilities = rng.normal(size=(60, 30))
        scores = utilities[..., None] + 0.5 * rng.normal(size=(60, 30, 2))
        places = (2 * utilities + rng.gumbel(size=(60, 30))).argsort(1).argsort(1)
        grades = np.select([places > 28, places > 25, places > 18], [3.0, 2.0, 1.0], 0.0)
        data = ptrnet.types.Dataset.of(
            ptrnet.types.Example(x, np.argsort(-g, kind="stable"), grades=g)
            for x, g in zip(scores, grades, strict=True)
        )
        for loss in ("gains", "tokens"):
            recipe = SimpleNamespace(task=task, objective=SimpleNamespace(loss=loss))
            values = _ranking_measures(model, recipe, data, np.concatenate(stages))
            assert 0.38 < mean_shares(values, stages).trees < 0.62


def test_shares_are_means_over_resamples_of_persons():
    """Half of the persons favour the logit and half the trees, so chance decides in a resample."""
    stages = [np.array([[0, 1.0, 0, 0], [0, 0, 1.0, 0]])]
    persons = np.repeat(np.arange(20), 30)
    codes = np.array([code_of(k) for k in persons])
    values = np.where(persons % 2, 1.0, -1.0) * [[1], [-1]]
    shares = mean_shares(values, stages, codes)
    assert 0.3 < shares.logit < 0.7 and sum(shares) == pytest.approx(1)
    assert shares.network == shares.spaces == 0
    assert mean_shares(values + [[0.5], [0]], stages) == Shares(0, 1)  # 600 persons are clear
    favours = np.where(np.arange(20) < 15, 1.0, -1.0)[persons] * [[1], [-1]]
    assert mean_shares(favours, stages, codes) == Shares(0, 1)  # a share of 1 to 4% is left out


def jumps(count, kind, seed=0):
    """Return sets whose best element is the one above 0.3 in the first feature, which tree sees."""
    rng = np.random.default_rng(seed)
    sets = []
    for x in rng.normal(size=(count, 4, 3)):
        utility = 4.0 * (np.floor(2 * x[:, 0]) % 2) + rng.gumbel(size=4)
        if kind == "choice":
            sets.append((x, [int(utility.argmax())]))
        else:
            grades = np.clip(np.round(utility), 0, 4)
            sets.append(ptrnet.types.Example(x, np.argsort(-grades, kind="stable"), grades=grades))
    return sets


@pytest.mark.parametrize("kind", ["choice", "grades"])
@pytest.mark.parametrize("valid", ["parts", "one part"])
def test_trees_answer_if_they_predict_validation_examples_better(kind, valid, capsys):
    """A few steps do not let a network learn jumps."""
    ensemble = 2 if valid == "parts" else 1
    options = {**TINY, "ensemble": ensemble, "valid_share": 0.3, "trees": 60, "seed": 1}
    model = ptrnet.fit(jumps(200, kind), kind, **options)
    for network in model.model.networks():
        assert network.trees.share > 0.5 and len(network.trees) == network.settings()["trees"] > 5
        is_compared = bool((network.trees.features >= 3).any())  # with the other elements
        assert is_compared == (kind == "choice")
    assert "gradient-boosted trees" in capsys.readouterr().err
    new = jumps(300, kind, seed=1)
    metric = {"choice": "accuracy", "grades": "ndcg@1"}[kind]
    without = ptrnet.fit(jumps(200, kind), kind, **{**options, "trees": 0})
    assert model.evaluate(new)[metric]["value"] > without.evaluate(new)[metric]["value"] + 0.1


def test_trees_that_learn_nothing_are_left_out():
    rng = np.random.default_rng(0)
    same = rng.normal(size=(60, 1, 3)).repeat(4, 1)  # nothing tells the elements of a set apart
    noise = [(x, [int(rng.integers(4))]) for x in same]
    model = ptrnet.fit(noise, "choice", **TINY, trees=20, seed=1)
    for network in model.model.networks():
        assert network.trees is None and network.settings()["trees"] == 0


def lines(path, kind="choice", count=40):
    examples = jumps(count, kind)
    if kind == "choice":
        examples = [ptrnet.types.Example(x, np.array(y)) for x, y in examples]
    task = tasks.get("custom", kind=kind, center=(0.0,) * 3, spread=(1.0,) * 3)
    ptrnet.data.formats.write(str(path), ptrnet.types.Dataset.of(examples), task)
    return str(path)


@pytest.mark.parametrize("kind", ["choice", "grades"])
@pytest.mark.parametrize("at", [2, 4])
def test_a_resumed_training_gives_the_same_mixture(tmp_path, kind, at):
    """The training stops after some steps, or after the last one, before trees are grown."""
    given = {"kind": kind, **TINY, "trees": 20, "valid_share": 0.3, "checkpoint_every": 2}
    recipe, _, _ = infer_recipe(lines(tmp_path / "d.jsonl", kind, 100), given)

    def stop(step, metrics):
        if step == at:
            raise KeyboardInterrupt

    training.train(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        training.train(recipe, tmp_path / "stopped", hooks=Hooks([stop]))
    training.train(recipe, tmp_path / "stopped", resume=True)
    whole, stopped = ((tmp_path / f / "model.safetensors") for f in ("whole", "stopped"))
    assert whole.read_bytes() == stopped.read_bytes()
    assert ptrnet.load(tmp_path / "whole").model.settings()["trees"] > 0


@pytest.mark.parametrize(("at", "share"), [(1, 1.0), (3, 0.5)])
def test_a_stopped_training_leaves_its_trees(tmp_path, at, share):
    """Before the first validation trees answer alone, and later together with the network."""

    def stop(step, metrics):
        if step == at:
            raise KeyboardInterrupt

    path = lines(tmp_path / "d.jsonl", count=200)
    recipe, _, _ = infer_recipe(path, {"kind": "choice", **TINY, "trees": 20, "seed": 1})
    with pytest.raises(KeyboardInterrupt):
        training.train(recipe, tmp_path / "m", hooks=Hooks([stop]))
    for network in ptrnet.load(tmp_path / "m").model.networks():
        assert len(network.trees) > 0 and network.trees.share == share
        assert network.logit_share == 0


def test_trees_are_saved_before_the_network_takes_its_first_step(tmp_path):
    def look(step, metrics):
        assert step > 1 or ptrnet.load(tmp_path / "m").model.networks()[0].trees.share == 1

    path = lines(tmp_path / "d.jsonl", count=200)
    recipe, _, _ = infer_recipe(path, {"kind": "choice", **TINY, "trees": 20, "seed": 1})
    training.train(recipe, tmp_path / "m", hooks=Hooks([look]))


def test_trees_are_chosen_before_a_network_that_is_not_clearly_better():
    for has_trees, firsts in (
        (True, [Shares(0, 1), Shares(0, 0.95, 0.05)]),
        (False, [Shares(0, 1)]),
    ):
        *simple, with_network = _stages(True, has_trees, False)
        assert [stage[0] for stage in simple] == firsts
        assert all(shares.network for shares in with_network)
        count = sum(map(len, [*simple, with_network]))
        assert count == (231 if has_trees else 21)  # all pairs of multiples of 5%
    first, *_, last = _stages(False, True, False)
    assert first == [Shares(0, 0, 1)] and Shares() in last
    assert _stages(False, False, False) == [[Shares()]]
    assert _stages(True, True, True)[0] == _stages(False, False, True)[0] == [Shares(0, 0, 0, 1)]


def test_a_training_from_other_weights_grows_its_own_trees(tmp_path):
    first = ptrnet.fit(
        jumps(150, "choice"),
        "choice",
        output=tmp_path / "first",
        trees=40,
        seed=1,
        **{**TINY, "valid_share": 0.3},
    )
    assert first.model.settings()["trees"] > 0
    again = ptrnet.fit(
        jumps(40, "choice", 3),
        "choice",
        weights=str(tmp_path / "first"),
        **{**TINY, "valid_share": 0, "trees": 0},
    )
    for network in again.model.networks():
        assert network.trees is None and network.logit_share == 0


def test_trees_are_a_default_where_they_help_if_the_extra_is_installed(tmp_path, monkeypatch):
    path = lines(tmp_path / "d.jsonl")

    def recipe(**options):
        return infer_recipe(path, options)[0].network

    assert recipe(kind="choice").trees == own_data.MOST_TREES
    assert recipe(kind="choice", trees=0).trees == 0
    assert recipe(kind="set").trees == recipe(kind="choice", valid_share=0).trees == 0
    assert not hasattr(recipe(kind="choice", ordered=True), "trees")
    text = infer_recipe(path, {"kind": "choice"})[1]
    assert "up to 300 trees" in text and "pip" not in text
    monkeypatch.setattr("ptrnet.training.own_data.find_spec", lambda name: None)
    found, text, _ = infer_recipe(path, {"kind": "choice"})
    assert found.network.trees == 0 and text.count('pip install "ptrnet[trees]"') == 1
    assert "pip" not in infer_recipe(path, {"kind": "set"})[1]


def test_trees_without_the_extra_are_refused_before_anything_is_written(
    tmp_path, monkeypatch, capsys
):
    path = lines(tmp_path / "d.jsonl")
    monkeypatch.setattr("ptrnet.errors.find_spec", lambda name: None)
    command = ["train", "--data", path, "--kind", "choice", "--trees", "5"]
    assert run([*command, "--output", str(tmp_path / "m")]) == 2
    assert 'pip install "ptrnet[trees]"' in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "set"}, "trees are for answers of the kinds choice and grades"),
        ({"kind": "choice", "valid_share": 0}, "trees need validation examples"),
        ({"kind": "choice", "model": "ptr-net"}, "unknown setting of model ptr-net 'trees'"),
    ],
)
def test_trees_are_refused_where_they_cannot_be_mixed(tmp_path, options, message):
    with pytest.raises(ptrnet.InputError, match=message):
        infer_recipe(lines(tmp_path / "d.jsonl"), {**options, "trees": 5})


def test_a_damaged_tree_is_refused(tmp_path):
    solver = mixture("choice", Shares(0, 0, 1))
    solver.model.networks()[1].trees.branches[0, 0, 0] = 77
    solver.save_pretrained(tmp_path / "m")
    with pytest.raises(ptrnet.PtrnetError, match=r"a tree has a feature or a child that does not"):
        ptrnet.load(tmp_path / "m")
