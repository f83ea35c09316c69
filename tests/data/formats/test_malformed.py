"""Every file in `malformed/` is refused as `COMPLAINTS` says, in which `...` is any text."""

from pathlib import Path

import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
from ptrnet.types import LARGEST
from tests.support.text import begins

FOLDER = Path(__file__).parents[1] / "malformed"
COMPLAINTS = [
    tuple(line.split(": ", 1))
    for line in (FOLDER / "COMPLAINTS").read_text(encoding="utf-8").splitlines()
]


def error_of(name, task):
    with pytest.raises(InputError) as error:
        list(formats.read(name, tasks.get(task)))
    return str(error.value)


@pytest.mark.parametrize(("task", "complaint"), COMPLAINTS)
def test_refuses_malformed_file_and_says_where_and_why(monkeypatch, task, complaint):
    monkeypatch.chdir(FOLDER)
    name = complaint.split(":")[0]
    if name == "bad-cities.tsp":
        name = "bad-cities.tour"
    message = error_of(name, task)
    assert begins(message, complaint), message


def test_every_malformed_file_has_a_message():
    named = {complaint.split(":")[0] for _, complaint in COMPLAINTS}
    present = {path.name for path in FOLDER.iterdir()} - {"COMPLAINTS"}
    cities_of_tours = {f"{name.split('.')[0]}.tsp" for name in named if name.endswith(".tour")}
    assert present - named - cities_of_tours == {"bad-cities.tour"} and named <= present


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("0 " * (2 * LARGEST + 2), f":1: expected 1 to {LARGEST} elements, got 100001"),
        ('{"inputs": [[' + "9" * 5000 + ", 0]]}", ":1: a whole number of more than 4300 digits"),
        ("[" * 100_000, ":1: lists or objects are nested too deeply"),
        (
            '{"inputs": ' + "[null," * 900 + "0" + "]" * 900 + "}",
            ':1: "inputs": expected elements of 2 numbers each, got lists of different lengths',
        ),
    ],
    ids=["elements", "digits", "depth", "depth of inputs"],
)
def test_refuses_too_many_elements_digits_and_levels(tmp_path, content, complaint):
    path = tmp_path / ("a.txt" if content[0] == "0" else "a.jsonl")
    path.write_text(content)
    message = error_of(str(path), "hull")
    assert begins(message, f"{path}{complaint}") and len(message) < 300, message
