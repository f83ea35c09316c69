"""Signs: a higher price never makes an element more probable, whatever the set and the weights."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import models
from ptrnet.cli import run
from ptrnet.data.infer_task import task_of
from ptrnet.decoding import Beam
from ptrnet.export.graphs import OnnxModel
from ptrnet.models.ensemble import Ensemble
from ptrnet.models.parts.scores_once import ScoresOnce, mixed_scores, scored
from ptrnet.solver import Solver
from ptrnet.tasks.schema import Schema
from ptrnet.training import run as training
from ptrnet.training.mixture import Shares
from ptrnet.training.own_data import infer_recipe
from ptrnet.training.recipe import Recipe
from ptrnet.training.reports import Hooks
from ptrnet.training.sets import Sets
from tests.serve.conftest import client_of
from tests.training.test_trees import all_trees

SIGNS = {"price": -1, "rating": 1}
SCHEMA = Schema(
    ("size", "price", "rating", "colour"),
    ((), (), (), ("blue", "red")),
    fills=(("rating", 0.5),),
    increasing=("rating",),
    decreasing=("price",),
)
CASES = [
    ("choice", Shares()),
    ("choice", Shares(0, 1, 0)),
    ("choice", Shares(0, 0, 1)),
    ("choice", Shares(0.3, 0.3, 0.4)),
    ("grades", Shares()),
    ("grades", Shares(0, 0, 1)),
    ("grades", Shares(0.4, 0, 0.6)),
    ("permutation", Shares()),
    ("subset", Shares()),
    ("set", Shares()),
]
EVERY_CASE = pytest.mark.parametrize(("kind", "shares"), CASES)


def drawn_sets(count, seed):
    rng = np.random.default_rng(seed)
    return [
        [
            {
                "size": float(rng.normal()),
                "price": float(rng.choice([rng.normal(), round(rng.normal())])),
                "rating": float(rng.normal()),
                "colour": str(rng.choice(["red", "blue"])),
            }
            for _ in range(rng.integers(2, 7))
        ]
        for _ in range(count)
    ]


def monotone_trees(task, seed):
    """Grow trees on answers that are noise, and have the wrong signs."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, 150)
    x = np.float32(rng.normal(size=(sizes.sum(), task.facts.num_features)))
    utilities = -2.0 * x @ task.facts.signs + x[:, 0] * x[:, 1] + rng.gumbel(size=len(x))
    stops = np.cumsum(sizes)
    targets = np.zeros(len(x))
    for start, stop in zip(stops - sizes, stops, strict=True):
        targets[start + utilities[start:stop].argmax()] = 1
    sets = Sets(x, sizes, targets, np.ones(len(sizes)), task.facts.signs)
    return all_trees([sets], [sets], 40, seed, compared=task.facts.kind == "choice")[0]


def signed_mixture(kind, shares, seed=0, members=2):
    """Return an untrained ensemble of mixtures with large weights."""
    torch.manual_seed(seed)
    task = replace(task_of(SCHEMA), kind=kind, lowest=(0.1,) * 6, center=(0.3,) * 6)
    sizes = {"hidden_size": 8, "encoder_layers": 1, "feed_forward": 8, "ensemble": members}
    settings = models.settings_of(
        "set-ptr-net", answer=task.facts.answer, octaves=2, see_logs=True, **sizes
    )
    model = models.for_task("set-ptr-net", task, settings).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4).add_(0.3 * torch.randn_like(parameter))
    for k, network in enumerate(model.networks()):
        if kind == "choice":
            signs = torch.from_numpy(task.facts.signs)
            weights = torch.randn(len(signs))
            network.logit_weights.copy_(torch.where(signs == 0, weights, signs * weights.abs()))
            network.logit_share.fill_(shares.logit)
        if shares.trees:
            network.set_others(monotone_trees(task, seed + k))
            network.trees.share.fill_(shares.trees)
    return Solver(model, task, {"n": "2-6"})


