"""The rules for reading orders, on pages with a known order, and against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptrnet import labellers, tasks
from ptrnet.pages.labels import LABELS

RULES = ("top-to-bottom", "xy-cut", "xy-cut-widest", "xy-cut-plus-plus")
CUTS = RULES[1:]


def page(*boxes):
    """Return a page `(n, 5)`; a box may have a label."""
    return np.array(
        [[*box[:4], LABELS.index(box[4]) + 1 if len(box) > 4 else 0] for box in boxes], float
    )


def order(rule, boxes):
    return labellers.get(rule)(boxes[None])[0]


def random_page(rng, n):
    corner, size = rng.random((n, 2)), rng.random((n, 2)) * rng.choice([0.05, 0.2, 0.5], (n, 1))
    return np.column_stack([corner, corner + size, rng.integers(0, len(LABELS) + 1, n)])


# A header, a title over the page, two columns, a note over the page, and a page number.
ARTICLE = page(
    (10, 2, 40, 4), (10, 8, 90, 12), (10, 15, 48, 30), (10, 32, 48, 70),
    (52, 15, 90, 50), (52, 52, 90, 70), (10, 75, 90, 80), (48, 95, 52, 97),
)  # fmt: skip


@pytest.mark.parametrize("rule", CUTS)
def test_columns_are_read_one_after_the_other(rule):
    assert order(rule, ARTICLE).tolist() == list(range(len(ARTICLE)))


def test_top_to_bottom_knows_no_columns():
    assert order("top-to-bottom", ARTICLE).tolist() == [0, 1, 2, 4, 3, 5, 6, 7]


GRID = page(
    (0, 0, 40, 20), (60, 0, 100, 20), (0, 30, 40, 50), (60, 30, 100, 50),
)  # fmt: skip


def test_rows_come_first_unless_the_gap_between_columns_is_wide():
    assert order("xy-cut", GRID).tolist() == [0, 1, 2, 3]
    assert order("xy-cut-widest", GRID).tolist() == [0, 2, 1, 3]


def test_a_gap_between_columns_counts_double():
    """Two columns with a gap of 6% of the page, and paragraphs with gaps of 10%."""
    columns = page((0, 0, 47, 45), (0, 55, 47, 100), (53, 0, 100, 45), (53, 55, 100, 100))
    assert order("xy-cut-widest", columns).tolist() == [0, 1, 2, 3]
    sections = page((0, 0, 47, 43), (53, 0, 100, 43), (0, 57, 47, 100), (53, 57, 100, 100))
    assert order("xy-cut-widest", sections).tolist() == [0, 1, 2, 3]


def test_boxes_that_no_line_separates_are_read_from_top_to_bottom():
    pinwheel = page(
        (0, 0, 60, 40), (60, 0, 100, 60), (0, 40, 40, 100), (40, 60, 100, 100), (40, 40, 60, 60)
    )
    assert order("xy-cut", pinwheel).tolist() == [0, 1, 2, 4, 3]


def test_a_wide_box_between_columns_is_put_back_after_those_above_it():
    """The wide box reaches into both columns, so that no line separates it from them."""
    boxes = page(
        (0, 0, 46, 30), (0, 32, 46, 50), (54, 0, 100, 20), (54, 22, 100, 49),
        (0, 49, 100, 60),
        (0, 58, 46, 80), (0, 82, 46, 100), (54, 58, 100, 80), (54, 82, 100, 100),
    )  # fmt: skip
    ordered = order("xy-cut-plus-plus", boxes).tolist()
    assert [k for k in ordered if k != 4] != [k for k in order("xy-cut", boxes) if k != 4]
    assert ordered.index(1) < ordered.index(4) < ordered.index(5)


def test_a_title_that_disturbs_the_cuts_is_put_back_before_its_text():
    """The title is deeper than the gap between the columns, and beside the right one."""
    boxes = page(
        (30, 0, 70, 14, "title"), (0, 10, 48, 50), (0, 52, 48, 100), (52, 12, 100, 60),
        (52, 62, 100, 100),
    )  # fmt: skip
    assert order("xy-cut-plus-plus", boxes).tolist() == [0, 1, 2, 3, 4]
    boxes[:, -1] = 0
    assert order("xy-cut-plus-plus", boxes).tolist() != [0, 1, 2, 3, 4]


def test_a_picture_in_the_middle_of_the_page_divides_it():
    boxes = page(
        (0, 0, 48, 30), (52, 0, 100, 40), (20, 42, 80, 58, "picture"), (0, 60, 48, 100),
        (52, 61, 100, 100),
    )  # fmt: skip
    ordered = order("xy-cut-plus-plus", boxes).tolist()
    assert [k for k in ordered if k != 2] == [0, 1, 3, 4]


def test_a_page_of_pictures_alone_has_an_order():
    boxes = page((0, 0, 48, 100, "picture"), (52, 0, 100, 100, "table"))
    assert order("xy-cut-plus-plus", boxes).tolist() == [0, 1]


def plain_order(boxes, indices, axis=1, failed=False):
    """Return the XY-cut of disjoint intervals by its definition, with recursion."""
    if len(indices) == 1:
        return indices
    lines = sorted({boxes[k][axis] for k in indices})
    parts, rest = [], list(indices)
    for line in lines:
        before = [k for k in rest if boxes[k][axis + 2] <= line]
        if before and all(boxes[k][axis] >= line for k in rest if k not in before):
            parts, rest = [*parts, before], [k for k in rest if k not in before]
    parts.append(rest)
    if len(parts) == 1 and failed:
        return sorted(indices, key=lambda k: (boxes[k][1], boxes[k][0]))
    found = len(parts) > 1
    other = 1 - axis
    if not found:
        return plain_order(boxes, indices, other, True)
    return [k for part in parts for k in plain_order(boxes, part, 1)]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(*4 * [st.integers(0, 6)], st.integers(1, 3), st.integers(1, 3)),
        min_size=1,
        max_size=10,
        unique_by=lambda b: b[:2],
    )
)
def test_xy_cut_equals_its_definition(numbers):
    boxes = page(*[(x, y, x + w, y + h) for x, y, _, _, w, h in numbers])
    expected = plain_order(boxes.tolist(), list(range(len(boxes))))
    assert order("xy-cut", boxes).tolist() == expected


coordinates = st.integers(0, 4)
boxes_of_any_kind = st.lists(
    st.tuples(coordinates, coordinates, coordinates, coordinates, st.integers(0, len(LABELS))).map(
        lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]), b[4])
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("rule", RULES)
@settings(deadline=None)
@given(boxes=boxes_of_any_kind)
def test_every_page_gets_a_permutation(rule, boxes):
    """Among them are pages of equal boxes, boxes without area and nested boxes."""
    boxes = np.array(boxes, float)
    assert sorted(order(rule, boxes).tolist()) == list(range(len(boxes)))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [1, 2, 7, 40, 300])
def test_the_order_does_not_depend_on_units_and_given_order(rule, n):
    rng = np.random.default_rng(n)
    for _ in range(20 if n < 100 else 3):
        boxes = random_page(rng, n)
        expected = boxes[order(rule, boxes)]
        shuffled = rng.permutation(boxes)
        np.testing.assert_array_equal(shuffled[order(rule, shuffled)], expected)
        moved = boxes * [4, 1024, 4, 1024, 1]
        np.testing.assert_array_equal(boxes[order(rule, moved)], expected)


@pytest.mark.parametrize("rule", RULES)
def test_the_order_does_not_depend_on_the_place_of_the_page(rule):
    rng = np.random.default_rng(0)
    for _ in range(30):
        corner = rng.integers(0, 900, (25, 2))
        boxes = np.column_stack([corner, corner + rng.integers(1, 200, (25, 2)), np.zeros(25)])
        moved = boxes + [-500, 3000, -500, 3000, 0]
        np.testing.assert_array_equal(order(rule, moved), order(rule, boxes))


@pytest.mark.parametrize("rule", ["xy-cut", "xy-cut-widest"])
def test_cuts_within_cuts_need_no_recursion(rule):
    """Strips are cut off at the top and at the left side in turn, one for each level."""
    start = np.arange(1200.0) // 2
    is_top = np.arange(1200) % 2 == 0
    boxes = np.column_stack(
        [
            start,
            np.where(is_top, start, start + 1),
            np.where(is_top, 600, start + 0.9),
            np.where(is_top, start + 0.9, 600),
            np.zeros(1200),
        ]
    )
    assert order(rule, boxes).tolist() == list(range(1200))


def test_the_task_offers_the_rules():
    assert set(RULES) <= set(tasks.get("reading-order").facts.labellers)
    assert all(labellers.is_heuristic(rule) for rule in RULES)
