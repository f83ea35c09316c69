"""Reading order by the recursive XY-cut at the widest gap.

A page is cut in two at its widest gap, and both parts in the same way. Gaps between columns are
narrower than gaps between sections, and separate more, so we count them double. Gaps are compared
in shares of the page.
"""

from collections.abc import Sequence

import numpy as np

from ptrnet.labellers import cuts
from ptrnet.types import Floats, Indices

HEURISTIC = True
_WEIGHTS = {cuts.ROWS: 1.0, cuts.COLUMNS: 2.0}  # of equally wide gaps, the first axis wins


def label(inputs: Floats) -> list[Indices]:
    """Return the orders of pages `(B, n, 5)`."""
    return [cuts.order_by_cuts(cuts.fit_page(boxes), _at_widest) for boxes in inputs]


def _at_widest(boxes: Floats) -> Sequence[Indices]:
    widest, parts = -1.0, [cuts.top_to_bottom(boxes)]
    for axis, weight in _WEIGHTS.items():
        order, places, widths = cuts.gaps(boxes, axis)
        if len(places) and (width := weight * widths.max()) > widest:
            widest, parts = width, np.split(order, places[[widths.argmax()]])
    return parts
