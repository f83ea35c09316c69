"""The model `chooser`: given examples in Python and by command, then used like any other model."""

import asyncio

import numpy as np
import pandas as pd
import pytest

import ptrnet
from ptrnet.cli import run
from ptrnet.errors import InputError
from ptrnet.export.graphs import OnnxModel
from ptrnet.models.chooser import Chooser
from ptrnet.solver import Solver
from ptrnet.training import own_data
from ptrnet.training.own_data import infer_recipe
from tests.serve.conftest import client_of

BRANDS = np.array(["ada", "bel", "cid"])


def table(count, column="chosen", seed=0):
    """Customers with a low income like low prices, and those with a high one like high prices."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        n, income = int(rng.integers(2, 6)), rng.normal()
        price, brand = rng.gamma(2.0, 2.0, n).round(2), rng.integers(0, 3, n)
        utility = -price * np.sign(-income) + 0.8 * brand + rng.gumbel(size=n)
        answer = {
            "chosen": (utility == utility.max()).astype(int),
            "grade": np.clip(np.round(utility / 2 + 4), 0, 4).astype(int),
        }[column]
        for j in range(n):
            values = (f"order {k}", f"customer {k // 2}", round(income, 3), price[j])
            rows.append((*values, BRANDS[brand[j]], answer[j]))
    return pd.DataFrame(rows, columns=["order", "customer", "income", "price", "brand", column])


COLUMNS = {"set_id": "order", "group": "customer"}


@pytest.fixture(scope="module", params=["chosen", "grade"])
def asked(request):
    """The column of answers, answered sets, new sets, and the model that was given the former."""
    column = request.param
    old, new = table(120, column), table(60, column, seed=1)
    return column, old, new, ptrnet.load("chooser").given(old, **COLUMNS, **{column: column})


def answers(solver, column, new):
    return (
        solver.predict(new, set_id="order")
        if column == "grade"
        else solver.predict_proba(new, set_id="order")
    )


def test_it_predicts_better_than_chance_at_once(asked):
    column, _, new, solver = asked
    assert isinstance(solver.model, Chooser)
    found = solver.evaluate(new, **COLUMNS, **{column: column})
    if column == "chosen":
        assert found["accuracy"]["value"] > 0.55  # chance has 0.32
        assert found["log_likelihood"]["value"] > -1.0  # chance has -1.2
    else:
        assert found["ndcg@10"]["value"] > 0.9


def test_the_same_examples_give_the_same_model_and_it_is_saved(asked, tmp_path):
    column, old, new, solver = asked
    again = ptrnet.fit(old, model="chooser", output=tmp_path / "m", **COLUMNS, **{column: column})
    expected = solver.scores(new, set_id="order")
    np.testing.assert_array_equal(again.scores(new, set_id="order"), expected)
    loaded = ptrnet.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.scores(new, set_id="order"), expected)
    assert sum(file.stat().st_size for file in (tmp_path / "m").rglob("*")) < 4e6


def test_it_is_exported_served_and_explained(asked, tmp_path):
    column, _, new, solver = asked
    questions = [
        rows[["income", "price", "brand"]].to_dict("records") for _, rows in new.groupby("order")
    ]
    ptrnet.export_onnx(solver, tmp_path / "onnx", instances=20)
    graphs = Solver(OnnxModel(tmp_path / "onnx", solver.model), solver.task)
    for question in questions[:8]:
        expected = solver.scores(question)
        np.testing.assert_allclose(graphs.scores(question), expected, atol=2e-4)

    async def ask():
        async with client_of({"mine": solver}) as client:
            answer = await client.post("/v1/models/mine/solve", json={"instances": questions})
            return [row["outputs"] for row in answer.json()["answers"]]

    assert asyncio.run(ask()) == [solver.solve(question).tolist() for question in questions]
    importance = solver.explain(new, **COLUMNS, **{column: column})["importance"]
    assert importance.keys() == {"income", "price", "brand"} and importance["price"]["value"] > 0


def test_the_command_answers_like_python(tmp_path, capsys):
    old, new = table(60), table(30, seed=1).drop(columns="chosen")
    old.to_csv(tmp_path / "old.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    words = f"solve chooser {tmp_path / 'new.csv'} --examples {tmp_path / 'old.csv'}"
    words += " --set-id order --chosen chosen --group customer --probability share --output"
    assert run([*words.split(), str(tmp_path / "answered.csv")]) == 0
    found = pd.read_csv(tmp_path / "answered.csv")
    solver = ptrnet.load("chooser").given(old, **COLUMNS, chosen="chosen")
    expected = solver.predict_proba(new, set_id="order")
    np.testing.assert_allclose(found["share"], expected, atol=1e-6)
    assert (found.loc[found["chosen"] == 1, "order"] == new["order"].unique()).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("solve chooser new.csv --set-id order", "--examples OLD"),
        ("solve chooser --examples old.csv --set-id order --chosen chosen", "--examples OLD"),
        ("solve chooser new.csv --model m --examples old.csv", "--examples OLD"),
        ("solve chooser new.csv --examples old.csv --direction rtl", "--examples OLD"),
        ("solve chooser new.csv old.csv --examples old.csv", "--examples OLD"),
        ("solve hull new.csv --examples old.csv", "--examples and --group are for chooser"),
        ("solve hull new.csv --group customer", "--examples and --group are for chooser"),
        ("solve chooser new.csv --examples no.csv --set-id order --chosen chosen", "no.csv"),
        (
            "solve chooser new.csv --examples old.csv --set-id order --member chosen",
            "choice or grades",
        ),
        ("TRAIN --steps 5", "steps"),
        (
            "TRAIN --decreasing price",
            "guarantees no signs",
        ),
        (
            "TRAIN --ordered",
            "order of the elements",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_line(tmp_path, monkeypatch, capsys, words, message):
    words = words.replace(
        "TRAIN", "train --data old.csv --set-id order --chosen chosen --model chooser"
    )
    monkeypatch.chdir(tmp_path)
    table(12).to_csv("old.csv", index=False)
    table(3).drop(columns="chosen").to_csv("new.csv", index=False)
    assert run(words.split()) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert message in error
    assert not list(tmp_path.glob("*/"))


def test_hooks_of_steps_are_refused(tmp_path):
    with pytest.raises(InputError, match="follow steps"):
        ptrnet.load("chooser").given(
            table(12), **COLUMNS, chosen="chosen", callbacks=[lambda step, metrics: None]
        )


def test_a_weight_of_2_counts_as_two_examples_of_the_same_person():
    old = table(40)
    again = old.assign(order="again " + old["order"])
    twice = ptrnet.load("chooser").given(pd.concat([old, again]), **COLUMNS, chosen="chosen")
    weighted = ptrnet.load("chooser").given(
        old.assign(weight=2.0), **COLUMNS, chosen="chosen", weight="weight"
    )
    new = table(20, seed=1)
    expected, found = (m.predict_proba(new, set_id="order") for m in (twice, weighted))
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_examples_are_mixed_with_a_chooser_by_default(tmp_path, monkeypatch):
    """If they are few, and no field has a sign, because a chooser keeps none."""
    path = str(tmp_path / "old.csv")
    table(40).to_csv(path, index=False)

    def spaces(**options):
        columns = {**COLUMNS, "chosen": "chosen"}
        return infer_recipe(path, {**columns, **options})[0].network.spaces

    assert spaces() == 400
    assert spaces(spaces=0) == spaces(increasing="price") == spaces(valid_share=0) == 0
    monkeypatch.setattr(own_data, "FEW_ELEMENTS", 50)
    assert spaces() == 0


def test_the_default_keeps_the_chooser_where_it_predicts_best(capsys):
    """One step does not let a network learn anything."""
    model = ptrnet.fit(
        table(60), **COLUMNS, chosen="chosen", steps=1, ensemble=2, hidden_size=8, trees=0, seed=1
    )
    assert "a chooser" in capsys.readouterr().err
    for network in model.model.networks():
        assert network.spaces.share > 0 and len(network.spaces) == network.settings()["spaces"]
