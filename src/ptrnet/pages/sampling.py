"""Draw a page with a given number of boxes."""

from bisect import bisect
from itertools import accumulate

import numpy as np

from ptrnet.pages.dice import Dice
from ptrnet.pages.layouts import KINDS, draw_page, set_style
from ptrnet.pages.page import Box, Style
from ptrnet.pages.spoiling import crop, displace, fit, mistake
from ptrnet.types import Floats

LARGEST = 300  # boxes of a page
TRIES = 5  # pages of one style


def sample_page(rng: np.random.Generator, n: int, kind: str | None = None) -> Floats:
    """Draw a page of n boxes, `(n, 5)`, in reading order: left, top, right, bottom, label.

    The unit is the height of a line. Labels are numbers of `ptrnet.pages.labels.LABELS`.

    The page's size and density are changed until it has about n boxes. Then some boxes are merged,
    missed or cut to have exactly n.

    Args:
        n: the number of boxes, from 1 to 300.
        kind: the kind of page, a name of `KINDS`; None: any that is natural for n boxes.
    """
    if not 1 <= n <= LARGEST:
        raise ValueError(f"n: expected 1 to {LARGEST}, got {n}")
    dice = Dice(rng)
    while True:
        boxes = try_style(dice, n, kind or draw_kind(dice, n))
        if boxes:
            page = np.array(boxes, dtype=np.float64)
            page[:, :4] = displace(rng, page[:, :4])
            return page


def draw_kind(dice: Dice, n: int) -> str:
    """Draw a kind of page on which n boxes are natural."""
    names = [name for name, kind in KINDS.items() if kind.fewest <= n <= kind.most]
    ends = list(accumulate(KINDS[name].share for name in names))
    return names[bisect(ends, dice.random() * ends[-1])]


def try_style(dice: Dice, n: int, kind: str) -> list[Box] | None:
    """Draw pages of one style, larger or smaller each time. Returns None if none has n boxes."""
    lines = dice.chance(0.08 if n < 25 else 0.2 if n < 60 else 0.5 if n < 120 else 0.75)
    style = Style(dice, lines)
    set_style(kind, style, dice)
    if n > 100 and kind != "slide":
        style.lines_high = dice.log_between(50, 120)
    limits = (10, 30) if kind == "slide" else (24, 130)
    for _ in range(TRIES):
        boxes = draw_page(dice, kind, style).boxes
        count = len(boxes)
        chosen: list[Box] = []
        if 0.9 * n <= count <= max(1.15 * n, n + 1):
            chosen = boxes
        elif count > n and dice.chance(0.4 if n < 10 else 0.1):
            chosen = crop(dice, boxes, n)
        fitting = fit(dice, mistake(dice, chosen), n, lines) if chosen else None
        if fitting:
            return fitting
        # Change the size of the page, and the length of paragraphs, by random parts of the ratio.
        ratio = min(max(n / max(count, 1), 0.25), 4)
        power = dice.between(0.2, 0.8)
        style.lines_high = min(max(style.lines_high * ratio ** (0.7 * power), limits[0]), limits[1])
        style.paragraph = min(max(style.paragraph / ratio ** (1 - power), 1.3), 40)
    return None
