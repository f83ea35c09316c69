from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from ptrnet.data.columns import Columns
from ptrnet.errors import InputError
from ptrnet.solver import Solver
from ptrnet.tasks.custom import Custom
from ptrnet.types import Example
from tests.support.plackett_luce import plackett_luce
from tests.support.small_models import small_solver

KINDS = ("permutation", "subset", "sequence", "set", "choice", "grades")
FIRST = ("permutation", "choice", "grades")
SCORES = np.array([[0.7], [-1.2], [1.5], [0.1]])


def probability_of(order, weights):
    """Return the probability of an order of elements and END, by Plackett and Luce."""
    left, probability = 1 + weights.sum(), 1.0
    for k in order:
        probability *= weights[k] / left
        left -= weights[k]
    return probability / left


def test_membership_is_the_share_of_all_answers_by_brute_force():
    """END has score 0. The oracle lists all 65 answers to four elements."""
    weights = np.exp(SCORES[:, 0])
    expected = np.zeros(4)
    total = 0.0
    for m in range(5):
        for order in permutations(range(4), m):
            probability = probability_of(order, weights)
            total += probability
            expected[list(order)] += probability
    assert total == pytest.approx(1)
    for kind in ("set", "subset"):
        probabilities = plackett_luce(kind).predict_proba(SCORES)
        assert probabilities == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", FIRST)
def test_the_first_place_is_a_softmax_over_elements(kind):
    weights = np.exp(SCORES[:, 0])
    solver = plackett_luce(kind)
    assert solver.predict_proba(SCORES) == pytest.approx(weights / weights.sum(), rel=1e-5)
    assert np.exp(solver.scores(SCORES)) == pytest.approx(solver.predict_proba(SCORES))


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_a_batch_are_those_of_its_members_alone(kind):
    solver = small_solver("custom", scale=4.0, center=(0.0, 0.0), spread=(1.0, 1.0), kind=kind)
    rng = np.random.default_rng(3)
    instances = [rng.normal(size=(n, 2)) for n in (1, 5, 2, 5, 9)]
    together = solver.scores(instances)
    for instance, scores in zip(instances, together, strict=True):
        assert scores.shape == (len(instance),)
        np.testing.assert_allclose(scores, solver.scores(instance), rtol=1e-4, atol=1e-5)
    for probabilities in solver.predict_proba(instances):
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        assert kind not in FIRST or probabilities.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["choice", "set"])
def test_scores_are_in_the_order_of_the_user_if_the_model_reads_another(kind):
    solver = plackett_luce(kind)
    reader = Solver(solver.model, replace(solver.task, order="lexicographic"))
    order = np.array([2, 0, 3, 1])
    assert reader.scores(SCORES[order]) == pytest.approx(solver.scores(SCORES)[order])


def offers_in_mixed_order():
    """Return columns with rows of three sets in mixed order, and the softmax in each set."""
    trips = np.array([3, 1, 3, 2, 1, 3, 2, 1])
    prices = np.random.default_rng(4).normal(size=8)
    weights = np.exp(prices)
    shares = weights / np.array([weights[trips == trip].sum() for trip in trips])
    return {"trip": trips, "price": prices}, shares


def solver_of_prices(kind="choice"):
    task = Custom(kind=kind, fields=("price",), categories=((),), center=(0.0,), spread=(1.0,))
    return Solver(plackett_luce(kind).model, task)


def test_probabilities_of_a_frame_have_its_rows_order_and_its_index():
    """Once, they came by set: 3, 3, 3, 1, 1, ... in place of 3, 1, 3, 2, ..."""
    pandas = pytest.importorskip("pandas")
    columns, shares = offers_in_mixed_order()
    frame, solver = pandas.DataFrame(columns), solver_of_prices()
    indices = [
        frame.index,
        pandas.Index([5, 1, 7, 0, 2, 3, 9, 4]),
        pandas.Index([1, 1, 1, 1, 0, 0, 0, 0]),
        pandas.Index([*"abcdefga"], name="row"),
        pandas.MultiIndex.from_product([[1, 0], ["x", "y"], [2, 2]]),
        pandas.date_range("2024-01-01", periods=8)[::-1],
    ]
    for index in indices:
        given = frame.set_index(index)
        found = solver.predict_proba(given, set_id="trip")
        expected = pandas.Series(shares, index, name="probability")
        pandas.testing.assert_series_equal(found, expected, rtol=1e-5)
        logs = solver.scores(given, set_id="trip")
        pandas.testing.assert_series_equal(logs, np.log(expected).rename("score"), rtol=1e-4)
    answered = frame.assign(bought=1, probability=solver.predict_proba(frame, set_id="trip"))
    assert answered.groupby("trip").probability.sum().tolist() == pytest.approx([1, 1, 1])
    one = solver.predict_proba(frame[frame.trip == 3])  # without set_id, a frame is one instance
    expected = pandas.Series(shares, name="probability")[frame.trip == 3]
    pandas.testing.assert_series_equal(one, expected, rtol=1e-5)
    several = solver.predict_proba([frame[frame.trip == trip] for trip in (1, 2)])
    assert [type(part) for part in several] == [np.ndarray] * 2


