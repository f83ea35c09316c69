"""Wide tables, elements that cannot be chosen, and sets in which nothing is chosen."""

import pytest

import ptrnet
from ptrnet.errors import InputError
from ptrnet.tasks.schema import Layout

pandas = pytest.importorskip("pandas")

TRIPS = {
    "purpose": [1, 2, 2],
    "TRAIN_cost": [3.0, 4.0, 5.0],
    "CAR_cost": [6.0, 7.0, 8.0],
    "TRAIN_headway": [10, 20, 30],
    "choice": [2, 1, 2],
}
WIDE = {"alternatives": "train,car", "chosen": "choice"}


def content(examples):
    return [(e.elements, e.outputs.tolist()) for e in examples]


def test_a_wide_table_is_read_as_the_long_one_that_pandas_makes():
    wide = pandas.DataFrame(TRIPS)
    long = pandas.wide_to_long(
        wide.assign(set=wide.index).rename(columns=lambda c: "_".join(c.split("_")[::-1])),
        ["cost", "headway"],
        i="set",
        j="alternative",
        sep="_",
        suffix=r"\w+",
    ).reset_index()
    long["alternative"] = long["alternative"].str.lower()
    long["chosen"] = (long["choice"] == long["alternative"].map({"train": 1, "car": 2})).astype(int)
    expected = ptrnet.read_table(long.drop(columns="choice"), set_id="set", chosen="chosen")
    found = ptrnet.read_table(wide, **WIDE)
    assert [e.outputs.tolist() for e in found] == [e.outputs.tolist() for e in expected]
    for ours, theirs in zip(found, expected, strict=True):
        frames = (pandas.DataFrame(e.elements) for e in (ours, theirs))
        ours, theirs = (f.set_index("alternative").sort_index(axis=1) for f in frames)
        pandas.testing.assert_frame_equal(ours, theirs, check_dtype=False)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (("cost.train", "cost.car", "headway.train"), {}),
        (("train cost", "CAR cost", "Train Headway"), {}),
        (("cost1", "cost2", "headway1"), {"pattern": "{field}{number}"}),
        (("ctrain", "ccar", "htrain"), {"pattern": "c{alternative},h{alternative}"}),
    ],
)
def test_columns_of_alternatives_are_found_by_their_names(names, options):
    renamed = dict(zip(("TRAIN_cost", "CAR_cost", "TRAIN_headway"), names, strict=True))
    frame = pandas.DataFrame(TRIPS).rename(columns=renamed)
    first = ptrnet.read_table(frame, **WIDE, **options)[0]
    values = [[e["alternative"], *list(e.values())[1:]] for e in first.elements]
    if "{number}" in str(options):  # a number behind one column alone may mean something else
        assert [e["cost"] for e in first.elements] == [3.0, 6.0]
        assert "headway1" in first.elements[0]
    else:
        assert values == [["train", 3.0, 10, 1], ["car", 6.0, None, 1]]


@pytest.mark.parametrize("codes", [["car", "Train", "CAR"], ["2", "1", "2"], [2.0, 1.0, 2.0]])
def test_the_chosen_alternative_is_a_name_or_a_number(codes):
    found = ptrnet.read_table(pandas.DataFrame({**TRIPS, "choice": codes}), **WIDE)
    assert [e.outputs.tolist() for e in found] == [[1], [0], [1]]


def test_answers_of_other_kinds_have_a_column_for_each_alternative():
    frame = pandas.DataFrame({**TRIPS, "train_rank": [2, 1, 1], "car_rank": [1, 2, 2]})
    found = ptrnet.read_table(frame, alternatives=["train", "car"], rank="{alternative}_rank")
    assert [e.outputs.tolist() for e in found] == [[1, 0], [0, 1], [0, 1]]
    flags = frame.assign(train_took=[0, 1, 0], car_took=[1, 0, 1])
    found = ptrnet.read_table(flags, alternatives="train,car", chosen="{alternative}_took")
    assert [e.outputs.tolist() for e in found] == [[1], [0], [1]]
    assert set(found[0].elements[0]) >= {"cost", "rank", "purpose"}


def test_elements_that_cannot_be_chosen_are_those_of_a_table_without_their_rows(tmp_path):
    wide = pandas.DataFrame({**TRIPS, "TRAIN_AV": [0, 1, 1]})
    for table in (wide, tmp_path / "wide.csv"):
        wide.to_csv(tmp_path / "wide.csv", index=False)
        found = ptrnet.read_table(table, **WIDE, available="{alternative}_AV")
        assert [[e["alternative"] for e in row.elements] for row in found] == [
            ["car"],
            ["train", "car"],
            ["train", "car"],
        ]
        assert [e.outputs.tolist() for e in found] == [[0], [0], [1]]
    long = pandas.DataFrame(
        {"s": [1, 1, 1, 2, 2], "x": [1, 2, 3, 4, 5], "av": [1, 0, 1, 1, 1], "c": [0, 0, 1, 1, 0]}
    )
    columns = {"set_id": "s", "chosen": "c"}
    expected = ptrnet.read_table(long[long["av"] == 1].drop(columns="av"), **columns)
    assert content(ptrnet.read_table(long, **columns, available="av")) == content(expected)


