"""Mistakes of detectors: boxes missed, merged, cut, doubled or moved, and pages that lie askew."""

import numpy as np

from ptrnet.pages.dice import Dice
from ptrnet.pages.page import FOOTNOTE, LIST_ITEM, TEXT, Box
from ptrnet.types import Floats

RUNNING = (TEXT, LIST_ITEM, FOOTNOTE)  # labels of text that may be cut and merged


def crop(dice: Dice, boxes: list[Box], n: int) -> list[Box]:
    """Return n boxes that are a part of the page from one height to another; empty if none is.

    All boxes before such a part are above it, and all boxes after it are below it, so the order of
    the part follows from what is in it.
    """
    count = len(boxes)
    above, below = [-float("inf")], [float("inf")]
    for box in boxes:
        above.append(max(above[-1], box.bottom))
    for box in reversed(boxes):
        below.append(min(below[-1], box.top))
    below.reverse()
    cuts = [above[k] <= below[k] + 0.2 for k in range(count + 1)]
    starts = [k for k in range(count - n + 1) if cuts[k] and cuts[k + n]]
    if not starts:
        return []
    start = dice.pick(*starts)
    return boxes[start : start + n]


def mistake(dice: Dice, boxes: list[Box]) -> list[Box]:
    """Miss, merge or double some of the boxes, on some pages."""
    if dice.chance(0.2):
        share = dice.between(0, 0.1)
        boxes = [box for box in boxes if not dice.chance(share)] or boxes
    if dice.chance(0.1):
        merged = boxes[:1]
        for box in boxes[1:]:
            if dice.chance(0.15) and mergeable(merged[-1], box):
                box = union(merged.pop(), box)
            merged.append(box)
        boxes = merged
    if dice.chance(0.06):
        doubled = []
        for box in boxes:
            doubled.append(box)
            if dice.chance(0.06):
                doubled.append(inside(dice, box))
        boxes = doubled
    return boxes


def inside(dice: Dice, box: Box) -> Box:
    """Return a smaller box, which begins lower and more to the right, for a box found twice."""
    width, height = box.right - box.left, box.bottom - box.top
    return Box(
        box.left + width * dice.between(0.02, 0.1),
        box.top + height * dice.between(0.1, 0.3),
        box.right - width * dice.between(0, 0.1),
        box.bottom,
        box.label,
    )


def mergeable(first: Box, second: Box) -> bool:
    """Whether two boxes are neighbours of a column, of the same kind of text."""
    return (
        first.label == second.label
        and first.label in RUNNING
        and abs(first.left - second.left) < 2
        and -0.3 <= second.top - first.bottom < 1.6
    )


def union(first: Box, second: Box) -> Box:
    """Return the smallest box that holds both."""
    return Box(
        min(first.left, second.left),
        min(first.top, second.top),
        max(first.right, second.right),
        max(first.bottom, second.bottom),
        first.label,
    )


def fit(dice: Dice, boxes: list[Box], n: int, lines: bool) -> list[Box] | None:
    """Merge, miss or cut boxes until there are n. Returns None if nothing can be cut any more.

    Paragraphs are cut into two; single lines only if `lines`.
    """
    boxes = list(boxes)
    while len(boxes) > n:
        pairs = [k for k in range(len(boxes) - 1) if mergeable(boxes[k], boxes[k + 1])]
        if pairs and dice.chance(0.6):
            k = dice.pick(*pairs)
            boxes[k : k + 2] = [union(boxes[k], boxes[k + 1])]
        else:
            del boxes[dice.integer(0, len(boxes) - 1)]
    while len(boxes) < n:
        candidates = [k for k, box in enumerate(boxes) if is_tall(box)]
        cut = cut_in_height
        if not candidates and lines:
            candidates = [k for k, box in enumerate(boxes) if is_wide(box)]
            cut = cut_in_width
        if not candidates:
            return None
        k = dice.pick(*candidates)
        boxes[k : k + 1] = cut(dice, boxes[k])
    return boxes


def is_tall(box: Box) -> bool:
    """Whether a box is text of several lines."""
    return box.label in RUNNING and box.bottom - box.top > 2.6


def cut_in_height(dice: Dice, box: Box) -> list[Box]:
    """Cut a text of several lines into two paragraphs."""
    lines = round(box.bottom - box.top)
    y = box.top + dice.integer(1, lines - 1)
    return [box._replace(bottom=y - 0.15), box._replace(top=y)]


def is_wide(box: Box) -> bool:
    """Whether a box is a line of several words."""
    return box.label in RUNNING and box.right - box.left > 8 and box.bottom - box.top < 1.6


def cut_in_width(dice: Dice, box: Box) -> list[Box]:
    """Cut a line into two, as detectors do where words are far apart."""
    x = box.left + (box.right - box.left) * dice.between(0.3, 0.7)
    return [box._replace(right=x - 0.25), box._replace(left=x + 0.25)]


def displace(rng: np.random.Generator, boxes: Floats) -> Floats:
    """Move the edges of boxes `(n, 4)` a little, and turn some pages. Returns new boxes."""
    moved = boxes.copy()
    left, top, right, bottom = moved.T
    widths, heights = right - left, bottom - top
    scale = (0.0, 0.05, 0.15, 0.3)[int(np.searchsorted((0.3, 0.7, 0.93), rng.random()))]
    if scale:
        edges = rng.standard_normal(moved.shape) * scale
        moved += edges * np.minimum(1, np.minimum(heights, widths))[:, None] * 0.8
    if rng.random() < 0.15:
        moved = skewed(moved, float(rng.normal(0, 0.01)))
    # A box whose edges changed places is turned over; no box is empty.
    low, high = np.minimum(moved[:, :2], moved[:, 2:]), np.maximum(moved[:, :2], moved[:, 2:])
    return np.hstack([low, np.maximum(high, low + 1e-3)])


def skewed(boxes: Floats, angle: float) -> Floats:
    """Return the boxes `(n, 4)` of what is in them after a rotation by a small angle in radians."""
    low, high = boxes[:, :2], boxes[:, 2:]
    centers, sizes = (low + high) / 2, high - low
    pivot = centers.mean(0)
    offsets = centers - pivot
    centers = pivot + offsets + angle * offsets[:, ::-1] * (-1, 1)
    # Only lines and pictures grow as a whole. The lines of a paragraph stay within its width.
    sizes = sizes + abs(angle) * sizes[:, ::-1]
    return np.hstack([centers - sizes / 2, centers + sizes / 2])
