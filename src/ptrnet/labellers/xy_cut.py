"""Reading order by the recursive XY-cut, rows first (Nagy and Seth 1984).

A page is cut into rows wherever a horizontal line crosses no box, each row into columns, each
column into rows, and so on. Boxes that no line separates are read from top to bottom.
"""

from collections.abc import Sequence

from ptrnet.labellers import cuts
from ptrnet.types import Floats, Indices

HEURISTIC = True


def label(inputs: Floats) -> list[Indices]:
    """Return the orders of pages `(B, n, 5)`."""
    return [cuts.order_by_cuts(cuts.fit_page(boxes), rows_first) for boxes in inputs]


def rows_first(boxes: Floats) -> Sequence[Indices]:
    """Cut boxes `(n, 4)` into rows; if that is impossible, into columns."""
    return _first_possible(boxes, (cuts.ROWS, cuts.COLUMNS))


def columns_first(boxes: Floats) -> Sequence[Indices]:
    """Cut boxes `(n, 4)` into columns; if that is impossible, into rows."""
    return _first_possible(boxes, (cuts.COLUMNS, cuts.ROWS))


def _first_possible(boxes: Floats, axes: Sequence[int]) -> Sequence[Indices]:
    for axis in axes:
        parts = cuts.pieces(boxes, axis)
        if len(parts) > 1:
            return parts
    return [cuts.top_to_bottom(boxes)]
