"""Parts of attention against plain Python."""

import numpy as np
import torch

from ptrnet.models.parts.attention import beside_others


def test_differences_are_those_from_the_lowest_and_the_highest_of_the_others():
    """With ties, padding, and a set of one element."""
    rng = np.random.default_rng(0)
    sizes = [5, 1, 3, 2]
    x = rng.integers(-2, 3, (4, 5, 3)).astype(np.float32) / 7
    expected = np.zeros((4, 5, 6), np.float32)
    for s, size in enumerate(sizes):
        for j in range(size):
            others = np.delete(x[s, :size], j, 0)
            if len(others):
                expected[s, j] = [*x[s, j] - others.min(0), *x[s, j] - others.max(0)]
    is_element = torch.arange(5) < torch.tensor(sizes)[:, None]
    actual = beside_others(torch.from_numpy(x), is_element)
    np.testing.assert_array_equal(actual, expected)
