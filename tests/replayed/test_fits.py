"""Frames whose columns other programs ignored or misread in training."""

import numpy as np
import pandas as pd
import pytest

import ptrnet
from ptrnet.errors import AmbiguousInputWarning, InputError

COLUMNS = {"set_id": "trip", "chosen": "bought"}
TINY = {"steps": 2, "hidden_size": 4, "batch_size": 8, "ensemble": 1}


def trips(**fields):
    """Return 20 sets of three rows, with a price and other fields."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"trip": np.repeat(np.arange(20), 3), "price": rng.random(60)})
    frame["bought"] = (frame.groupby("trip")["price"].rank() == 1).astype(int)
    return frame.assign(**fields)


def test_numbers_too_close_to_be_told_apart_are_named():
    tiny = np.linspace(0, 1e-300, 60)
    with pytest.warns(AmbiguousInputWarning, match="^'tiny': all values are within 1e-300 of"):
        ptrnet.fit(trips(tiny=tiny), **COLUMNS, **TINY)
    X = np.stack([np.random.default_rng(0).random((20, 3)), tiny.reshape(20, 3)], -1)
    with pytest.warns(AmbiguousInputWarning, match="^number 2: all values are within 1e-300 of"):
        ptrnet.fit(X, X[..., :1].argmax(1), "choice", **TINY)


def test_numbers_close_to_each_other_and_far_from_0_are_told_apart(recwarn):
    task = ptrnet.fit(trips(far=1e6 + np.linspace(0, 1e-6, 60)), **COLUMNS, **TINY).task
    assert 0 < task.spread[task.fields.index("far")] < 1e-6 and not recwarn.list


@pytest.mark.parametrize("empty", [None, np.nan, "", "n/a", pd.NA], ids=repr)
def test_a_column_that_is_empty_in_training_is_not_read(empty):
    """Later it may have numbers."""
    with pytest.warns(AmbiguousInputWarning, match='^"t": no training example has a value') as said:
        model = ptrnet.fit(trips(t=empty), **COLUMNS, **TINY)
    assert len(said) == 1 and model.task.fields == ("price",)
    expected = model.predict_proba(trips(), set_id="trip")
    for values in (3.0, "red", empty):
        actual = model.predict_proba(trips(t=values), set_id="trip")
        assert all(map(np.array_equal, actual, expected))
    elements = [[{"price": 1.0, "t": empty}, {"price": 2.0, "t": empty}] for _ in range(8)]
    with pytest.warns(AmbiguousInputWarning, match='^"t": no training example has a value'):
        assert ptrnet.fit(elements, [[0]] * 8, "choice", **TINY).task.fields == ("price",)


def test_a_training_needs_a_field_with_values():
    with pytest.raises(InputError, match=r'^"price": expected a value in some example, got none'):
        ptrnet.fit(trips(price=None), **COLUMNS, **TINY)
    with pytest.raises(InputError, match='"t": expected a value, got none'):
        ptrnet.fit(trips(t=None), missing="refuse", **COLUMNS, **TINY)


def test_duplicate_columns_are_named():
    frame = pd.concat([trips(), trips()[["price"]]], axis=1)
    with pytest.raises(InputError, match=r"duplicate column names: \['price'\]$"):
        ptrnet.fit(frame, **COLUMNS, **TINY)
