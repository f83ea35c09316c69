"""Wide tables from training to answers: by the command line, as frames, exported and served."""

import asyncio
import json
import warnings

import numpy as np
import pytest

import ptrnet
from ptrnet.cli import run
from ptrnet.errors import InputError

pandas = pytest.importorskip("pandas")

TINY = {"steps": 2, "hidden_size": 8, "batch_size": 4, "valid_batches": 0, "ensemble": 1}
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
NAMES = ["train", "ship", "car"]
COLUMNS = {"alternatives": NAMES, "chosen": "choice", "available": "{alternative}_AV"}
LOGIT = {"model": "conditional-logit"}


def trips(count=60, with_persons=False):
    """Return choices by time and cost of three alternatives; cars have no headway."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"income": rng.integers(1, 9, count)})
    if with_persons:
        frame["person"] = np.arange(count) // 2
    utility = []
    for k, name in enumerate(NAMES):
        frame[f"{name}_time"] = rng.gamma(4, 10, count).round(1)
        frame[f"{name}_cost"] = rng.gamma(3, 1, count).round(2)
        frame[f"{name}_AV"] = 1 if name == "train" else (rng.random(count) < 0.8).astype(int)
        if name != "car":
            frame[f"{name}_headway"] = rng.integers(1, 7, count) * 10
        noise = rng.gumbel(size=count) + 0.1 * k * frame["income"]
        costs = 0.03 * frame[f"{name}_time"] + 0.4 * frame[f"{name}_cost"]
        utility.append(np.where(frame[f"{name}_AV"] == 1, noise - costs, -np.inf))
    return frame.assign(choice=np.argmax(utility, 0) + 1, count=rng.integers(1, 4, count))


def melted(wide):
    """Return the table with a row for each available alternative, made by pandas."""
    parts = []
    for k, name in enumerate(NAMES, 1):
        fields = {f: wide.get(f"{name}_{f}", np.nan) for f in ("time", "cost", "headway", "AV")}
        part = pandas.DataFrame({"set": wide.index, "alternative": name, **fields})
        shared = wide[["income", "count", *["person"] * ("person" in wide)]]
        parts.append(pandas.concat([part, shared], axis=1).assign(won=wide["choice"] == k))
    long = pandas.concat(parts).sort_values("set", kind="stable")
    return long[long["AV"] == 1].drop(columns="AV").astype({"won": int}).reset_index(drop=True)


def coefficients(solver):
    rows = solver.coefficients()
    return {f"{key} of {r['name']}": r[key] for r in rows for key in ("coefficient", "std_error")}


def test_models_of_a_wide_table_are_those_of_the_long_one_that_pandas_makes():
    wide = trips(with_persons=True)
    long, ids = melted(wide), {"set_id": "set", "chosen": "won", "group": "person"}
    fields = ["alternative", "time", "cost", "headway", "income"]
    ours = ptrnet.fit(wide, **COLUMNS, group="person", fields=fields, **LOGIT)
    theirs = ptrnet.fit(long, **ids, fields=fields, **LOGIT)
    assert coefficients(ours) == pytest.approx(coefficients(theirs), rel=1e-9)
    options = {"group": "person", "fields": fields, **TINY}
    ours = ptrnet.fit(wide, **COLUMNS, **options)
    theirs = ptrnet.fit(long, **{**ids, **options})
    state = theirs.model.state_dict()
    assert all(value.equal(state[name]) for name, value in ours.model.state_dict().items())
    p = ours.predict_proba(wide)
    flat = p.to_numpy()[wide[[f"{name}_AV" for name in NAMES]].to_numpy() == 1]
    np.testing.assert_array_equal(flat, theirs.predict_proba(long, set_id="set"))
    assert (p.sum(axis=1) - 1).abs().max() < 1e-5 and list(p.columns) == NAMES
    assert (ours.solve(wide) == p.idxmax(axis=1)).all()
    assert ours.evaluate(wide) == theirs.evaluate(long, **ids)
    assert ours.explain(wide, repeats=1) == theirs.explain(long, repeats=1, **ids)


@pytest.fixture(scope="module")
def tiny():
    wide = trips(12)
    return ptrnet.fit(wide, **COLUMNS, fields=["alternative", "time", "cost"], **TINY), wide


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"change": "train_cost * .9"}, """cost, and where "alternative == 'train'\""""),
        ({"change": "`train_cost` = 3"}, """cost, and where "alternative == 'train'\""""),
        ({"change": "cost = train_cost + 1"}, """cost, and where "alternative == 'train'\""""),
        ({"change": "cost * 2", "where": "train_cost > 2"}, "cost, and alternative == 'train'"),
        ({"drop": "train_cost > 2"}, "cost, and alternative == 'train'"),
        ({"elasticity": "train_cost"}, "cost, and by alternative"),
        ({"wtp": "time/train_cost"}, "cost, and by alternative"),
    ],
)
def test_a_simulation_says_how_to_name_a_field_of_one_alternative(tiny, options, advice):
    solver, wide = tiny
    with pytest.raises(InputError) as error:
        solver.simulate(wide, **options)
    expected = f'"train_cost" is the field "cost" in the rows of train: expected {advice}'
    assert str(error.value).endswith(f": {expected}") and str(error.value).startswith(
        tuple(options)
    )
    changed = {"change": "cost * .9", "where": "alternative == 'train'"}
    found = solver.simulate(wide, **changed, by="alternative", draws=5)["shares"]
    assert (found["change"].abs() > 0).any()


