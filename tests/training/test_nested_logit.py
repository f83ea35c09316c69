"""Nested logits, against a loop over sets, numerical derivatives and drawn choices."""

import asyncio
import json
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import chi2

import ptrnet
from ptrnet import models
from ptrnet.cli import run as program
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.export.graphs import OnnxModel
from tests.serve.conftest import client_of

COLUMNS = {"set_id": "set", "chosen": "chosen"}
NESTS = "mode: bus+train, car+bike"
OF_MODE = {"bus": 0, "train": 0, "car": 1, "bike": 1}  # the nest of each mode that has one
TRUE = {"cost": -0.6, "comfort": 1.0}, (0.5, 0.8)


def probabilities(modes, v, parameters):
    """The probabilities of a set, from the definition: first a nest, then an element in it."""
    p, nests = np.zeros(len(v)), np.array([OF_MODE.get(mode, -1) for mode in modes])
    groups = [np.flatnonzero(nests == k) for k in range(len(parameters))]
    groups = [(g, t) for g, t in zip(groups, parameters, strict=True) if len(g)]
    groups += [(np.array([i]), 1.0) for i in np.flatnonzero(nests < 0)]
    sums = np.array([np.exp(v[g] / t).sum() ** t for g, t in groups])
    for (g, t), share in zip(groups, sums / sums.sum(), strict=True):
        inside = np.exp(v[g] / t)
        p[g] = share * inside / inside.sum()
    return p


def choices(count, seed=0):
    """Draw sets of three to five of five modes. Each person has three sets."""
    rng, rows = np.random.default_rng(seed), []
    (cost, comfort), parameters = TRUE[0].values(), TRUE[1]
    for k in range(count):
        modes = rng.permutation([*OF_MODE, "walk"])[: rng.integers(3, 6)]
        x = rng.normal(size=(len(modes), 2)).round(3) + [3, 0]
        p = probabilities(modes, x @ [cost, comfort], parameters)
        chosen = rng.choice(len(modes), p=p)
        rows += [
            {
                "set": k,
                "person": k // 3,
                "mode": m,
                "cost": c,
                "comfort": q,
                "chosen": int(i == chosen),
            }
            for i, (m, (c, q)) in enumerate(zip(modes, x, strict=True))
        ]
    return pd.DataFrame(rows)


def fit(frame, nests=NESTS, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousInputWarning)
        return ptrnet.fit(frame, **COLUMNS, model=models.LOGIT, nests=nests, **options)


NAMES = ["mode = bus", "mode = car", "mode = train", "mode = walk", "cost", "comfort"]
NAMES += ["nest bus+train", "nest car+bike"]


@pytest.fixture(scope="module")
def fitted():
    frame = choices(200, seed=1)
    return frame, fit(frame, group="person")


def sets_of(frame):
    """The modes, the costs and comforts, and the chosen row of each set."""
    parts = [part for _, part in frame.groupby("set")]
    fields = [part[["cost", "comfort"]].to_numpy() for part in parts]
    chosen = [part["chosen"].to_numpy().argmax() for part in parts]
    return list(zip([part["mode"].tolist() for part in parts], fields, chosen, strict=True))


def probabilities_of(theta, sets):
    """The probabilities in each set. The parameters are in the order of NAMES."""
    constants = dict(zip(("bus", "car", "train", "walk"), theta[:4], strict=True))
    return [
        probabilities(modes, x @ theta[4:6] + [constants.get(m, 0) for m in modes], theta[6:])
        for modes, x, _ in sets
    ]


def log_likelihoods(theta, sets):
    every = zip(probabilities_of(theta, sets), sets, strict=True)
    return np.array([np.log(p[chosen]) for p, (_, _, chosen) in every])


def theta_of(model):
    return np.array([row["coefficient"] for row in model.coefficients()])


