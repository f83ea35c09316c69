"""JSON lines, byte for byte."""

import json

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
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


def test_reads_and_writes_triangles_and_distances(tmp_path):
    line = b'{"inputs": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "outputs": [[0, 1, 2]]}\n'
    assert written(tmp_path, "jsonl", read(tmp_path, "jsonl", line, DELAUNAY), DELAUNAY) == line
    line = b'{"inputs": [[0.0, 0.0], [1.0, 0.0]], "outputs": [0, 1], "distance": "ATT"}\n'
    (example,) = read(tmp_path, "jsonl", line, TSP)
    assert example.distance == "ATT" and not example.extra
    assert written(tmp_path, "jsonl", [example], TSP) == line
    # The task hull measures no distances, so the key belongs to the user.
    (hull,) = read(tmp_path, "jsonl", line, HULL)
    assert hull.distance == "euclidean" and written(tmp_path, "jsonl", [hull]) == line


def test_refuses_values_without_a_json_type(tmp_path):
    for value in (float("nan"), {1, 2}):
        example = Example(POINTS, source="a.parquet: row 7", extra={"w": value})
        with pytest.raises(InputError, match=r"^a.parquet: row 7: cannot be written as JSON: "):
            written(tmp_path, "jsonl", [example])


def test_other_keys_survive_reading_and_writing(tmp_path):
    line = '{"id": "a\u00e9", "inputs": [[0, 0.5], [1, 0.25]], "outputs": [1, 0], "w": [1]}\n'
    (example,) = read(tmp_path, "jsonl", line)
    assert example.outputs.tolist() == [1, 0]
    assert written(tmp_path, "jsonl", [example]).decode() == (
        '{"inputs": [[0.0, 0.5], [1.0, 0.25]], "outputs": [1, 0], "id": "a\\u00e9", "w": [1]}\n'
    )


def test_keeps_text_that_utf8_cannot_hold(tmp_path):
    (example,) = read(tmp_path, "jsonl", '{"inputs": [[0, 0]], "name": "\\ud800"}')
    assert b'"\\ud800"' in written(tmp_path, "jsonl", [example])


def test_finds_a_duplicate_among_many_keys_in_linear_time(tmp_path):
    """Quadratic time would let a client keep the service busy for hours."""
    keys = "".join(f'"k{k}": 1, ' for k in range(100_000))
    (tmp_path / "a.jsonl").write_text(f'{{{keys}"k99999": 2}}\n')
    with pytest.raises(InputError, match='the key "k99999" occurs twice'):
        list(formats.read(str(tmp_path / "a.jsonl"), tasks.get("hull")))


BOX = "expected the numbers left, top, right and bottom, got "


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"boxes": 5}, '"boxes": expected a list of boxes, got 5'),
        ({"boxes": []}, "expected at least one box"),
        ({"boxes": [[1, 2, 3, 4], [1, 2, 3]]}, f"box 2: {BOX}[1, 2, 3]"),
        ({"boxes": [5], "labels": [None]}, f"box 1: {BOX}5"),
        ({"boxes": [[1, 2, "a", 4]]}, f"box 1: {BOX}[1, 2, 'a', 4]"),
        ({"boxes": [[1, 2, None, 4]]}, f"box 1: {BOX}[1, 2, None, 4]"),
        ({"boxes": [[1, 2, 3, True]]}, f"box 1: {BOX}[1, 2, 3, True]"),
        ({"boxes": [[1, 2, 3, 4], [5, 2, 3, 4]]}, '"boxes": box 2: expected left <= right, got 5'),
        ({"boxes": [[1, 9, 3, 4]]}, '"boxes": box 1: expected top <= bottom, got 9 and 4'),
        ({"boxes": [[1, 2, 3, 4]], "labels": ["txt"]}, "box 1: unknown label 'txt'; did you mean"),
        ({"boxes": [[1, 2, 3, 4]], "labels": "text"}, '"labels": expected a label or null for e'),
    ],
)
def test_bad_boxes_are_refused_with_line_and_number(tmp_path, line, complaint):
    path = tmp_path / "a.jsonl"
    path.write_text("\n" + json.dumps(line))
    with pytest.raises(InputError) as error:
        list(formats.read(str(path), tasks.get("reading-order")))
    assert str(error.value).startswith(f"{path}:2: {complaint}"), str(error.value)


def test_pages_keep_their_size_and_other_keys(tmp_path):
    line = {"boxes": [[1.0, 2.0, 3.0, 4.0]], "labels": ["title"], "page": [5, 6], "mine": "x"}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line))
    task = tasks.get("reading-order")
    (example,) = formats.read(str(path), task)
    assert example.extra == {"page": [5, 6], "mine": "x"}
    formats.write(str(path), [example], task)
    assert json.loads(path.read_text()) == line
