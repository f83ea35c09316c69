"""Every file in `malformed/` is refused in one line, word for word that in `COMPLAINTS`."""

from pathlib import Path

import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.sizes import LARGEST
from ptrnet.errors import AmbiguousInputWarning, InputError

FOLDER = Path(__file__).parent / "malformed"
COMPLAINTS = [
    tuple(line.split(": ", 1))
    for line in (FOLDER / "COMPLAINTS").read_text(encoding="utf-8").splitlines()
]


def refused(name, task):
    with pytest.raises(InputError) as error:
        list(formats.read(name, tasks.get(task)))
    return str(error.value)


@pytest.mark.parametrize(("task", "complaint"), COMPLAINTS)
def test_a_malformed_file(monkeypatch, task, complaint):
    monkeypatch.chdir(FOLDER)
    name = complaint.split(":")[0]
    if name == "bad-cities.tsp":
        name = "bad-cities.tour"
    assert refused(name, task) == complaint


def test_names_beside_numbers_and_a_first_row_that_may_be_a_header(tmp_path):
    """House numbers are names, even where most are whole; so are tags. A header is asked about."""
    path, hull = tmp_path / "a.csv", tasks.get("hull")
    for text in ("0.5,0.1,12\n0.2,0.3,14\n0.7,0.3,14a\n", "0.5,0.1,1;2\n0.2,0.3,a;b\n"):
        path.write_text(text)
        (example,) = formats.read(str(path), hull)
        assert example.inputs.tolist()[0] == [0.5, 0.1]
    path.write_text("0,1\n0.5,0.25\n0.75,0.1\n")
    with pytest.warns(AmbiguousInputWarning, match="0,1 is read as a row"):
        (example,) = formats.read(str(path), hull)
    assert len(example.inputs) == 3
    path.write_text("0\n0.5\n0.25\n")  # a series that begins at 0
    (example,) = formats.read(str(path), tasks.get("sort"))
    assert len(example.inputs) == 3


def test_points_of_one_instance_read_as_instances(tmp_path, recwarn):
    """What `numpy.savetxt` writes of points is no .txt of ours."""
    path, hull = tmp_path / "points.txt", tasks.get("hull")
    for lines in ("0 1\n0 1 1 1\n", "0 1\n"):
        path.write_text(lines)
        assert list(formats.read(str(path), hull))
    assert not recwarn
    path.write_text("0 1\n1 1\n1 0\n")
    with pytest.warns(AmbiguousInputWarning, match="each of its 3 lines was read as an"):
        assert len(list(formats.read(str(path), hull))) == 3


def test_a_key_that_stands_twice_among_many_takes_no_time(tmp_path):
    """Squared, it kept a service's only parser busy for hours."""
    keys = "".join(f'"k{k}": 1, ' for k in range(100_000))
    (tmp_path / "a.jsonl").write_text(f'{{{keys}"k99999": 2}}\n')
    with pytest.raises(InputError, match='the key "k99999" occurs twice'):
        list(formats.read(str(tmp_path / "a.jsonl"), tasks.get("hull")))


def test_every_file_has_its_complaint():
    named = {complaint.split(":")[0] for _, complaint in COMPLAINTS}
    present = {path.name for path in FOLDER.iterdir()} - {"COMPLAINTS"}
    cities_of_tours = {f"{name.split('.')[0]}.tsp" for name in named if name.endswith(".tour")}
    assert present - named - cities_of_tours == {"bad-cities.tour"} and named <= present


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("0 " * (2 * LARGEST + 2), f":1: expected 1 to {LARGEST} elements, got 100001"),
        ('{"inputs": [[' + "9" * 5000 + ", 0]]}", ":1: a whole number of more than 4300 digits"),
        ("[" * 100_000, ":1: lists or objects too deep in one another"),
    ],
    ids=["elements", "digits", "depth"],
)
def test_files_that_are_too_much(tmp_path, content, complaint):
    path = tmp_path / ("a.txt" if content[0] == "0" else "a.jsonl")
    path.write_text(content)
    message = refused(str(path), "hull")
    assert message.startswith(f"{path}{complaint}")
    assert "\n" not in message and len(message) < 300


def test_a_tsplib_file_of_too_many_nodes_is_refused_before_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("ptrnet.data.formats.parts.tsplib.LARGEST", 5)
    path = tmp_path / "a.tsp"
    path.write_text("TYPE : TSP\nNODE_COORD_SECTION\n" + "".join(f"{k} 0 0\n" for k in range(9)))
    assert refused(str(path), "tsp") == f"{path}:9: expected at most 5 elements"
