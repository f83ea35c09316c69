"""What-if questions about choices, against closed forms of the conditional logit."""

import runpy
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import logsumexp, softmax
from scipy.stats import t as student

import ptrnet
from ptrnet.errors import InputError
from ptrnet.metrics import Moments
from ptrnet.models.conditional_logit import ConditionalLogit
from ptrnet.models.ensemble import Ensemble
from ptrnet.models.set_ptr_net import SetPtrNet
from ptrnet.solver import Solver
from ptrnet.tasks.custom import Custom
from tests.support.plackett_luce import plackett_luce

MODES = ("bus", "car", "train")
TASK = Custom(
    kind="choice",
    fields=("mode", "time", "cost"),
    categories=(MODES, (), ()),
    center=(0.0, 0.0, 0.0, 30.0, 4.0),
    spread=(1.0, 1.0, 1.0, 12.0, 2.0),
    unknown="refuse",
)
BETA = {"time": -0.05, "cost": -0.3}
LIKING = dict(zip(MODES, (0.0, 0.6, 0.1), strict=True))
OPTIONS = {"set_id": "trip", "by": "mode", "group": "person", "draws": 20}


def logit(beta=BETA, liking=LIKING):
    """A conditional logit with coefficients in the units of the data."""
    model = ConditionalLogit(5, 1, ConditionalLogit.Settings())
    per_unit = [*liking.values(), beta["time"], beta["cost"]]
    model.weights.data = torch.tensor(per_unit) * torch.tensor(TASK.spread)
    return model


@pytest.fixture
def solver():
    return Solver(logit(), TASK)


def draw(count=60, seed=0):
    """Trips with two or three modes, in two regions, of persons with three trips each."""
    rng = np.random.default_rng(seed)
    trips = pd.DataFrame({"trip": np.arange(count).repeat(3), "mode": MODES * count})
    trips["time"] = rng.integers(10, 60, len(trips))
    trips["cost"] = rng.gamma(4, 1, len(trips)).round(2)
    trips["region"] = rng.choice(["north", "south"], count).repeat(3)
    trips["person"] = trips["trip"] // 3
    trips["persons"] = rng.integers(1, 5, count).repeat(3)
    return trips[rng.random(len(trips)) > 0.1].reset_index(drop=True)


def utility(trips, beta=BETA, liking=LIKING):
    linear = beta["time"] * trips["time"] + beta["cost"] * trips["cost"]
    return linear + trips["mode"].map(liking)


def probabilities(trips, **model):
    return utility(trips, **model).groupby(trips["trip"]).transform(softmax)


def log_sums(trips, **model):
    return utility(trips, **model).groupby(trips["trip"]).apply(logsumexp)


def shares(trips, p, weights=None):
    weights = np.ones(len(trips)) if weights is None else weights
    sums = (weights * p).groupby(trips["mode"]).sum()
    return sums / sums.sum()


def value(frame, column, **where):
    for name, text in where.items():
        frame = frame[frame[name] == text]
    (number,) = frame[column]
    return number


# ---- Closed forms


def test_shares_and_diversion_after_a_change_of_one_alternative(solver):
    trips = draw()
    table = solver.simulate(
        trips, change="cost * 1.5", where="mode == train", weight="persons", **OPTIONS
    )["shares"].set_index("mode")
    dearer = trips.assign(cost=trips["cost"].where(trips["mode"] != "train", trips["cost"] * 1.5))
    before, after = (shares(t, probabilities(t), trips["persons"]) for t in (trips, dearer))
    assert table["before"].to_dict() == pytest.approx(before.to_dict(), rel=1e-5)
    assert table["after"].to_dict() == pytest.approx(after.to_dict(), rel=1e-5)
    assert table["change"].to_dict() == pytest.approx((after - before).to_dict(), rel=1e-4)
    diversion = (after - before) / (before - after)["train"]
    for mode in ("bus", "car"):
        assert table["diversion"][mode] == pytest.approx(diversion[mode], rel=1e-4)
    assert np.isnan(table["diversion"]["train"])


