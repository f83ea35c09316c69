"""Drawn pages are compared with pages that a browser lays out: both orders follow from a source."""

from pathlib import Path

import numpy as np
import pytest

from ptrnet.pages import sample_page
from tests.support.typesetting import CHROMIUM, KINDS, open_tab, typeset

LEFT, TOP, RIGHT, BOTTOM = range(4)


@pytest.fixture(scope="module")
def laid_out():
    """64 pages, `(n, 5)` each."""
    pytest.importorskip("playwright.sync_api")
    if not Path(CHROMIUM).is_file():
        pytest.skip(f"no browser: neither {CHROMIUM} nor what PTRNET_CHROMIUM names")
    with open_tab() as tab:
        return [boxes for _, boxes in typeset(tab, np.random.default_rng(0), 8 * len(KINDS))]


@pytest.fixture(scope="module")
def drawn(laid_out):
    """Ten times as many pages, with the same numbers of boxes."""
    rng = np.random.default_rng(1)
    return [sample_page(rng, len(boxes)) for boxes in laid_out for _ in range(10)]


def scaled(page):
    low, high = page[:, :2].min(0), page[:, 2:4].max(0)
    return (page[:, :4] - np.tile(low, 2)) / np.tile(high - low, 2)


def width(page):
    return np.median(page[:, RIGHT] - page[:, LEFT])


def height(page):
    return np.median(page[:, BOTTOM] - page[:, TOP])


def gap(page):
    """The median distance of a box from the next if this is below it."""
    gaps = page[1:, TOP] - page[:-1, BOTTOM]
    return np.median(gaps[gaps >= 0]) if (gaps >= 0).any() else 0


def covered(page):
    """The share of the page that boxes cover, if they do not overlap."""
    return ((page[:, RIGHT] - page[:, LEFT]) * (page[:, BOTTOM] - page[:, TOP])).sum()


def step_right(page):
    """The share of boxes whose successor is right of them and beside them."""
    before, after = page[:-1], page[1:]
    beside = np.minimum(before[:, BOTTOM], after[:, BOTTOM]) > np.maximum(
        before[:, TOP], after[:, TOP]
    )
    return np.mean(beside & (after[:, LEFT] >= before[:, RIGHT] - 0.01))


def step_up(page):
    """The share of boxes whose successor is right of them and above them: the next column."""
    before, after = page[:-1], page[1:]
    return np.mean((after[:, BOTTOM] <= before[:, TOP] + 0.01) & (after[:, LEFT] > before[:, LEFT]))


def step_back(page):
    """The share of boxes whose successor begins at their left and lower: the next row."""
    before, after = page[:-1], page[1:]
    return np.mean((after[:, TOP] > before[:, TOP]) & (after[:, RIGHT] <= before[:, LEFT] + 0.01))


@pytest.mark.parametrize("statistic", [width, height, gap, covered])
def test_sizes_and_gaps_are_within_the_range_of_drawn_pages(laid_out, drawn, statistic):
    low, high = np.quantile([statistic(scaled(page)) for page in drawn], [0.03, 0.97])
    values = np.array([statistic(scaled(page)) for page in laid_out])
    assert np.mean((values >= low) & (values <= high)) > 0.75
    assert low < np.median(values) < high


@pytest.mark.parametrize("step", [step_right, step_up, step_back])
def test_readers_of_both_go_right_up_and_back_equally_often(laid_out, drawn, step):
    """Within a factor of 2.5, because the mixtures of kinds differ."""
    expected = np.mean([step(scaled(page)) for page in laid_out])
    assert expected / 2.5 < np.mean([step(scaled(page)) for page in drawn]) < 2.5 * expected


def test_nothing_moves_left_and_up(laid_out, drawn):
    """Readers of neither go to a box that is both above and left of all of the last one."""
    for pages in (laid_out, drawn):
        steps = total = 0
        for page in map(scaled, pages):
            before, after = page[:-1], page[1:]
            up = after[:, BOTTOM] < before[:, TOP] - 0.02
            left = after[:, RIGHT] < before[:, LEFT] - 0.02
            steps, total = steps + np.sum(up & left), total + len(before)
        assert steps < 0.01 * total
