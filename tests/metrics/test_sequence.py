import numpy as np
import pytest

from ptrnet.metrics.sequence import measure_sorted
from ptrnet.types import Example

NUMBERS = np.array([[0.3], [0.1], [0.3], [0.2]])


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ([1, 3, 0, 2], 1),
        ([1, 3, 2, 0], 1),  # the equal numbers may change places
        ([3, 1, 0, 2], 0),
        ([1, 3, 0], 0),
        ([1, 3, 0, 0], 0),
        ([1, 3, 0, 2, 2], 0),
        ([], 0),
    ],
)
def test_whole_order(answer, right):
    examples = [Example(NUMBERS, np.array([1, 3, 0, 2]))]
    found = measure_sorted(examples, [np.array(answer, np.int64)])
    assert found["accuracy"].value == right