def test_dropped_buyers_go_to_others_in_proportion_to_their_probabilities(solver):
    """`p_k / (1 - p_j)` in a set: independence of irrelevant alternatives."""
    trip = draw()[lambda t: t["trip"] == 1]
    assert len(trip) == 3
    p = probabilities(trip).to_numpy()
    table = solver.simulate(trip, drop='mode == "car"', **OPTIONS)["shares"]
    assert table["after"].tolist() == pytest.approx(
        [p[0] / (1 - p[1]), 0, p[2] / (1 - p[1])], rel=1e-5
    )
    diverted = table["diversion"].to_numpy()[[0, 2]]
    assert diverted == pytest.approx(p[[0, 2]] / (1 - p[1]), rel=1e-5)


def test_elasticities_of_shares_are_weighted_means_of_those_of_a_logit(solver):
    trips = draw()
    table = solver.simulate(trips, elasticity="cost", weight="persons", **OPTIONS)["elasticities"]
    p, weights = probabilities(trips), trips["persons"]
    wide = pd.DataFrame({"p": p, "c": trips["cost"], "trip": trips["trip"], "mode": trips["mode"]})
    wide = wide.pivot(index="trip", columns="mode").fillna(0.0)
    w = weights.groupby(trips["trip"]).first()
    assert len(table) == 9
    for j in MODES:
        lost = -(w * wide["c"][j] * wide["p"][j] * (1 - wide["p"][j])).sum()
        for k in MODES:
            of_sets = BETA["cost"] * wide["c"][j] * ((j == k) - wide["p"][j])  # of each set
            expected = (w * wide["p"][k] * of_sets).sum() / (w * wide["p"][k]).sum()
            row = {"cost of mode": j, "share of mode": k}
            assert value(table, "elasticity", **row) == pytest.approx(expected, rel=2e-4)
            gained = -(w * wide["c"][j] * wide["p"][j] * wide["p"][k]).sum()
            if j != k:
                assert value(table, "diversion", **row) == pytest.approx(gained / lost, rel=2e-4)


def test_willingness_to_pay_of_a_logit_is_the_ratio_of_its_coefficients(solver):
    table = solver.simulate(draw(), wtp="time/cost", **OPTIONS)["wtp"]
    assert table["mode"].tolist() == ["all"] * 6 + [*MODES]
    assert table["wtp"].to_numpy() == pytest.approx(BETA["time"] / BETA["cost"], rel=2e-4)


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"change": "cost * 1.2"}, lambda t: t.assign(cost=t["cost"] * 1.2)),
        (
            {"change": "time - 8", "where": "mode == train"},
            lambda t: t.assign(time=t["time"] - 8 * (t["mode"] == "train")),
        ),
        ({"drop": "mode == bus"}, lambda t: t[t["mode"] != "bus"]),
    ],
)
@pytest.mark.parametrize("count", [1, 2])
def test_surplus_of_a_logit_is_the_change_of_the_log_sum(count, options, change):
    """Also if it only follows from the probabilities, as for an ensemble of equal logits."""
    solver = Solver(Ensemble([logit()] * 2) if count > 1 else logit(), TASK)
    trips = draw().groupby("trip").filter(lambda trip: len(trip) == 3)
    table = solver.simulate(trips, surplus="cost", **options, **OPTIONS)["surplus"]
    expected = (log_sums(change(trips)) - log_sums(trips)).mean() / -BETA["cost"]
    assert table["surplus"].tolist() == pytest.approx([expected], rel=1e-3)


def test_surplus_of_a_logit_is_known_if_all_elements_change(solver):
    trips = draw()
    table = solver.simulate(trips, surplus="cost", change="time + 1", **OPTIONS)["surplus"]
    assert table["surplus"].tolist() == pytest.approx([BETA["time"] / -BETA["cost"]], rel=1e-4)
    other = Solver(Ensemble([logit(), logit()]), TASK)
    with pytest.raises(InputError, match="trip 0: surplus: all elements of the set change"):
        other.simulate(trips, surplus="cost", change="time + 1", **OPTIONS)


def test_surplus_of_a_mixture_is_the_mean_surplus_of_its_logits():
    """The integral along the costs is exact: each logit has its own log-sum and coefficients."""
    betas = [{"time": -0.05, "cost": cost} for cost in (-0.1, -0.3, -0.9)]
    solver, trips = Solver(Ensemble([logit(beta) for beta in betas]), TASK), draw()
    dearer = trips.assign(cost=trips["cost"] + 3 * (trips["mode"] == "car"))
    table = solver.simulate(
        trips, change="cost + 3", where="mode == car", surplus="cost", **OPTIONS
    )["surplus"]
    of_logits = [
        (log_sums(dearer, beta=b) - log_sums(trips, beta=b)).mean() / -b["cost"] for b in betas
    ]
    assert table["surplus"].tolist() == pytest.approx([np.mean(of_logits)], rel=1e-5)