def test_sets_without_a_chosen_element_have_the_answer_none():
    wide = pandas.DataFrame({**TRIPS, "choice": ["", "train", None]})
    found = ptrnet.read_table(wide, **WIDE, outside="none")
    assert [e.outputs.tolist() for e in found] == [[2], [0], [2]]
    last = {"alternative": "none", "cost": None, "headway": None, "purpose": 1}
    assert found[0].elements[2] == last
    long = pandas.DataFrame({"s": [1, 1, 2], "x": [1, 2, 3], "i": [8, 8, 9], "c": [0, 0, 1]})
    found = ptrnet.read_table(long, set_id="s", chosen="c", outside="none")
    assert content(found) == [
        (
            [
                {"x": 1, "i": 8, "none": 0},
                {"x": 2, "i": 8, "none": 0},
                {"x": None, "i": 8, "none": 1},
            ],
            [2],
        ),
        ([{"x": 3, "i": 9, "none": 0}, {"x": None, "i": 9, "none": 1}], [0]),
    ]


def test_a_field_of_the_whole_set_becomes_one_of_each_alternative():
    found = ptrnet.read_table(pandas.DataFrame(TRIPS), **WIDE, interact=["purpose"])
    assert [e["purpose of car"] for e in found[1].elements] == [0, 2]
    assert [e["purpose"] for e in found[1].elements] == [2, 2]


@pytest.mark.parametrize(
    ("table", "options", "complaint"),
    [
        ({}, {"alternatives": "train,car,bus"}, "no column of bus, .*found 'train: cost, head"),
        ({}, {"alternatives": "a,b"}, "found no column of a, b, such as a_cost or cost.a, got"),
        ({}, {"alternatives": "train"}, "alternatives: expected two names or more"),
        ({}, {"alternatives": "car,Car"}, "alternatives: expected different names, got car, car"),
        ({}, {"pattern": "{alternative}x"}, "pattern: no column is like {alternative}x, got"),
        ({}, {"pattern": "cost"}, r"pattern: expected {alternative} in it, got 'cost'"),
        ({"car_train": 1}, {"pattern": "{alternative}_{field},{field}_{alternative}"}, "may be"),
        ({"cost_car": 1, "cost_train": 1}, {}, '"cost_train" may both be "cost" of train'),
        ({"cost": 1}, {}, 'column "cost" would be a field of the whole set.*rename the column'),
        ({"choice": [1, 3, 1]}, {}, 'row 1: "choice": expected one of .*, or 1 to 2, got 3$'),
        ({"choice": [1, 0, 1]}, {}, "got 0; if it means none of them, .* such as --outside none"),
        ({}, {"available": "{alternative}_AV"}, "available: found no column like {alternative}_AV"),
        (
            {"car_AV": [1, 1, 0]},
            {"available": "{alternative}_AV"},
            'row 2: "choice": car was chosen, but "car_AV" says that it cannot be chosen',
        ),
        (
            {"car_AV": 0, "train_AV": [1, 0, 1]},
            {"available": "{alternative}_AV"},
            "row 1: no alternative is available",
        ),
        ({"car_AV": 2}, {"available": "{alternative}_AV"}, 'row 0: "car_AV": expected 1 or 0'),
        ({"age": "old"}, {"interact": "age"}, 'interact: "age": expected numbers, got texts'),
        ({}, {"set_id": "purpose"}, '"purpose": expected another id in each row'),
        ({}, {"chosen": "", "rank": "choice"}, "rank: expected a pattern such as {alternative}_"),
    ],
)
def test_refuses_wide_tables_and_names_what_is_wrong(table, options, complaint):
    frame = pandas.DataFrame(TRIPS).assign(**table)
    with pytest.raises(InputError, match=complaint):
        ptrnet.read_table(frame, **{**WIDE, **options})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"available": "av"}, r'row 1: "c": the row was chosen, but "av" says'),
        ({"available": "no"}, r'row 2: "no": no element of s 2 can be chosen'),
        ({"outside": "av"}, 'has a column "av" already; give the outside option another name'),
        ({"chosen": "", "member": "c", "outside": "none"}, "outside: is for choices"),
        ({"set_id": "", "chosen": "", "outside": "none"}, "outside: needs set_id"),
        ({"pattern": "x"}, "pattern: needs alternatives"),
    ],
)
def test_refuses_long_tables_and_names_the_row(options, complaint):
    long = {"s": [1, 1, 2], "av": [1, 0, 1], "no": [1, 1, 0], "c": [0, 1, 1]}
    with pytest.raises(InputError, match=complaint):
        ptrnet.read_table(pandas.DataFrame(long), **{"set_id": "s", "chosen": "c", **options})


def test_columns_that_look_like_availability_are_named():
    frame = pandas.DataFrame(TRIPS).assign(train_AV=1, car_AV=1)
    with pytest.warns(ptrnet.errors.AmbiguousInputWarning, match=r"such as \{alternative\}_AV"):
        ptrnet.read_table(frame, **WIDE)


def test_a_layout_is_the_text_that_it_writes():
    layout = Layout(("a", "b"), (("cost", ("a_cost", "")),), outside="ü", answers=("c",))
    assert Layout.parse(str(layout)) == layout and Layout.parse("") == Layout()
    with pytest.raises(InputError, match="layout: expected the layout of a table"):
        Layout.parse('{"columns": 1}')
