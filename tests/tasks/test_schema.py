"""Elements with fields: what is read of them, and what is refused."""

from decimal import Decimal

import numpy as np
import pytest

from ptrnet import InputError
from ptrnet.errors import AmbiguousInputWarning
from ptrnet.tasks.custom import Custom
from ptrnet.tasks.schema import MAX_CATEGORIES, Schema, infer_schema

OFFERS = [
    {"price": 3, "colour": "red", "title": "a"},
    {"price": 1.5, "colour": "blue", "title": "b"},
    {"price": np.float32(2), "colour": "red", "title": "c"},
]


def test_texts_are_categories_and_numbers_are_features():
    schema = infer_schema([(OFFERS[:1], "x"), (OFFERS[1:], "y")], ["colour", "price"])
    assert schema == Schema(("colour", "price"), (("blue", "red"), ()))
    assert schema.is_category.tolist() == [True, True, False]
    assert schema.encode(OFFERS, "x") == [[0, 1, 3], [1, 0, 1.5], [0, 1, 2]]
    assert infer_schema([(OFFERS, "x")]).fields == ("price", "colour", "title")


def test_an_unknown_text_is_refused_or_no_category():
    pink = [{"price": 1, "colour": "pink"}]
    schema = infer_schema([(OFFERS, "x")], ["price", "colour"])
    with pytest.raises(
        InputError,
        match=r'^new: element 1: "colour": expected one of \'blue\', \'red\', got \'pink\'',
    ):
        schema.encode(pink, "new")
    schema = infer_schema([(OFFERS, "x")], ["price", "colour"], ignores_unknown=True)
    assert schema.encode(pink, "new") == [[1, 0, 0]]


@pytest.mark.parametrize(
    ("element", "complaint"),
    [
        ({"price": 1}, "expected the field \"colour\", got 'price'"),
        ({"price": "1", "colour": "red"}, "\"price\": expected a number, got '1'"),
        ({"price": 1, "colour": 2.5}, "got '2.5', which no training example had"),
        ({"price": 1, "colour": True}, '"colour": expected a text, got True'),
        ({"price": 1, "colour": 2}, "expected one of 'blue', 'red', got '2'"),
        ({"price": None, "colour": "red"}, '"price": expected a number or a text, got None'),
        ({"price": [1], "colour": "red"}, '"price": expected a number or a text'),
        ({"price": 1j, "colour": "red"}, '"price": expected a number or a text'),
        ([1, 2], "expected a dictionary, got"),
    ],
)
def test_what_an_element_cannot_be(element, complaint):
    schema = infer_schema([(OFFERS, "x")], ["price", "colour"])
    with pytest.raises(InputError) as error:
        schema.encode([OFFERS[0], element], "x")
    assert str(error.value).startswith("x: element 2: ") and complaint in str(error.value)


def test_other_libraries_numbers_are_numbers():
    schema = infer_schema([(OFFERS, "x")], ["price"])
    elements = [{"price": x} for x in (Decimal("1.5"), np.int64(2), np.bool_(True), True)]
    assert np.float64(schema.encode(elements, "x")).ravel().tolist() == [1.5, 2, 1, 1]
    kinds = [type(e["price"]) for e in schema.read_fields([*elements, OFFERS[2]], "x")]
    assert kinds == [float, int, bool, bool, float]


def test_a_table_without_the_largest_size_has_numbers_for_texts():
    sizes = [{"size": size} for size in ("10", "12", "XL")]
    schema = infer_schema([(sizes, "x")])
    assert schema.encode([{"size": 12}, {"size": np.int64(10)}], "y") == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("element", [{0: 1.0}, {"": 1}, {"\ud800": 1}, {"a": "\udfff"}])
def test_names_and_texts_are_ones_that_files_hold(element):
    with pytest.raises(InputError, match=r"x: element 1.*expected (a text|texts)"):
        infer_schema([([element], "x")])


def test_a_field_is_of_one_kind_and_no_name():
    mixed = [({**OFFERS[0], "colour": 7}, 'y: element 1: "colour": expected a text as before')]
    mixed += [({**OFFERS[0], "colour": float("nan")}, "a text as before, got a missing value")]
    mixed += [({**OFFERS[0], "price": "7"}, 'y: element 1: "price": expected a number as before')]
    for element, complaint in mixed:
        with pytest.raises(InputError, match=complaint):
            infer_schema([(OFFERS, "x"), ([element], "y")])
    names = [{"title": str(k)} for k in range(MAX_CATEGORIES + 1)]
    assert len(infer_schema([(names[:-1], "x")]).categories[0]) == MAX_CATEGORIES
    with pytest.raises(InputError, match="more than 1000 different texts are no categories"):
        infer_schema([(names, "x")])


def test_a_task_whose_settings_contradict_each_other_is_refused():
    features = {"center": (0.0, 0.0), "spread": (1.0, 1.0)}
    assert Custom(fields=("a",), categories=(("x", "y"),), **features).schema is not None
    for wrong in ({"fields": ("a",)}, {"fields": ("a",), "categories": (("x",),)}):
        with pytest.raises(InputError, match="categories: expected a list of texts for each field"):
            Custom(**wrong, **features)


@pytest.mark.parametrize("texts", [("3.5", "2", "1e3"), ("52,5", "13,4")])
def test_texts_that_are_numbers_are_doubted(texts):
    """Each price became a category, which no other offer has."""
    offers = [{"price": text} for text in texts]
    message = r'"price": texts such as .* are taken as categories'
    with pytest.warns(AmbiguousInputWarning, match=message):
        assert infer_schema([(offers, "x")]).categories == (tuple(sorted(texts)),)


@pytest.mark.parametrize(
    "texts", [("007", "12"), ("3.5", "XL"), ("red", "v2.0"), ("<5", ">10"), ("030 12", "030 13")]
)
def test_codes_are_categories(texts):
    infer_schema([([{"code": text} for text in texts], "x")])