def test_willingness_to_pay_of_a_network_is_that_of_its_gradients():
    """Compare finite differences with the gradients of log-odds by automatic differentiation."""
    torch.manual_seed(1)
    network = SetPtrNet(5, 1, SetPtrNet.Settings(answer="one", dropout=0.0)).double()
    torch.nn.init.normal_(network.linear.weight, std=0.02)
    trips = draw(20)
    solver = Solver(network, TASK)
    found = solver.simulate(trips, wtp="time/cost", step=1e-4, **OPTIONS)["wtp"]["wtp"][0]
    sums = torch.zeros(2, dtype=torch.float64)
    for _, trip in trips.groupby("trip"):
        x = np.column_stack([*(trip["mode"] == mode for mode in MODES), trip["time"], trip["cost"]])
        inputs = torch.tensor(TASK.normalize(x.astype(float))[None], requires_grad=True)
        p = network.encode(inputs).scores[0, 1:].softmax(-1)
        for j in range(len(p)):
            (gradient,) = torch.autograd.grad(p[j], inputs, retain_graph=True)
            sums += gradient[0, j, 3:] / torch.tensor(TASK.spread[3:])
    assert found == pytest.approx(float(sums[0] / sums[1]), rel=1e-3)


@pytest.mark.parametrize("region", ["all", "north", "south"])
def test_a_segment_has_the_numbers_of_its_sets_alone(solver, region):
    trips = draw(24)
    part = trips if region == "all" else trips[trips["region"] == region]
    what = {"change": "cost * 2", "where": "mode == car", "elasticity": "cost", "wtp": "time/cost"}
    of_both = solver.simulate(trips, segment="region", **what, **OPTIONS)
    for name, alone in solver.simulate(part, **what, **OPTIONS).items():
        rows = of_both[name][of_both[name]["region"] == region]
        keys = [column for column in alone if alone[column].dtype != float]
        values = [c for c in alone if c not in keys and not c.endswith(("_low", "_high"))]
        rows, alone = (frame.set_index(keys)[values].sort_index() for frame in (rows, alone))
        pd.testing.assert_frame_equal(rows, alone, rtol=1e-5)


# ---- Intervals


def test_intervals_of_resampled_groups_have_the_width_of_clustered_errors():
    """The oracle are the standard errors of `Moments`. A network alone does not vary."""
    trips = draw(900)
    trips = trips[trips.groupby("trip")["mode"].transform("size") == 3]
    found = Solver(logit(), TASK).simulate(trips, **{**OPTIONS, "draws": 2000})
    of_bus = trips["mode"] == "bus"
    p = probabilities(trips)[of_bus].to_numpy()
    expected = Moments.of(p, trips["person"][of_bus].to_numpy()).measure()
    row = found["shares"].iloc[0]
    assert (row["before_low"], row["before_high"]) == pytest.approx(
        (expected.low, expected.high), abs=0.08 * (expected.high - expected.low)
    )
    assert "Intervals come from resampled groups or sets alone" in found.notes[0]


def test_intervals_of_an_ensemble_are_those_of_the_jackknife():
    """One set, which resampling does not change: only the differences of networks count."""
    rng = np.random.default_rng(1)
    likings = [dict(zip(MODES, rng.normal(0, 0.1, 3), strict=True)) for _ in range(5)]
    trip = draw()[lambda t: t["trip"] == 1]
    solver = Solver(Ensemble([logit(liking=liking) for liking in likings]), TASK)
    row = solver.simulate(trip, **{**OPTIONS, "draws": 20000})["shares"].iloc[0]
    p = np.array([probabilities(trip, liking=liking).iloc[0] for liking in likings])
    error = np.sqrt(4 / 5 * ((p - p.mean()) ** 2).sum()) * student(4).ppf(0.975)
    assert row["before"] == pytest.approx(p.mean(), rel=1e-5)
    limits = (row["before_low"], row["before_high"])
    assert limits == pytest.approx((p.mean() - error, p.mean() + error), abs=0.06 * error)


