import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from ptrnet.metrics import Moments
from ptrnet.plots.reliability import draw_reliability
from ptrnet.types import Example
from tests.support.plackett_luce import plackett_luce


def points_of(ax):
    """Return the drawn means and shares from left to right; each has an interval."""
    return sorted(tuple(np.ravel(c.lines[0].get_data())) for c in ax.containers)


def test_a_point_is_the_mean_probability_and_the_share_that_is_right():
    ax = Figure().add_subplot()
    probabilities = np.array([0.62, 0.68, 0.65, 0.95])
    right = np.array([True, False, False, True])
    draw_reliability(ax, probabilities, right, "the answer is right")
    assert points_of(ax) == [pytest.approx((0.65, 1 / 3)), pytest.approx((0.95, 1))]
    assert [text.get_text() for text in ax.texts] == ["3", "1"]
    bars = ax.containers[0].lines[2][0].get_segments()[0]
    wilson = Moments.of(right[:3]).measure()
    assert bars[:, 1] == pytest.approx([wilson.low, wilson.high])
    assert "the answer is right" in ax.get_xlabel()


def test_a_choice_claims_its_likeliest_element_and_a_set_every_element():
    scores = np.array([[0.0], [2.0], [-1.0]])
    figure = Figure()
    solver = plackett_luce("choice")
    ax = solver.plot_reliability([(scores, [1])] * 4, figure.add_subplot())
    confidence = solver.predict_proba(scores)[1]
    assert points_of(ax) == [pytest.approx((confidence, 1))]
    solver = plackett_luce("set")
    ax = solver.plot_reliability([(scores, [0, 1])] * 4, figure.add_subplot())
    probabilities = sorted(solver.predict_proba(scores))
    expected = zip(probabilities, [0, 1, 1], strict=True)
    assert points_of(ax) == [pytest.approx(point) for point in expected]


def test_a_weight_of_two_counts_like_two_claims():
    """Also for elements of sets, which have the weight of their set; a weight of 0 leaves out."""
    figure = Figure()
    x = np.array([[0.0], [2.0], [-1.0]])
    for kind, right, wrong in (("choice", [1], [2]), ("set", [0, 1], [2])):
        solver = plackett_luce(kind)
        weighted = [Example(x, np.array(right)), Example(x, np.array(wrong), weight=2.0)]
        weighted.append(Example(x, np.array(right), weight=0.0))
        repeated = [(x, right), (x, wrong), (x, wrong)]
        drawn = [solver.plot_reliability(e, figure.add_subplot()) for e in (weighted, repeated)]
        assert points_of(drawn[0]) == [pytest.approx(point) for point in points_of(drawn[1])]
