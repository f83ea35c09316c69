from itertools import combinations

import numpy as np
import pytest

from ptrnet.pages import page as page_module
from ptrnet.pages import sample_page
from ptrnet.pages.bands import cards, columns
from ptrnet.pages.blocks import column
from ptrnet.pages.dice import Dice
from ptrnet.pages.labels import LABELS
from ptrnet.pages.layouts import KINDS, draw_page
from ptrnet.pages.page import DROP_CAPITAL, TEXT, Page, Region, Style
from ptrnet.pages.spoiling import crop

LEFT, TOP, RIGHT, BOTTOM = range(4)


def rng(seed=0):
    return np.random.default_rng(seed)


def plain_style(dice, **options):
    """A style of text alone, in columns of equal widths that no heading or figure interrupts."""
    style = Style(dice, lines=False)
    fixed = {"mixed": False, "side_headings": False, "gutter": 3.0, "gap": 0.5, "paragraph": 5.0}
    for name in ("headings", "pictures", "tables", "formulas", "lists", "codes"):
        fixed[name] = 0.0
    for name, value in {**fixed, **options}.items():
        setattr(style, name, value)
    return style


def overlap(a, b):
    """The shared area of two boxes as a share of the smaller."""
    width = min(a[RIGHT], b[RIGHT]) - max(a[LEFT], b[LEFT])
    height = min(a[BOTTOM], b[BOTTOM]) - max(a[TOP], b[TOP])
    smaller = min((c[RIGHT] - c[LEFT]) * (c[BOTTOM] - c[TOP]) for c in (a, b))
    return max(width, 0) * max(height, 0) / smaller


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 13, 30, 60, 99, 150, 300])
def test_pages_have_exactly_n_boxes_with_an_area_and_a_label(n):
    generator = rng(n)
    for _ in range(max(3, 100 // n)):
        page = sample_page(generator, n)
        assert page.shape == (n, 5) and page.dtype == np.float64
        assert np.isfinite(page).all()
        assert (page[:, LEFT] < page[:, RIGHT]).all() and (page[:, TOP] < page[:, BOTTOM]).all()
        assert np.isin(page[:, 4], np.arange(1, len(LABELS) + 1)).all()


@pytest.mark.parametrize("n", [0, 301])
def test_other_numbers_of_boxes_are_refused(n):
    with pytest.raises(ValueError, match=f"expected 1 to 300, got {n}"):
        sample_page(rng(), n)


def test_the_generator_alone_decides_the_page():
    for n in (1, 8, 40):
        first, second = sample_page(rng(n), n), sample_page(rng(n), n)
        assert (first == second).all()
        assert not np.array_equal(first, sample_page(rng(n + 1), n))


def test_label_numbers_are_those_of_the_task():
    for number, name in enumerate(LABELS, 1):
        assert getattr(page_module, name.upper()) == number


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_page_can_be_drawn(kind):
    generator = rng(1)
    fewest, most = KINDS[kind].fewest, KINDS[kind].most
    for n in {fewest, (fewest + min(most, 60)) // 2, min(most, 60)}:
        assert len(sample_page(generator, n, kind)) == n


def test_all_labels_are_drawn():
    generator = rng(2)
    drawn = np.concatenate([sample_page(generator, 40)[:, 4] for _ in range(300)])
    assert set(drawn) == set(range(1, len(LABELS) + 1))


def drawn(draw, seed, **style):
    """The boxes `(n, 5)` that a layout draws into a region of 60 by 60 lines."""
    dice = Dice(rng(seed))
    page = Page(dice, plain_style(dice, **style))
    draw(page, Region(0, 0, 60, 60))
    return np.array(page.boxes)


def test_a_column_is_read_from_top_to_bottom():
    for seed in range(50):
        boxes = drawn(column, seed, as_lines=seed % 2 == 0, headings=0.2, lists=0.2)
        assert (np.diff(boxes[:, TOP]) >= 0).all()


@pytest.mark.parametrize("count", [2, 3, 4])
def stripes(boxes):
    """The number of the column of each box: columns are what vertical white stripes separate."""
    number, end, numbers = -1, -np.inf, {}
    for k in np.argsort(boxes[:, LEFT]):
        number += boxes[k, LEFT] > end + 1
        end = max(end, boxes[k, RIGHT])
        numbers[k] = number
    return [numbers[k] for k in range(len(boxes))]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_columns_are_read_one_after_the_other(count):
    """Brute force: sort boxes by the column that they are in, then by their tops."""
    for seed in range(50):
        style = {"as_lines": seed % 2 == 0}
        boxes = drawn(lambda page, region: columns(page, region, count), seed, **style)
        boxes = boxes[np.isin(boxes[:, 4], (TEXT, DROP_CAPITAL))]  # footnotes are read last
        numbers = stripes(boxes)
        assert len(set(numbers)) == count
        assert (np.lexsort((boxes[:, TOP], numbers)) == np.arange(len(boxes))).all()


def test_cards_are_read_row_by_row():
    """Where a row begins, all boxes before it are above all boxes after it."""
    rows = 0
    for seed in range(50):
        boxes = drawn(cards, seed, filled=True)
        lowest = np.maximum.accumulate(boxes[:, BOTTOM])
        starts = [k for k in range(1, len(boxes)) if boxes[k, LEFT] < boxes[k - 1, LEFT] - 5]
        assert all(lowest[k - 1] < boxes[k:, TOP].min() for k in starts)
        rows += 1 + len(starts)
    assert rows > 200


def test_few_boxes_overlap_much():
    """Only drop capitals, quotations and boxes found twice do."""
    generator = rng(3)
    pairs = total = 0
    for _ in range(300):
        page = sample_page(generator, 25)
        total += len(page)
        others = page[page[:, 4] != DROP_CAPITAL]
        pairs += sum(overlap(a, b) > 0.5 for a, b in combinations(others, 2))
    assert pairs < 0.03 * total


def test_a_part_of_a_page_is_what_lies_between_two_heights():
    for seed in range(50):
        dice = Dice(rng(seed))
        page = draw_page(dice, "flow", Style(dice, lines=False))
        part = crop(dice, page.boxes, 3)
        if part:
            first = page.boxes.index(part[0])
            assert part == page.boxes[first : first + 3]
            assert all(box.bottom <= part[0].top + 0.2 for box in page.boxes[:first])
            assert all(box.top >= part[-1].top for box in page.boxes[first + 3 :])