def test_intervals_of_a_logit_are_those_of_krinsky_and_robb():
    """The oracle draws coefficients. There is one set, so resampling does nothing."""
    names = ["mode = car", "mode = train", "time", "cost"]
    mean = np.array([0.6, 0.1, BETA["time"], BETA["cost"]])
    root = np.random.default_rng(2).normal(size=(4, 4)) * 0.06 * np.abs(mean)[:, None]
    rows = [{"name": n, "coefficient": b} for n, b in zip(names, mean, strict=True)]
    known = {"rows": rows, "errors": "robust", "covariance": (root @ root.T).tolist()}
    solver = Solver(logit(), TASK, {"coefficients": known})
    trip = draw()[lambda t: t["trip"] == 1]
    what = {"elasticity": "cost", "wtp": "time/cost", "drop": "mode == train", "surplus": "cost"}
    found = solver.simulate(trip, **what, **{**OPTIONS, "draws": 8000})
    assert "robust errors of coefficients" in found.notes[0]

    b = np.random.default_rng(3).multivariate_normal(mean, root @ root.T, 20000)
    x = np.column_stack(
        [trip["mode"] == "car", trip["mode"] == "train", trip["time"], trip["cost"]]
    )
    p = softmax(b @ x.T.astype(float), 1)
    oracle = {
        ("shares", "before"): p[:, 0],
        ("elasticities", "elasticity"): b[:, 3] * trip["cost"].iloc[0] * (1 - p[:, 0]),
        ("wtp", "wtp"): b[:, 2] / b[:, 3],
        ("surplus", "surplus"): np.log(1 - p[:, 2]) / -b[:, 3],
    }
    for (table, column), draws in oracle.items():
        low, high = np.quantile(draws, (0.025, 0.975))
        row = found[table].iloc[0]
        limits = (row[f"{column}_low"], row[f"{column}_high"])
        assert limits == pytest.approx((low, high), abs=0.1 * (high - low)), table


def test_the_same_seed_gives_the_same_intervals(solver):
    one, same, other = (
        solver.simulate(draw(), seed=seed, **OPTIONS)["shares"] for seed in (1, 1, 2)
    )
    assert one.equals(same) and not one.equals(other)


BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "simulate.py"))
DRAWN = {"set_id": "trip", "by": "mode", "elasticity": "cost", "wtp": "time/cost"}


def fitted_to(world, count, seed):
    """Return trips of a world of benchmarks/simulate.py, and a conditional logit of them."""
    trips = BENCHMARK["sample"](world, count, seed)
    options = {"set_id": "trip", "chosen": "chosen", "model": "conditional-logit"}
    return trips, ptrnet.fit(trips, **options)


def test_intervals_of_fitted_logits_cover_the_truth():
    """benchmarks/simulate.py does the same with more samples, and for networks."""
    truth, hits = BENCHMARK["true_answers"]("logit"), []
    for seed in range(6):
        trips, fitted = fitted_to("logit", 250, seed)
        found = BENCHMARK["answers_of"](fitted.simulate(trips, **DRAWN, draws=400))
        hits.append([low <= truth[name] <= high for name, (_, low, high) in found.items()])
    assert np.mean(hits) >= 0.9


OF_LOGIT = {"own": (-0.05, 0.05), "inside": (-0.05, 0.05), "other": (-0.05, 0.05)}
OF_NEST = {"own": (-0.13, 0.13), "inside": (-0.4, -0.25), "other": (0.08, 0.2)}
OF_INTERACTIONS = {"own": (-0.05, 0.05), "inside": (-0.1, 0.05), "other": (-0.05, 0.05)}


@pytest.mark.parametrize(
    ("world", "elasticities", "of_time"),
    [
        ("logit", OF_LOGIT, (-0.1, 0.1)),
        ("nested logit", OF_NEST, (-0.1, 0.1)),
        ("interactions", OF_INTERACTIONS, (0.08, 0.15)),
    ],
)
def test_errors_of_logits_fitted_to_drawn_worlds_are_those_of_their_form(
    world, elasticities, of_time
):
    """A logit does not know that bus and train are alike, or that costs matter more to some sets.

    The errors are shares of the truth, from the closed forms in benchmarks/simulate.py. With 4,000
    sets, those of the sample are small.
    """
    truth, (trips, fitted) = BENCHMARK["true_answers"](world), fitted_to(world, 4000, 0)
    alone = Solver(fitted.model, fitted.task)  # without variants for intervals
    found = BENCHMARK["answers_of"](alone.simulate(trips, **DRAWN, draws=1))
    for name, (value, _, _) in found.items():
        limits = (-0.05, 0.05)  # of shares
        if name == "time/cost":
            limits = of_time
        elif name.startswith("elasticity"):
            is_inside = name in ("elasticity of bus to train", "elasticity of train to bus")
            kind = "own" if name.endswith(", own") else "inside" if is_inside else "other"
            limits = elasticities[kind]
        assert limits[0] <= value / truth[name] - 1 <= limits[1], name


