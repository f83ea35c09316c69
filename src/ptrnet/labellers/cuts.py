"""Cuts between the boxes of a page: straight lines that cross no box (Nagy and Seth 1984).

A box is left, top, right, bottom, with y down. Boxes that touch, or overlap a little, can be cut
apart, because programs and people draw boxes inexactly.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ptrnet.pages.labels import BOTTOM, LEFT, RIGHT, TOP
from ptrnet.types import Floats, Indices

ROWS, COLUMNS = TOP, LEFT  # what a cut separates; also the first feature of the axis it is on

# How much of a box may lie beyond a cut: a share of the page, and of the box's own size, so that
# lines of small print stay whole.
_OF_PAGE, _OF_BOX = 0.005, 0.25

# Takes boxes `(n, 4)`. Returns the indices of its parts, in reading order. If there is no cut, it
# returns a single part, all boxes in reading order.
Split = Callable[[Floats], Sequence[Indices]]


def order_by_cuts(boxes: Floats, split: Split) -> Indices:
    """Return the order of boxes `(n, 4)`: cut them into parts, then each part in the same way."""
    order: list[Indices] = []
    stack = [top_to_bottom(boxes)]  # no recursion, because a page may need n cuts
    while stack:
        part = stack.pop()
        pieces = split(boxes[part]) if len(part) > 1 else [np.zeros(1, np.int64)]
        if len(pieces) == 1:
            order.append(part[pieces[0]])
        else:
            stack.extend(part[piece] for piece in reversed(pieces))
    return np.concatenate(order)


def top_to_bottom(boxes: Floats) -> Indices:
    """Return the boxes by their top, then by their left side; equal boxes in the order given."""
    return _lexsort(boxes, (TOP, LEFT, BOTTOM, RIGHT))


def pieces(boxes: Floats, axis: int) -> list[Indices]:
    """Return the parts of boxes `(n, 4)` after all cuts into `ROWS` or `COLUMNS`."""
    order, places, _ = gaps(boxes, axis)
    return np.split(order, places)


def gaps(boxes: Floats, axis: int) -> tuple[Indices, Indices, Floats]:
    """Return the gaps between boxes `(n, 4)` along an axis.

    First the order of the boxes along the axis `(n,)`, then for each gap the number of boxes before
    it, `(k,)`, and its width, `(k,)`.
    """
    other = COLUMNS if axis == ROWS else ROWS
    order = _lexsort(boxes, (axis, axis + 2, other, other + 2))
    starts, ends = boxes[order, axis], np.maximum.accumulate(boxes[order, axis + 2])
    widths = starts[1:] - ends[:-1]
    places = np.flatnonzero(widths >= 0)
    return order, places + 1, widths[places]


def fit_page(boxes: Floats) -> Floats:
    """Scale the boxes of a page to the unit square, and trim them so that they overlap less.

    Distances along both axes can be compared then, whatever units the boxes have. Boxes are
    `(n, 5)` or `(n, 4)`, and the result has no labels.
    """
    corner = boxes[:, [LEFT, TOP]].min(0)
    extent = boxes[:, [RIGHT, BOTTOM]].max(0) - corner
    scale = np.where(extent > 0, extent, 1.0)
    starts = (boxes[:, [LEFT, TOP]] - corner) / scale
    ends = (boxes[:, [RIGHT, BOTTOM]] - corner) / scale
    return np.hstack([starts, ends - np.minimum(_OF_PAGE, _OF_BOX * (ends - starts))])


def _lexsort(boxes: Floats, features: Sequence[int]) -> Indices:
    """Return the order of boxes by several features, the most important feature first."""
    return np.lexsort([boxes[:, k] for k in reversed(features)]).astype(np.int64)
