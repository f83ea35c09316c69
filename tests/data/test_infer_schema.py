"""Which fields of a user's elements are numbers, which are categories, and what is refused."""

import numpy as np
import pytest

from ptrnet import InputError
from ptrnet.data.infer_schema import MAX_CATEGORIES, infer_schema
from ptrnet.errors import AmbiguousInputWarning
from ptrnet.tasks.schema import Schema

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


@pytest.mark.parametrize("element", [{0: 1.0}, {"": 1}, {"\ud800": 1}, {"a": "\udfff"}])
def test_refuses_names_and_texts_that_files_cannot_hold(element):
    with pytest.raises(InputError, match=r"x: element 1.*expected (a text|texts)"):
        infer_schema([([element], "x")])


def test_refuses_mixed_fields_and_fields_with_too_many_texts():
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


@pytest.mark.parametrize("texts", [("3.5", "2", "1e3"), ("52,5", "13,4")])
def test_warns_of_categories_that_are_numbers(texts):
    offers = [{"price": text} for text in texts]
    with pytest.warns(
        AmbiguousInputWarning, match=r'"price": texts such as .* are taken as categories'
    ):
        assert infer_schema([(offers, "x")]).categories == (tuple(sorted(texts)),)


@pytest.mark.parametrize(
    "texts", [("007", "12"), ("3.5", "XL"), ("red", "v2.0"), ("<5", ">10"), ("030 12", "030 13")]
)
def test_codes_are_categories(texts):
    infer_schema([([{"code": text} for text in texts], "x")])