def test_staircases_are_simulated_with_wide_steps():
    """A chooser reads places in the set, which jump if a time passes the equal one of another."""
    trips = BENCHMARK["sample"]("logit", 300, 4).drop(columns="income")
    chooser = ptrnet.load("chooser").given(trips, set_id="trip", chosen="chosen")
    by_default, wide, small = (
        chooser.simulate(trips, **DRAWN, draws=1, **options)
        for options in ({}, {"step": 0.1}, {"step": 0.01})
    )
    assert by_default["wtp"].equals(wide["wtp"])
    assert by_default["elasticities"].equals(wide["elasticities"])
    true = BETA["time"] / BETA["cost"]
    of_wide, of_small = (abs(found["wtp"]["wtp"][0] / true - 1) for found in (wide, small))
    assert of_wide < 0.2 < of_small, (of_wide, of_small)


# ---- Expressions


@pytest.mark.parametrize(
    "expression",
    [
        "mode == train",
        "mode == 'train'",
        '`mode` in ["train"] and cost > 0',
        "mode.str.startswith('tr')",
        "not (mode == bus or mode == car)",
        "trip >= 0 and mode == train",
    ],
)
def test_conditions_choose_rows(solver, expression):
    table = solver.simulate(draw(), change="cost + 1", where=expression, **OPTIONS)["shares"]
    assert np.isnan(table["diversion"]).tolist() == [False, False, True]


@pytest.mark.parametrize("missing", [False, True])
def test_conditions_compare_dates_of_python_as_those_of_pandas(solver, missing):
    trips = draw()
    days = pd.to_datetime("2025-05-20") + pd.to_timedelta(trips["trip"], "D")
    if missing:
        days[trips["trip"] == 3] = pd.NaT
    asked = {"change": "cost + 1", "where": "day > '2025-06-01'", **OPTIONS}
    of_pandas, of_python = (
        solver.simulate(trips.assign(day=column), **asked)["shares"]
        for column in (days, days.dt.date)
    )
    pd.testing.assert_frame_equal(of_python, of_pandas)


def test_a_change_sees_what_earlier_ones_changed(solver):
    trips = draw()
    trips["toll"] = 1.5 * (trips["mode"] == "train")  # the model does not read it
    changes = ["cost = cost + toll", "cost = 2 * cost"]
    chained, reverse = (
        solver.simulate(trips, change=c, **OPTIONS) for c in (changes, changes[::-1])
    )
    expected = shares(trips, probabilities(trips.assign(cost=2 * (trips["cost"] + trips["toll"]))))
    found = chained["shares"].set_index("mode")["after"]
    assert found.to_dict() == pytest.approx(expected.to_dict(), rel=1e-5)
    assert not np.allclose(reverse["shares"]["after"], found)


def test_a_category_can_change_and_missing_numbers_stay_missing():
    task = Custom(**{**vars_of(TASK), "missing": "fill", "unknown": "missing"})
    solver, trips = Solver(logit(), task), draw()
    is_gap = trips.index % 5 == 0
    trips.loc[is_gap, "cost"] = np.nan
    filled = trips.assign(cost=trips["cost"].fillna(TASK.center[-1]))
    given = trips.assign(cost=trips["cost"].astype(object).where(~is_gap, "n/a"))
    found = solver.simulate(given, change=["cost * 2", "mode = car"], **OPTIONS)["shares"]
    dearer = filled.assign(cost=filled["cost"].where(trips["cost"].isna(), 2 * filled["cost"]))
    p = probabilities(dearer.assign(mode="car"))
    expected = shares(trips, p)
    assert found.set_index("mode")["after"].to_dict() == pytest.approx(expected.to_dict(), rel=1e-5)


