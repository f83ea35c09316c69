import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ptrnet import labellers, tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
from ptrnet.geometry import fit_unit_cube
from ptrnet.metrics import ranking
from ptrnet.tasks.base import Drawing, Facts, Task
from ptrnet.types import Example


@given(
    arrays(
        np.float64,
        array_shapes(min_dims=1, max_dims=1, max_side=9).map(lambda s: (*s, 2)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_normalized_points_are_inside_the_unit_square(points):
    normalized = fit_unit_cube(points)
    assert normalized.min() >= 0 and normalized.max() <= 1
    if points.min() >= 0 and points.max() <= 1 and np.ptp(points, axis=0).max() >= 1 / 64:
        assert normalized is points


def test_normalize_keeps_proportions():
    points = np.array([[-10.0, 5.0], [30.0, 25.0], [10.0, 5.0]])
    expected = [[0.0, 0.0], [1.0, 0.5], [0.5, 0.0]]
    np.testing.assert_allclose(tasks.get("hull").normalize(points), expected)


def test_clustered_points_are_scaled_up():
    """Networks cannot distinguish points 1e-5 apart. Distances go down to the smallest float."""
    points = np.random.default_rng(0).random((9, 2))
    filled = tasks.get("hull").normalize(points * 2 - 1)
    for exponent in (-7, -20, -40):
        tiny = np.ldexp(points, exponent)
        np.testing.assert_allclose(tasks.get("hull").normalize(tiny), filled, atol=1e-12)
        atol = 2.0 ** (-50 - exponent)  # the rounding error of the shift
        np.testing.assert_allclose(tasks.get("hull").normalize(0.5 + tiny), filled, atol=atol)
    numbers = np.array([[3.0], [1], [2]]) * 5e-324
    assert tasks.get("sort").normalize(numbers).tolist() == [[1], [0], [0.5]]
    assert (tasks.get("hull").normalize(points / 50) == points / 50).all()
    assert (tasks.get("hull").normalize(points[:1]) == points[:1]).all()


def test_unknown_tasks_and_labellers_are_refused():
    with pytest.raises(InputError, match="did you mean 'hull'"):
        tasks.get("hul")
    with pytest.raises(InputError, match="labeller of task hull"):
        labellers.label(tasks.get("hull"), np.zeros((1, 3, 2)), "argsort")


@pytest.mark.parametrize(
    ("name", "settings", "n", "labeller"),
    [
        ("cvrp", {}, 21, "pyvrp-quick"),
        ("delaunay", {"sequence": "apexes"}, 12, None),
        ("delaunay", {"separator": True}, 12, None),
        ("hull", {"closed": True}, 12, None),
        ("job-shop", {}, 4, "tabu-search"),
    ],
)
def test_answers_with_more_or_fewer_indices_than_tokens_pass_the_check(name, settings, n, labeller):
    if name == "cvrp":
        pytest.importorskip("pyvrp")
    task = tasks.get(name, **settings)
    inputs = task.sample(np.random.default_rng(0), 3, n)
    labellers.check_answers(task, labellers.label(task, inputs, labeller), inputs, "labeller mine")


def test_an_empty_answer_passes_the_check_because_labels_report_it():
    task = tasks.get("hull", closed=True)
    empty = [np.empty(0, np.int64)]
    labellers.check_answers(task, empty, np.zeros((1, 3, 2)), "labeller mine")


def test_batch_is_normalized_like_its_instances():
    """Also outside the unit square, for equal points, and for differences that overflow."""
    rng = np.random.default_rng(0)
    batch = rng.random((5, 6, 2))
    batch[1] = batch[1] * 40 - 7
    batch[2] = 3
    batch[3] = (batch[3] - 0.5) * 1.7e308 * 2
    batch[4] *= 1e-9
    together = tasks.get("tsp").normalize(batch)
    for instance, normalized in zip(batch, together, strict=True):
        assert tasks.get("tsp").normalize(instance).tolist() == normalized.tolist()
    assert (together[0] == batch[0]).all() and (together[2] == 0).all()
    assert together[4].min() == 0 and together[4].max() == 1
    low = batch[1].min(0)
    np.testing.assert_allclose(together[1], (batch[1] - low) / np.ptp(batch[1], axis=0).max())
    assert together[3].min() == 0 and together[3].max() == 1


class Pairs(Task):
    """A plug-in's task: find the elements that belong together."""

    name, facts = "pairs", Facts(num_features=2, machine="free", item_size=2)

    def max_length(self, n):
        return n

    def answer_error(self, n, outputs, first=0):
        return None

    def score(self, examples, answers):
        return ranking.score_sequences(examples, answers)

    def draw(self, inputs, outputs):
        return Drawing(inputs, [inputs[pair] for pair in outputs])


@pytest.mark.parametrize("extension", ["txt", "jsonl"])
def test_examples_of_a_plugin_task_can_be_written_and_read(tmp_path, extension):
    path = str(tmp_path / f"pairs.{extension}")
    points, pairs = np.random.default_rng(0).random((4, 2)), np.array([[2, 0], [1, 3]])
    formats.write(path, [Example(points, pairs), Example(points)], Pairs())
    answered, bare = formats.read(path, Pairs())
    assert answered.outputs.tolist() == pairs.tolist() and bare.outputs is None
    assert answered.inputs.tolist() == points.tolist()
