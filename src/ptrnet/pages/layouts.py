"""Kinds of pages, and what is around their bodies: headers, titles, notes, side bars, footers."""

from collections.abc import Callable
from typing import NamedTuple

from ptrnet.pages.bands import (
    cards,
    columns,
    contents,
    divider,
    flow,
    form,
    glossary,
    index,
    list_or_column,
    lists_in_columns,
    numbered,
    questions,
    rows_of_text,
)
from ptrnet.pages.blocks import (
    column,
    drop_capital,
    footnotes,
    headed_column,
    heading,
    paragraph,
    picture,
    short_column,
)
from ptrnet.pages.dice import Dice
from ptrnet.pages.page import (
    MARGINAL,
    PAGE_FOOTER,
    PAGE_HEADER,
    PICTURE,
    SECTION_HEADER,
    TEXT,
    TITLE,
    Box,
    Layout,
    Page,
    Region,
    Style,
)


def book(page: Page, region: Region) -> float:
    """One column."""
    return column(page, region)


def old_print(page: Page, region: Region) -> float:
    """A print of 1500 to 1900: blocks that touch, initials, verses; some pages in two columns."""
    dice, style = page.dice, page.style
    two, initial = style.columns > 1, dice.chance(0.35)
    verses = region.width * dice.between(0.1, 0.4) if dice.chance(0.2) else 0.0  # their indent
    y = region.top
    while region.bottom - y > 1:
        rest = region.below(y)
        share = dice.random()
        if two and share < 0.6 and rest.height > 6:
            height = rest.height * (1 if dice.chance(0.5) else dice.between(0.15, 0.8))
            end = columns(page, rest.at(y, height), 2)
            if region.bottom - end > 6:
                end = divider(page, rest.below(end))
        elif share < style.headings:
            end = heading(page, rest)
        elif initial and rest.height > 4:
            end = drop_capital(page, rest, max(3, page.lines(style.paragraph, rest.height)))
            initial = dice.chance(0.25)
        elif verses and share > 0.6:
            verse = Region(region.left + verses, y, region.right - verses * 0.6, region.bottom)
            end = page.text(verse, min(dice.integer(1, 8), int(verse.height)))
        elif share > 0.97 and rest.height > 6:
            end = narrow_block(page, rest)
        elif share > 0.96 and rest.height > 8 and not two and not style.as_lines:
            end = quoting_block(page, rest)
        else:
            end = paragraph(page, rest)
        if end <= y:
            end = paragraph(page, rest)
        if end <= y:
            break
        y = end + style.gap
        if dice.chance(0.02):
            break
    return min(y, region.bottom)


def narrow_block(page: Page, region: Region) -> float:
    """Lines of another width: signatures, centred notes."""
    dice = page.dice
    width = region.width * dice.between(0.2, 0.8)
    left = region.left + (region.width - width) * dice.pick(0.5, 0.5, 1, dice.random())
    block = Region(left, region.top, left + width, region.bottom)
    return page.text(block, dice.integer(1, 5))


def quoting_block(page: Page, region: Region) -> float:
    """A block of text that holds smaller blocks, which are read after it."""
    dice = page.dice
    height = min(region.height, dice.between(7, 30))
    page.put(region.left, region.top, region.right, region.top + height, TEXT)
    y = region.top + dice.between(1, height / 2)
    for _ in range(dice.integer(1, 2)):
        lines = dice.integer(2, 5)
        if y + lines > region.top + height - 0.5:
            break
        page.put(
            region.left, y, region.left + region.width * dice.between(0.4, 0.9), y + lines, TEXT
        )
        y += lines + dice.between(0.5, 4)
    return region.top + height


def newspaper(page: Page, region: Region) -> float:
    """Articles with headlines over their columns, packed into the page."""
    return articles(page, region, page.dice.integer(2, 4))


