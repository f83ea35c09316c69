"""An instance with the network's answer, and the true one where they differ."""

from collections.abc import Sequence
from typing import Any

from ptrnet.errors import InputError
from ptrnet.tasks.base import Drawing

OURS, TRUE, INK = "#1f5fbf", "#d1495b", "#333333"
MOST_NAMES = 60  # more would hide the points
LARGEST = 1e300  # axes have margins, and those are finite


def draw_answer(
    ax: Any,
    ours: Drawing,
    true: Drawing | None = None,
    names: Sequence[str] = (),
    title: str = "",
) -> None:
    """Draws points and the answer's lines on `ax`.

    Args:
        ours: the network's answer.
        true: the right answer, drawn dashed; None where it is the same or not known.
        names: of the points, written beside them when there are few enough.
        title: above the picture.
    """
    if abs(ours.points).max(initial=0) > LARGEST:
        raise InputError(f"coordinates beyond {LARGEST:g} cannot be drawn")
    if true is not None:
        for k, line in enumerate(true.lines):
            ax.plot(*line.T, "--", color=TRUE, lw=1.6, label="true answer" if not k else None)
    for k, line in enumerate(ours.lines):
        ax.plot(*line.T, "-", color=OURS, lw=1.6, label="network's answer" if not k else None)
    ax.plot(*ours.points.T, "o", color=INK, ms=4, zorder=3)
    if len(names) <= MOST_NAMES:
        for name, point in zip(names, ours.points, strict=False):
            name = "".join(c for c in name if c.isprintable())
            place = {"xytext": (3, 3), "textcoords": "offset points", "fontsize": 6}
            ax.annotate(name, point, parse_math=False, **place)  # a $ in a name is a $
    ax.set_title(title)
    if ours.equal_axes:
        ax.set_aspect("equal", adjustable="datalim")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=2, frameon=False)
