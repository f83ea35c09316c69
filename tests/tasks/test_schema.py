"""The encoding of elements with fields, and elements that are refused."""

from contextlib import nullcontext
from decimal import Decimal

import numpy as np
import pytest

from ptrnet import InputError
from ptrnet.data.infer_schema import Reading, infer_schema
from ptrnet.data.infer_task import task_of
from ptrnet.settings import to_mapping
from ptrnet.tasks.custom import Custom
from ptrnet.tasks.schema import Schema

OFFERS = [
    {"price": 3, "colour": "red", "title": "a"},
    {"price": 1.5, "colour": "blue", "title": "b"},
    {"price": np.float32(2), "colour": "red", "title": "c"},
]


def task_of_offers(**settings):
    """Return a task whose training had missing sizes and weights, but no other missing values."""
    fields = ("price", "colour", "size", "weight")
    categories = ((), ("blue", "red"), ("", "L"), ())
    scaling = {"center": (2.5, 0.0, 0.0, 0.0, 0.0, 7.0, 0.0), "spread": (1.0,) * 7}
    return Custom(fields=fields, categories=categories, filled=("weight",), **scaling, **settings)


OFFER = {"price": 1, "colour": "red", "size": "L", "weight": 3}


def test_values_that_training_did_not_see_are_counted_by_what_they_mean():
    """True and 1 are equal, but training saw the text "1" and not the text "True"."""
    schema = Custom(
        fields=("code", "price"),
        categories=(("1", "2"), ()),
        center=(0.0,) * 3,
        spread=(1.0,) * 3,
    ).facts.schema
    codes = [1, True, "pink", 1.0, "pink", "2", None, 7]
    prices = [1, None, 2.0, "n/a", float("nan"), 3, 4, 5]
    elements = [{"code": c, "price": p} for c, p in zip(codes, prices, strict=True)]
    expected = {"True": 1, "pink": 2, "": 1, "7": 1}
    found = schema.unseen(elements)
    assert found == {**{("code", k): n for k, n in expected.items()}, ("price", ""): 3}
    texts = [{"code": text, "price": 1.5} for text in ("pink", "1", "pink", "red")]
    assert schema.unseen(texts) == {("code", "pink"): 2, ("code", "red"): 1}


@pytest.mark.parametrize(
    ("changed", "features", "unseen"),
    [
        ({}, [1, 0, 1, 0, 1, 3, 0], []),
        ({"colour": "pink"}, [1, 0, 0, 0, 1, 3, 0], [("colour", "pink")]),
        ({"colour": ""}, [1, 0, 0, 0, 1, 3, 0], [("colour", "")]),
        ({"colour": None}, [1, 0, 0, 0, 1, 3, 0], [("colour", "")]),
        ({"size": "XL"}, [1, 0, 1, 1, 0, 3, 0], [("size", "XL")]),
        ({"size": 12}, [1, 0, 1, 1, 0, 3, 0], [("size", "12")]),
        ({"size": ""}, [1, 0, 1, 1, 0, 3, 0], []),
        ({"price": None}, [2.5, 0, 1, 0, 1, 3, 0], [("price", "")]),
        ({"price": "n/a"}, [2.5, 0, 1, 0, 1, 3, 0], [("price", "")]),
        ({"price": 2.5}, [2.5, 0, 1, 0, 1, 3, 0], []),
        ({"weight": None}, [1, 0, 1, 0, 1, 7, 1], []),
        (
            {"price": float("nan"), "colour": "x", "size": "y", "weight": None},
            [2.5, 0, 0, 1, 0, 7, 1],
            [("price", ""), ("colour", "x"), ("size", "y")],
        ),
    ],
)
def test_values_that_training_did_not_see_are_treated_as_missing(changed, features, unseen):
    schema, elements = task_of_offers().facts.schema, [OFFER, {**OFFER, **changed}]
    encoded = schema.encode(elements, "x")
    assert encoded.tolist() == [[1, 0, 1, 0, 1, 3, 0], features]
    assert schema.unseen(elements) == dict.fromkeys(unseen, 1)
    complaint = r'^x: element 2: "(colour|price|size)": expected (one of|a number)'
    strict = task_of_offers(unknown="refuse").facts.schema
    with pytest.raises(InputError, match=complaint) if unseen else nullcontext():
        assert strict.encode(elements, "x").tolist() == encoded.tolist()
    without_gaps = task_of_offers(missing="refuse").facts.schema  # other texts are fine
    is_gap = ("colour", "") in unseen or ("price", "") in unseen
    with pytest.raises(InputError, match=complaint) if is_gap else nullcontext():
        assert without_gaps.encode(elements, "x").tolist() == encoded.tolist()


