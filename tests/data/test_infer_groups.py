"""A field that looks like an id of groups is found, and facts about whole sets are not."""

import numpy as np
import pytest

import ptrnet
from ptrnet.cli import run
from ptrnet.data.groups import common_id, find_id
from ptrnet.errors import AmbiguousInputWarning

RNG = np.random.default_rng(0)
PERSONS = [p for p in range(60) for _ in range(20)]  # 20 sets of each of 60 persons
SHUFFLED = RNG.permutation(PERSONS).tolist()


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("id", SHUFFLED),
        ("person", [f"p{k}" for k in SHUFFLED]),
        ("Household_ID", [k + 0.0 for k in SHUFFLED]),
        ("userId", [f"{k:07}" for k in SHUFFLED]),
        ("customers", [0, 1, 2, 2]),
        ("hhid", SHUFFLED),
        ("wer", [f"R_{k:x}" for k in PERSONS]),  # only the place tells
        ("wer", PERSONS),
    ],
)
def test_ids_are_found_by_their_names_or_because_their_sets_are_neighbours(name, ids):
    others = {"income": RNG.integers(12, size=len(ids)).tolist()}
    assert find_id({**others, name: ids}) == name


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("person", list(range(100))),  # no set shares a person
        ("person", ["p"] * 100),
        ("student", [k % 2 for k in SHUFFLED]),
        ("user", [k % 2 for k in SHUFFLED]),  # a flag
        ("personal_income", SHUFFLED),
        ("age", (18 + RNG.binomial(80, 0.3, 3000)).tolist()),
        ("income", sorted(RNG.integers(12, size=1000).tolist())),
        ("city", [f"city {k}" for k in RNG.zipf(1.5, 1000).clip(max=300)]),
        ("week", PERSONS),
        ("date_of_trip", [f"day {k}" for k in PERSONS]),
        ("price", RNG.permutation(np.repeat(np.arange(300), 4)).tolist()),
    ],
)
def test_facts_about_whole_sets_are_not_ids(name, ids):
    assert find_id({name: ids}) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7, 7], 7),
        (["a", "a"], "a"),
        (["007", "007"], "007"),
        ([3.0, 3.0], 3.0),
        (np.array([4, 4]), 4),
        ([7, 8], None),
        (["a", None], None),
        ([None, None], None),
        (["", ""], None),
        ([np.nan, np.nan], None),
        ([True, True], None),
        ([0.5, 0.5], None),
        (["0.5", "0.5"], None),
        (["2024-05-01", "2024-05-01"], None),
        ([[1], [1]], None),
    ],
)
def test_an_id_is_one_text_or_whole_number_in_all_elements(values, expected):
    assert common_id(values) == expected


def test_missing_values_of_pandas_are_not_ids():
    pandas = pytest.importorskip("pandas")
    assert common_id([pandas.NA, pandas.NA]) is None
    assert common_id([7, pandas.NA]) is None


def rows(**columns):
    """Return choices between two rows, 4 sets of each of 6 persons."""
    table = []
    for trip in range(24):
        shared = {name: value(trip) for name, value in columns.items()}
        for k in range(2):
            price = (trip * 7 + k * 3) % 11
            table.append({"trip": trip, **shared, "price": price, "bought": k})
    return table


TINY = {"steps": 2, "hidden_size": 8, "batch_size": 4, "ensemble": 2, "ordered": True}


@pytest.mark.parametrize(
    ("options", "is_read"), [({}, True), ({"fields": ["price"]}, False)], ids=["read", "left out"]
)
def test_one_line_says_what_a_split_by_set_measures(options, is_read):
    table = rows(person=lambda trip: f"p{trip // 4}", household=lambda trip: trip // 8)
    columns = {"set_id": "trip", "chosen": "bought"}
    with pytest.warns(AmbiguousInputWarning, match="looks like an id") as caught:
        ptrnet.fit(table, **columns, **options, **TINY)
    (line,) = [str(w.message) for w in caught if "looks like an id" in str(w.message)]
    assert line.startswith('table: "person" looks like an id: 24 sets share 6 values.')
    assert "--group person" in line and "\n" not in line
    assert line.endswith("the network also reads this field") == is_read
    ptrnet.fit(table, **columns, group="person", fields=["price"], **TINY)


def test_measures_of_sets_of_the_same_persons_are_warned_of_once(tmp_path, capsys):
    """Each set counts as one observation, so the intervals are too narrow."""
    columns, model = {"set_id": "trip", "chosen": "bought"}, str(tmp_path / "m")
    table = rows(person=lambda trip: f"p{trip // 4}")
    solver = ptrnet.fit(table, **columns, **TINY, group="person", output=model)
    cells = [[*table[0]], *(map(str, row.values()) for row in table)]
    (tmp_path / "t.csv").write_text("".join(",".join(row) + "\n" for row in cells))
    lines = str(tmp_path / "t.jsonl")
    assert run(["convert", str(tmp_path / "t.csv"), lines, "--set-id=trip", "--chosen=bought"]) == 0
    named = ["--set-id=trip", "--chosen=bought"]
    plot = ["--plot", str(tmp_path / "p.png")]
    expected = 'ptrnet: "person" looks like an id: 24 sets share 6 values. The intervals take each'
    for command, group in (
        (["evaluate", "--model", model, str(tmp_path / "t.csv"), *named, *plot], "--group=person"),
        (["evaluate", "--model", model, lines, "--jobs=2"], "--group=person"),
        (["explain", model, str(tmp_path / "t.csv"), *named], "--group=person"),
    ):
        capsys.readouterr()
        assert run(command) == 0
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(expected) and '--group person (group="person")' in line
        assert run([*command, group]) == 0 and not capsys.readouterr().err
    with pytest.warns(AmbiguousInputWarning, match="too narrow"):
        solver.explain(table, **columns)
    solver.evaluate(table, **columns, group="person")


def test_a_context_without_ids_gives_no_warning():
    table = rows(income=lambda trip: trip % 5, age=lambda trip: 20 + trip * trip % 7)
    ptrnet.fit(table, set_id="trip", chosen="bought", **TINY)