def articles(page: Page, region: Region, depth: int) -> float:
    """Divide the region into articles, at most `depth` times."""
    dice = page.dice
    if region.height < 14 or region.width < 14 or depth == 0 or dice.chance(0.12):
        return article(page, region)
    if region.width > 26 and region.width > region.height * dice.between(0.6, 1.4):
        count = 2 if dice.chance(0.7) else 3
        for part in page.cells(region, count, 0.4, 1.5 * page.style.gutter + 0.5):
            articles(page, part, depth - 1)
    else:
        cut = region.top + region.height * dice.between(0.3, 0.7)
        articles(page, region.at(region.top, cut - 1 - region.top), depth - 1)
        articles(page, region.below(cut + dice.between(0, 1)), depth - 1)
    return region.bottom


def article(page: Page, region: Region) -> float:
    """A headline across the region; below it, a picture and text in columns."""
    dice = page.dice
    count = min(5, max(1, round(region.width / dice.between(12, 24))))
    y = region.top + dice.between(1.2, 4)
    width = region.width * dice.between(0.35, 1)
    left = region.left + (region.width - width) / 2 * page.style.centred
    page.put(left, region.top, left + width, y, SECTION_HEADER)
    y += 0.5
    if dice.chance(0.2):
        end = region.left + region.width * dice.between(0.3, 0.8)
        page.put(region.left, y, end, y + 1, dice.pick(TEXT, SECTION_HEADER))
        y += 1.5
    body = region.below(y)
    if dice.chance(0.3) and body.height > 12:
        body = body.below(picture(page, body.at(y, body.height * dice.between(0.2, 0.5))) + 0.6)
    if count > 1:
        columns(page, body, count)
    else:
        column(page, body)
    return region.bottom


def slide(page: Page, region: Region) -> float:
    """A large heading, and few large blocks."""
    dice = page.dice
    y = region.top + dice.between(1, 2)
    end = region.left + region.width * dice.between(0.3, 1)
    page.put(region.left, region.top, end, y, dice.pick(TITLE, SECTION_HEADER))
    body = region.below(y + 1)
    if dice.chance(0.15):
        return flow(page, body, 1)
    count = dice.pick(1, 1, 2, 2, 3)
    draws: list[Layout] = [dice.pick(column, list_or_column, picture) for _ in range(count)]
    for part, draw in zip(page.cells(body, count, 0.6, dice.between(1, 4)), draws, strict=True):
        draw(page, part)
    return body.bottom


def title_page(page: Page, region: Region) -> float:
    """Few blocks at various heights, mostly centred."""
    dice = page.dice
    aligned = dice.pick(0.5, 0.5, 0, 1)
    y = region.top + dice.between(0, region.height * 0.3)
    count = dice.integer(2, 9)
    space = region.height / count
    for _ in range(count):
        height = dice.between(0.8, 3)
        if y + height > region.bottom:
            break
        width = region.width * dice.between(0.15, 1)
        left = region.left + (region.width - width) * aligned
        if dice.chance(0.1) and region.bottom - y > 8:
            height = dice.between(3, 8)
            page.put(left, y, left + width, y + height, PICTURE)
        else:
            page.put(left, y, left + width, y + height, dice.pick(TITLE, SECTION_HEADER, TEXT))
        y += height + (dice.between(0.3, 1.5) if dice.chance(0.5) else dice.between(1, space))
    return y


def letter(page: Page, region: Region) -> float:
    """Addresses at the left and the right, a date, the text, and a signature."""
    dice = page.dice
    y = region.top
    for _ in range(dice.integer(1, 3)):
        width = region.width * dice.between(0.2, 0.4)
        left = region.left if dice.chance(0.5) else region.right - width
        page.put(left, y, left + width, y + dice.pick(1, 2, 3, 4, 5), TEXT)
        y = page.boxes[-1].bottom + dice.between(0.8, 3)
    y = column(page, region.at(y, (region.bottom - y) * dice.between(0.4, 0.8)))
    left = region.left + dice.pick(0, 0.5) * region.width
    for _ in range(dice.integer(1, 3)):
        y += dice.between(0.5, 3)
        page.line(left, y, left + region.width * dice.between(0.1, 0.4))
        y += 1
    return y