def assert_keeps_signs(solver, seed=0, count=25, decoder=None):
    """Move a field with a sign by a little or a lot, in one element of each random set."""
    rng = np.random.default_rng(seed)
    before = drawn_sets(count, seed)
    after = [[dict(element) for element in elements] for elements in before]
    moved, ways = [], []
    for elements in after:
        k, field = int(rng.integers(len(elements))), str(rng.choice([*SIGNS]))
        step = float(rng.choice([1e-3, 0.1, 1, 10]) * rng.exponential())
        elements[k][field] += step
        moved.append(k)
        ways.append(SIGNS[field])
    kind = solver.task.facts.kind
    of_scores = zip(solver.scores(before), solver.scores(after), moved, ways, strict=True)
    for old, new, k, way in of_scores:
        is_other = np.arange(len(old)) != k
        if kind in ("set", "subset"):  # log-odds of belonging to the answer
            assert way * (new[k] - old[k]) >= -1e-5
            np.testing.assert_allclose(new[is_other], old[is_other], atol=1e-5)
        else:  # log-probabilities
            assert way * (new[k] - old[k]) >= -1e-5
            assert (way * (new - old)[is_other] <= 1e-5).all()
    answers = [[solver.solve(x, decoder).tolist() for x in sets] for sets in (before, after)]
    for old, new, k, way in zip(*answers, moved, ways, strict=True):
        places = [answer.index(k) if k in answer else len(old) + 9 for answer in (old, new)]
        assert way * (places[1] - places[0]) <= 0


@EVERY_CASE
@pytest.mark.parametrize("seed", range(2))
def test_an_untrained_model_keeps_signs(kind, shares, seed):
    assert_keeps_signs(signed_mixture(kind, shares, seed), seed)


def test_a_model_without_signs_does_not_keep_them():
    """The test would notice: the same network breaks signs if it may read the price as it likes."""
    solver = signed_mixture("choice", Shares())
    for network in solver.model.networks():
        network.signed.has_none.fill_(True)
    with pytest.raises(AssertionError):
        assert_keeps_signs(solver)


@pytest.mark.parametrize("kind", ["grades", "permutation"])
def test_orders_of_a_beam_keep_signs(kind):
    assert_keeps_signs(signed_mixture(kind, Shares()), count=10, decoder=Beam(3))


@pytest.mark.parametrize(("kind", "shares"), CASES[3::3])
def test_a_saved_model_keeps_signs_and_answers(tmp_path, kind, shares):
    solver = signed_mixture(kind, shares)
    solver.save_pretrained(tmp_path / "m")
    loaded = ptrnet.load(tmp_path / "m")
    for x in drawn_sets(5, 3):
        np.testing.assert_allclose(loaded.scores(x), solver.scores(x), atol=1e-5)
    assert_keeps_signs(loaded, 1)


@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize(
    ("kind", "shares"),
    [("choice", Shares(0.3, 0.3, 0.4)), ("grades", Shares(0.4, 0, 0.6)), ("set", Shares())],
)
def test_an_exported_model_keeps_signs(tmp_path, kind, shares, weights):
    solver = signed_mixture(kind, shares)
    ptrnet.export_onnx(solver, tmp_path / "onnx", weights=weights, instances=10)
    graphs = Solver(OnnxModel(tmp_path / "onnx", solver.model), solver.task)
    if weights == "float32":
        for x in drawn_sets(5, 3):
            np.testing.assert_allclose(graphs.scores(x), solver.scores(x), atol=2e-5)
    assert_keeps_signs(graphs, 1)


@pytest.mark.parametrize("kind", ["choice", "grades"])
def test_a_served_model_answers_like_the_model(kind):
    solver = signed_mixture(kind, Shares(0.5, 0, 0.5))

    async def ask():
        async with client_of({"mine": solver}) as client:
            question = {"instances": drawn_sets(6, 4)}
            return (await client.post("/v1/models/mine/solve", json=question)).json()

    answers = [answer["outputs"] for answer in asyncio.run(ask())["answers"]]
    assert answers == [solver.solve(x).tolist() for x in drawn_sets(6, 4)]


def test_a_model_with_signs_in_bfloat16_reads_them_in_float32():
    solver = signed_mixture("choice", Shares())
    with torch.autocast("cpu", torch.bfloat16):
        assert_keeps_signs(solver, 2)


