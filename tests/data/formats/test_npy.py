"""Square matrices of distances in `.npy` files."""

import numpy as np
import pytest

import ptrnet
from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError

TSP = tasks.get("tsp")
DIST = np.array([[9, 1, 5, 2], [1, 9, 2, 5], [5, 2, 9, 1], [2, 5, 1, 9]])


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.uint8])
def test_reads_a_matrix_and_ignores_its_diagonal(tmp_path, dtype):
    path = tmp_path / "m.npy"
    np.save(path, DIST.astype(dtype))
    (example,) = formats.read(str(path), TSP)
    assert example.distance == "EXPLICIT" and example.inputs.dtype == np.float64
    assert example.inputs.tolist() == (DIST * (1 - np.eye(4))).tolist()
    copy = tmp_path / "copy.npy"
    formats.write(str(copy), [example], TSP)
    assert np.load(copy).tolist() == example.inputs.tolist()
    ptrnet.label("tsp", path, output=tmp_path / "m.tour")
    lines = (tmp_path / "m.tour").read_text().split()
    assert lines[-6:] == ["1", "2", "3", "4", "-1", "EOF"] and "6" in lines


def test_arrays_and_files_have_the_same_answer(tmp_path):
    dist = np.random.default_rng(0).random((9, 9))
    np.fill_diagonal(dist, np.inf)
    answers = [ptrnet.label("tsp", values).outputs.tolist() for values in (dist, dist.tolist())]
    np.save(tmp_path / "m.npy", dist)
    (row,) = ptrnet.label("tsp", tmp_path / "m.npy")
    assert answers == [row.outputs.tolist()] * 2


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (np.zeros((3, 2)), r"expected distances \(n, n\), got shape \(3, 2\)"),
        (np.array([[0, np.nan], [1, 0]]), "row 1, column 2: expected a finite distance, got nan"),
        (np.full((3, 3), 1e11), "EXPLICIT: expected distances of at most 1e"),
        (np.array([["a", "b"], ["c", "d"]]), "expected a square matrix of distances"),
        (np.array([[0, {}], [1, 0]], object), "not a .npy file of numbers, or a damaged one"),
    ],
)
def test_refuses_arrays_that_are_not_a_matrix(tmp_path, values, complaint):
    path = tmp_path / "m.npy"
    np.save(path, values)
    with pytest.raises(InputError, match=rf"m.npy: {complaint}"):
        list(formats.read(str(path), TSP))


def test_refuses_damaged_files(tmp_path):
    path = tmp_path / "m.npy"
    np.save(path, DIST)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match=r"m.npy: not a .npy file"):
        list(formats.read(str(path), TSP))
    np.savez(tmp_path / "m.npz", DIST)
    (tmp_path / "m.npz").rename(path)
    with pytest.raises(InputError, match=r"m.npy: expected one array"):
        list(formats.read(str(path), TSP))
