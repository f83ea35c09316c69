import numpy as np
import pytest

from ptrnet.metrics import moments_of
from ptrnet.metrics.ranking import score_sorted
from ptrnet.metrics.summary import summarize
from ptrnet.types import Example, is_permutation

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
def test_the_entire_order_counts(answer, right):
    examples = [Example(NUMBERS, np.array([1, 3, 0, 2]))]
    measures = summarize(moments_of(score_sorted(examples, [np.array(answer, np.int64)])))
    assert measures["accuracy"].value == right


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [([2, 0, 1], True), ([0, 1], False), ([0, 1, 1], False), ([0, 1, 3], False), ([], False)],
)
def test_a_permutation_has_each_index_once(outputs, expected):
    assert is_permutation(np.array(outputs, np.int64), 3) == expected
