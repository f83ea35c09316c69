"""Pictures of answers: positions of points and lines, the gap in the title, marks of errors."""

from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imsave

import ptrnet
from ptrnet import tasks
from ptrnet.errors import InputError
from ptrnet.plots.answer import draw_answered, image_of
from ptrnet.plots.figure import axes
from ptrnet.types import Example, Page
from tests.support.pages import pdf

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.2]])


def named(outputs, names, points=POINTS):
    elements = None if names is None else [{"name": name} for name in names]
    return Example(points, np.array(outputs), elements=elements)


def drawn(truth=None, names=None):
    task, ax = tasks.get("hull"), Figure().add_subplot()
    draw_answered(ax, task, named([0, 1, 2], names), truth, author="", title="title")
    return ax


def test_points_and_lines_have_the_coordinates_of_the_instance():
    ax = drawn(names=["a", "b", "c", "d"])
    line, others, own = ax.lines
    assert line.get_xydata().tolist() == POINTS[[0, 1, 2, 0]].tolist()
    assert own.get_xydata().tolist() == POINTS[:3].tolist()
    assert others.get_xydata().tolist() == POINTS[3:].tolist()
    assert [t.get_text() for t in ax.texts] == ["a", "b", "c", "d"]


def test_the_true_answer_is_drawn_if_it_differs():
    ax = drawn(truth=np.array([0, 1, 3]))
    labels = [line.get_label() for line in ax.lines]
    assert labels[:2] == ["true answer", "answer"]
    assert ax.lines[0].get_linestyle() == "--"


def test_an_error_while_drawing_leaves_no_picture(tmp_path):
    with pytest.raises(ZeroDivisionError), axes(tmp_path / "a.png"):
        raise ZeroDivisionError
    with pytest.raises(InputError, match="expected a picture"), axes(tmp_path / "a.jpg"):
        pass
    assert not list(tmp_path.iterdir())


def test_equal_drawings_give_equal_svg_files(tmp_path):
    texts = []
    for _ in range(2):
        with axes(tmp_path / "a.svg") as ax:
            ax.plot([0, 1], [0, 1])
        texts.append((tmp_path / "a.svg").read_text())
    assert texts[0] == texts[1]


def test_a_dollar_in_a_name_does_not_start_a_formula(tmp_path):
    task = tasks.get("hull")
    with axes(tmp_path / "a.png") as ax:
        draw_answered(ax, task, named([0, 1, 2], ["$x^$", "b", "c", "d"]), None)
    assert (tmp_path / "a.png").exists()


def test_names_that_xml_or_the_font_cannot_hold_are_drawn(tmp_path):
    task = tasks.get("hull")
    names = ["a\x01b", "\u6771", "", "d"]
    with axes(tmp_path / "a.svg") as ax:
        draw_answered(ax, task, named([0, 1, 2], names), None)
    ElementTree.parse(tmp_path / "a.svg")


def test_coordinates_that_no_axis_holds_are_refused(tmp_path):
    task = tasks.get("hull")
    with pytest.raises(InputError, match="cannot be drawn"), axes(tmp_path / "a.png") as ax:
        draw_answered(ax, task, named([0, 1, 2], None, POINTS * 1.7e308), None)
    assert not list(tmp_path.iterdir())


SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def drawn_answered(task, example):
    ax = Figure().add_subplot()
    draw_answered(ax, task, example, None)
    return ax


def test_a_tour_has_its_optimum_and_its_gap():
    crossed = Example(SQUARE, np.array([0, 2, 1, 3]))
    lines = drawn_answered(tasks.get("tsp"), crossed).get_title(loc="left").splitlines()
    assert lines[0].endswith("length 4.82843")  # two sides, two diagonals
    assert lines[1] == "optimum 4, gap 20.71%"


def test_a_tour_on_the_earth_is_measured_there(small):
    """The title of a tour on the earth has kilometres, not degrees."""
    rng = np.random.default_rng(0)
    cities = Example(rng.uniform(0, 50, (6, 2)), distance="GEO")
    (answer,) = small("tsp").answer([cities])
    length = small("tsp").task.costs(cities, [answer.outputs])[0]
    title = answer.plot(Figure().add_subplot()).get_title(loc="left")
    assert answer.cost == length > 1000 and f"length {length:,.6g}" in title


def test_wrong_and_missing_triangles_are_marked():
    points, task = SQUARE + [[0, 0], [0, 0], [0, 0.1], [0, 0]], tasks.get("delaunay")
    truth = ptrnet.label("delaunay", points)[1]
    assert not drawn_answered(task, Example(points, truth)).patches
    halves = [np.array(t) for t in ([[0, 1, 2], [0, 2, 3]], [[0, 1, 3], [1, 2, 3]])]
    (wrong,) = (
        h for h in halves if {*map(frozenset, h.tolist())} != {*map(frozenset, truth.tolist())}
    )
    patches = drawn_answered(task, Example(points, wrong)).patches
    assert [patch.get_label() for patch in patches if patch.get_label()] == ["wrong", "missing"]
    corners = [{tuple(xy) for xy in patch.get_xy()} for patch in patches]
    assert corners == [{tuple(points[i]) for i in item} for item in [*wrong, *truth]]


def test_fields_name_elements_and_axes(small):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"city": ["Oslo", "Bern", "Rome"], "lon": SQUARE[:3, 0]})
    frame["lat"] = SQUARE[:3, 1]
    ax = small().plot(frame, Figure().add_subplot())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lon", "lat")
    assert {text.get_text() for text in ax.texts} == {"Oslo", "Bern", "Rome"}
    ax = small().plot_attention(frame, Figure().add_subplot())
    assert [tick.get_text() for tick in ax.get_xticklabels()][-3:] == ["Oslo", "Bern", "Rome"]


def test_pages_have_numbered_boxes_in_the_order_of_the_answer_over_their_image(tmp_path):
    image = np.zeros((30, 20, 3))
    imsave(tmp_path / "page.png", image)
    boxes = [[0, 10, 5, 20, 0], [10, 10, 20, 20, 0], [0, 0, 20, 5, 0]]
    task = tasks.get("reading-order")
    for name in ("page.png", "none.png"):
        page = Page("1", size=(20, 30), image=str(tmp_path / name))
        ax = Figure().add_subplot()
        example = Example(boxes, [2, 0, 1], page=page)
        draw_answered(ax, task, example, np.array([2, 1, 0]))
        places = {text.get_text(): text.get_position() for text in ax.texts}
        assert places == {"1": (0, 0), "2": (0, -10), "3": (10, -10)}
        *_, truth, answer = ax.lines
        assert answer.get_xydata().tolist() == [[10, -2.5], [2.5, -15], [15, -15]]
        assert truth.get_label() == "order in the file" and truth.get_linestyle() == "--"
        extents = [shown.get_extent() for shown in ax.images]
        assert extents == ([[0, 20, -30, 0]] if name == "page.png" else [])


def test_the_page_of_a_pdf_is_drawn(tmp_path):
    pytest.importorskip("pypdfium2")
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf([(20, 200, "text")]))
    image = image_of(Page("1", image=str(path)))
    assert image.shape[:2] == (600, 400)
    rows, columns = np.nonzero(image.min(2) < 128)  # dark where the text is
    assert 180 < rows.mean() < 205 and 40 < columns.mean() < 80
    assert image_of(Page("2", image=str(path))) is None
