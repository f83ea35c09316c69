import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from ptrnet.metrics import Measure
from ptrnet.plots.importance import MAX_BARS, draw_importance


def test_bars_show_the_losses_with_the_largest_on_top():
    ax = Figure().add_subplot()
    losses = {"price $": Measure(0.3, 0.2, 0.4, 9), "size": Measure(0.1, None, None, 1)}
    draw_importance(ax, losses, "accuracy")
    assert [bar.get_width() for bar in ax.patches] == [0.3, 0.1]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["price $", "size"]
    assert ax.yaxis_inverted() and "accuracy" in ax.get_xlabel()
    assert list(ax.lines[0].get_xdata()) == [0.2, 0.4]


def test_only_the_most_important_of_many_fields_are_drawn():
    ax = Figure().add_subplot()
    draw_importance(ax, {f"f{k}": Measure(-float(k), -k, -k, 5) for k in range(99)}, "f1")
    assert len(ax.patches) == MAX_BARS
