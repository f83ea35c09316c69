"""`example.py` of an export gives the answers of the lab's networks."""

import pytest

from tests.export import test_example
from tests.export.test_example import kept_sessions  # noqa: F401  a fixture


@pytest.mark.usefixtures("kept_sessions")
@pytest.mark.parametrize(
    "case",
    [
        ("memory-ptr-net", "sort", {}, {}),
        ("soft-ptr-net", "tsp", {"order": "lexicographic"}, {}),
        ("seq2seq", "tsp", {}, {}),
    ],
    ids=lambda case: case[0],
)
def test_answers_equal_those_of_the_solver(case, tmp_path):
    test_example.test_answers_equal_those_of_the_solver(case, tmp_path)
