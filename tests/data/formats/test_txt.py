"""The text format reads and writes the recorded bytes."""

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.types import Example

HULL, SORT, DELAUNAY = tasks.get("hull"), tasks.get("sort"), tasks.get("delaunay")
TSP = tasks.get("tsp")
POINTS = np.array([[0.0, 0.5], [1.0, 0.25], [0.1, 1e-7], [0.30000000000000004, 0.2]])


def written(tmp_path, extension, examples, task=HULL):
    path = tmp_path / f"f.{extension}"
    formats.write(str(path), examples, task)
    return path.read_bytes()


def read(tmp_path, extension, content, task=HULL):
    path = tmp_path / f"f.{extension}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(formats.read(str(path), task))


def test_writes_the_format_of_the_paper(tmp_path):
    example = Example(POINTS, np.array([0, 2, 1]))
    assert written(tmp_path, "txt", [example, Example(POINTS[:1])]) == (
        b"0.0 0.5 1.0 0.25 0.1 1e-07 0.30000000000000004 0.2 output 1 3 2 1\n0.0 0.5\n"
    )
    numbers = Example(POINTS[:, :1], np.array([0, 2, 3, 1]))
    assert written(tmp_path, "txt", [numbers], SORT) == (
        b"0.0 1.0 0.1 0.30000000000000004 output 1 3 4 2\n"
    )


def test_writes_triangles_and_tours(tmp_path):
    triangles = Example(POINTS, np.array([[0, 2, 3], [1, 2, 3]]))
    numbers = b"0.0 0.5 1.0 0.25 0.1 1e-07 0.30000000000000004 0.2 output "
    assert written(tmp_path, "txt", [triangles], DELAUNAY) == numbers + b"1 3 4 <ENDT> 2 3 4\n"
    tour = Example(POINTS, np.array([0, 2, 1, 3]))
    assert written(tmp_path, "txt", [tour], TSP) == numbers + b"1 3 2 4 1\n"


@pytest.mark.parametrize(
    "answer", ["1 2 3 <ENDT> 2 3 4", "1 2 3 2 3 4", "1 2 3 <ENDT> 2 3 4 <ENDT>"]
)
def test_reads_triangles_with_and_without_separators(tmp_path, answer):
    (example,) = read(tmp_path, "txt", f"0 0 1 0 0 1 2 2 output {answer}\n", DELAUNAY)
    assert example.outputs.tolist() == [[0, 1, 2], [1, 2, 3]]


def test_reads_answers_with_and_without_the_closing_repeat(tmp_path):
    lines = "0 0 1 0 0 1 output 1 2 3 1 \n\n0 0 1 0 0 1 output 1 2 3\r\n5 5 output 1 1"
    examples = read(tmp_path, "txt", lines)
    assert [e.outputs.tolist() for e in examples] == [[0, 1, 2], [0, 1, 2], [0]]
    assert [e.source.rsplit(":", 1)[1] for e in examples] == ["1", "3", "4"]
    assert all(e.inputs.shape[1] == 2 for e in examples)


def test_refuses_a_line_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr("ptrnet.data.formats.parts.LONGEST_LINE", 1000)
    with pytest.raises(InputError, match="the line is longer than 1000 bytes"):
        read(tmp_path, "txt", "0 " * 1000)


def test_warns_if_every_line_is_one_element(tmp_path, recwarn):
    """`numpy.savetxt` writes the points of one instance like this."""
    path, hull = tmp_path / "points.txt", tasks.get("hull")
    for lines in ("0 1\n0 1 1 1\n", "0 1\n"):
        path.write_text(lines)
        assert list(formats.read(str(path), hull))
    assert not recwarn
    path.write_text("0 1\n1 1\n1 0\n")
    with pytest.warns(AmbiguousInputWarning, match="each of its 3 lines was read as an"):
        assert len(list(formats.read(str(path), hull))) == 3


def test_warns_if_every_line_is_one_number(tmp_path):
    with pytest.warns(AmbiguousInputWarning, match="each of its 3 lines was read as"):
        assert len(read(tmp_path, "txt", "3\n1\n2\n", SORT)) == 3
