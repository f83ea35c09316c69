"""Importance of a model's fields: bars of how much a metric loses if a field is shuffled."""

from collections.abc import Mapping
from typing import Any

from ptrnet.metrics import Measure
from ptrnet.plots.answer import ANSWER_COLOR, QUIET_COLOR, quieten

MAX_BARS = 30  # only the most important fields are drawn


def bars_height(count: int) -> float:
    """Return the height in inches that `count` bars need."""
    return 1.2 + 0.28 * min(count, MAX_BARS)


def draw_importance(ax: Any, importance: Mapping[str, Measure], metric: str) -> None:
    """Draw a bar with its interval for each field, the most important field on top.

    Args:
        importance: for each field, how much the metric falls if the field is shuffled, the largest
            fall first. Only the first `MAX_BARS` fields are drawn.
    """
    rows = [(name, m) for name, m in importance.items() if m.value is not None][:MAX_BARS]
    for place, (_, measure) in enumerate(rows):
        assert measure.value is not None
        ax.barh(place, measure.value, height=0.7, color=ANSWER_COLOR, zorder=2)
        if measure.low is not None and measure.high is not None:
            ax.plot([measure.low, measure.high], [place] * 2, color=QUIET_COLOR, lw=1.4, zorder=3)
    ax.set_yticks(range(len(rows)), [name for name, _ in rows], parse_math=False)
    ax.invert_yaxis()
    ax.axvline(0, color=QUIET_COLOR, lw=0.8)
    ax.set_xlabel(f"{metric} lost when the field is shuffled, with 95% interval", fontsize=9)
    quieten(ax)
