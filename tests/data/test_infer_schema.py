"""Fields of a user's elements are inferred to be numbers or categories, or are refused."""

from datetime import datetime

import numpy as np
import pytest

from ptrnet import InputError
from ptrnet.data import formats
from ptrnet.data.columns import Columns
from ptrnet.data.infer_schema import (
    COUNTED,
    MAX_CATEGORIES,
    CountedNumbers,
    Reading,
    context_of,
    infer_schema,
)
from ptrnet.data.tables import Table, infer_sets
from ptrnet.errors import AmbiguousInputWarning
from ptrnet.tasks.schema import Schema

OFFERS = [
    {"price": 3, "colour": "red", "title": "a"},
    {"price": 1.5, "colour": "blue", "title": "b"},
    {"price": np.float32(2), "colour": "red", "title": "c"},
]


def test_texts_are_categories_and_numbers_are_features():
    schema = infer_schema([(OFFERS[:1], "x"), (OFFERS[1:], "y")], Reading(["colour", "price"]))
    assert schema == Schema(("colour", "price"), (("blue", "red"), ()))
    assert schema.is_category.tolist() == [True, True, False]
    assert schema.encode(OFFERS, "x").tolist() == [[0, 1, 3], [1, 0, 1.5], [0, 1, 2]]
    assert infer_schema([(OFFERS, "x")]).fields == ("price", "colour", "title")


@pytest.mark.parametrize("element", [{0: 1.0}, {"": 1}, {"\ud800": 1}, {"a": "\udfff"}])
def test_refuses_names_and_texts_that_files_cannot_hold(element):
    with pytest.raises(InputError, match=r"x: element 1.*expected (a text|texts)"):
        infer_schema([([element], "x")])


def test_refuses_mixed_fields_and_fields_with_too_many_texts():
    mixed = [({**OFFERS[0], "colour": 7}, 'y: element 1: "colour": expected a text as before')]
    mixed += [({**OFFERS[0], "price": "7"}, 'y: element 1: "price": expected a number as before')]
    for element, complaint in mixed:
        with pytest.raises(InputError, match=complaint):
            infer_schema([(OFFERS, "x"), ([element], "y")])
    names = [{"title": str(k)} for k in range(MAX_CATEGORIES + 1)]
    assert len(infer_schema([(names[:-1], "x")]).categories[0]) == MAX_CATEGORIES
    with pytest.raises(InputError, match="expected at most 1000 different texts, got more"):
        infer_schema([(names, "x")])


def test_missing_refuse_names_the_first_missing_value():
    for field in ("price", "colour"):
        offers = [OFFERS[0], {**OFFERS[1], field: None}]
        with pytest.raises(
            InputError, match=f'^x: element 2: "{field}": expected a value, got none'
        ):
            infer_schema([(offers, "x")], Reading(missing="refuse"))
        assert infer_schema([(OFFERS, "x")], Reading(missing="refuse")) == infer_schema(
            [(OFFERS, "x")]
        )


@pytest.mark.parametrize(
    ("numbers", "common"),
    [
        ([*range(40), *[7] * 19], (7.0,)),  # 7 twenty times
        ([*range(40), *[7] * 18], ()),
        ([*range(200), *[-1] * 20], (-1.0,)),
        ([*range(401), *[-1] * 20], ()),  # less than one number in twenty
        ([*range(40), *[7] * 40, *[-1] * 21], (-1.0, 7.0)),
        ([*range(40), *[7] * 40, *[8] * 19, *[-1] * 11], (7.0,)),
        ([*range(18), *[-1] * 20], ()),  # only 19 different numbers
        ([*range(19), *[-1] * 20, *[99] * 30, None], (-1.0, 99.0)),
        ([*range(30_000), *[-1] * 3_000], (-1.0,)),  # counted in a sample
        ([*[-1] * 1_000, *range(30_000)], ()),
    ],
)
def test_numbers_that_many_elements_have_are_common(numbers, common):
    assert infer_schema([([{"x": x}], "s") for x in numbers]).common == (common,)


@pytest.mark.parametrize("at_once", [100, 30_000, 1_000_000])
def test_the_share_of_a_number_in_a_sample_is_that_in_all_numbers(at_once):
    """Also if the share of the sample falls while numbers are added."""
    counted, rng = CountedNumbers(), np.random.default_rng(1)
    numbers = np.where(rng.random(300_000) < 0.1, -1, rng.random(300_000))
    for first in range(0, len(numbers), at_once):
        part = numbers[first : first + at_once]
        counted.add(part, np.arange(first, first + len(part)))
    assert counted.common() == (-1.0,)
    assert COUNTED / 2 * 0.95 < len(counted._numbers) <= COUNTED * 1.05
    assert (counted._numbers == -1).mean() == pytest.approx(0.1, abs=0.01)
    assert np.array_equal(numbers[counted._sets], counted._numbers)
    assert counted._sets.mean() == pytest.approx(150_000, rel=0.03)  # of all parts alike


