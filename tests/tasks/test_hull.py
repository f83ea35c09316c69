import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.errors import InputError

SQUARE = np.array([[[0.9, 0.9], [0.5, 0.4], [0.1, 0.8], [0.2, 0.1], [0.8, 0.2]]])


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("leftmost", [2, 3, 4, 0]),
        ("lowest-index", [0, 2, 3, 4]),
        ("lower-left", [3, 4, 0, 2]),
    ],
)
def test_first_vertex_follows_the_setting_start(start, expected):
    assert labellers.label(tasks.get("hull", start=start), SQUARE)[0].tolist() == expected


def test_lower_left_is_measured_after_scaling():
    """Coordinates in metres have the same first vertex as those in the unit square."""
    task = tasks.get("hull", start="lower-left")
    assert labellers.label(task, SQUARE * 1000 - 500)[0].tolist() == [3, 4, 0, 2]


def test_closed_sequences_repeat_the_first_vertex():
    task = tasks.get("hull", closed=True)
    tokens = task.to_tokens(labellers.label(task, SQUARE))
    assert tokens[0].tolist() == [3, 4, 5, 1, 3, 0]
    assert task.from_tokens(tokens[0][:-1]).tolist() == [2, 3, 4, 0]
    assert task.max_length(5) == 6


def test_clockwise_answers_are_reversed():
    task = tasks.get("hull")
    clockwise = [np.array([0, 4, 3, 2])]
    assert task.canonicalize(SQUARE, clockwise)[0].tolist() == [2, 3, 4, 0]


def test_canonical_form_of_padded_answers():
    inputs = np.concatenate([SQUARE, SQUARE[:, ::-1]])
    answers = [np.array([0, 2, 3, 4]), np.array([4, 2, 1])]
    rows = tasks.get("hull").canonicalize(inputs, answers)
    assert rows[0].tolist() == [2, 3, 4, 0]
    assert rows[1].tolist() == [2, 1, 4]  # (0.1, 0.8), (0.2, 0.1), (0.9, 0.9)


def test_unknown_start_and_setting_are_refused():
    with pytest.raises(InputError, match="did you mean 'leftmost'"):
        tasks.get("hull", start="left-most")
    with pytest.raises(InputError, match="did you mean 'start'"):
        tasks.get("hull", starts="leftmost")


def test_drawing_is_a_closed_polygon():
    drawing = tasks.get("hull").draw(SQUARE[0], np.array([2, 3, 4]))
    assert drawing.lines[0].tolist()[0] == drawing.lines[0].tolist()[-1] == [0.1, 0.8]


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_orientation_is_exact_at_any_magnitude(size):
    clockwise = [np.array([0, 4, 3, 2])]
    answers = tasks.get("hull").canonicalize(SQUARE * size, clockwise)
    assert answers[0].tolist() == [2, 3, 4, 0]


@pytest.mark.parametrize("settings", [{"start": 5}, {"closed": "no"}, {"name": "x"}])
def test_settings_of_wrong_types_are_refused(settings):
    with pytest.raises(InputError):
        tasks.get("hull", **settings)
