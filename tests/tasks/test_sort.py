import numpy as np

from ptrnet import labellers, tasks


def test_example_of_the_paper():
    """C 3.1, with 1-based indices: {0.7, 0.649, 0.921, 0.01, 0.52} gives {4, 5, 2, 1, 3, end}."""
    task = tasks.get("sort")
    numbers = np.array([0.7, 0.649, 0.921, 0.01, 0.52])[None, :, None]
    assert (labellers.label(task, numbers)[0] + 1).tolist() == [4, 5, 2, 1, 3]
    assert task.to_tokens(labellers.label(task, numbers))[0].tolist() == [4, 5, 2, 1, 3, 0]


def test_equal_numbers_are_ordered_by_index():
    numbers = np.array([2.0, 1.0, 2.0, 1.0])[None, :, None]
    assert labellers.label(tasks.get("sort"), numbers)[0].tolist() == [1, 3, 0, 2]


def test_invalid_answers_are_described():
    task = tasks.get("sort")
    assert task.answer_error(3, np.array([0, 1])) == "expected all 3 indices, got 2"
    assert task.answer_error(3, np.array([0, 1, 1]), first=1) == (
        "each index at most once, got 2 twice"
    )
    assert task.answer_error(3, np.array([2, 0, 1])) is None
