"""Clicks in shown lists: the effect of positions is learned, and left out of answers."""

import asyncio

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import models, tasks
from ptrnet.cli import run
from ptrnet.errors import InputError
from ptrnet.export.graphs import OnnxModel
from ptrnet.model_folder import Saved
from ptrnet.models.set_ptr_net import SetPtrNet
from ptrnet.solver import Solver
from ptrnet.training import run as training
from ptrnet.training.own_data import infer_recipe
from ptrnet.training.positions import without_positions
from ptrnet.training.reports import Hooks
from tests.serve.conftest import client_of

pandas = pytest.importorskip("pandas")
TINY = {"steps": 4, "hidden_size": 8, "batch_size": 8, "ensemble": 2, "valid_every": 2}
NAMES = {"set_id": "query", "chosen": "clicked"}


def clicks(sets, seed, shown=6):
    """Draw clicks in lists that a former ranker put in order by the age, which does not matter.

    An element's relevance is its quality, and its position adds -1.2 log(position) to the log-odds
    of a click. Return the frame, whose column `relevance` no model may read, shuffled.
    """
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame({"query": np.repeat(np.arange(sets), shown)})
    frame["quality"], frame["age"] = rng.normal(size=(2, len(frame)))
    frame["relevance"] = frame["quality"]
    frame["former"] = frame["age"] + 0.3 * rng.normal(size=len(frame))
    frame["place"] = frame.groupby("query")["former"].rank(ascending=False).astype(int)
    utility = frame["relevance"] - 1.2 * np.log(frame["place"]) + rng.gumbel(size=len(frame))
    frame["clicked"] = (utility == utility.groupby(frame["query"]).transform("max")).astype(int)
    return frame.drop(columns="former").sample(frac=1, random_state=seed)


def ndcg(frame, scores):
    """NDCG with the gains exp(relevance), by the definition."""
    values = []
    for _, rows in frame.groupby("query"):
        gains = np.exp(rows["relevance"].to_numpy())
        discounts = 1 / np.log2(np.arange(2, len(gains) + 2))
        order = np.argsort(-scores[rows.index].to_numpy())
        values.append(gains[order] @ discounts / (np.sort(gains)[::-1] @ discounts))
    return np.mean(values)


@pytest.mark.parametrize("model", [None, models.LOGIT])
def test_relevance_is_recovered_from_biased_clicks(model):
    """Without `position`, age counts as relevant, because old elements were shown first."""
    learned, tested = clicks(500, 1).drop(columns="relevance"), clicks(300, 2)
    options = {"model": model} if model else {"ensemble": 1, "hidden_size": 16, "seed": 1}
    biased = ptrnet.fit(learned.drop(columns="place"), **NAMES, **options)
    solver = ptrnet.fit(learned, position="place", **NAMES, **options)
    new = tested[["query", "quality", "age"]]
    before, after = (ndcg(tested, m.scores(new, set_id="query")) for m in (biased, solver))
    assert after > before + 0.02 and after > 0.98
    assert solver.task.fields == ("quality", "age")
    shown = new.assign(place=1)  # positions are not read, and need not be there
    assert solver.scores(shown, set_id="query").equals(solver.scores(new, set_id="query"))
    if model:
        effects = {row["name"]: row["coefficient"] for row in solver.coefficients()}
        shares = solver.simulate(new, set_id="query", change="quality + 1", where="age > 0")
        assert len(shares["shares"])
        for k in range(2, 7):
            assert effects[f"place = {k}"] == pytest.approx(-1.2 * np.log(k), abs=0.6)
    else:
        effects = [*solver.trained["positions"].values()]
        assert effects[0] == 0 and -3 < effects[-1] < -0.8
        assert np.corrcoef(effects, np.log(np.arange(1, 7)))[0, 1] < -0.9