def test_an_outside_option_has_a_share_of_its_own_and_keeps_its_missing_fields():
    """The shares are those of the table in which a user fills the missing costs."""
    trips = draw(300).drop(columns=["person", "persons"])
    trips["cost"] = trips["cost"].mask(trips.index % 5 == 0)
    likes = (utility(trips.fillna(4)) + 2 + np.random.default_rng(1).gumbel(size=len(trips))) > 0
    trips["chosen"] = likes & ~likes.groupby(trips["trip"]).transform(
        lambda rows: rows.duplicated()
    )
    columns = {"set_id": "trip", "chosen": "chosen", "outside": "none"}
    fields = ["mode", "time", "cost", "none"]
    model = ptrnet.fit(trips, model="conditional-logit", fields=fields, **columns)
    what = {"set_id": "trip", "change": "cost = cost.fillna(20)", "draws": 1}
    found = model.simulate(trips, by="mode", **what)["shares"].set_index("mode")
    p = model.predict_proba(trips.fillna({"cost": 20}), set_id="trip")
    expected = p.groupby(trips["mode"]).sum() / 300
    expected["none"] = 1 - expected.sum()
    assert found["after"].to_dict() == pytest.approx(expected.to_dict(), rel=1e-5)
    dropped = model.simulate(trips, set_id="trip", by="mode", drop="mode != car", draws=1)["shares"]
    cars = trips[trips["mode"] == "car"]
    others = 1 - model.predict_proba(cars, set_id="trip")
    without_car = 300 - len(cars)  # sets in which only the outside option is left
    assert dropped.set_index("mode")["after"]["none"] == pytest.approx(
        (others.sum() + without_car) / 300, rel=1e-5
    )
    by_position = model.simulate(trips, **what)["shares"].set_index("position")["after"]
    assert by_position.index.tolist() == ["1", "2", "3", "none"]
    assert by_position["none"] == pytest.approx(expected["none"], rel=1e-5)


@pytest.mark.parametrize("fields", [[], ["alternative", "cost"]])
def test_a_change_of_a_fact_reaches_its_coefficients_for_each_alternative(fields):
    """The shares are those of the table in which all persons are older."""
    rng = np.random.default_rng(1)
    wide = pd.DataFrame({f"{mode}_cost": rng.gamma(4, 1, 200) for mode in MODES})
    wide["age"] = rng.integers(20, 70, 200)
    wide.loc[::9, "age"] = np.nan
    wide["car_parking"] = rng.integers(0, 5, 200)
    likes = (wide["age"].fillna(45).to_numpy() - 45)[:, None] * [0, 0.1, 0]
    utilities = likes - 0.3 * wide[[f"{mode}_cost" for mode in MODES]].to_numpy()
    wide["mode"] = np.array(MODES)[(utilities + rng.gumbel(size=(200, 3))).argmax(1)]
    columns = {"alternatives": MODES, "chosen": "mode", "interact": ["age"], "fields": fields}
    model = ptrnet.fit(wide, model="conditional-logit", **columns)
    what = {"draws": 1}  # by default, shares of a wide table are those of its alternatives
    found = model.simulate(wide, change=["age + 10", "age * 1.1"], **what)["shares"]
    older = model.predict_proba(wide.assign(age=(wide["age"] + 10) * 1.1)).mean()
    assert found.set_index("alternative")["after"].to_dict() == pytest.approx(older.to_dict())
    assert older["car"] > model.predict_proba(wide)["car"].mean() + 0.1
    if not fields:  # other alternatives have no parking, so its change does not concern them
        found = model.simulate(wide, change="parking = 5", **what)["shares"]
        free = model.predict_proba(wide.assign(car_parking=5)).mean()
        assert found["after"].to_numpy() == pytest.approx(free.to_numpy())
    with pytest.raises(InputError, match="belongs to whole sets"):
        model.simulate(wide, change="age + 1", where="alternative == car", **what)
    with pytest.raises(InputError, match="belongs to whole sets: expected a field"):
        model.simulate(wide, elasticity="age", **what)