def test_probabilities_of_other_tables_are_in_the_order_of_their_rows(tmp_path):
    columns, shares = offers_in_mixed_order()
    solver = solver_of_prices()
    polars = pytest.importorskip("polars")
    found = solver.predict_proba(polars.DataFrame(columns), set_id="trip")
    assert isinstance(found, polars.Series) and found.name == "probability"
    np.testing.assert_allclose(found.to_numpy(), shares, rtol=1e-5)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = ["trip,price", *(f"{row['trip']},{row['price']}" for row in rows), ""]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    for table in (rows, tmp_path / "t.csv"):
        np.testing.assert_allclose(solver.predict_proba(table, set_id="trip"), shares, rtol=1e-5)


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_solved_tables_may_have_a_column_of_probabilities(tmp_path, extension):
    pandas = pytest.importorskip("pandas")
    columns, shares = offers_in_mixed_order()
    frame, out = pandas.DataFrame(columns), tmp_path / f"out.{extension}"
    if extension == "csv":
        path = tmp_path / "t.csv"
        frame.to_csv(path, index=False)
    else:
        path = tmp_path / "t.parquet"
        frame.to_parquet(path)
    solver = solver_of_prices()
    solver.solve_file(path, out, columns=Columns(set_id="trip"), probability="share")
    read = pandas.read_csv if extension == "csv" else pandas.read_parquet
    solved = read(out)
    assert [*solved.columns] == ["trip", "price", "chosen", "share"]
    np.testing.assert_allclose(solved.share, shares, rtol=1e-5)
    assert (
        solved.chosen.tolist()
        == (solved.groupby("trip").share.transform("max") == solved.share).tolist()
    )


@pytest.mark.parametrize(
    ("kind", "options", "complaint"),
    [
        ("choice", {"probability": "price"}, 'has a column "price" already; name .*--probability'),
        ("choice", {"probability": "chosen"}, 'has a column "chosen" already'),
        ("choice", {"output": "out.jsonl"}, "probability: needs a long table"),
        ("choice", {"columns": None}, "probability: needs a long table"),
        ("hull", {}, "expected a model of your own examples, got one of task hull"),
    ],
)
def test_refuses_probabilities_without_a_column_for_them(
    tmp_path, monkeypatch, kind, options, complaint
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("trip,price,y\n1,2,0\n1,3,1\n")
    solver = small_solver() if kind == "hull" else solver_of_prices()
    given = {"output": "out.csv", "columns": Columns(set_id="trip"), "probability": "p", **options}
    with pytest.raises(InputError, match=complaint):
        solver.solve_file("t.csv", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_likelihood_of_a_choice_is_that_among_the_elements():
    weights = np.exp(SCORES[:, 0])
    for chosen in range(4):
        value = plackett_luce("choice").log_likelihoods((SCORES, [chosen]))
        assert value == pytest.approx(np.log(weights[chosen] / weights.sum()), rel=1e-5)


def test_metrics_of_a_choice_by_hand():
    """The model's order is 2, 0, 3, 1. Its confidence is the probability of element 2."""
    weights = np.exp(SCORES[:, 0])
    confidence = weights[2] / weights.sum()
    measures = plackett_luce("choice").evaluate([(SCORES, [k]) for k in (2, 3, 1, 0)])
    assert set(measures) == {
        "accuracy",
        "top@3",
        "top@5",
        "mrr",
        "confidence",
        "log_likelihood",
        "calibration_error",
    }
    assert measures["accuracy"]["value"] == 1 / 4 and measures["top@3"]["value"] == 3 / 4
    assert measures["mrr"]["value"] == pytest.approx((1 + 1 / 3 + 1 / 4 + 1 / 2) / 4)
    assert measures["confidence"]["value"] == pytest.approx(confidence, rel=1e-5)
    assert measures["calibration_error"]["value"] == pytest.approx(
        abs(confidence - 1 / 4), rel=1e-4
    )
    expected = np.log(weights / weights.sum()).mean()
    assert measures["log_likelihood"]["value"] == pytest.approx(expected, rel=1e-5)


def test_metrics_of_grades_are_those_of_the_order_of_the_scores():
    grades = np.array([1.0, 0, 0, 2])
    example = Example(SCORES, np.array([3, 0, 1, 2]), grades=grades)
    measures = plackett_luce("grades").evaluate([example])
    dcg = 1 / np.log2(3) + 3 / np.log2(4)
    assert measures["ndcg@10"]["value"] == pytest.approx(dcg / (3 + 1 / np.log2(3)))
    assert measures["ndcg@1"]["value"] == 0 and measures["mrr"]["value"] == 1 / 2
    assert {"ndcg@5", "map", "kendall_tau", "accuracy", "log_likelihood"} < set(measures)


def test_metrics_of_a_set_rank_its_members():
    """The model's set is {2, 0, 3}, in the order of their scores."""
    measures = plackett_luce("set").evaluate([(SCORES, [0, 1])])
    assert measures["f1"]["value"] == pytest.approx(2 * 1 / 5)
    assert measures["map"]["value"] == pytest.approx((1 / 2 + 2 / 4) / 2)


@pytest.mark.parametrize("outputs", [[], [0, 1]])
def test_a_choice_of_no_or_several_elements_is_refused(outputs):
    example = Example(SCORES, np.array(outputs, np.int64), source="a.jsonl:3")
    with pytest.raises(InputError, match=f"a.jsonl:3: a choice is one element, got {len(outputs)}"):
        plackett_luce("choice").evaluate([example])


def test_models_of_named_tasks_have_no_scores_of_elements():
    with pytest.raises(InputError, match="a model of your own examples, got one of task hull"):
        small_solver("hull").predict_proba(np.random.default_rng(0).random((5, 2)))