def test_interactions_are_the_columns_that_a_user_would_add():
    wide = trips()
    long = melted(wide)
    for name in NAMES[1:]:
        long[f"income of {name}"] = long["income"].where(long["alternative"] == name, 0)
    fields = ["alternative", "time", "cost"]
    ours = ptrnet.fit(wide, **COLUMNS, interact=["income"], fields=fields, **LOGIT)
    fields += ["income of ship", "income of car"]  # `fields` need not name them
    theirs = ptrnet.fit(long, set_id="set", chosen="won", fields=fields, **LOGIT)
    assert coefficients(ours) == pytest.approx(coefficients(theirs), rel=1e-9)
    assert "std_error of income of car" in coefficients(ours)


def test_a_missing_fact_counts_as_the_mean_in_its_interactions_too():
    wide = trips()
    solver = ptrnet.fit(wide, **COLUMNS, interact=["income"], **LOGIT)
    mean = melted(wide)["income"].mean()
    with pytest.warns(ptrnet.OutOfDistributionWarning, match="treated as missing"):
        p = solver.predict_proba(wide.assign(income=np.nan))
    expected = solver.predict_proba(wide.assign(income=mean))
    np.testing.assert_allclose(p, expected, atol=1e-6)


def test_weights_are_repeated_rows_in_fits_and_in_metrics():
    wide = trips(30)
    repeated = wide.loc[wide.index.repeat(wide["count"])].reset_index(drop=True)
    options = {**COLUMNS, "fields": ["alternative", "time", "cost"], **LOGIT}
    weighted = ptrnet.fit(wide, **options, weight="count")
    plain = ptrnet.fit(repeated, **options)
    values = {row["name"]: row["coefficient"] for row in plain.coefficients()}
    assert {r["name"]: r["coefficient"] for r in weighted.coefficients()} == pytest.approx(values)
    measured, expected = weighted.evaluate(wide), plain.evaluate(repeated)
    for name, measure in measured.items():
        assert measure["value"] == pytest.approx(expected[name]["value"], abs=1e-6), name
        assert measure["count"] == len(wide) or name == "calibration_error"
    unweighted = weighted.evaluate(wide.drop(columns="count"))
    assert unweighted["log_likelihood"]["value"] != measured["log_likelihood"]["value"]