@pytest.mark.parametrize("kind", ["choice", "grades"])
def test_the_model_without_positions_answers_as_the_whole_one_without_marks(kind):
    """Also its logit; the marks of the elements are 0 then."""
    torch.manual_seed(0)
    schema = {
        "fields": ("a", "b", "place"),
        "categories": ((), (), ("1", "2", "3")),
        "center": (0.5, -1.0, 0, 0, 0),
        "spread": (1.0, 2.0, 1, 1, 1),
    }
    task = tasks.get("custom", kind=kind, **schema)
    sizes = {"hidden_size": 8, "encoder_layers": 1, "feed_forward": 8, "ensemble": 2}
    model = models.build("set-ptr-net", 5, 1, positions=3, answer=task.facts.answer, **sizes).eval()
    for network in model.networks():
        assert isinstance(network, SetPtrNet)
        with torch.no_grad():
            network.positions.normal_()
            if kind == "choice":
                network.logit_weights.normal_()
                network.logit_share.fill_(0.4)
    given = {"model": "set-ptr-net", "data": "clicks.csv", "n": "2-5", "set_id": "query"}
    given |= {
        "valid_share": 0.1,
        "position": "place",
        "positions": 3,
        "grade" if kind == "grades" else "chosen": "y",
    }
    from ptrnet.training.recipe import Recipe

    recipe = Recipe.of(task, {**given, **sizes})
    saved = without_positions(Saved(model, task, {}), recipe)
    assert saved.task.fields == ("a", "b") and saved.model.features == 2
    inputs = torch.randn(4, 5, 5)
    inputs[..., 2:] = 0
    lengths = torch.tensor([5, 2, 4, 3])
    with torch.no_grad():
        for whole, part in zip(model.networks(), saved.model.networks(), strict=True):
            expected = whole.encode(inputs, lengths).scores
            assert part.encode(inputs[..., :2], lengths).scores.equal(expected)
            shown = inputs.clone()
            shown[0, 0, 2] = 1  # a position changes the scores of the whole network
            assert not whole.encode(shown, lengths).scores.equal(expected)
    effects = torch.stack([n.position_effects().detach() for n in model.networks()]).mean(0)
    if kind == "choice":  # the logit counts by its share
        of_logit = torch.stack([n.logit_weights[2:] for n in model.networks()]).mean(0)
        effects = 0.6 * effects + 0.4 * of_logit
    expected = (effects - effects[0]).tolist()
    assert [*saved.trained["positions"].values()] == pytest.approx(expected, abs=1e-4)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("clicks") / "clicks.csv"
    clicks(60, 3).drop(columns="relevance").to_csv(path, index=False)
    return path


def test_models_of_clicks_are_resumed_saved_exported_served_and_explained(tmp_path, file):
    given = {**NAMES, "position": "place", **TINY, "valid_share": 0.3}
    recipe, text, _ = infer_recipe(str(file), {**given, "checkpoint_every": 2})
    assert "place" in text

    def stop(step, metrics):
        if step == 2:
            raise KeyboardInterrupt

    training.train(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        training.train(recipe, tmp_path / "stopped", hooks=Hooks([stop]))
    stopped = ptrnet.load(tmp_path / "stopped")  # also this one has no positions
    assert stopped.task.fields == ("quality", "age")
    words = ["train", "--output", str(tmp_path / "stopped"), "--resume"]
    assert run(words) == 0
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "stopped")]
    assert files[0].read_bytes() == files[1].read_bytes()
    solver = ptrnet.load(tmp_path / "whole")
    assert len(solver.trained["positions"]) == 6
    assert "place" in (tmp_path / "whole" / "README.md").read_text()

    frame = clicks(8, 4)
    new = frame[["query", "quality", "age"]]
    p = solver.predict_proba(new, set_id="query")
    assert solver.predict_proba(frame, set_id="query").equals(p)
    ptrnet.export_onnx(solver, tmp_path / "onnx", instances=5)
    graphs = Solver(OnnxModel(tmp_path / "onnx", solver.model), solver.task)
    assert np.allclose(graphs.predict_proba(new, set_id="query"), p, atol=1e-5)
    explained = solver.explain(frame, **NAMES)
    assert {*explained["importance"]} == {"quality", "age"}

    async def ask():
        async with client_of({"mine": solver}) as client:
            rows = new[new["query"] == 0][["quality", "age"]].to_dict("records")
            answered = await client.post("/v1/models/mine/solve", json={"instances": [rows]})
            return answered.json()["answers"][0]

    of_first = p[new.index[new["query"] == 0]].to_numpy()
    assert asyncio.run(ask())["outputs"] == [int(of_first.argmax())]
    out = tmp_path / "solved.csv"
    new.to_csv(tmp_path / "new.csv", index=False)
    words = ["solve", "--model", str(tmp_path / "whole"), str(tmp_path / "new.csv")]
    assert run([*words, "--set-id", "query", "--output", str(out), "--probability", "p"]) == 0
    assert np.allclose(pandas.read_csv(out)["p"], p, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"outside": "none"}, "position: expected no outside option"),
        ({"model": "transformer-ptr-net"}, "position: expected model set-ptr-net"),
        ({"trees": 20}, "recipe: position: set trees to 0"),
        ({"position": "absent"}, 'expected the column "absent"'),
        ({"chosen": "", "rank": "age"}, "position: is for choice, grades, set, got permutation"),
        ({"position": "same"}, 'table: "same": expected the position of an element, got one'),
        ({"position": "hole"}, '"hole": expected the position of an element, got none'),
    ],
)
def test_positions_that_cannot_be_used_are_refused(changes, complaint):
    frame = clicks(12, 5).drop(columns="relevance").assign(same=1)
    frame["hole"] = frame["place"].astype(float).where(frame["place"] != 3)
    names = {**NAMES, "position": "place", **changes}
    with pytest.raises(InputError, match=complaint):
        ptrnet.fit(frame, **{key: value for key, value in names.items() if value}, steps=2)
    with pytest.raises(InputError, match="position: needs set_id"):
        ptrnet.fit([([[1.0], [2]], [0])] * 4, position="place")