def test_a_number_of_a_few_large_sets_is_not_common():
    sets = [[{"x": k + 0.5, "y": k}] * (200 if k < 19 else 1) for k in range(60)]
    sets = [[{**e, "x": 999 if k < 19 else e["x"]} for e in s] for k, s in enumerate(sets)]
    assert infer_schema([(s, "s") for s in sets]).common == ((), ())
    rows = [{"id": k, "right": not j, **e} for k, s in enumerate(sets) for j, e in enumerate(s)]
    columns = Columns(set_id="id", chosen="right")
    assert infer_sets(Table.of(rows), columns)[0].common == ((), ())
    rows += [{"id": 60, "right": True, "x": 999, "y": 60}]  # the 20th set
    columns = Columns(set_id="id", chosen="right")
    assert infer_sets(Table.of(rows), columns)[0].common == ((999.0,), ())


def test_missing_numbers_are_filled_with_the_mean_of_all_instances():
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e308, -1e300):
        numbers = scale * rng.random(60)
        instances = [
            ([{"x": x} for x in part] + [{"x": None}], "s")
            for part in np.split(numbers, [7, 8, 40])
        ]
        ((_, mean),) = infer_schema(instances).fills
        assert mean == pytest.approx(np.mean(numbers / 64) * 64, rel=1e-12)


def test_context_is_constant_within_sets_but_differs_between_them():
    rng = np.random.default_rng(0)
    rows = [(k, float(k % 3), 7.0, rng.random(), "ab"[k % 2]) for k in range(6) for _ in range(4)]
    names = ("set", "income", "same", "price", "region")
    table = Table.of([dict(zip(names, row, strict=True)) for row in rows])
    schema, data = infer_sets(table, Columns(set_id="set"))
    assert context_of(data, schema) == ("income", "region")
    assert context_of(data, schema, ["income"]) == ("income",)
    with pytest.raises(InputError, match=r'^set 0: "price": expected one value in all elements'):
        context_of(data, schema, ["price"])
    with pytest.raises(
        InputError, match=r'^context: expected fields that the model reads, got "x"'
    ):
        context_of(data, schema, ["x"])


@pytest.mark.parametrize(
    "texts",
    [
        ("3.5", "2", "1e3"),
        ("52,5", "13,4"),
        ("€ 1,200.50", "€ 3.50"),
        ("", "€ 3.50", "€ 4.20"),
        ("3,50 €", "4 €", "n/a"),
        ("$3", "$4"),
        ("3 €", "4 €"),
        ("10%", "15%", ""),
        ("EUR 3.50", "EUR 1,200.00"),
        ("12EUR", "7EUR"),
        ("USD 12", "-USD 7", ""),
    ],
)
def test_warns_of_quoted_numbers(texts):
    offers = [{"price": text} for text in texts]
    with pytest.warns(
        AmbiguousInputWarning, match=r'"price": texts such as .* are read as categories'
    ):
        assert infer_schema([(offers, "x")]).categories == (tuple(sorted(texts)),)


def test_warns_of_columns_that_are_not_read_because_they_are_like_names():
    """Prices with the sign of a currency come first, because a model should read them."""
    rows = [
        {"order": k // 2, "title": f"offer {k}", "price": f"€ {k}.50", "rating": k % 5}
        for k in range(MAX_CATEGORIES + 2)
    ]
    table, columns = Table.of(rows), Columns(set_id="order")
    with pytest.warns(AmbiguousInputWarning) as caught:
        schema, _ = infer_sets(table, columns)
    assert schema.fields == ("rating",)
    assert [str(warning.message) for warning in caught] == [
        '"price", "title": more than 1000 different texts, such as \'€ 0.50\', so the model does '
        "not read these fields; write numbers as 1234.5, without quotes or units"
    ]
    infer_sets(table, columns, Reading(("rating",)))  # without a warning


def test_the_index_of_a_frame_in_parquet_is_not_a_field(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"order": np.arange(12) // 3, "price": np.arange(12.0) % 5})
    frame["bought"] = frame.index % 3 == 0
    frame.sample(frac=1, random_state=1).to_parquet(tmp_path / "offers.parquet")
    columns = Columns(set_id="order", chosen="bought")
    table, columns = formats.open_table(str(tmp_path / "offers.parquet"), columns)
    assert "__index_level_0__" in table.columns
    assert infer_sets(table, columns)[0].fields == ("price",)


def test_dates_are_refused_with_advice():
    with pytest.raises(InputError, match=r'"day": expected a number or a text, got the date 2025'):
        infer_sets(Table.of([{"day": datetime(2025, 1, 31), "set": 2}]), Columns(set_id="set"))


def test_warns_of_dates_that_are_texts():
    for texts in (["2025-01-31", "2025-02-01"], ["2025-01-31 12:30:00", ""]):
        offers = [{"day": text, "price": 2} for text in texts]
        with pytest.warns(AmbiguousInputWarning, match=r'^"day": each date is read as a category'):
            assert infer_schema([(offers, "x")]).categories == (tuple(sorted(texts)), ())


@pytest.mark.parametrize(
    "texts",
    [
        ("007", "12"),
        ("3.5", "XL"),
        ("red", "v2.0"),
        ("<5", ">10"),
        ("030 12", "030 13"),
        ("3 kg", ""),
        ("2025-01", "20-2"),
    ],
)
def test_codes_are_categories_without_a_warning(texts):
    infer_schema([([{"code": text} for text in texts], "x")])
