"""Arrays, tensors and frames of any library are answered as the same numbers in float64."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet.data.arrays import real_array
from ptrnet.errors import InputError
from ptrnet.types import Example

# Multiples of 1/8 are exact in every floating-point type.
POINTS = np.random.default_rng(0).integers(0, 8, (7, 2)) / 8


class Frame:
    """A minimal frame, with what pandas and polars have in common."""

    def __init__(self, values):
        self._values = np.asarray(values)

    def to_numpy(self):
        return self._values

    def __iter__(self):
        return iter(["x", "y"])  # iterating over a pandas frame gives the names of columns

    def __len__(self):
        return len(self._values)


class HasArray:
    def __array__(self, dtype=None, copy=None):
        return POINTS.astype(dtype or float)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


ONE = {
    "float64": lambda: POINTS,
    "float32": lambda: POINTS.astype(np.float32),
    "float16": lambda: POINTS.astype(np.float16),
    "longdouble": lambda: POINTS.astype(np.longdouble),
    "big-endian": lambda: POINTS.astype(">f4"),
    "fortran": lambda: np.asfortranarray(POINTS),
    "strided": lambda: np.repeat(np.repeat(POINTS, 3, 0), 2, 1)[::3, ::2],
    "reversed": lambda: POINTS[::-1].copy()[::-1],
    "read-only": lambda: read_only(POINTS),
    "object": lambda: POINTS.astype(object),
    "lists": lambda: POINTS.tolist(),
    "tuples": lambda: tuple(map(tuple, POINTS.tolist())),
    "rows": lambda: list(POINTS),
    "NumPy's numbers": lambda: [list(row) for row in POINTS],
    "fractions": lambda: [[Fraction(x) for x in row] for row in POINTS],
    "decimals": lambda: [[Decimal(x) for x in row] for row in POINTS],
    "tensor": lambda: torch.tensor(POINTS),
    "tensor with grad": lambda: torch.tensor(POINTS, requires_grad=True) * 1,
    "bfloat16": lambda: torch.tensor(POINTS, dtype=torch.bfloat16),
    "half": lambda: torch.tensor(POINTS, dtype=torch.float16),
    "transposed": lambda: torch.tensor(POINTS.T.copy()).T,
    "sparse": lambda: torch.tensor(POINTS).to_sparse(),
    "rows of tensors": lambda: list(torch.tensor(POINTS, requires_grad=True)),
    "lists of tensors": lambda: [list(row) for row in torch.tensor(POINTS, requires_grad=True)],
    "frame": lambda: Frame(POINTS),
    "frame of objects": lambda: Frame(POINTS.astype(object)),
    "array protocol": HasArray,
}


@pytest.mark.parametrize("kind", ONE)
def test_every_type_is_one_instance_and_a_list_of_it_is_many(small, kind):
    solver = small(scale=8.0)
    expected = solver.solve(POINTS).tolist()
    assert solver.solve(ONE[kind]()).tolist() == expected
    assert [a.tolist() for a in solver.solve([ONE[kind](), ONE["lists"]()])] == [expected] * 2
    assert [a.tolist() for a in solver.solve((ONE[kind](),) * 3)] == [expected] * 3
    inputs, outputs = ptrnet.label("hull", ONE[kind]())
    assert inputs.tolist() == POINTS.tolist()
    log_likelihood = solver.log_likelihoods([Example(POINTS, outputs)])[0]
    assert solver.log_likelihoods((ONE[kind](), torch.tensor(outputs))) == log_likelihood
    assert solver.log_likelihoods([(ONE[kind](), outputs.tolist())]).tolist() == [log_likelihood]
    probabilities, tokens = solver.attention(ONE[kind]())
    expected_probabilities, _ = solver.attention(Example(POINTS, np.array(expected)))
    assert np.array_equal(probabilities, expected_probabilities)
    assert (tokens - 1).tolist() == [*expected, -1]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int64", "uint64"])
def test_every_integer_type_gives_the_same_answer(small, dtype):
    points = (POINTS * 8).astype(dtype)
    solver = small(scale=8.0)
    expected = solver.solve(points.astype(float)).tolist()
    assert solver.solve(points).tolist() == expected
    if dtype == "bool":  # JSON's `true` is not a number
        with pytest.raises(InputError, match="expected elements of 2 numbers each, got booleans"):
            solver.solve(points.tolist())
    else:
        assert solver.solve(points.tolist()).tolist() == expected


def many(kind):
    points = np.stack([POINTS, POINTS[::-1]])
    ragged = np.empty(2, object)
    ragged[:] = [POINTS, POINTS[:4]]
    return {
        "array": points,
        "tensor": torch.tensor(points, requires_grad=True),
        "lists": points.tolist(),
        "generator": (p for p in points),
        "object array": ragged,
        "series": Frame(ragged),
        "frames": [Frame(p) for p in points],
    }[kind]


@pytest.mark.parametrize(
    "kind", ["array", "tensor", "lists", "generator", "object array", "series", "frames"]
)
def test_every_container_of_instances_is_read(small, kind):
    solver = small(scale=8.0)
    second = POINTS[:4] if kind in ("object array", "series") else POINTS[::-1]
    expected = [solver.solve(POINTS).tolist(), solver.solve(second).tolist()]
    assert [a.tolist() for a in solver.solve(many(kind))] == expected
    pairs = ptrnet.label("hull", many(kind))
    assert [x.tolist() for x, _ in pairs] == [POINTS.tolist(), second.tolist()]


def test_instances_of_sort_may_be_flat_or_columns(small):
    solver = small("sort", scale=8.0)
    column = [[0.3], [0.1], [0.2]]
    flat = np.array([0.3, 0.1, 0.2])
    expected = solver.solve(np.array(column)).tolist()
    for one in (column, flat, flat.tolist(), torch.tensor(flat), Frame(flat), flat.astype(object)):
        assert solver.solve(one).tolist() == expected
    for two in ([flat, flat], [column, column], [torch.tensor(flat)] * 2, np.array([column] * 2)):
        assert [a.tolist() for a in solver.solve(two)] == [expected] * 2
    # A list of lists of numbers is many instances.
    for many in ([[0.3, 0.1, 0.2]], [[0.3, 0.1, 0.2], [0.1]]):
        assert [a.tolist() for a in solver.solve(many)] == [expected, [0]][: len(many)]
    with pytest.raises(InputError, match="instance 1: expected"):
        solver.solve([[0.1], 0.2, 0.3])
    with pytest.raises(InputError, match=r"expected shape \(n, 1\) for sort, got \(1, 3\)"):
        solver.solve(np.array([[0.3, 0.1, 0.2]]))
    assert solver.log_likelihoods((flat, [1, 2, 0])) == solver.log_likelihoods(
        [(column, [1, 2, 0])]
    )
    assert solver.log_likelihoods(((flat, [1, 2, 0]), (flat, [0, 1, 2]))).shape == (2,)


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (np.ma.array(POINTS, mask=POINTS > 0.5), "got a masked array"),
        ([np.ma.array(row) for row in POINTS], "got a masked array"),
        (POINTS.astype(str), "got strings"),
        (POINTS.astype(bytes), "got strings"),
        ([["0.5", "1"], ["1", "0"]], "got strings"),
        ([[0.5, "1"], [1, 0]], "got strings"),
        (Frame([["Oslo", 1.0], ["Bern", 2.0]]), "got strings"),
        (np.array([["Oslo", 1.0]], object), "got strings"),
        (POINTS.astype("datetime64[s]"), "got dates"),
        (POINTS.astype("timedelta64[s]"), "got durations"),
        ([[datetime.date(2020, 1, 1), 1.0]], r"got datetime.date\(2020, 1, 1\) among the numbers"),
        (POINTS * 1j, "got complex numbers"),
        (torch.tensor(POINTS) * 1j, "got complex numbers"),
        (np.array([[1j, Decimal(1)]], object), "got complex numbers"),
        ([[None, 1.0]], "got None among the numbers"),
        (np.zeros(3, [("x", float), ("y", float)]), "got records"),
        (np.rec.array([(1.0, 2.0)], dtype=[("x", float), ("y", float)]), "got records"),
        ([[1.0, 2.0], [3.0]], "got lists of different lengths"),
        ([[10**400, 1]], "got a number too large"),
        ([{"x": 1.0}], "got 1 fields that are numbers: x"),
        ([{"x": 1.0, "y": 2.0}, None], "element 2: expected a dictionary, got None"),
        ([{"x": 1.0, "y": 2.0}, [3.0, 4.0]], r"element 2: expected a dictionary, got \[3.0, 4.0\]"),
        ({"x": [1.0], "y": [2.0]}, "expected a list or an array, got dict"),
        (3.5, "expected a list or an array, got float"),
        (np.zeros((2, 2, 2, 2)), r"expected shape \(n, 2\) for hull, got \(2, 2, 2\)"),
        (np.array([[1e4000, 0]], np.longdouble), "expected a finite number, got inf"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refuses_values_that_are_not_real_numbers(small, bad, complaint):
    calls = [small().solve, lambda x: ptrnet.label("hull", x)]
    for call in calls:
        with pytest.raises(InputError, match=complaint) as error:
            call(bad)
        assert "\n" not in str(error.value)


def test_float64_is_not_copied():
    assert real_array(POINTS, "", "") is POINTS


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_frames_of_pandas_and_polars(name, small):
    library = pytest.importorskip(name)
    frame = library.DataFrame({"x": POINTS[:, 0], "y": POINTS[:, 1]})
    assert ptrnet.label("hull", frame)[0].tolist() == POINTS.tolist()
    assert len(ptrnet.label("hull", [frame, frame])) == 2
    expected = small(scale=8.0).solve(POINTS).tolist()
    assert small(scale=8.0).solve(frame).tolist() == expected
    assert [a.tolist() for a in small(scale=8.0).solve([frame, frame])] == [expected, expected]
    numbers = library.Series([0.3, 0.1, 0.2])
    assert small("sort").solve(numbers).tolist() == small("sort").solve([0.3, 0.1, 0.2]).tolist()
    for column, message in ((["a", "b"], "got strings"), ([0.5, None], "finite number, got nan")):
        with pytest.raises(InputError, match=message):
            small().solve(library.DataFrame({"x": column, "y": [1.0, 2.0]}))


def test_types_of_pandas(small):
    pandas = pytest.importorskip("pandas")
    odd = [
        (pandas.to_datetime(["2020-01-01", "2021-01-01"]), "got Timestamp"),
        (pandas.array([1, None], dtype="Int64"), r"element 2.*: expected a (finite )?number"),
        (pandas.Categorical(["a", "b"]), "got strings"),
    ]
    for column, message in odd:
        with pytest.raises(InputError, match=message):
            small().solve(pandas.DataFrame({"x": column, "y": [1.0, 2.0]}))
    frame = pandas.DataFrame(POINTS, index=range(5, 5 + len(POINTS)))  # the index is ignored
    assert small().solve(frame).tolist() == small().solve(POINTS).tolist()


def test_labels_of_arrays_survive_a_write_and_a_read(tmp_path):
    pairs = ptrnet.label("hull", [POINTS, POINTS[:4]])
    ptrnet.label("hull", [POINTS, POINTS[:4]], output=tmp_path / "a.jsonl")
    again = ptrnet.label("hull", tmp_path / "a.jsonl")
    for (x, y), (u, v) in zip(pairs, again, strict=True):
        assert x.tolist() == u.tolist() and y.tolist() == v.tolist()
    with pytest.raises(InputError, match="holds one instance"):
        ptrnet.label("hull", [POINTS, POINTS], output=tmp_path / "a.csv")


def test_triangles_may_be_arrays_lists_or_tensors(small):
    solver = small("delaunay", scale=8.0)
    (inputs, triangles), expected = ptrnet.generate("delaunay", 6, 1)[0], None
    for outputs in (triangles, triangles.tolist(), torch.tensor(triangles), triangles.ravel()):
        value = solver.log_likelihoods((inputs, outputs))
        expected = value if expected is None else expected
        assert value == expected < 0
    with pytest.raises(InputError, match="outputs: expected lists of 3 whole numbers, got shape"):
        solver.log_likelihoods((inputs, [[0, 1], [1, 2]]))


def test_attention_takes_one_instance_many_and_pairs(small):
    solver = small(scale=8.0)
    pair = (POINTS, [0, 1, 2])
    one = solver.attention(pair)
    for result in (solver.attention([pair, pair])[1], solver.attention([Example(*pair)])[0]):
        assert np.array_equal(result[0], one[0]) and result[1].tolist() == [1, 2, 3, 0]
    assert len(solver.attention([POINTS, POINTS[:3], POINTS])) == 3


@pytest.mark.parametrize(
    "values",
    [
        np.array([[2**53 + 1], [0]]),
        np.array([[2**64 - 1], [0]], np.uint64),
        [[2**53 + 1], [0.5]],
        [[2**70 + 1], [0]],
        [[np.int64(2**53 + 1)], [0]],
    ],
)
def test_refuses_whole_numbers_that_float64_would_round(values):
    with pytest.raises(InputError, match=r"^here: expected whole numbers that float64 holds, got"):
        real_array(values, "here", "numbers")


@pytest.mark.parametrize("values", [[[2**54], [1e300]], np.array([[2**60], [2**53]])])
def test_accepts_large_whole_numbers_that_float64_can_hold(values):
    assert real_array(values, "", "").tolist() == [[float(v) for v in row] for row in values]