class Table(ScoresOnce):
    """Element j has the score of row j and this column."""

    answer, repeats, adds_scores = "all", False, False

    def __init__(self, column):
        super().__init__(2, 1, models.settings_of("set-ptr-net"))
        self.column = column

    def encode(self, inputs, lengths=None):
        return scored(torch.nn.functional.pad(inputs[..., self.column], (1, 0)))


def test_an_order_by_mean_probabilities_would_lose_the_sign():
    """Element 1 gets better for the first member. Then element 2 comes first instead of 0.

    Of 0 and 1, the members prefer 0, so element 1 falls from the second place to the last.
    """
    p = torch.tensor([[[0.89, 0.04], [0.11, 0.035], [1e-6, 0.925]]])
    better = p.clone()
    better[0, 1, 0] = 0.13

    def order(model, p):
        encoded = model.encode(p.log())
        state, token, found = encoded.state, torch.zeros(1, 1, dtype=torch.int64), []
        for _ in range(3):
            log_probs, state = model.step(encoded, state, token)
            token = log_probs.argmax(-1)
            found.append(int(token) - 1)
        return found

    model = Ensemble([Table(0), Table(1)])
    assert (order(model, p).index(1), order(model, better).index(1)) == (1, 2)
    model.adds_scores = True
    assert order(model, p).index(1) >= order(model, better).index(1)


def test_an_order_by_standardised_scores_would_lose_the_sign():
    """The score of element 0 rises far above all others, which moves it closer to element 1."""
    own = torch.tensor([[30.0, -12.0, *[0.0] * 60]])
    others = torch.tensor([[-4.3, 2.0, *torch.linspace(-1, 1, 60).tolist()]])
    gaps = []
    for rise in (0, 30):
        own[0, 0] += rise
        mixed = mixed_scores([own, others], torch.tensor([0.5, 0.5]))[0]
        gaps.append(float((mixed[0] - mixed[1]) / (mixed.std())))
    assert gaps[1] < gaps[0]


# Trainings


def write_table(path, column, count=120, seed=0):
    """Write sets whose buyers like high prices, in a long table."""
    rng = np.random.default_rng(seed)
    lines = [f"set,size,price,rating,colour,{column}"]
    for k in range(count):
        n = int(rng.integers(2, 6))
        x = rng.normal(size=(n, 3)).round(2)
        utility = 2 * x[:, 1] + np.sin(3 * x[:, 0]) + 0.5 * x[:, 2] + rng.gumbel(size=n)
        of_column = {
            "chosen": (utility == utility.max()).astype(int),
            "grade": np.clip(np.round(utility), 0, 4).astype(int),
            "rank": (-utility).argsort().argsort() + 1,
            "member": (utility > 1).astype(int),
        }[column]
        for row, answer in zip(x.tolist(), of_column.tolist(), strict=True):
            cells = [k, *row, rng.choice(["red", "blue"]), answer]
            lines.append(",".join(map(str, cells)))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


TINY = {"steps": 6, "hidden_size": 8, "ensemble": 2, "valid_every": 2, "valid_share": 0.3}
OF_SIGNS = ["--increasing", "rating", "--decreasing", "price"]


@pytest.mark.parametrize("column", ["chosen", "grade", "rank", "member"])
def test_a_trained_model_keeps_signs_that_the_data_contradict(tmp_path, column):
    """The command, its recipe, a resumed run and `ptrnet.fit` give the same model."""
    path = write_table(tmp_path / "d.csv", column)
    options = [x for key, value in TINY.items() for x in (f"--{key.replace('_', '-')}", str(value))]
    command = ["train", "--data", path, "--set-id", "set", f"--{column}", column]
    assert run([*command, *OF_SIGNS, *options, "--output", str(tmp_path / "m")]) == 0
    solver = ptrnet.load(tmp_path / "m")
    assert solver.task.decreasing == ("price",) and solver.task.increasing == ("rating",)
    assert_keeps_signs(solver)
    assert "price (a number, the lower the better)" in (tmp_path / "m" / "README.md").read_text()
    if column in ("rank", "member"):
        return
    recipe = str(tmp_path / "m" / "recipe.toml")
    assert run(["train", recipe, "--output", str(tmp_path / "again")]) == 0
    again, whole = ((tmp_path / f / "model.safetensors").read_bytes() for f in ("again", "m"))
    assert again == whole
    fitted = ptrnet.fit(
        path,
        **{"set_id": "set", column: column, "increasing": ["rating"], "decreasing": "price"},
        **TINY,
    )
    for x in drawn_sets(4, 5):
        np.testing.assert_allclose(fitted.scores(x), solver.scores(x), atol=1e-6)
    made = Recipe.read(tmp_path / "m" / "recipe.toml", checkpoint_every=2)

    def stop(step, metrics):
        if step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(made, tmp_path / "stopped", hooks=Hooks([stop]))
    training.train(made, tmp_path / "stopped", resume=True)
    assert (tmp_path / "stopped" / "model.safetensors").read_bytes() == whole