def test_every_command_reads_a_wide_table_without_options_again(tmp_path, capsys):
    wide, data, model = trips(with_persons=True), str(tmp_path / "w.csv"), str(tmp_path / "m")
    wide.to_csv(data, index=False)
    options = ["--alternatives", ",".join(NAMES), "--chosen", "choice", "--group", "person"]
    options += ["--available", "{alternative}_AV", "--weight", "count", "--outside", "none"]
    assert run(["train", "--data", data, *options, *OPTIONS, "--output", model]) == 0
    assert run(["train", "--output", model, "--resume"]) == 0
    valid = str(tmp_path / "valid.csv")
    wide.assign(person=wide["person"] + 1000).to_csv(valid, index=False)
    recipe = ["train", f"{model}/recipe.toml", "--valid", valid, "--valid-batches", "1"]
    assert run([*recipe, "--output", str(tmp_path / "again")]) == 0
    solver = ptrnet.load(model)
    expected = solver.predict_proba(wide)
    assert list(expected.columns) == [*NAMES, "none"]
    capsys.readouterr()
    new = wide.drop(columns=["choice", "person", "count"]).assign(note="x")
    new = new[new.columns[::-1]].head(20)
    new.to_csv(tmp_path / "new.csv", index=False)
    out = str(tmp_path / "out.csv")
    assert run(["solve", "--model", model, str(tmp_path / "new.csv"), "--output", out]) == 0
    answered = pandas.read_csv(out)
    assert list(answered.columns[: new.shape[1]]) == list(new.columns)
    for name in expected.columns:
        np.testing.assert_allclose(answered[f"probability_{name}"], expected[name][:20], atol=1e-6)
    assert (answered["chosen"] == expected.head(20).idxmax(axis=1)).all()
    lines, scores = str(tmp_path / "out.jsonl"), str(tmp_path / "scores.jsonl")
    assert run(["solve", "--model", model, data, "--output", lines]) == 0
    capsys.readouterr()
    printed = []
    for more in ([], ["--output", scores]):
        assert run(["evaluate", "--model", model, data, "--json", *more]) == 0
        printed.append(json.loads(capsys.readouterr().out))
    assert printed[0]["groups"] == 30 and printed[0] == printed[1]
    for name, measure in solver.evaluate(wide).items():
        assert printed[0]["metrics"][name] == pytest.approx(measure)
    assert run(["explain", model, data, "--repeats", "1", "--json"]) == 0
    assert run(["solve", "--model", model, data, "--json"]) == 0
    answers = json.loads(capsys.readouterr().out.splitlines()[-1])["answers"]
    chosen = [answer["alternatives"][answer["outputs"][0]] for answer in answers]
    assert chosen == solver.solve(wide).tolist()
    long = str(tmp_path / "long.csv")
    assert run(["convert", data, long, *options[:4]]) == 0
    assert pandas.read_csv(long)["choice"].tolist() == [
        int(k == c) for c in wide["choice"] for k in (1, 2, 3)
    ]
    wide.drop(columns=["ship_headway", "car_AV"]).to_csv(tmp_path / "less.csv", index=False)
    assert run(["solve", "--model", model, str(tmp_path / "less.csv")]) == 2
    assert "expected the columns 'ship_headway, car_AV'" in capsys.readouterr().err