def titles(page: Page, region: Region) -> float:
    """Title, authors, affiliations and abstract of a paper. Returns the y below them."""
    dice = page.dice
    centred = dice.chance(0.6)

    def put(y: float, share: float, height: float, label: int) -> float:
        width = region.width * share
        left = region.left + (region.width - width) / 2 * centred
        page.put(left, y, left + width, y + height, label)
        return y + height

    label = dice.pick(TITLE, SECTION_HEADER, SECTION_HEADER)
    y = put(region.top, dice.between(0.4, 1), dice.between(1.5, 4), label) + dice.between(0.3, 1.5)
    if dice.chance(0.2):  # authors in a row
        inset = region.width * 0.05
        row = Region(region.left + inset, y, region.right - inset, y + 3)
        for part in page.cells(row, dice.integer(2, 3), 0.9):
            page.put(part.left, y, part.right, y + dice.integer(1, 3) - 0.1, TEXT)
        y += 3.5
    elif dice.chance(0.5):
        for _ in range(dice.integer(1, 3)):
            y = put(y, dice.between(0.2, 0.9), 0.9, TEXT) + dice.between(0.2, 0.7)
    y += dice.between(0.2, 1)
    if dice.chance(0.4) and region.bottom - y > 10:
        inset = region.width * dice.between(0, 0.15)
        if dice.chance(0.5):
            y = put(y, dice.between(0.08, 0.2), 1, SECTION_HEADER) + 0.4
        abstract = Region(region.left + inset, y, region.right - inset, region.bottom)
        y = page.text(abstract, min(dice.integer(4, 11), int(abstract.height))) + 1
    return y


def running_line(page: Page, left: float, right: float, y: float, label: int) -> float:
    """One to three boxes in a row, read from left to right. Returns the height of the row."""
    dice = page.dice
    count = dice.pick(1, 1, 2, 2, 3)
    height, width = dice.between(0.6, 1.4), right - left
    if count == 1:
        share = dice.between(0.02, 0.2) if dice.chance(0.5) else dice.between(0.1, 1)
        start = left + width * (1 - share) * dice.pick(0, 0.5, 1, dice.random())
        page.put(start, y, start + width * share, y + height, label)
        return height
    ends = sorted(dice.random() for _ in range(2 * count))
    if dice.chance(0.75):  # at the edges
        ends[0], ends[-1] = 0, 1
        if dice.chance(0.6):
            ends[1] = dice.between(0.02, 0.12) if dice.chance(0.5) else dice.between(0.1, 0.45)
        if dice.chance(0.6):
            ends[-2] = 1 - (
                dice.between(0.02, 0.12) if dice.chance(0.5) else dice.between(0.1, 0.45)
            )
        ends.sort()
    uneven = dice.chance(0.3)
    for start, end in zip(ends[::2], ends[1::2], strict=True):
        top = y + (dice.between(-0.3, 0.3) if uneven else 0)
        page.put(
            left + width * start,
            top,
            left + width * end,
            top + height * dice.between(0.7, 1),
            label,
        )
    return height


def sheet_mark(page: Page, left: float, right: float, y: float) -> None:
    """The mark of a sheet, and the first word of the next page, as old prints have them."""
    dice = page.dice
    if dice.chance(0.45):
        start = left + (right - left) * dice.between(0.4, 0.7)
        end = start + (right - left) * dice.between(0.02, 0.1)
        page.put(start, y, end, y + dice.between(0.6, 1), PAGE_FOOTER)
    start = right - (right - left) * dice.between(0.04, 0.2)
    top = y + dice.between(-0.3, 0.3)
    page.put(start + dice.between(-0.5, 0.5), top, right, top + dice.between(0.7, 1.1), PAGE_FOOTER)