def vars_of(task):
    return ptrnet.tasks.settings_of(task)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"change": "persons * 2"}, "unknown field in change .* 'persons'"),
        ({"change": "csot * 2"}, "'csot'; did you mean 'cost'"),
        ({"change": "cost * time"}, "expected an expression of one field, or .* cost, time"),
        ({"change": "cost *"}, "change: 'cost \\*': not an expression"),
        ({"change": "cost * 1"}, "changes no row"),
        ({"change": "cost = 'dear'"}, "expected a number, got 'dear'"),
        ({"change": "cost / 0"}, "change: .*"),
        ({"change": "mode = 'plane'"}, "'plane'"),
        ({"change": "cost.to_csv('x')"}, "unknown method in change 'to_csv'"),
        ({"change": "cost + @x"}, "not an expression"),
        ({"change": "__import__('os')"}, "got the fields: none"),
        ({"change": "cost * 2", "where": "mode == trian"}, "'trian'"),
        (
            {"change": "cost * 2", "where": "cost > 1000"},
            "where: 'cost > 1000': is true for no row",
        ),
        ({"change": "cost * 2", "where": "cost"}, "where: expected a condition"),
        ({"where": "mode == bus"}, "where: needs a change"),
        ({"drop": "trip == 0"}, "trip 0: drop: no element of the set would be left"),
        ({"by": "persons"}, 'by: "persons" is the same in all rows of each set'),
        ({"by": "nothing"}, "unknown column in by 'nothing'"),
        ({"segment": "mode"}, 'trip 0: segment: "mode" differs'),
        ({"elasticity": "mode"}, "elasticity: expected a field of numbers"),
        ({"elasticity": "persons"}, "unknown field in elasticity"),
        ({"wtp": "time"}, "wtp: expected two fields"),
        ({"surplus": "cost"}, "surplus: needs a change or a drop"),
        ({"step": 0}, "step: expected"),
        ({"draws": 0}, "draws: expected"),
        ({"wehght": "persons"}, "wehght"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(solver, options, message):
    with pytest.raises(InputError, match=message) as error:
        solver.simulate(draw(), **{**OPTIONS, **options})
    assert "\n" not in str(error.value)


def test_other_kinds_of_answers_and_other_tasks_are_refused():
    with pytest.raises(InputError, match="expected a model of choices, got one of grades"):
        plackett_luce("grades").simulate([[[1.0], [2.0]]])
    with pytest.raises(InputError, match="model of your own examples"):
        ptrnet.load("sort").simulate([[0.1, 0.2]])


def test_a_change_out_of_distribution_warns():
    solver = Solver(logit(), TASK, {"n": "2-3", "max_deviation": 3.0})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solver.simulate(draw(), change="cost * 1e6", **OPTIONS)
    assert [w for w in caught if issubclass(w.category, ptrnet.OutOfDistributionWarning)]


# ---- Other forms of data


def test_arrays_have_numbered_features_and_positions():
    """Elements with a score of their first feature; `feature 2` is noise."""
    solver = plackett_luce("choice", 2)
    sets = np.random.default_rng(0).normal(size=(5, 3, 2))
    found = solver.simulate(sets, change="`feature 1` + 1", where="`feature 1` > 0", draws=5)
    after = softmax(sets[..., 0] + (sets[..., 0] > 0), 1).mean(0)
    assert found["shares"]["position"].tolist() == ["1", "2", "3"]
    assert found["shares"]["after"].to_numpy() == pytest.approx(after, rel=1e-5)


def test_lists_of_dictionaries_give_the_same_as_a_table(solver):
    trips = draw(30)
    sets = [trip[["mode", "time", "cost"]].to_dict("records") for _, trip in trips.groupby("trip")]
    persons = trips.groupby("trip")["person"].first().tolist()
    what = {"change": "cost * 2", "where": "mode == bus", "by": "mode", "draws": 20}
    from_lists = solver.simulate(sets, group=persons, **what)["shares"]
    assert from_lists.equals(
        solver.simulate(trips, set_id="trip", group="person", **what)["shares"]
    )


def test_text_and_documents_have_all_tables(solver):
    found = solver.simulate(draw(), elasticity="cost", drop="mode == bus", **OPTIONS)
    text, document = str(found), found.to_dict()
    assert text.startswith("60 sets in 20 groups; 95% intervals in brackets\n\nshares\n")
    assert len(document["elasticities"]) == 9 and document["groups"] == 20
    assert document["shares"][0]["diversion"] is None  # the dropped alternative
    frame = found.to_frame()
    assert frame["table"].value_counts().to_dict() == {"elasticities": 9, "shares": 3}
