"""What a picture says of an answer: how good it is, and what of it is wrong."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import ptrnet
from ptrnet import tasks
from ptrnet.plots.answer import draw_answered
from ptrnet.types import Example

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def drawn(task, example):
    ax = Figure().add_subplot()
    draw_answered(ax, task, example, None)
    return ax


def test_a_tour_has_its_optimum_and_its_gap():
    crossed = Example(SQUARE, np.array([0, 2, 1, 3]))
    lines = drawn(tasks.get("tsp"), crossed).get_title(loc="left").splitlines()
    assert lines[0].endswith("length 4.82843")  # two sides, two diagonals
    assert lines[1] == "optimum 4, gap 20.71%"


def test_a_tour_on_the_earth_is_measured_there(small):
    """A picture by Python measured the degrees, one by the program the kilometres."""
    rng = np.random.default_rng(0)
    cities = Example(rng.uniform(0, 50, (6, 2)), distance="GEO")
    (answer,) = small("tsp").answer([cities])
    length = small("tsp").task.costs(cities, [answer.outputs])[0]
    title = answer.plot(Figure().add_subplot()).get_title(loc="left")
    assert answer.cost == length > 1000 and f"length {length:,.6g}" in title


def test_wrong_triangles_and_missing_ones_are_marked():
    points, task = SQUARE + [[0, 0], [0, 0], [0, 0.1], [0, 0]], tasks.get("delaunay")
    truth = ptrnet.label("delaunay", points)[1]
    assert not drawn(task, Example(points, truth)).patches
    halves = [np.array(t) for t in ([[0, 1, 2], [0, 2, 3]], [[0, 1, 3], [1, 2, 3]])]
    (wrong,) = (
        h for h in halves if {*map(frozenset, h.tolist())} != {*map(frozenset, truth.tolist())}
    )
    patches = drawn(task, Example(points, wrong)).patches
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
