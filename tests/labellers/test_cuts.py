"""Cuts between boxes, against the definition in plain loops."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ptrnet.labellers import cuts

sides = st.tuples(st.integers(0, 12), st.integers(1, 5)).map(lambda s: (s[0], s[0] + s[1]))
boxes_of_pages = st.lists(st.tuples(sides, sides), min_size=1, max_size=9).map(
    lambda page: np.array([[x[0], y[0], x[1], y[1]] for x, y in page], float)
)


def groups(boxes, axis):
    """Return sets of boxes that no line separates: those connected by overlaps along the axis."""
    sets = [{k} for k in range(len(boxes))]
    for a in range(len(boxes)):
        for b in range(a):
            low = max(boxes[a, axis], boxes[b, axis])
            if low < min(boxes[a, axis + 2], boxes[b, axis + 2]):
                joined = [s for s in sets if a in s or b in s]
                sets = [s for s in sets if s not in joined] + [set().union(*joined)]
    return sorted(sets, key=lambda s: min(boxes[k, axis] for k in s))


@settings(deadline=None)
@given(boxes_of_pages)
def test_pieces_are_the_groups_that_no_line_crosses(boxes):
    for axis in (cuts.ROWS, cuts.COLUMNS):
        parts = cuts.pieces(boxes, axis)
        assert [set(part.tolist()) for part in parts] == groups(boxes, axis)


def test_gaps_have_their_widths():
    boxes = np.array([[0, 0, 2, 1], [5, 0, 6, 1], [1, 0, 3, 1], [6, 0, 9, 1]], float)
    order, places, widths = cuts.gaps(boxes, cuts.COLUMNS)
    assert order.tolist() == [0, 2, 1, 3]
    assert (places.tolist(), widths.tolist()) == ([2, 3], [2, 0])


def test_a_page_fills_the_unit_square():
    page = np.array([[10, 100, 30, 400, 3], [20, 500, 50, 1100, 0]], float)
    fitted = cuts.fit_page(page)
    assert fitted.shape == (2, 4)
    np.testing.assert_allclose(fitted, [[0, 0, 0.5, 0.3], [0.25, 0.4, 1, 1]], atol=0.005)


def test_boxes_that_overlap_a_little_are_cut_apart_but_not_lines_side_by_side():
    overlapping = np.array([[0, 0, 100, 501], [0, 500, 100, 1000]], float)
    assert len(cuts.pieces(cuts.fit_page(overlapping), cuts.ROWS)) == 2
    lines = np.array([[0, 0, 40, 2], [60, 1, 100, 3], [0, 990, 100, 1000]], float)
    assert len(cuts.pieces(cuts.fit_page(lines), cuts.ROWS)) == 2
