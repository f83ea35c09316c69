"""Frames whose columns or rows other programs ignored, mixed up or misread."""

from decimal import Decimal

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


LEVELS = ["zz", "red", "green"]  # "zz" never occurs


@pytest.fixture(scope="module")
def offers():
    """Return a frame of trips with columns of several types, the model, and its probabilities."""
    rng = np.random.default_rng(1)
    frame = trips(
        seats=rng.integers(0, 9, 60), colour=rng.choice(LEVELS[1:], 60), new=rng.random(60) < 0.5
    )
    frame["price"] = frame["price"].round(3)
    model = ptrnet.fit(frame, **COLUMNS, **TINY)
    return frame, model, model.predict_proba(frame, set_id="trip").to_numpy()


def in_arrow(frame, name, kind):
    """Return a table of Arrow in which a column has another type."""
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    column = table[name].combine_chunks()
    changed = pa.compute.run_end_encode(column) if kind == "run-end" else column.cast(kind(pa))
    return table.set_column(table.column_names.index(name), name, changed)


def in_chunks(frame):
    """Return a table of Arrow whose chunks have dictionaries of their own."""
    pa = pytest.importorskip("pyarrow")
    parts = frame.astype({"colour": "category"}).groupby(np.arange(60) // 7)
    return pa.concat_tables([pa.Table.from_pandas(part, preserve_index=False) for _, part in parts])


FORMS = {
    "scikit-learn: columns in another order": lambda f: f[f.columns[::-1]],
    "scikit-learn: nullable types": lambda f: f.convert_dtypes(),
    "LightGBM: types of Arrow": lambda f: f.convert_dtypes(dtype_backend="pyarrow"),
    "LightGBM: levels in another order": lambda f: f.assign(
        colour=pd.Categorical(f.colour, categories=LEVELS)
    ),
    "XGBoost: sparse columns": lambda f: f.astype({"seats": pd.SparseDtype(int)}),
    "XGBoost: an index with duplicates": lambda f: f.set_axis(np.repeat(5, 60)),
    "XGBoost: an index of two levels": lambda f: f.set_index([np.arange(60) % 2, np.arange(60)]),
    "pandas: objects": lambda f: f.astype({"seats": object, "price": object, "new": object}),
    "pandas: decimals": lambda f: f.assign(price=[Decimal(str(x)) for x in f.price]),
    "pandas: ids that a join made floats": lambda f: f.astype({"trip": float}),
    "pandas: booleans as a category": lambda f: f.astype({"new": "category"}),
    "pyarrow: a dictionary for each chunk": in_chunks,
    "pyarrow: runs": lambda f: in_arrow(f, "colour", "run-end"),
    "pyarrow: views of strings": lambda f: in_arrow(f, "colour", lambda pa: pa.string_view()),
    "pyarrow: decimals": lambda f: in_arrow(f, "price", lambda pa: pa.decimal128(9, 3)),
}


@pytest.mark.parametrize("form", [pytest.param(form, id=seen) for seen, form in FORMS.items()])
def test_the_form_of_a_frame_does_not_matter(offers, form):
    frame, model, expected = offers
    given = form(frame)
    actual = model.predict_proba(given, set_id="trip")
    np.testing.assert_allclose(np.asarray(actual), expected, atol=1e-6)
    assert not hasattr(given, "index") or actual.index.equals(given.index)


def test_rows_of_sets_that_are_apart_keep_their_probabilities(offers):
    """Pandas: the values of a group-by come back in the order of groups."""
    frame, model, expected = offers
    shuffled = frame.sample(frac=1, random_state=0)
    actual = model.predict_proba(shuffled, set_id="trip").sort_index()
    np.testing.assert_allclose(actual, expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:treated as missing")
def test_missing_values_of_nullable_types_are_missing(offers):
    """LightGBM: `NA` of nullable types became an object, or a number."""
    frame, model, _ = offers
    holes = {"price": 4, "seats": 3, "new": 5, "colour": 6}
    nullable = frame.convert_dtypes()
    plain = frame.astype({"price": float, "seats": float, "new": object, "colour": object})
    for name, row in holes.items():
        nullable.loc[row, name] = pd.NA
        plain.loc[row, name] = None
    found = []
    for given in (plain, nullable, nullable.convert_dtypes(dtype_backend="pyarrow")):
        found.append(model.predict_proba(given, set_id="trip"))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


@pytest.mark.parametrize("words", ["False True", "FALSE TRUE", "false true"])
def test_booleans_of_frames_and_of_files_are_the_same(offers, tmp_path, words):
    """LightGBM: booleans are texts after a way through a .csv file (of Python, R, polars)."""
    frame, model, expected = offers
    words, path = words.split(), str(tmp_path / "t.csv")
    frame.assign(new=[words[k] for k in frame["new"]]).to_csv(path, index=False)
    np.testing.assert_allclose(model.predict_proba(path, set_id="trip"), expected, atol=1e-6)
    of_file = ptrnet.fit(path, **COLUMNS, **TINY)
    assert of_file.task.categories[of_file.task.fields.index("new")] == tuple(words)
    expected = of_file.predict_proba(path, set_id="trip")
    for given in (frame, frame.astype({"new": object}), frame.convert_dtypes()):
        actual = of_file.predict_proba(given, set_id="trip")
        np.testing.assert_allclose(actual, expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:treated as missing")
def test_signalling_nans_are_missing(offers):
    """Pandas: comparing a signalling NaN of `decimal` raises an error."""
    frame, model, _ = offers
    plain, signalling = (
        frame.assign(price=[Decimal(text), *map(Decimal, frame.price[1:].astype(str))])
        for text in ("NaN", "sNaN")
    )
    found = [model.predict_proba(given, set_id="trip") for given in (plain, signalling)]
    np.testing.assert_array_equal(found[0], found[1])
    with pytest.raises(InputError, match="expected a finite number, got nan"):
        ptrnet.load("hull").solve([[Decimal("sNaN"), 0], [1, 0], [0, 1]])


def test_columns_of_two_levels_are_refused_in_one_line(offers):
    """Pandas: `agg` gives columns names that are tuples."""
    frame, _, _ = offers
    frame = frame.set_axis(pd.MultiIndex.from_product([frame.columns, ["mean"]]), axis=1)
    with pytest.raises(InputError, match='expected the column "trip", got') as error:
        ptrnet.fit(frame, **COLUMNS, **TINY)
    assert "\n" not in str(error.value)


def test_a_frame_is_not_changed(offers):
    """XGBoost: the columns of the caller's frame had other types afterwards."""
    frame, model, _ = offers
    frame, before = frame.astype({"colour": "category"}), frame.astype({"colour": "category"})
    model.predict_proba(frame, set_id="trip")
    ptrnet.fit(frame, **COLUMNS, **TINY)
    pd.testing.assert_frame_equal(frame, before)


def test_categories_that_are_whole_numbers_are_learned_as_categories():
    """The best number is neither the largest nor the smallest, so a number is a worse field."""
    rng = np.random.default_rng(2)
    code = np.concatenate([rng.permutation(7)[:3] for _ in range(100)])
    worth = np.array([3, 6, 0, 5, 1, 4, 2])[code].reshape(100, 3)
    bought = (worth == worth.max(1, keepdims=True)).astype(int).ravel()
    frame = pd.DataFrame({"trip": np.repeat(np.arange(100), 3), "code": code, "bought": bought})
    frame = frame.astype({"code": "category"})
    model = ptrnet.fit(frame, **COLUMNS, **{**TINY, "steps": 40, "hidden_size": 16})
    assert model.task.categories == (tuple("0123456"),)
    assert model.evaluate(frame, **COLUMNS)["accuracy"]["value"] == 1


def test_the_name_of_weights_in_other_libraries_suggests_ours():
    """The nearest name, `weights`, loads a model."""
    with pytest.raises(InputError, match=r"'sample_weight'; did you mean 'weight'\?$"):
        ptrnet.fit(trips(), **COLUMNS, **TINY, sample_weight=np.ones(20))


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
