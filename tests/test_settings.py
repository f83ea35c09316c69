import copy
import pickle
import tomllib
from dataclasses import MISSING, dataclass, replace
from typing import Literal

import numpy as np
import pytest

from ptrnet.errors import InputError
from ptrnet.settings import (
    Settings,
    from_mapping,
    options_of,
    require_settings,
    setting,
    to_mapping,
    to_toml,
)
from ptrnet.types import Sizes


@dataclass(frozen=True, kw_only=True)
class Shape(Settings):
    n: Sizes = setting(Sizes("5-8"), "sizes")
    count: int = setting(MISSING, "how many", ge=1, le=64)


@dataclass(frozen=True, kw_only=True)
class Tuning(Shape):
    kind: Literal["adamw", "sgd"] = setting("adamw", "the rule")
    rate: float = setting(0.5, "the rate", gt=0)
    share: float = setting(0.0, "the share", ge=0, lt=1)
    flag: bool = setting(False, "whether")
    name: str = setting("", "a name")
    seed: int | None = setting(None, "a seed", ge=0)
    center: tuple[float, ...] = setting((), "numbers")
    texts: tuple[tuple[str, ...], ...] = setting((), "lists")
    unlisted: int = 3


def test_options_are_the_settings_in_order_without_other_fields():
    options = options_of(Tuning)
    names = ["n", "count", "kind", "rate", "share", "flag", "name", "seed", "center", "texts"]
    assert list(options) == names
    assert options["kind"].choices == ("adamw", "sgd") and options["rate"].choices == ()
    assert options["count"].default is MISSING and options["rate"].default == 0.5
    assert (options["seed"].type, options["seed"].may_be_none) == (int, True)
    assert options["flag"].help == "whether"


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"count": 0}, "count: expected a whole number from 1 to 64, got 0"),
        ({"count": 65}, "count: expected a whole number from 1 to 64, got 65"),
        ({"count": "5"}, "count: expected a whole number from 1 to 64, got '5'"),
        ({"count": True}, "count: expected a whole number from 1 to 64, got True"),
        ({"count": 2.0}, "count: expected a whole number from 1 to 64, got 2.0"),
        ({"count": None}, "count: expected a whole number from 1 to 64, got None"),
        ({"rate": 0}, "rate: expected a number above 0, got 0"),
        ({"rate": False}, "rate: expected a number above 0, got False"),
        ({"rate": float("nan")}, "rate: expected a finite number above 0, got nan"),
        ({"rate": float("inf")}, "rate: expected a finite number above 0, got inf"),
        ({"rate": 10**400}, "rate: expected a finite number above 0, got 1000"),
        ({"share": 1.0}, "share: expected a number of 0 or more and below 1, got 1.0"),
        ({"flag": 1}, "flag: expected true or false, got 1"),
        ({"name": 3}, "name: expected a text, got 3"),
        ({"seed": -1}, "seed: expected a whole number of 0 or more, got -1"),
        ({"kind": "adam"}, "unknown kind 'adam'; did you mean 'adamw'? (known: adamw, sgd)"),
        ({"kind": ["sgd"]}, "unknown kind \"['sgd']\"; did you mean 'sgd'?"),
        ({"center": 3}, "center: expected a list of numbers, got 3"),
        ({"center": [1, "2"]}, "center: expected a list of numbers, got [1, '2']"),
        ({"center": [float("inf")]}, "center: expected a list of finite numbers, got [inf]"),
        ({"texts": ["a"]}, "texts: expected a list of lists of texts, got ['a']"),
        ({"n": "5-"}, "n: expected 50, 5-50 or 5,10,20-30, got '5-'"),
    ],
)
def test_invalid_values_are_refused_by_all_constructors(values, complaint):
    values = {"count": 2} | values
    with pytest.raises(InputError) as direct:
        Tuning(**values)
    assert str(direct.value).startswith(complaint)
    with pytest.raises(InputError) as mapped:
        from_mapping(Tuning, values, "tuning")
    assert str(mapped.value) == f"tuning: {direct.value}"
    with pytest.raises(InputError):
        replace(Tuning(count=2), **values)


def test_values_are_converted_to_the_declared_types():
    tuning = Tuning(count=np.int64(2), rate=np.float32(0.5), share=0, center=[1, 2.5], n=7)
    assert [type(v) for v in (tuning.count, tuning.rate, tuning.share)] == [int, float, float]
    assert tuning.center == (1.0, 2.5) and tuning.n == (7,)
    assert Tuning(count=2, texts=[["a"], []]).texts == (("a",), ())


def test_unknown_and_missing_names_are_refused():
    with pytest.raises(InputError, match="unknown setting of tuning 'coun'; did you mean 'count'"):
        from_mapping(Tuning, {"coun": 3}, "tuning")
    with pytest.raises(InputError, match="setting count of tuning is missing"):
        from_mapping(Tuning, {}, "tuning")
    with pytest.raises(InputError, match="unknown setting of tuning 'unlisted'"):
        from_mapping(Tuning, {"count": 1, "unlisted": 4}, "tuning")


def test_settings_round_trip_through_toml_and_pickle():
    odd = 'odd "name"\\\u00e9\x7f'
    tuning = Tuning(count=2, n="3, 5-7", flag=True, name=odd, center=(1.5, 1e-9), texts=(("a",),))
    table = {key: value for key, value in to_mapping(tuning).items() if value is not None}
    assert table["n"] == "3, 5-7"
    assert from_mapping(Tuning, tomllib.loads(to_toml(table)), "tuning") == tuning
    assert pickle.loads(pickle.dumps(tuning)) == copy.deepcopy(tuning) == tuning


def test_registered_classes_must_declare_all_fields_by_setting():
    require_settings(Shape, "task shape")
    with pytest.raises(InputError, match="register task tuning: field unlisted: declare it with"):
        require_settings(Tuning, "task tuning")
