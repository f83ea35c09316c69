from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from ptrnet import tasks
from ptrnet.errors import InputError
from ptrnet.plots.answer import draw_answer
from ptrnet.plots.figure import axes

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.2]])


def drawn(truth=None, names=()):
    task, ax = tasks.get("hull"), Figure().add_subplot()
    answer = task.draw(POINTS, np.array([0, 1, 2]))
    draw_answer(
        ax, answer, None if truth is None else task.draw(POINTS, truth), names, "title", [0, 1, 2]
    )
    return ax


def test_points_and_lines_are_where_they_should_be():
    ax = drawn(names=["a", "b", "c", "d"])
    line, others, own = ax.lines
    assert line.get_xydata().tolist() == POINTS[[0, 1, 2, 0]].tolist()
    assert own.get_xydata().tolist() == POINTS[:3].tolist()
    assert others.get_xydata().tolist() == POINTS[3:].tolist()
    assert [t.get_text() for t in ax.texts] == ["a", "b", "c", "d"]


def test_the_true_answer_is_drawn_where_it_differs():
    ax = drawn(truth=np.array([0, 1, 3]))
    labels = [line.get_label() for line in ax.lines]
    assert labels[:2] == ["true answer", "network's answer"]
    assert ax.lines[0].get_linestyle() == "--"


def test_an_error_while_drawing_leaves_no_picture(tmp_path):
    with pytest.raises(ZeroDivisionError), axes(tmp_path / "a.png"):
        raise ZeroDivisionError
    with pytest.raises(InputError, match="expected a picture"), axes(tmp_path / "a.jpg"):
        pass
    assert not list(tmp_path.iterdir())


def test_one_drawing_has_one_svg(tmp_path):
    texts = []
    for _ in range(2):
        with axes(tmp_path / "a.svg") as ax:
            ax.plot([0, 1], [0, 1])
        texts.append((tmp_path / "a.svg").read_text())
    assert texts[0] == texts[1]


def test_a_dollar_in_a_name_is_a_dollar(tmp_path):
    task = tasks.get("hull")
    with axes(tmp_path / "a.png") as ax:
        draw_answer(ax, task.draw(POINTS, np.array([0, 1, 2])), None, ["$x^$", "b", "c", "d"])
    assert (tmp_path / "a.png").exists()


def test_names_that_xml_or_the_font_cannot_hold(tmp_path):
    task = tasks.get("hull")
    names = ["a\x01b", "\u6771", "", "d"]
    with axes(tmp_path / "a.svg") as ax:
        draw_answer(ax, task.draw(POINTS, np.array([0, 1, 2])), None, names)
    ElementTree.parse(tmp_path / "a.svg")


def test_coordinates_that_no_axis_holds_are_refused(tmp_path):
    task = tasks.get("hull")
    with pytest.raises(InputError, match="cannot be drawn"), axes(tmp_path / "a.png") as ax:
        draw_answer(ax, task.draw(POINTS * 1.7e308, np.array([0, 1, 2])))
    assert not list(tmp_path.iterdir())