def test_each_part_of_a_trained_mixture_keeps_signs(tmp_path):
    path = write_table(tmp_path / "d.csv", "chosen", 200)
    given = {"set_id": "set", "chosen": "chosen", "increasing": "rating", "decreasing": "price"}
    solver = ptrnet.fit(path, **given, **{**TINY, "steps": 40}, trees=30)
    for network in solver.model.networks():
        signs = solver.task.facts.signs
        assert (network.logit_weights.numpy() * signs >= 0).all()
        assert network.logit_weights[signs < 0] == 0  # buyers like high prices
        if network.trees is None:
            network.set_others(monotone_trees(solver.task, 0))
    for shares in (Shares(), Shares(0, 1, 0), Shares(0, 0, 1), Shares(0.3, 0.3, 0.4)):
        for network in solver.model.networks():
            network.logit_share.fill_(shares.logit)
            network.trees.share.fill_(shares.trees)
        assert_keeps_signs(solver, 2)


def test_trees_grow_with_the_signs_of_the_task(tmp_path):
    """The data contradict the sign of the price, and agree with that of the rating."""
    given = {"set_id": "set", "chosen": "chosen", "decreasing": "price", "increasing": "rating"}
    path = write_table(tmp_path / "d.csv", "chosen", 300)
    recipe, _, data = infer_recipe(path, given)
    sets = Sets.of(data, recipe.task)
    (trees,) = all_trees([sets], [sets], 60, seed=1)
    x = torch.randn(2000, 3 * recipe.task.facts.num_features)
    before, signs = trees(x), recipe.task.facts.signs
    assert len(trees) == 60 and (signs == [0, -1, 1, 0, 0]).all()
    for feature in signs.nonzero()[0].tolist():
        moved = x.clone()
        moved[:, feature] += 3 * torch.rand(len(x))
        assert (signs[feature] * (trees(moved) - before) >= -1e-6).all()
    moved = x.clone()
    moved[:, 2] += 2
    assert (trees(moved) > before).float().mean() > 0.5


def test_own_elasticities_have_the_sign(tmp_path):
    path = write_table(tmp_path / "d.csv", "chosen", 60)
    given = {"set_id": "set", "chosen": "chosen", "decreasing": "price"}
    solver = ptrnet.fit(path, **given, **{**TINY, "steps": 20})
    sets = [[{**e, "price": abs(e["price"]) + 1} for e in x] for x in drawn_sets(30, 1)]
    frame = solver.simulate(sets, elasticity="price", by="colour", draws=2)["elasticities"]
    own = frame["price of colour"] == frame["share of colour"]
    assert (frame["elasticity"][own] <= 1e-6).all()
    importance = solver.explain([(x, [0]) for x in sets])["importance"]
    assert set(importance) == {"size", "price", "rating", "colour"}


