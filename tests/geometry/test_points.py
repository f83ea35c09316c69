import numpy as np
import pytest

from ptrnet.geometry import (
    first_equal,
    hilbert_order,
    lexicographic_order,
    scale_by_power_of_two,
)


@pytest.mark.parametrize(("side", "dims"), [(2, 2), (4, 2), (32, 2), (2, 3), (8, 3), (5, 1)])
@pytest.mark.parametrize("size", [1.0, 1e-200, 1e300])
def test_hilberts_curve_goes_from_each_cell_of_a_grid_to_a_neighbour(side, dims, size):
    cells = (np.arange(side) + 0.5) / side
    cells[0], cells[-1] = 0, 1  # the grid fills the square or the cube
    cells_of_points = np.stack(np.meshgrid(*[np.arange(side)] * dims), -1).reshape(-1, dims)
    order = hilbert_order(cells[cells_of_points] * size)
    assert sorted(order) == list(range(side**dims))
    assert (np.abs(np.diff(cells_of_points[order], axis=0)).sum(1) == 1).all()


def test_hilberts_curve_visits_sixteen_cells_in_the_order_that_models_learned():
    columns, rows = "0110001122333223", "0011233223321100"
    curve = np.array([*map(float, columns), *map(float, rows)]).reshape(2, 16).T
    assert hilbert_order(curve).tolist() == list(range(16))


def test_equal_points_keep_their_order():
    assert hilbert_order(np.ones((4, 2))).tolist() == [0, 1, 2, 3]
    assert hilbert_order(np.ones((1, 2))).tolist() == [0]


def test_lexicographic_order_is_that_of_lists():
    batch = np.random.default_rng(0).integers(0, 3, (20, 9, 3)).astype(float)
    for instance, order in zip(batch, lexicographic_order(batch), strict=True):
        assert order.tolist() == sorted(range(9), key=lambda i: instance[i].tolist())
        assert lexicographic_order(instance).tolist() == order.tolist()


def test_a_batch_is_ordered_as_its_members():
    batch = np.random.default_rng(0).random((5, 30, 2)) * [[[1, 3]]]
    batch[2] = batch[2, 0]
    for instance, order in zip(batch, hilbert_order(batch), strict=True):
        assert hilbert_order(instance).tolist() == order.tolist()


def test_the_first_of_equal_points_represents_all():
    points = np.array([[2.0, 1], [0, 0], [2, 1], [2, 0], [0, 0], [2, 1]])
    assert first_equal(points).tolist() == [0, 1, 0, 3, 1, 0]


@pytest.mark.parametrize("size", [1e-300, 0.1, 1.0, 3e300])
def test_scaling_keeps_every_digit(size):
    points = np.random.default_rng(1).normal(size=(4, 9, 2)) * size
    points[2] = 0
    scaled = scale_by_power_of_two(points)
    largest = np.abs(np.delete(scaled, 2, 0)).max((1, 2))
    assert ((largest >= 0.5) & (largest < 1)).all() and not scaled[2].any()
    assert (np.frexp(scaled)[0] == np.frexp(points)[0]).all()  # the same digits
    assert (scaled[0] == points[0] * (scaled[0, 0, 0] / points[0, 0, 0])).all()
