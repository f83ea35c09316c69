"""Which columns and fields are features: numbers, ids, missing values, other notations."""

import json

import numpy as np
import pytest

from ptrnet import InputError, tasks
from ptrnet.data import cells, formats
from ptrnet.data.dataset import instances_of

HULL = tasks.get("hull")
POINTS = np.random.default_rng(5).random((9, 2))
NAMES = ["id", "Index", " nr ", "#"]


def elements(name, fields):
    """Return elements with an id, and with the first coordinates as the other fields."""
    rows = zip(range(1, 10), *POINTS.T, strict=True)
    return [dict(zip([name, *fields], row, strict=False)) for row in rows]


def all_forms(rows, folder):
    """Yield the same elements as dictionaries, as frames and in files."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    yield rows
    yield pandas.DataFrame(rows)
    yield polars.DataFrame(rows)
    lines, table = folder / "a.jsonl", folder / "a.csv"
    lines.write_text(json.dumps({"inputs": rows}) + "\n")
    text = [",".join(map(str, values)) for values in [[*rows[0]], *(r.values() for r in rows)]]
    table.write_text("\n".join(text) + "\n")
    for path in (lines, table):
        yield str(path)


def solve(solver, form):
    if isinstance(form, str):
        (form,) = formats.read(form, solver.task)
    return solver.solve(form).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_skips_an_id_beside_the_coordinates(name, small, tmp_path):
    solver = small(scale=8.0)
    expected = solver.solve(POINTS).tolist()
    for form in all_forms(elements(name, ["x", "y"]), tmp_path):
        assert solve(solver, form) == expected


@pytest.mark.parametrize("name", NAMES)
def test_refuses_to_read_an_id_as_a_coordinate(name, small, tmp_path):
    solver = small(scale=8.0)
    for form in all_forms(elements(name, ["x"]), tmp_path):
        with pytest.raises(InputError, match=f"besides ids, got '({name.strip()}|{name})'"):
            solve(solver, form)


def test_a_single_number_may_be_named_as_an_id(small, tmp_path):
    solver = small("sort", scale=8.0)
    numbers = np.arange(9, 0, -1.0)
    rows = [{"number": x} for x in numbers]
    for form in all_forms(rows, tmp_path):
        assert solve(solver, form) == solver.solve(numbers).tolist()


@pytest.mark.parametrize(
    "elements",
    [
        [{"place": 1, "osm": 2, "lat": "52.5"}, {"place": 3, "osm": 1, "lat": "48.1"}],
        [{"stop": 1, "x": "1,000", "y": 2}, {"stop": 2, "x": 5, "y": 3}],
        [{"stop": 1, "x": "5 m", "y": 2}, {"stop": 2, "x": "6 m", "y": 3}],
    ],
)
def test_refuses_to_skip_fields_in_foreign_notation(elements):
    with pytest.raises(InputError, match=r'element 1: "(lat|x)": expected a number'):
        instances_of(elements, HULL)


def test_refuses_to_skip_a_field_with_missing_values_of_pandas():
    pandas = pytest.importorskip("pandas")
    for missing in (pandas.NA, pandas.NaT):
        with pytest.raises(InputError, match='element 1: "y": expected a number'):
            instances_of([{"x": 1, "y": missing, "z": 3}, {"x": 2, "y": 3, "z": 4}], HULL)


def test_skips_fields_of_codes_and_names():
    elements = [{"zip": "10115", "name": "1a", "x": 1, "y": 2}, {"zip": "04109", "x": 2, "y": 3}]
    (example,), _ = instances_of(elements, HULL)
    assert example.inputs.tolist() == [[1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("texts", "are_foreign"),
    [
        (["1,5", "2,25"], True),
        (["1,234", "12,345"], True),
        (["3 kg", "1 kg"], True),
        (["$3.50", "2"], True),
        (["EUR 3.50", "12EUR", "CHF12"], True),
        (["BUS 3", "BUS 4"], False),
        (["52.5N", "13.4E"], True),
        (["3 kg", "1 m"], True),
        (["2020-01-02", "2020-01-03"], False),
        (["0.5.1", "1.2.3"], False),
        (["1," * 5000 + "x"], False),  # a pattern with two ways to read `1,1` takes years
        (["10115", "04109"], False),
        (["14a", "16"], False),
        ([], False),
    ],
)
def test_recognizes_numbers_in_foreign_notation(texts, are_foreign):
    assert cells.are_foreign_numbers(texts) == are_foreign


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["1", "", "2.5", "-2e1"], [1, None, 2.5, -20.0]),
        (["1", "nan", "n/a", "?"], [1, None, None, None]),
        (["9007199254740993", "12"], [9007199254740993, 12]),
        (["nan", "NA"], ["nan", "NA"]),
        (["1", "007"], ["1", "007"]),
        (["1", "1_000"], ["1", "1_000"]),
        (["1", "red"], ["1", "red"]),
        (["", ""], ["", ""]),
        (["1", "inf", "red"], ["1", "inf", "red"]),
    ],
)
def test_column_is_numeric_if_all_its_cells_are_plain_numbers(column, expected):
    assert cells.parse_column(column) == expected


def test_a_rounded_number_is_refused_after_any_number_of_zeros():
    with pytest.raises(InputError, match="here: expected a whole number that float64 holds"):
        cells.parse_number("0" * 5000 + "9007199254740993", "here")
    assert cells.parse_number("0" * 5000 + "9007199254740992", "here") == 2**53