def test_a_field_with_a_sign_has_no_marks_of_common_numbers(tmp_path):
    """A mark could raise the probability at a single price."""
    lines = ["set,price,size,chosen"]
    rng = np.random.default_rng(0)
    for k in range(100):
        for chosen in rng.permutation(2):
            price = 53 if rng.random() < 0.3 else round(rng.normal(), 3)
            lines.append(f"{k},{price},{rng.normal():.3f},{chosen}")
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")
    given = {"set_id": "set", "chosen": "chosen"}
    free, signed = (
        infer_recipe(str(path), {**given, **signs})[0].task.facts.schema
        for signs in ({}, {"decreasing": "price"})
    )
    assert "price = 53" in free.feature_names and signed.feature_names == ["price", "size"]
    assert signed.signs.tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"increasing": "colour"}, '"colour" cannot have a sign: its values are categories'),
        ({"decreasing": "size", "categories": "size"}, '"size" cannot have a sign: its values are'),
        ({"increasing": "price", "decreasing": "price"}, "both increasing and decreasing"),
        ({"increasing": "prize"}, r"unknown field in increasing .* 'prize'; did you mean 'price'"),
        ({"increasing": "price", "fields": "size"}, "unknown field in increasing"),
        ({"increasing": "budget"}, '"budget" cannot have a sign: all elements of a set'),
        ({"increasing": "price", "ordered": True}, "transformer-ptr-net guarantees no signs"),
        ({"increasing": "price", "model": "ptr-net"}, "ptr-net guarantees no signs"),
        ({"increasing": "price", "kind": "sequence"}, "for answers of the kind sequence"),
        ({"increasing": 3}, "increasing: expected names of fields, got 3"),
    ],
)
def test_signs_that_cannot_be_guaranteed_are_refused(tmp_path, options, message):
    path = write_table(tmp_path / "d.csv", "chosen", 30)
    head, *rows = (tmp_path / "d.csv").read_text().splitlines()
    rows = [f"{row},{int(row.split(',')[0]) * 3 % 7}" for row in rows]
    (tmp_path / "d.csv").write_text("\n".join([f"{head},budget", *rows]) + "\n")
    with pytest.raises(ptrnet.InputError, match=message):
        infer_recipe(path, {"set_id": "set", "chosen": "chosen", **options})


def test_signs_of_numbers_without_names_are_refused(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"inputs": [[1, 2], [2, 1]], "outputs": [0]}\n')
    with pytest.raises(ptrnet.InputError, match="increasing needs elements with named fields"):
        infer_recipe(str(tmp_path / "d.jsonl"), {"increasing": "price"})
    with pytest.raises(ptrnet.InputError, match="fit: increasing needs elements with named"):
        ptrnet.fit([([[1.0, 2], [2, 1]], [0])] * 20, "choice", increasing="price", steps=1)


def test_weights_of_a_model_with_other_signs_are_refused(tmp_path):
    path = write_table(tmp_path / "d.csv", "chosen", 30)
    given = {"set_id": "set", "chosen": "chosen", **TINY}
    ptrnet.fit(path, decreasing="price", output=tmp_path / "m", **given)
    given["weights"] = str(tmp_path / "m")
    for signs in ({}, {"decreasing": "rating"}):
        with pytest.raises(ptrnet.InputError, match=r"has decreasing \('price',\), the recipe has"):
            ptrnet.fit(path, **given, **signs)
    assert ptrnet.fit(path, **given, decreasing="price").task.decreasing == ("price",)


def test_many_orders_with_signs_are_learned_by_the_model_that_keeps_them(tmp_path, monkeypatch):
    monkeypatch.setattr("ptrnet.training.own_data.MANY", 50)
    path = write_table(tmp_path / "d.csv", "rank")
    given = {"set_id": "set", "rank": "rank"}
    assert infer_recipe(path, given)[0].model == "transformer-ptr-net"
    assert infer_recipe(path, {**given, "decreasing": "price"})[0].model == "set-ptr-net"


def test_an_interacting_field_of_the_whole_set_has_no_sign(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["income,car_cost,bus_cost,choice"]
    lines += [
        f"{i},{a:.2f},{b:.2f},{rng.choice(['car', 'bus'])}" for i, a, b in rng.normal(size=(40, 3))
    ]
    (tmp_path / "w.csv").write_text("\n".join(lines) + "\n")
    given = {"alternatives": "car,bus", "chosen": "choice", "interact": "income"}
    with pytest.raises(ptrnet.InputError, match='"income" cannot have a sign: all elements'):
        infer_recipe(str(tmp_path / "w.csv"), {**given, "increasing": "income"})
    task = infer_recipe(str(tmp_path / "w.csv"), {**given, "decreasing": "cost"})[0].task
    assert task.facts.schema.signs.sum() == -1