@pytest.mark.parametrize(
    ("element", "complaint"),
    [
        ({"price": 1}, "expected the field \"colour\", got 'price'"),
        ({"price": "1", "colour": "red"}, "\"price\": expected a number, got '1'"),
        ({"price": 1, "colour": 2.5}, "got '2.5', which no training example had"),
        ({"price": 1, "colour": True}, '"colour": expected a text, got True'),
        ({"price": 1, "colour": 2}, "expected one of 'blue', 'red', got '2'"),
        ({"price": None, "colour": "red"}, '"price": expected a number, got None; no training'),
        ({"price": float("inf"), "colour": "red"}, '"price": expected a finite number, got inf'),
        ({"price": 2**53 + 1, "colour": "red"}, "which it rounds to 9007199254740992"),
        ({"price": 10**400, "colour": "red"}, "expected a finite number, got 1000"),
        ({"price": [1], "colour": "red"}, '"price": expected a number or a text'),
        ({"price": 1j, "colour": "red"}, '"price": expected a number or a text'),
        ([1, 2], "expected a dictionary, got"),
    ],
)
def test_invalid_elements_are_refused(element, complaint):
    schema = infer_schema([(OFFERS, "x")], Reading(["price", "colour"]))
    with pytest.raises(InputError) as error:
        schema.encode([OFFERS[0], element], "x")
    assert str(error.value).startswith("x: element 2: ") and complaint in str(error.value)


def test_numbers_of_other_libraries_are_accepted():
    schema = infer_schema([(OFFERS, "x")], Reading(["price"]))
    elements = [{"price": x} for x in (Decimal("1.5"), np.int64(2), np.bool_(True), True)]
    assert schema.encode(elements, "x").ravel().tolist() == [1.5, 2, 1, 1]


def test_numbers_can_be_categories():
    sizes = [{"size": size} for size in ("10", "12", "XL")]
    schema = infer_schema([(sizes, "x")])
    features = schema.encode([{"size": 12}, {"size": np.int64(10)}], "y")
    assert features.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_missing_number_becomes_the_mean_and_an_indicator():
    offers = [{"price": p, "colour": c} for p, c in ((1, "red"), (None, None), (3.5, "red"))]
    schema = infer_schema([(offers, "x")])
    assert schema.fills == (("price", 2.25),) and schema.categories == ((), ("", "red"))
    assert schema.encode(offers, "x").tolist() == [[1, 0, 0, 1], [2.25, 1, 1, 0], [3.5, 0, 0, 1]]
    assert schema.feature_names == ["price", "price is missing", "colour = ", "colour = red"]
    assert schema.is_category.tolist() == [False, True, True, True]
    assert schema.is_filled.tolist() == [True, False, False, False]
    for missing in ("", "n/a", float("nan")):
        assert schema.encode([{"price": missing, "colour": "red"}], "y").tolist() == [
            [2.25, 1, 0, 1]
        ]


