"""A page that is being drawn: its boxes in reading order, and how it is set.

The unit of all sizes is the height of a line with its leading. y points down.
"""

from collections.abc import Callable
from typing import NamedTuple

from ptrnet.pages.dice import Dice
from ptrnet.pages.labels import LABELS

# The numbers of `LABELS`.
(
    TEXT, SECTION_HEADER, TITLE, LIST_ITEM, CAPTION, FOOTNOTE, PAGE_HEADER, PAGE_FOOTER, TABLE,
    PICTURE, FORMULA, CODE, DOCUMENT_INDEX, FORM, MARGINAL, DROP_CAPITAL,
) = range(1, len(LABELS) + 1)  # fmt: skip

CUT_INTO_LINES = frozenset((TEXT, LIST_ITEM, CAPTION, FOOTNOTE, CODE))


class Box(NamedTuple):
    """A box with its label."""

    left: float
    top: float
    right: float
    bottom: float
    label: int


class Region(NamedTuple):
    """A rectangle to fill."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """The distance of the left from the right edge."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """The distance of the upper from the lower edge."""
        return self.bottom - self.top

    def below(self, y: float) -> "Region":
        """Return the part below y."""
        return Region(self.left, y, self.right, self.bottom)

    def at(self, y: float, height: float) -> "Region":
        """Return the part from y to `y + height`."""
        return Region(self.left, y, self.right, y + height)


class Style:
    """How a page is set, drawn at random. Pages of one style differ only in their contents.

    If `lines`, blocks of text are cut into lines. Probabilities of blocks are shares of all blocks
    of a column.
    """

    def __init__(self, dice: Dice, lines: bool) -> None:
        chance, between = dice.chance, dice.between
        self.indented = chance(0.5)  # paragraphs begin with a space, with small gaps between them
        self.lines_high = dice.log_between(28, 95)  # the height of the page
        self.paragraph = dice.log_between(2, 14)  # mean number of lines of a paragraph
        self.columns = dice.pick(1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5)  # the usual number of columns
        self.mixed = chance(0.6)  # bands of several kinds and numbers of columns
        self.filled = chance(0.6)  # rows of forms, glossaries and the like fill the page
        self.as_lines = lines
        self.line_height = between(0.65, 0.95)  # of the box of a line, without its leading
        self.gap = between(0, 0.3) if self.indented else between(0.3, 1.2)  # between paragraphs
        self.gutter = dice.log_between(0.8, 5)  # between columns
        self.ragged = chance(0.25)  # lines end at different places
        self.tight = chance(0.3)  # boxes touch, as in segmentations by hand
        self.centred = chance(0.3)  # headings
        self.side_headings = chance(0.05)
        self.column_notes = chance(0.09)  # footnotes under columns
        self.caption_below = chance(0.65)
        self.table_caption_below = chance(0.35)
        self.caption_beside = chance(0.12)
        self.numbered = chance(0.6)  # formulas have numbers
        self.number_left = chance(0.1)
        self.headings = between(0.03, 0.3)
        self.pictures = between(0, 0.125) if chance(0.7) else 0.0
        self.tables = between(0, 0.1) if chance(0.4) else 0.0
        self.formulas = between(0.05, 0.3) if chance(0.2) else 0.0
        self.lists = between(0, 0.2) if chance(0.5) else 0.0
        self.codes = between(0, 0.15) if chance(0.06) else 0.0
        if lines and chance(0.3):  # the lines of all columns share their baselines
            self.gap = 0.0
            self.columns = dice.pick(1, 2, 2, 3)
            self.gutter = dice.log_between(0.4, 2)
            self.headings *= 0.2


class Page:
    """Boxes in reading order."""

    def __init__(self, dice: Dice, style: Style) -> None:
        self.dice = dice
        self.style = style
        self.boxes: list[Box] = []

    def put(self, left: float, top: float, right: float, bottom: float, label: int) -> None:
        """Add a box, unless it is too small to be seen."""
        if right - left > 0.05 and bottom - top > 0.05:
            self.boxes.append(Box(left, top, right, bottom, label))

    def text(self, region: Region, lines: int, label: int = TEXT, initial: float = 0) -> float:
        """Put a block of `lines` lines at the top of the region, and return the y below it.

        Its boxes are its lines if the style says so. The first two lines begin after `initial`, the
        width of a drop capital.
        """
        dice, style = self.dice, self.style
        left, top, right, _ = region
        width = right - left
        if lines == 1:
            end = left + initial + (width - initial) * dice.between(0.25, 1)
            self.put(left + initial, top, end, top + dice.between(0.75, 1), label)
        elif style.as_lines and label in CUT_INTO_LINES:
            for k in range(lines):
                end = right - (width * dice.between(0, 0.15) if style.ragged else 0)
                if k == lines - 1:
                    end = left + width * dice.between(0.15, 1)
                start = left + (initial if k < 2 else 0)
                if style.indented and k == 0 and label == TEXT and not initial:
                    start += min(1.5, width / 4)
                bottom = top + k + 0.95
                self.put(start, bottom - style.line_height, max(end, start + 1), bottom, label)
        else:
            end = right - (width * dice.between(0, 0.12) if style.ragged else 0)
            self.put(left + initial, top, end, top + lines - (0 if style.tight else 0.15), label)
        return top + lines

    def line(self, left: float, top: float, right: float, label: int = TEXT) -> None:
        """Put a single line."""
        self.put(left, top, right, top + 0.9, label)

    def lines(self, mean: float, room: float) -> int:
        """Draw the number of lines of a block: at least 1, and at most what there is room for."""
        return min(self.dice.geometric(mean), max(1, int(room)))

    def rows(self, low: int, high: int) -> int:
        """Draw a number of rows. On filled pages there are as many as there is room for."""
        return 1000 if self.style.filled else self.dice.integer(low, high)

    def cells(
        self, region: Region, count: int, equal: float = 0.8, gutter: float | None = None
    ) -> list[Region]:
        """Divide a region into columns, of equal widths with probability `equal`."""
        gutter = min(self.style.gutter if gutter is None else gutter, region.width / count * 0.4)
        weights = [1.0] * count
        if not self.dice.chance(equal):
            weights = [self.dice.between(0.5, 1.6) for _ in range(count)]
        unit = (region.width - gutter * (count - 1)) / sum(weights)
        cells, left = [], region.left
        for weight in weights:
            cells.append(Region(left, region.top, left + unit * weight, region.bottom))
            left += unit * weight + gutter
        return cells


# Draws into the upper part of a region, and returns the y below what it drew. This is the top of
# the region if there was no room.
Layout = Callable[[Page, Region], float]
