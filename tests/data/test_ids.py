"""Ids beside coordinates: left out where they are a number too many, and never coordinates."""

import json

import numpy as np
import pytest

from ptrnet import InputError
from ptrnet.data import formats

POINTS = np.random.default_rng(5).random((9, 2))
NAMES = ["id", "Index", " nr ", "#"]


def elements(name, fields):
    """Dictionaries of an id and of the first coordinates."""
    rows = zip(range(1, 10), *POINTS.T, strict=True)
    return [dict(zip([name, *fields], row, strict=False)) for row in rows]


def forms(rows, folder):
    """The same elements in all forms that have names."""
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
def test_an_id_beside_the_coordinates_is_left_out(name, small, tmp_path):
    solver = small(scale=8.0)
    expected = solver.solve(POINTS).tolist()
    for form in forms(elements(name, ["x", "y"]), tmp_path):
        assert solve(solver, form) == expected


@pytest.mark.parametrize("name", NAMES)
def test_an_id_is_no_coordinate(name, small, tmp_path):
    """Of points whose y was a text, or was forgotten, ids and x were read as the points."""
    solver = small(scale=8.0)
    for form in forms(elements(name, ["x"]), tmp_path):
        with pytest.raises(InputError, match=f"that are no ids, got '{name.strip()}|{name}'"):
            solve(solver, form)


def test_a_single_number_may_be_called_an_id(small, tmp_path):
    solver = small("sort", scale=8.0)
    numbers = np.arange(9, 0, -1.0)
    rows = [{"number": x} for x in numbers]
    for form in forms(rows, tmp_path):
        assert solve(solver, form) == solver.solve(numbers).tolist()