def with_margins(page: Page, region: Region, body: Layout) -> float:
    """Draw a body with notes on one margin or both: each is read after the box beside its top.

    A note at the left of the first line of a box is read before the box.
    """
    dice = page.dice
    sides = ("left", "right") if dice.chance(0.3) else (dice.pick("left", "right", "right"),)
    width = dice.between(1, 3) if dice.chance(0.3) else dice.between(3, 9)
    width = min(width, region.width * (0.2 if page.style.columns == 1 else 0.1))
    gap = dice.between(0, 1.2)
    inner = Region(
        region.left + (width + gap) * ("left" in sides),
        region.top,
        region.right - (width + gap) * ("right" in sides),
        region.bottom,
    )
    first = len(page.boxes)
    end = body(page, inner)
    drawn = page.boxes[first:]
    del page.boxes[first:]
    notes = []
    label = dice.pick(MARGINAL, TEXT)
    space = dice.integer(2, 20)
    for side in sides:
        # Notes begin at lines, so that it is clear which of two notes is higher.
        y = region.top + dice.integer(0, 8)
        while y < min(end, region.bottom) - 1:
            height = 1 if width < 3 else dice.integer(1, 6)
            note_width = width * dice.between(0.5, 1)
            left = region.left + width - note_width if side == "left" else inner.right + gap
            notes.append(Box(left, y, left + note_width, y + height * 0.95, label))
            y += height + dice.integer(1, space)
            if dice.chance(0.1):
                break
    after: list[list[Box]] = [[] for _ in range(len(drawn) + 1)]
    for note in sorted(notes, key=lambda note: (note.top, note.left)):
        host = host_of(note, drawn)
        place = 1 + host
        if host >= 0:
            box = drawn[host]
            depth = note.top - box.top
            if note.right < box.left + 1 and depth < 0.6:  # lines are read from left to right
                place, depth = host, 0
            elif depth < 1.2 < box.bottom - box.top - 0.6:  # clearly not at its top
                depth = 1.2
            elif note.top > box.bottom - 0.6:  # clearly not beside the next box
                depth = max(0, box.bottom - box.top - 1)
            note = note._replace(
                top=box.top + depth, bottom=note.bottom - note.top + box.top + depth
            )
        after[place].append(note)
    page.boxes += after[0]
    for box, beside in zip(drawn, after[1:], strict=True):
        page.boxes += [box, *beside]
    return end


def host_of(note: Box, boxes: list[Box]) -> int:
    """Return the index of the box to which a marginal note belongs; -1 if it is above all boxes.

    This is the nearest of the wide boxes beside its top; else the lowest box above it.
    """
    best, nearest, above, lowest = -1, float("inf"), -1, -float("inf")
    for k, box in enumerate(boxes):
        if box.top > note.top + 0.3:
            continue
        distance = max(box.left - note.right, note.left - box.right)
        if note.top < box.bottom and box.right - box.left > 6 and distance < nearest:
            best, nearest = k, distance
        if lowest < box.top <= note.top:
            above, lowest = k, box.top
    return best if best >= 0 else above


def with_side_bar(page: Page, region: Region, body: Layout) -> float:
    """A bar beside the body, which is read first if it is at the left, and last if at the right."""
    dice = page.dice
    width, gap = region.width * dice.between(0.18, 0.35), max(page.style.gutter, 1)
    height = region.height * (1 if dice.chance(0.5) else dice.between(0.3, 1))
    top = region.top if dice.chance(0.7) else region.bottom - height
    draw_bar = headed_column if dice.chance(0.6) else column
    if dice.chance(0.4):
        draw_bar(page, Region(region.left, top, region.left + width, top + height))
        body(page, Region(region.left + width + gap, region.top, region.right, region.bottom))
    else:
        body(page, Region(region.left, region.top, region.right - width - gap, region.bottom))
        draw_bar(page, Region(region.right - width, top, region.right, top + height))
    return region.bottom


class Kind(NamedTuple):
    """A kind of page: how its body is drawn, how often, and with how many boxes it is natural."""

    draw: Layout
    share: float
    fewest: int
    most: int
    rows: bool = False  # other bands may follow the body
    margins: float = 0  # probabilities of marginal notes, of a side bar, of titles, of footnotes
    side_bar: float = 0
    titled: float = 0
    noted: float = 0


