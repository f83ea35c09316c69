import pandas as pd
from matplotlib.figure import Figure

from ptrnet.plots.shares import MAX_ALTERNATIVES, draw_shares, shares_height


def frame(count, **columns):
    rows = {"mode": [f"mode {k}" for k in range(count)]}
    for name, value in columns.items():
        rows |= {name: [value] * count, f"{name}_low": [value - 0.1] * count}
        rows[f"{name}_high"] = [value + 0.2] * count
    return pd.DataFrame(rows)


def drawn(shares):
    ax = Figure().add_subplot()
    draw_shares(ax, shares, "mode")
    return ax


def test_each_alternative_has_a_point_and_an_interval_before_and_after():
    ax = drawn(frame(3, before=0.3, after=0.2))
    before, after = ax.lines
    assert before.get_label() == "before" and list(before.get_xdata()) == [0.3] * 3
    assert after.get_label() == "after" and list(after.get_xdata()) == [0.2] * 3
    intervals = [c.get_segments()[0][:, 0].round(6).tolist() for c in ax.collections]
    assert intervals == [[0.2, 0.5], [0.1, 0.4]]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["mode 0", "mode 1", "mode 2"]
    assert ax.get_legend() is not None


def test_shares_without_a_change_and_many_alternatives():
    ax = drawn(frame(MAX_ALTERNATIVES + 5, before=0.3))
    assert len(ax.lines) == 1 and ax.get_legend() is None
    assert len(ax.get_yticklabels()) == MAX_ALTERNATIVES
    assert shares_height(1000) == shares_height(MAX_ALTERNATIVES) > shares_height(2)