def test_the_service_and_the_export_answer_rows_of_a_wide_table(tmp_path):
    conftest = pytest.importorskip("tests.serve.conftest")
    wide = trips(12)
    solver = ptrnet.fit(wide, **COLUMNS, fields=["alternative", "time", "cost", "income"], **TINY)
    expected = solver.predict_proba(wide)
    ptrnet.export_onnx(solver, tmp_path / "onnx", instances=3)
    rows = json.loads(wide.drop(columns="choice").to_json(orient="records"))
    assert solver.solve(rows).tolist() == solver.solve(wide).tolist()
    assert solver.predict_proba(rows[0]) == pytest.approx(expected.iloc[0].to_dict())

    async def ask():
        async with conftest.client_of({"m": solver}) as client:
            body = {"instances": rows}
            return (await client.post("/v1/models/m/solve", json=body)).json()

    answers = asyncio.run(ask())["answers"]
    for answer, p in zip(answers, expected.to_dict("records"), strict=True):
        found = dict(zip(answer["alternatives"], answer["probabilities"], strict=True))
        assert found == pytest.approx({name: p[name] for name in found}, rel=1e-4)


def test_long_tables_with_availability_and_an_outside_option_are_answered_in_their_rows(tmp_path):
    long = melted(trips())
    long["can"] = (np.arange(len(long)) % 5 > 0).astype(int)
    long["can"] = long["can"].where(long["alternative"] != "train", 1)
    long["won"] *= long["can"] * (long["set"] % 3 > 0)
    columns = {"set_id": "set", "chosen": "won"}
    with pytest.raises(InputError, match="name it, such as --outside none"):
        ptrnet.fit(long, **columns, available="can", **TINY)
    fields = ["alternative", "time", "cost", "none"]
    solver = ptrnet.fit(long, **columns, available="can", outside="none", fields=fields, **LOGIT)
    shuffled = long.drop(columns="won").sample(frac=1, random_state=1)
    p = solver.predict_proba(shuffled, set_id="set")
    assert (p[shuffled["can"] == 0] == 0).all() and p.index.equals(shuffled.index)
    sums = p.groupby(shuffled["set"]).sum()
    assert ((sums > 0) & (sums < 1)).all()
    shuffled.to_csv(tmp_path / "t.csv", index=False)
    solver.save_pretrained(tmp_path / "m")
    options = ["--set-id", "set", "--probability", "p", "--output", str(tmp_path / "o.csv")]
    assert run(["solve", "--model", str(tmp_path / "m"), str(tmp_path / "t.csv"), *options]) == 0
    answered = pandas.read_csv(tmp_path / "o.csv")
    np.testing.assert_allclose(answered["p"], p, atol=1e-6)
    np.testing.assert_allclose(answered["p_none"], 1 - sums[answered["set"]], atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = solver.solve(shuffled, set_id="set")
    for (_, rows), answer in zip(shuffled.groupby("set", sort=False), answers, strict=True):
        best = p[rows.index].max() > 1 - p[rows.index].sum()
        assert answer.tolist() == ([int(p[rows.index].argmax())] if best else [])
    # A list of elements cannot leave one out without changing the places of others.
    trip = long[long["set"] == long["set"][(long["can"] == 0).idxmax()]]
    elements = [*trip.assign(none=0).to_dict("records"), dict.fromkeys(fields, None) | {"none": 1}]
    with pytest.raises(InputError, match='"can" says that the element cannot be chosen: leave it'):
        solver.predict_proba(elements)
    (of_list,) = solver.predict_proba([[e for e in elements if e.get("can", 1)]])
    assert of_list[:-1] == pytest.approx(p[trip.index][trip["can"] == 1], abs=1e-6)
    # Without the outside option, the probabilities of the others would add up to 1.
    with pytest.raises(InputError, match='with "none": 1, the option to choose none, got 0'):
        solver.predict_proba([e for e in elements[:-1] if e.get("can", 1)])
    # The oracle is a table to which a user adds the rows.
    kept = long[long["can"] == 1].drop(columns="can").assign(none=0)
    none = kept.groupby("set").agg({"won": "sum"}).reset_index()
    none = none.assign(won=1 - none["won"], none=1)
    both = pandas.concat([kept, none])
    theirs = ptrnet.fit(both, **columns, fields=fields, **LOGIT)
    assert coefficients(solver) == pytest.approx(coefficients(theirs), rel=1e-9)