KINDS: dict[str, Kind] = {
    "flow": Kind(flow, 0.45, 3, 300, margins=0.03, side_bar=0.08, titled=0.2, noted=0.15),
    "newspaper": Kind(newspaper, 0.07, 8, 300, titled=0.2),
    "book": Kind(book, 0.08, 1, 100, margins=0.2, titled=0.2, noted=0.15),
    "old-print": Kind(old_print, 0.12, 1, 100, margins=0.2, titled=0.15, noted=0.1),
    "glossary": Kind(glossary, 0.03, 4, 140, rows=True),
    "form": Kind(form, 0.04, 4, 240, rows=True),
    "cards": Kind(cards, 0.05, 3, 120, rows=True, side_bar=0.08),
    "rows-of-text": Kind(rows_of_text, 0.02, 4, 240, rows=True),
    "lists-in-columns": Kind(lists_in_columns, 0.015, 4, 240, rows=True),
    "index": Kind(index, 0.02, 20, 300),
    "contents": Kind(contents, 0.015, 8, 140),
    "slide": Kind(slide, 0.04, 1, 30, side_bar=0.05),
    "numbered": Kind(numbered, 0.02, 6, 160, rows=True),
    "questions": Kind(questions, 0.015, 6, 160, rows=True),
    "title-page": Kind(title_page, 0.02, 1, 10),
    "letter": Kind(letter, 0.01, 4, 24),
}


def set_style(kind: str, style: Style, dice: Dice) -> None:
    """Change a style to what is usual for a kind of page."""
    if kind in ("book", "old-print"):
        style.paragraph = dice.log_between(2.5, 30)
        style.columns = 1
    if kind == "old-print":
        style.tight = dice.chance(0.8)
        style.gap = dice.between(0, 0.2) if dice.chance(0.6) else dice.between(0.2, 1)
        style.gutter = dice.between(0, 0.6) if dice.chance(0.6) else dice.between(0.6, 2)
        style.centred = dice.chance(0.8)
        style.pictures = style.tables = 0
        style.columns = 2 if dice.chance(0.2) else 1
    if kind == "newspaper":
        style.column_notes = False
    if kind == "slide":
        style.lines_high = dice.between(12, 24)


def draw_page(dice: Dice, kind: str, style: Style) -> Page:
    """Draw a page of a kind."""
    page = Page(dice, style)
    aspect = dice.between(0.55, 0.8) if kind == "slide" else dice.between(1.2, 1.5)
    if dice.chance(0.04):
        aspect = 1 / aspect
    height, width = style.lines_high, style.lines_high / aspect
    left, right = width * dice.between(0.04, 0.16), width * dice.between(0.84, 0.96)
    top, bottom = height * dice.between(0.03, 0.12), height * dice.between(0.88, 0.97)
    spec = KINDS[kind]
    if dice.chance(0.75):
        low = 0.8 if style.as_lines else 0.3
        top += running_line(page, left, right, top - 1.2, PAGE_HEADER) * 0.2 + dice.between(low, 2)
    region = Region(left, top, right, bottom)
    if dice.chance(spec.titled):
        region = region.below(titles(page, region))
    elif kind not in ("slide", "title-page") and dice.chance(0.25):
        region = region.below(heading(page, region))
    notes = None
    if dice.chance(spec.noted):
        notes = region.below(bottom - dice.integer(1, 6))
        region = region.at(region.top, notes.top - dice.between(0.4, 1.5) - region.top)
    draw_body(page, region, spec)
    if notes:
        footnotes(page, notes)
    if kind == "old-print" and dice.chance(0.7):
        sheet_mark(page, left, right, bottom + dice.between(-0.2, 0.4))
        return page
    y = bottom + dice.between(0.4, 1.4)
    for _ in range(dice.pick(0, 1, 1, 1) if dice.chance(0.93) else 2):
        y += running_line(page, left, right, y, PAGE_FOOTER) + 0.6
    return page


def draw_body(page: Page, region: Region, spec: Kind) -> None:
    """Draw the body of a page into a region, with what is beside and below it."""
    dice = page.dice
    around: Callable[[Page, Region, Layout], float] | None = None
    if dice.chance(spec.margins):
        around = with_margins
    elif region.width > 26 and dice.chance(spec.side_bar):
        around = with_side_bar
    end = around(page, region, spec.draw) if around else spec.draw(page, region)
    if spec.rows and region.bottom - end > 6 and not around and dice.chance(0.5):
        draw_rest = flow if dice.chance(0.5) else short_column
        # The gap tells the rows above from columns below.
        draw_rest(page, region.below(end + dice.between(1.5, 3)))
