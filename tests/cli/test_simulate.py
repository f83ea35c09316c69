"""`ptrnet simulate`: the tables of `Solver.simulate`, printed, written and drawn."""

import csv
import json

import numpy as np
import pytest

import ptrnet as library
from tests.solver.test_simulate import TASK, draw, logit


@pytest.fixture
def trips(tmp_path):
    """The folder of a logit, and a table of trips without answers."""
    library.Solver(logit(), TASK).save_pretrained(tmp_path / "logit")
    table = draw(30)
    table.to_csv(tmp_path / "trips.csv", index=False)
    return tmp_path / "logit", tmp_path / "trips.csv", table


COLUMNS = ("--set-id", "trip", "--group", "person", "--by", "mode", "--draws", "20")


def test_the_command_gives_the_tables_of_the_library(ptrnet, trips, tmp_path):
    model, file, table = trips
    command = ("simulate", model, file, *COLUMNS, "--weight", "persons", "--seed", "3")
    changes = ("--change", "cost * 2", "--change", "time + 1", "--where", "mode == bus")
    others = ("--elasticity", "cost", "--wtp", "time/cost", "--surplus", "cost")
    outputs = ("--output", tmp_path / "all.json", "--plot", tmp_path / "shares.png")
    code, out, err = ptrnet(*command, *changes, *others, "--step", "0.02", *outputs, "--json")
    assert code == 0, err
    document = json.loads(out)
    expected = library.load(model).simulate(
        table,
        set_id="trip",
        group="person",
        weight="persons",
        by="mode",
        change=["cost * 2", "time + 1"],
        where="mode == bus",
        elasticity="cost",
        wtp="time/cost",
        surplus="cost",
        step=0.02,
        draws=20,
        seed=3,
    )
    assert document.pop("model") == str(model)
    assert document == json.loads(json.dumps(expected.to_dict()))
    assert json.loads((tmp_path / "all.json").read_text()) == {"model": str(model), **document}
    assert (tmp_path / "shares.png").stat().st_size > 5000


def test_csv_has_all_tables(ptrnet, trips, tmp_path):
    model, file, _ = trips
    words = ("--drop", "mode == bus", "--segment", "region", "--wtp", "time/cost")
    target, picture = tmp_path / "all.csv", tmp_path / "shares.svg"
    code, out, _ = ptrnet(
        "simulate", model, file, *COLUMNS, *words, "--output", target, "--plot", picture
    )
    rows = list(csv.DictReader(target.read_text().splitlines()))
    assert code == 0 and {row["table"] for row in rows} == {"shares", "wtp"}
    assert {row["region"] for row in rows} == {"all", "north", "south"}
    dropped = [row for row in rows if row["table"] == "shares" and row["mode"] == "bus"]
    assert [float(row["after"]) for row in dropped] == [0, 0, 0]
    assert out.startswith("30 sets in 10 groups") and "diversion" in out
    assert ">north<" not in picture.read_text()  # the shares of all sets


def test_lines_of_json_have_the_fields_of_their_line(ptrnet, trips, tmp_path):
    """`region` is a key of each line, not a field of its elements."""
    model, _, table = trips
    file = tmp_path / "trips.jsonl"
    lines = [
        {
            "inputs": trip[["mode", "time", "cost"]].to_dict("records"),
            "region": trip["region"].iloc[0],
        }
        for _, trip in table.groupby("trip")
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, err = ptrnet(
        "simulate", model, file, "--by", "mode", "--segment", "region", "--draws", "5", "--json"
    )
    assert code == 0, err
    rows = json.loads(out)["shares"]
    for region in ("all", "north", "south"):
        assert np.isclose(sum(r["before"] for r in rows if r["region"] == region), 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--change", "price * 2"), "unknown column in change 'price'"),
        (("--where", "mode == bus"), "where: needs a change"),
        (("--output", "shares.xlsx"), "shares.xlsx: expected a name that ends in .csv or .json"),
        (("--plot", "shares.pdf"), "expected a picture's name"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(ptrnet, trips, tmp_path, words, message):
    model, file, _ = trips
    before = sorted(tmp_path.iterdir())
    code, out, err = ptrnet("simulate", model, file, *COLUMNS, *words)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