def test_the_estimates_are_the_maximum_of_the_likelihood(fitted):
    frame, model = fitted
    sets, theta, found = sets_of(frame), theta_of(model), model.coefficients()
    assert [row["name"] for row in found] == NAMES and found.references == {"mode": "bike"}
    value = log_likelihoods(theta, sets).sum()
    assert found.statistics["log_likelihood"] == pytest.approx(value, rel=1e-9)
    assert found.statistics["parameters"] == 8
    again = minimize(lambda x: -log_likelihoods(x, sets).sum(), theta + 0.02, method="BFGS").x
    np.testing.assert_allclose(theta, again, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def derivatives(fitted):
    """The gradient of each log-likelihood, and the Hessian of their sum, by differences."""
    frame, model = fitted
    sets, theta, step = sets_of(frame), theta_of(model), 1e-4

    @cache
    def at(*moves):
        units = np.bincount(np.abs(moves), np.sign(moves), minlength=9)[1:]
        return log_likelihoods(theta + step * units, sets)

    numbers = range(1, 9)
    gradients = np.stack([(at(i) - at(-i)) / (2 * step) for i in numbers], 1)
    hessian = [
        [(at(i, j) - at(i, -j) - at(-i, j) + at(-i, -j)).sum() / (4 * step**2) for j in numbers]
        for i in numbers
    ]
    return gradients, np.array(hessian)


@pytest.mark.parametrize("kind", ["classical", "robust", "clustered"])
def test_errors_are_those_of_numerical_derivatives(fitted, derivatives, kind):
    frame, model = fitted
    rows, (gradients, hessian) = model.coefficients(kind), derivatives
    covariance = inverse = np.linalg.inv(-hessian)
    if kind != "classical":
        persons = frame.groupby("set")["person"].first().to_numpy()
        of_person = pd.DataFrame(gradients).groupby(persons).sum().to_numpy()
        parts = of_person if kind == "clustered" else gradients
        covariance = inverse @ parts.T @ parts @ inverse * len(parts) / (len(parts) - 1)
    errors = [row["std_error"] for row in rows]
    np.testing.assert_allclose(errors, np.sqrt(np.diag(covariance)), rtol=2e-3)
    null = np.array([0] * 6 + [1] * 2)
    z = (theta_of(model) - null) / errors
    np.testing.assert_allclose([row["z"] for row in rows], z, rtol=1e-9)


def test_notes_have_the_likelihood_ratio_to_a_logit(fitted):
    frame, model = fitted
    plain = fit(frame, "").coefficients().statistics["log_likelihood"]
    gain = 2 * (model.coefficients().statistics["log_likelihood"] - plain)
    (note,) = (text for text in model.coefficients().notes if text.startswith("nests"))
    p = chi2.sf(gain, 2)
    assert f"chi-squared {gain:.2f}, 2 degrees of freedom, p = {p:.4f}" in note


def test_the_model_has_the_probabilities_of_its_coefficients(fitted):
    """In any order of the elements, and for an element whose mode training did not see."""
    frame, model = fitted
    found = np.asarray(model.predict_proba(frame, set_id="set"))
    expected = np.concatenate(probabilities_of(theta_of(model), sets_of(frame)))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    shuffled = frame.sample(frac=1, random_state=0)
    again = np.asarray(model.predict_proba(shuffled, set_id="set"))
    np.testing.assert_allclose(again, found[shuffled.index], atol=1e-6)
    with pytest.warns(ptrnet.OutOfDistributionWarning, match="ferry"):
        other = model.predict_proba(frame.head(4).replace({"mode": {"bus": "ferry"}}), set_id="set")
    assert np.isfinite(other).all()


def test_estimates_cover_the_truth():
    inside = []
    for seed in range(15):
        rows = {row["name"]: row for row in fit(choices(250, seed + 10)).coefficients()}
        truth = {**TRUE[0], "nest bus+train": TRUE[1][0], "nest car+bike": TRUE[1][1]}
        inside += [rows[k]["low"] <= value <= rows[k]["high"] for k, value in truth.items()]
    assert np.mean(inside) >= 0.9


ASK = {"set_id": "set", "group": "person", "by": "mode", "elasticity": "cost"}


def test_answers_of_simulations_are_those_of_the_nests(fitted):
    """Elasticities by differences of the definition: most buyers of the bus go to the train."""
    frame, model = fitted
    found = model.simulate(frame, **ASK, draws=2)
    theta, sums = theta_of(model), {}
    for factor in (0.99, 1, 1.01):
        of_mode = np.where(frame["mode"] == "bus", factor, 1)
        sets = sets_of(frame.assign(cost=frame["cost"] * of_mode))
        p = np.concatenate(probabilities_of(theta, sets))
        sums[factor] = pd.Series(p).groupby(frame["mode"].to_numpy()).sum()
    expected = (sums[1.01] - sums[0.99]) / 0.02 / sums[1]
    table = found["elasticities"].query("`cost of mode` == 'bus'").set_index("share of mode")
    np.testing.assert_allclose(table["elasticity"], expected[table.index], rtol=1e-3, atol=1e-4)
    assert table["elasticity"]["train"] > 1.3 * table["elasticity"]["walk"]


def test_intervals_include_the_errors_of_nests(fitted):
    """With a known parameter, the interval of the cross elasticity in the nest is narrower."""
    frame, model = fitted
    known = model.trained["coefficients"]
    table = np.array(known["covariance"])
    certain = json.loads(json.dumps(known))
    table[6:], table[:, 6:] = 0, 0
    certain["covariance"] = table.tolist()
    fixed = ptrnet.Solver(model.model, model.task, {**model.trained, "coefficients": certain})
    widths = []
    for solver in (model, fixed):
        rows = solver.simulate(frame, **ASK, draws=400)["elasticities"]
        row = rows.query("`cost of mode` == 'bus' and `share of mode` == 'train'").iloc[0]
        widths.append(row["elasticity_high"] - row["elasticity_low"])
    assert widths[0] > 1.1 * widths[1]


def test_a_nested_logit_is_saved_exported_served_and_fitted_again_by_its_recipe(
    fitted, tmp_path, capfd
):
    frame, _ = fitted
    path, run = tmp_path / "trips.csv", tmp_path / "run"
    frame.to_csv(path, index=False)
    options = ["--set-id", "set", "--chosen", "chosen", "--group", "person", "--nests", NESTS]
    train = ["train", "--data", str(path), *options, "--model", models.LOGIT]
    assert program([*train, "--output", str(run)]) == 0
    printed = capfd.readouterr().err
    model = ptrnet.load(run)
    assert str(model.coefficients()) in printed and "nested logit: 200 sets" in printed
    assert 'nests = "mode: bus+train, car+bike"' in (run / "recipe.toml").read_text()
    assert program(["train", str(run / "recipe.toml"), "--output", str(tmp_path / "again")]) == 0
    again = ptrnet.load(tmp_path / "again")
    assert torch.equal(again.model.nests.parameter, model.model.nests.parameter)
    expected = np.asarray(model.predict_proba(frame, set_id="set"))
    ptrnet.export_onnx(model, tmp_path / "onnx", instances=20)
    graphs = ptrnet.Solver(OnnxModel(tmp_path / "onnx", model.model), model.task)
    of_graphs = np.asarray(graphs.predict_proba(frame, set_id="set"))
    np.testing.assert_allclose(of_graphs, expected, atol=1e-6)
    questions = [
        part[["mode", "cost", "comfort"]].to_dict("records") for _, part in frame.groupby("set")
    ][:30]

    async def ask():
        async with client_of({"mine": model}) as client:
            answer = await client.post("/v1/models/mine/solve", json={"instances": questions})
            return [row["outputs"] for row in answer.json()["answers"]]

    assert asyncio.run(ask()) == [model.solve(question).tolist() for question in questions]
    model.save_pretrained(tmp_path / "copy")
    copy = np.asarray(ptrnet.load(tmp_path / "copy").predict_proba(frame, set_id="set"))
    np.testing.assert_array_equal(copy, expected)


def test_a_parameter_of_1_is_a_conditional_logit():
    inputs, settings = torch.randn(3, 4, 7), {"hidden_size": 0}
    inputs[..., :2] = torch.tensor([[1.0, 0], [0, 1], [1, 0], [0, 0]])
    plain = models.build(models.LOGIT, 7, 1, **settings)
    nested = models.build(models.LOGIT, 7, 1, **settings, nests=NESTS)
    nested.nests.levels[0, 0] = nested.nests.levels[1, 1] = 1
    for built in (plain, nested):
        built.weights.data = torch.linspace(-1, 1, 7)
    lengths = torch.tensor([4, 2, 3])
    torch.testing.assert_close(
        nested.encode(inputs, lengths).scores, plain.encode(inputs, lengths).scores
    )


@pytest.mark.parametrize(
    ("nests", "complaint"),
    [
        ("bus+train", "expected a field and those of its values"),
        ("mode:", "expected a field and those of its values"),
        ("mode: bus", "expected a set with two elements of the nest"),
        ("mode: bus+", "expected a field and those of its values"),
        ("mode: bus+train, train+car", "each value once"),
        ("mode: bus+tram", "expected values among bike, bus, car, train, walk, got 'tram'"),
        ("mod: bus+train", "unknown field in nests 'mod'; did you mean 'mode'"),
        ("cost: 1+2", "expected a field of texts"),
        ("mode: bus+train+car+bike+walk", "expected a set with two elements of the nest"),
    ],
)
def test_nests_that_do_not_suit_the_table_are_refused(nests, complaint, tmp_path):
    with pytest.raises(InputError, match="nests") as error:
        fit(choices(60), nests, output=tmp_path / "run")
    assert complaint in str(error.value)
    assert not (tmp_path / "run").exists()


def test_nests_are_for_a_conditional_logit_without_signs():
    with pytest.raises(InputError, match="nests: expected a model without increasing"):
        fit(choices(60), decreasing="cost", group="person")
    for model in ("chooser", "set-ptr-net"):
        with pytest.raises(InputError, match="nests"):
            ptrnet.fit(choices(60), **COLUMNS, group="person", model=model, nests=NESTS)


@pytest.mark.parametrize("margin", [0, 2])
def test_a_nest_whose_parameter_runs_to_0_is_refused(margin):
    """The cheaper of bus and train is always preferred to the other, whatever the car costs."""
    rng, rows = np.random.default_rng(0), []
    for k in range(200):
        bus, train, car = rng.normal(size=3) + rng.permutation([0, margin, margin / 2])
        best = "bus" if bus < train else "train"
        chosen = rng.choice([best, "car"], p=[0.5, 0.5])
        costs = {"bus": bus, "train": train, "car": car}
        rows += [
            {"set": k, "mode": m, "cost": c, "chosen": int(m == chosen)} for m, c in costs.items()
        ]
    with pytest.raises(InputError, match=r"bus\+train: not identified"):
        fit(pd.DataFrame(rows), "mode: bus+train")


def test_a_nest_that_constants_explain_as_well_is_refused():
    frame = choices(300)[["set", "mode", "chosen"]]
    frame = frame[frame.groupby("set")["set"].transform("size") == 5]
    with pytest.raises(InputError, match=r"bus\+train: not identified"):
        fit(frame, "mode: bus+train")


def test_other_rows_are_those_without_a_mode_that_is_never_chosen(fitted):
    frame, model = fitted
    rows = frame.groupby("set").head(1).assign(mode="ferry", chosen=0, cost=3.0)
    found = fit(pd.concat([frame, rows]), group="person").coefficients()
    expected = model.coefficients()
    assert [row["name"] for row in found] == NAMES
    for key in ("coefficient", "classical", "robust", "clustered"):
        values = [row[key] for row in found], [row[key] for row in expected]
        np.testing.assert_allclose(*values, rtol=1e-3, atol=1e-4)
    (note,) = (text for text in found.notes if "separation" in text)
    assert note.startswith("mode = ferry: not estimated")


def test_elements_of_one_brand_are_a_nest():
    """Two sets of products, some of them of the same brand."""
    frame = choices(200, seed=4)
    frame["brand"] = frame["mode"].map({"bus": "A", "train": "A", "car": "B", "bike": "B"})
    brands = fit(frame.fillna({"brand": "C"}), "brand: A, B", fields="brand,cost,comfort")
    modes = fit(frame, "brand: A, B", fields="brand,cost,comfort", missing="fill")
    rows = {row["name"]: row["coefficient"] for row in brands.coefficients()}
    assert 0 < rows["nest A"] < 1 and rows["comfort"] > 0.5
    assert len(modes.coefficients()) == len(rows)


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"drop": "mode == bus"}, lambda t: t[t["mode"] != "bus"]),
        (
            {"change": "comfort + 1", "where": "mode == bus"},
            lambda t: t.assign(comfort=t["comfort"] + (t["mode"] == "bus")),
        ),
        ({"change": "cost * 1.1"}, lambda t: t.assign(cost=t["cost"] * 1.1)),
    ],
)
def test_surplus_is_the_change_of_the_log_sum_of_nests(fitted, options, change):
    """McFadden's log-sum: the logarithm of the sum over nests of `(sum exp(v / t)) ** t`."""
    frame, model = fitted
    theta = theta_of(model)

    def log_sum(trips):
        constants = dict(zip(("bus", "car", "train", "walk"), theta[:4], strict=True))
        found = []
        for modes, x, _ in sets_of(trips):
            v = x @ theta[4:6] + [constants.get(m, 0) for m in modes]
            nests = np.array([OF_MODE.get(m, -1) for m in modes])
            sums = [np.exp(v[nests == k] / t).sum() ** t for k, t in enumerate(theta[6:])]
            found.append(np.log(np.exp(v[nests < 0]).sum() + sum(sums)))
        return np.array(found)

    expected = (log_sum(change(frame)) - log_sum(frame)).mean() / -theta[4]
    table = model.simulate(frame, surplus="cost", **ASK, draws=2, **options)["surplus"]
    assert table["surplus"].tolist() == pytest.approx([expected], rel=2e-4)


def test_alternatives_of_a_wide_table_are_nested():
    frame = choices(300, seed=2)
    frame = frame[frame.groupby("set")["set"].transform("size") == 5]
    wide = frame.pivot_table(index="set", columns="mode", values=["cost", "comfort"])
    wide.columns = [f"{mode}_{field}" for field, mode in wide.columns]
    chosen = frame[frame["chosen"] == 1].set_index("set")["mode"]
    wide = wide.assign(chosen=chosen).reset_index(drop=True)
    names = ",".join([*sorted(OF_MODE), "walk"])
    options = {"alternatives": names, "pattern": "{alternative}_{field}", "chosen": "chosen"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousInputWarning)
        found = ptrnet.fit(
            wide, **options, model=models.LOGIT, nests=NESTS.replace("mode", "alternative")
        )
        expected = fit(frame)
    values = {row["name"].removeprefix("mode = "): row for row in expected.coefficients()}
    for row in found.coefficients():
        name = row["name"].removeprefix("alternative = ")
        assert row["coefficient"] == pytest.approx(values[name]["coefficient"], rel=1e-3, abs=1e-4)
