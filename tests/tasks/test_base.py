import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ptrnet import tasks
from ptrnet.errors import InputError


@given(
    arrays(
        np.float64,
        array_shapes(min_dims=1, max_dims=1, max_side=9).map(lambda s: (*s, 2)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_scaled_is_inside_the_unit_square_and_keeps_proportions(points):
    scaled = tasks.get("hull").normalize(points)
    assert scaled.min() >= 0 and scaled.max() <= 1
    if points.min() >= 0 and points.max() <= 1:
        assert scaled is points


def test_one_shift_and_one_scale():
    points = np.array([[-10.0, 5.0], [30.0, 25.0], [10.0, 5.0]])
    expected = [[0.0, 0.0], [1.0, 0.5], [0.5, 0.0]]
    np.testing.assert_allclose(tasks.get("hull").normalize(points), expected)


def test_unknown_task_and_labeller():
    with pytest.raises(InputError, match="did you mean 'hull'"):
        tasks.get("hul")
    with pytest.raises(InputError, match="labeller of task hull"):
        tasks.get("hull").label(np.zeros((1, 3, 2)), "argsort")


def test_a_batch_is_scaled_as_its_members():
    """Inside the unit square, outside, on one spot, and so wide that differences overflow."""
    rng = np.random.default_rng(0)
    batch = rng.random((5, 6, 2))
    batch[1] = batch[1] * 40 - 7
    batch[2] = 3
    batch[3] = (batch[3] - 0.5) * 1.7e308 * 2
    found = tasks.get("tsp").normalize(batch)
    for instance, scaled in zip(batch, found, strict=True):
        assert tasks.get("tsp").normalize(instance).tolist() == scaled.tolist()
    assert (found[0] == batch[0]).all() and (found[2] == 0).all()
    corner = batch[1].min(0)
    np.testing.assert_allclose(found[1], (batch[1] - corner) / np.ptp(batch[1], axis=0).max())
    assert found[3].min() == 0 and found[3].max() == 1
