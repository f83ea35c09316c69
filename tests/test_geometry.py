import numpy as np
import pytest

from ptrnet.geometry import hilbert_order, lexicographic_order


@pytest.mark.parametrize("side", [2, 4, 32])
@pytest.mark.parametrize("size", [1.0, 1e-200, 1e300])
def test_hilberts_curve_goes_from_each_cell_of_a_grid_to_one_beside_it(side, size):
    cells = (np.arange(side) + 0.5) / side
    cells[0], cells[-1] = 0, 1  # the grid fills the square
    grid = np.stack(np.meshgrid(cells, cells), -1).reshape(-1, 2)
    places = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2)
    order = hilbert_order(grid * size)
    assert sorted(order) == list(range(side**2))
    assert (np.abs(np.diff(places[order], axis=0)).sum(1) == 1).all()


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
