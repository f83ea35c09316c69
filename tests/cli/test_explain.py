"""`ptrnet explain`, and `ptrnet evaluate` for a model of own examples."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from ptrnet import load
from tests.support.small_models import small_solver

FIELDS = {"fields": ("price", "colour"), "categories": ((), ("blue", "red"))}
NUMBERS = {"center": (0.0,) * 3, "spread": (1.0,) * 3}


@pytest.fixture
def offers(tmp_path):
    """The folder of an untrained model of choices, and a file of 40 choices from two countries."""
    solver = small_solver("custom", seed=1, scale=4.0, kind="choice", **FIELDS, **NUMBERS)
    solver.save_pretrained(tmp_path / "offers")
    rng, lines = np.random.default_rng(0), []
    for k in range(40):
        elements = [
            {"price": round(float(rng.normal()), 3), "colour": str(rng.choice(["blue", "red"]))}
            for _ in range(rng.integers(2, 7))
        ]
        chosen = min(range(len(elements)), key=lambda i: elements[i]["price"])
        country = ["Peru, north", "Chad"][k % 2]
        lines.append({"inputs": elements, "outputs": [chosen], "country": country, "income": k / 2})
    path = tmp_path / "offers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path / "offers", path, lines


def parsed(outcome):
    code, out, err = outcome
    assert code == 0, err
    return json.loads(out)


def test_choices_are_measured_as_choices(ptrnet, offers):
    model, path, lines = offers
    document = parsed(ptrnet("evaluate", "--model", model, path, "--json"))
    assert set(document["metrics"]) == {
        "accuracy",
        "top@3",
        "top@5",
        "mrr",
        "confidence",
        "log_likelihood",
        "calibration_error",
    }
    solver = load(model)
    expected = solver.evaluate([(line["inputs"], line["outputs"]) for line in lines])
    for metric, row in document["metrics"].items():
        assert row == pytest.approx(expected[metric], rel=1e-4, abs=1e-6), metric


KINDS = {  # the metrics that say something if all sets have at most 3 elements
    "choice": ["accuracy", "mrr", "confidence", "log_likelihood", "calibration_error"],
    "grades": ["ndcg@1", "ndcg@10", "mrr", "map", "kendall_tau", "log_likelihood"],
    "permutation": ["accuracy", "in_place", "kendall_tau", "log_likelihood"],
    "set": ["accuracy", "f1", "map", "log_likelihood"],
    "subset": ["accuracy", "same_set", "f1", "log_likelihood"],
    "sequence": ["accuracy", "in_place", "log_likelihood"],
}


@pytest.fixture
def metrics_of(tmp_path, ptrnet):
    """Return a function that evaluates an untrained model, and returns what a text and JSON have.

    The function also returns the names of the columns of the text's table of sizes.
    """

    def evaluated(kind, lines, with_right=False):
        solver = small_solver("custom", seed=1, kind=kind, center=(0.0,), spread=(1.0,))
        if with_right and kind != "grades":
            answer = solver.solve(np.array(lines[0]["inputs"]))
            lines = [{**lines[0], "outputs": answer.tolist()}, *lines[1:]]
        solver.save_pretrained(tmp_path / "model")
        path = tmp_path / "sets.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        words = ["evaluate", "--model", tmp_path / "model", path]
        text = ptrnet(*words)[1].split("\n\n")
        names = [line.split()[0] for line in text[0].splitlines()[1:]]
        columns = text[1].splitlines()[0].split()[2:] if len(text) > 1 else names
        assert columns == names
        return names, list(parsed(ptrnet(*words, "--json"))["metrics"])

    return evaluated


def sets_of(kind, *sizes, lowest=0):
    """Sets of these sizes. The answer to each begins with its largest element."""
    rng, lines = np.random.default_rng(0), []
    for n in sizes:
        inputs = rng.random((n, 1)).round(3)
        order = np.argsort(-inputs[:, 0]).tolist()
        grades = [order.index(k) * -1 + n - 1 + lowest for k in range(n)]
        answer = {"grades": grades} if kind == "grades" else {"outputs": order}
        if kind in ("choice", "set", "subset", "sequence"):
            answer = {"outputs": order[:1]}
        lines.append({"inputs": inputs.tolist(), **answer})
    return lines


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_has_the_metrics_that_say_something_about_the_kind(metrics_of, kind):
    """Once, it had top@3 of three alternatives, and the accuracy of orders by grades."""
    text, document = metrics_of(kind, sets_of(kind, *[2, 3] * 20), with_right=True)
    assert text == KINDS[kind]
    assert set(text) <= set(document)


def test_a_larger_set_makes_a_cutoff_tell(metrics_of):
    text, document = metrics_of("choice", sets_of("choice", 3, 3, 4))
    assert "top@3" in text and "top@5" not in text and "top@5" in document
    text, document = metrics_of("grades", sets_of("grades", 3, 3, 6))
    assert "ndcg@5" in text and "accuracy" not in text and "accuracy" in document


def test_relevance_of_elements_that_are_all_relevant_is_left_out(metrics_of):
    text, document = metrics_of("grades", sets_of("grades", 3, 4, lowest=1))
    assert text == ["ndcg@1", "ndcg@10", "kendall_tau", "log_likelihood"]
    assert {"mrr", "map"} <= set(document)


def test_exact_matches_are_left_out_if_there_are_none(metrics_of):
    text, document = metrics_of("permutation", sets_of("permutation", *[40] * 5))
    assert text == ["in_place", "kendall_tau", "log_likelihood"]
    assert document[0] == "accuracy"


def test_scores_that_are_kept_give_the_same_measures(tmp_path, ptrnet, offers):
    model, path, _ = offers
    alone = parsed(ptrnet("evaluate", "--model", model, path, "--json"))
    output = tmp_path / "scores.jsonl"
    kept = parsed(ptrnet("evaluate", "--model", model, path, "--output", output, "--json"))
    assert kept == alone
    row = json.loads(output.read_text().splitlines()[0])
    assert {"answer", "accuracy", "top@3", "mrr", "confidence", "country"} <= set(row)


def test_rows_by_a_field_are_those_of_files_of_one_value(tmp_path, ptrnet, offers):
    model, path, lines = offers
    command = ("evaluate", "--model", model)
    document = parsed(ptrnet(*command, path, "--by", "country", "--json"))
    assert [row["country"] for row in document["by_country"]] == ["Chad", "Peru, north"]
    for row in document["by_country"]:
        part = tmp_path / "part.jsonl"
        kept = [line for line in lines if line["country"] == row["country"]]
        part.write_text("".join(json.dumps(line) + "\n" for line in kept))
        alone = parsed(ptrnet(*command, part, "--json"))
        assert row["instances"] == alone["instances"] == 20
        for metric, expected in alone["metrics"].items():
            assert row["metrics"][metric] == pytest.approx(expected, rel=1e-4, abs=1e-6), metric
    text = ptrnet(*command, path, "--by", "country")[1].splitlines()
    assert [line.split()[0] for line in text[-3:]] == ["country", "Chad", "Peru,"]


def test_rows_by_a_field_have_intervals_by_group(tmp_path, ptrnet, offers):
    """A group of three offers has instances of several sizes, and in both countries."""
    model, path, lines = offers
    for k, line in enumerate(lines):
        line["home"] = f"home {k // 3}"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = ("evaluate", "--model", model, "--json", "--group", "home")
    document = parsed(ptrnet(*command, path, "--by", "country"))
    assert (document["instances"], document["groups"]) == (40, 14)
    for row in document["by_country"]:
        part = tmp_path / "part.jsonl"
        kept = [line for line in lines if line["country"] == row["country"]]
        part.write_text("".join(json.dumps(line) + "\n" for line in kept))
        for metric, expected in parsed(ptrnet(*command, part))["metrics"].items():
            assert row["metrics"][metric] == pytest.approx(expected, rel=1e-4, abs=1e-6), metric
    text = ptrnet("evaluate", "--model", model, path, "--group", "home")[1]
    assert text.startswith("40 instances in 14 groups, model ")
    code, _, err = ptrnet(*command[:-1], "nobody", path)
    assert code == 2 and 'offers.jsonl:1: group: expected the field "nobody"' in err


def test_importance_has_intervals_by_group(ptrnet, offers):
    model, path, lines = offers
    command = ("explain", model, path, "--repeats", 1, "--json")
    alone, grouped = parsed(ptrnet(*command)), parsed(ptrnet(*command, "--group", "country"))
    examples = [(line["inputs"], line["outputs"]) for line in lines]
    countries = [line["country"] for line in lines]
    expected = load(model).explain(examples, repeats=1, group=countries)
    for field, row in expected["importance"].items():
        assert grouped["importance"][field] == pytest.approx(row), field
        assert alone["importance"][field]["value"] == row["value"]
    assert grouped["value"] == alone["value"] and grouped["low"] != alone["low"]


def test_many_numbers_of_a_field_share_rows(ptrnet, offers):
    model, path, _ = offers
    rows = parsed(ptrnet("evaluate", "--model", model, path, "--by", "income", "--json"))[
        "by_income"
    ]
    assert len(rows) == 12 and sum(row["instances"] for row in rows) == 40
    assert rows[0]["income"] == "0.0 to 1.5" and rows[-1]["income"] == "18.5 to 19.5"


def test_a_number_and_its_text_share_a_row(tmp_path, ptrnet, offers):
    model, path, lines = offers
    for k, line in enumerate(lines):
        line["zone"] = [1, "1", "north", 2][k % 4]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = parsed(ptrnet("evaluate", "--model", model, path, "--by", "zone", "--json"))["by_zone"]
    assert [(row["zone"], row["instances"]) for row in rows] == [
        ("1", 20),
        ("2", 10),
        ("north", 10),
    ]


def test_elements_that_share_a_field_are_split_by_it(tmp_path, ptrnet, offers):
    model, _, lines = offers
    path = tmp_path / "shared.jsonl"
    for k, line in enumerate(lines):
        line["inputs"] = [
            {**element, "season": ["dry", "wet"][k % 2]} for element in line["inputs"]
        ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = parsed(ptrnet("evaluate", "--model", model, path, "--by", "season", "--json"))[
        "by_season"
    ]
    assert [(row["season"], row["instances"]) for row in rows] == [("dry", 20), ("wet", 20)]


def test_by_refuses_a_field_that_differs_between_elements(tmp_path, ptrnet, offers, refused):
    model, path, _ = offers
    output = tmp_path / "scores.jsonl"
    command = ("evaluate", "--model", model, path, "--output", output, "--by")
    refused(ptrnet(*command, "county"), 'offers.jsonl:1: by: expected the field "county"')
    refused(ptrnet(*command, "price"), 'offers.jsonl:1: by: "price" differs between elements')
    assert not output.exists()
    refused(ptrnet("evaluate", "hull", "--random", 5, "--by", "n"), "--by needs a FILE")


def test_a_reliability_diagram_is_drawn(tmp_path, ptrnet, offers, refused):
    pytest.importorskip("matplotlib")
    model, path, _ = offers
    picture = tmp_path / "calibration.svg"
    assert ptrnet("evaluate", "--model", model, path, "--plot", picture)[0] == 0
    assert "probability that the answer is right" in picture.read_text()
    command = ("evaluate", "--model", model, "-", "--plot", picture)
    refused(ptrnet(*command), "--plot reads FILE again: expected a file")


def test_fields_are_explained_in_order_of_their_losses(tmp_path, ptrnet, offers):
    pytest.importorskip("matplotlib")
    model, path, lines = offers
    picture = tmp_path / "fields.svg"
    document = parsed(ptrnet("explain", model, path, "--plot", picture, "--json"))
    expected = load(model).explain([(line["inputs"], line["outputs"]) for line in lines])
    assert document == {"model": str(model), "instances": 40, **expected}
    losses = [row["value"] for row in document["importance"].values()]
    assert losses == sorted(losses, reverse=True) and len(losses) == 2
    assert "colour" in picture.read_text()
    text = ptrnet("explain", model, path)[1].splitlines()
    assert text[0].startswith(f"40 instances, model {model}: accuracy ")
    assert [line.split()[0] for line in text[2:]] == list(document["importance"])


def test_models_that_cannot_be_explained_are_refused(tmp_path, ptrnet, offers, model, refused):
    own, path, _ = offers
    points = tmp_path / "points.txt"
    points.write_text("0 0 1 0 0 1 output 1 2 3 1\n")
    refused(ptrnet("explain", model, points), "your own examples, got one of task hull")
    refused(ptrnet("explain", own, tmp_path / "none.jsonl"), "none.jsonl")
    refused(ptrnet("explain", own, path, "--plot", "a.bmp"), "expected a picture's name")
    unanswered = tmp_path / "new.jsonl"
    unanswered.write_text('{"inputs": [{"price": 1, "colour": "red"}]}\n')
    refused(ptrnet("explain", own, unanswered), "new.jsonl:1: has no answer")
    assert not Path("a.bmp").exists()


def test_long_tables_are_measured_and_explained_as_their_sets(tmp_path, ptrnet, offers):
    model, path, lines = offers
    table = tmp_path / "offers.csv"
    rows = [
        [k, line["country"], *element.values(), int(i == line["outputs"][0])]
        for k, line in enumerate(lines)
        for i, element in enumerate(line["inputs"])
    ]
    with table.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerows([["order", "country", "price", "colour", "bought"], *rows])
    columns = ("--set-id", "order", "--chosen", "bought")
    assert parsed(ptrnet("explain", model, table, *columns, "--json")) == parsed(
        ptrnet("explain", model, path, "--json")
    )
    command = ("evaluate", "--model", model)
    by_country = ("--by", "country", "--json")
    assert parsed(ptrnet(*command, table, *columns, *by_country)) == parsed(
        ptrnet(*command, path, *by_country)
    )
    solver = load(model)
    scores = solver.scores(table, set_id="order")
    expected = np.concatenate(solver.scores([x["inputs"] for x in lines]))
    np.testing.assert_allclose(scores, expected, rtol=1e-4)
    options = {"set_id": "order", "chosen": "bought"}
    assert solver.explain(table, **options) == solver.explain(table, **options, seed=0)


@pytest.mark.parametrize("command", [("evaluate", "--model"), ("explain",)])
@pytest.mark.parametrize("named", [(), ("--set-id", "trip")])
def test_a_long_table_without_its_answers_asks_for_their_columns(
    tmp_path, ptrnet, refused, offers, command, named
):
    table = tmp_path / "trips.csv"
    table.write_text("trip,price,colour,bought\n1,2,red,1\n1,3,blue,0\n2,5,red,1\n")
    command = (*command, offers[0], table)
    refused(
        ptrnet(*command, *named),
        ("trip '1'" if named else "trips.csv") + ": has no answer to measure against; a long table "
        "needs set_id and the column "
        "of its answers (chosen, rank, grade or member), such as --set-id trip --chosen "
        "bought",
    )
    assert ptrnet(*command, "--set-id", "trip", "--chosen", "bought")[0] == 0


def test_a_long_parquet_table_asks_for_set_id(tmp_path, ptrnet, refused, offers):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"trip": [1, 1], "price": [2.0, 3.0], "colour": ["red", "blue"]})
    parquet.write_table(table, tmp_path / "trips.parquet")
    refused(
        ptrnet("evaluate", "--model", offers[0], tmp_path / "trips.parquet"),
        'expected a column "inputs", got trip, price, colour; a long table needs set_id (--set-id)',
    )