def test_common_numbers_get_a_feature_each():
    schema = Schema(("w", "c"), ((), ("a", "b")), fills=(("w", 2.0),), common=((53.0, 69.0), ()))
    elements = [{"w": w, "c": "b"} for w in (69, 68.999, None, 53.0)]
    assert schema.feature_names == ["w", "w is missing", "w = 53", "w = 69", "c = a", "c = b"]
    assert (
        schema.slices == [slice(0, 4), slice(4, 6)]
        and schema.is_category.tolist() == [False] + [True] * 5
    )
    assert schema.encode(elements, "x").tolist() == [
        [69, 0, 0, 1, 0, 1],
        [68.999, 0, 0, 0, 0, 1],
        [2, 1, 0, 0, 0, 1],
        [53, 0, 1, 0, 0, 1],
    ]


@pytest.mark.parametrize(
    "known, written", [(53.1, np.float32(53.1)), (float(np.float32(53.1)), 53.1)]
)
def test_a_common_number_may_come_from_a_column_of_float32(known, written):
    schema = Schema(("w",), ((),), common=((known,),))
    assert schema.encode([{"w": written}, {"w": 53.2}], "x")[:, 1].tolist() == [1, 0]


def test_names_of_features_tell_large_numbers_apart():
    schema = Schema(("day",), ((),), common=((20240101.0, 20240102.0),))
    assert schema.feature_names == ["day", "day = 20240101", "day = 20240102"]
    assert schema.describe() == "day (a number, often 20240101, 20240102)"


def test_loaded_task_encodes_numbers_like_its_training():
    prices = [1, None, 3.5, *range(30), *[7.1] * 30]
    offers = [([{"w": 1, "price": p}], "x") for p in prices]
    task = task_of(infer_schema(offers))
    assert task.common == ((), (7.1,)) and task_of(infer_schema(offers[:5])).common == ()
    assert task.facts.schema == infer_schema(offers)
    assert Custom(**to_mapping(task)).facts.schema == task.facts.schema


def test_contradictory_settings_of_a_task_are_refused():
    features = {"center": (0.0, 0.0), "spread": (1.0, 1.0)}
    assert Custom(fields=("a",), categories=(("x", "y"),), **features).facts.schema is not None
    for wrong in ({"fields": ("a",)}, {"fields": ("a",), "categories": (("x",),)}):
        with pytest.raises(InputError, match="categories: expected a list of texts for each field"):
            Custom(**wrong, **features)
    with pytest.raises(InputError, match="common: expected a list of numbers for each field"):
        Custom(fields=("a",), categories=((),), common=((1.0,), ()), **features)


def test_all_numbers_of_an_element_are_read_at_once_as_field_by_field(monkeypatch):
    """Usual numbers need no call for their field, because an instance may have 300 fields."""
    names = [f"field {k}" for k in range(8)]
    schema = Schema(
        (*names, "colour", "often"),
        (*((),) * 8, ("blue", "red"), ()),
        fills=(("field 1", 2.5), ("field 2", -1.0)),
        common=(*((),) * 9, (1.0,)),
        means=(0.5,) * 10,
    )
    usual = {**dict.fromkeys(names, 3), "field 2": -0.5, "colour": "red", "often": 1}
    gaps = {"field 0": None, "field 1": "n/a", "field 3": True, "field 4": np.float32(0.5)}
    columns, encoded = [], Schema.encode_field
    monkeypatch.setattr(
        Schema, "encode_field", lambda self, k, *args: columns.append(k) or encoded(self, k, *args)
    )
    found = schema.encode([usual, {**usual, **gaps}], "offers")
    assert columns == [0, 1, 8, 9]
    values = [[usual[f], {**usual, **gaps}[f]] for f in schema.fields]
    parts = [encoded(schema, k, cells, str) for k, cells in enumerate(values)]
    np.testing.assert_array_equal(found, np.hstack(parts))
    for wrong, message in (
        (float("inf"), '"field 5": expected a finite number, got inf'),
        (10**400, '"field 5": expected a finite number'),
        (2**60 + 1, '"field 5": expected whole numbers that float64 holds'),
        ([1], '"field 5": expected a number or a text'),
    ):
        with pytest.raises(InputError, match=f"offers: element 2: {message}"):
            schema.encode([usual, {**usual, "field 5": wrong}], "offers")
