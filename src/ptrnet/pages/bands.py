"""What lies across a page or a column: text in columns, cards, tables, glossaries, forms."""

from ptrnet.pages.blocks import (
    any_figure,
    column,
    footnotes,
    heading,
    item_list,
    picture,
    short_column,
    table,
)
from ptrnet.pages.page import (
    CAPTION,
    DOCUMENT_INDEX,
    FORM,
    LIST_ITEM,
    PICTURE,
    SECTION_HEADER,
    TEXT,
    Layout,
    Page,
    Region,
)


def columns(page: Page, region: Region, count: int, depth: int = 0) -> float:
    """Text in columns, each read to its end. All end together, or the last is shorter.

    A column may hold bands of its own if `depth` is positive. Footnotes under the columns are read
    after all columns.
    """
    dice = page.dice
    balanced = dice.chance(0.5)
    noted = page.style.column_notes and region.height > 14 and dice.chance(0.7)
    note_height, all_noted = dice.integer(1, 5), dice.chance(0.85)
    notes: list[Region] = []
    deepest = region.top
    parts = page.cells(region, count)
    for part in parts:
        top = part.top + (dice.between(0, 2) if dice.chance(0.08) else 0)
        bottom = part.bottom
        if noted and (all_noted or dice.chance(0.6)):  # mostly a row, with a clear gap above it
            height = note_height if all_noted else dice.integer(1, 5)
            notes.append(part.below(bottom - height))
            bottom -= height + dice.between(1.2, 3)
        elif part is parts[-1] and not balanced:
            bottom = top + (bottom - top) * dice.between(0.2, 1)
        elif dice.chance(0.25):
            bottom = top + (bottom - top) * dice.between(0.8, 1)
        body = Region(part.left, top, part.right, bottom)
        nested = depth > 0 and body.width > 24 and dice.chance(0.25)
        deepest = max(deepest, flow(page, body, depth - 1) if nested else column(page, body))
    for note in notes:
        footnotes(page, note)
    return region.bottom if notes else deepest


def spanning(page: Page, region: Region) -> float:
    """A column beside a wider part, which has a picture across several columns."""
    dice = page.dice
    count = dice.integer(2, 3)
    parts = page.cells(region, count + 1, 1)
    narrow_first = dice.chance(0.6)
    others = parts[1:] if narrow_first else parts[:-1]
    wide = Region(others[0].left, region.top, others[-1].right, region.bottom)
    if narrow_first:
        column(page, parts[0])
    share = wide.height * dice.between(0.2, 0.6)
    if dice.chance(0.7):
        end = picture(page, wide.at(wide.top, share))
        columns(page, wide.below(end + 1), count)
    else:
        columns(page, wide.at(wide.top, wide.height - share - 1), count)
        picture(page, wide.below(wide.bottom - share))
    if not narrow_first:
        column(page, parts[-1])
    return region.bottom


def beside_figure(page: Page, region: Region) -> float:
    """A figure beside text: the left part comes first."""
    if region.width < 16 or region.height < 4:
        return region.top
    dice = page.dice
    height = min(region.height, max(4, region.width * dice.between(0.2, 0.6)))
    draws: list[Layout] = [any_figure, column]
    if dice.chance(0.5):
        draws.reverse()
    gutter = max(page.style.gutter, 1)
    for part, draw in zip(
        page.cells(region.at(region.top, height), 2, 0.4, gutter), draws, strict=True
    ):
        draw(page, part)
    return region.top + height


def wrapped_figure(page: Page, region: Region) -> float:
    """A figure at the left that text flows around: the box of the last paragraph overlaps it."""
    dice = page.dice
    if region.width < 16 or region.height < 10:
        return region.top
    width = region.width * dice.between(0.3, 0.55)
    frame = Region(region.left, region.top, region.left + width, region.bottom)
    end = any_figure(page, frame.at(region.top, min(region.height - 3, width * 1.2)))
    beside = Region(frame.right + dice.between(0.5, 2), region.top, region.right, region.bottom)
    y = region.top
    while end - y > 6 and dice.chance(0.7):
        y = page.text(beside.below(y), min(dice.integer(2, 8), int(end - y - 3))) + page.style.gap
    bottom = min(end + dice.integer(1, 5), region.bottom)
    page.put(region.left, y, region.right, bottom, TEXT)
    return bottom


def stories(page: Page, region: Region) -> float:
    """Stories beside each other, each with a headline over its columns, which end together."""
    dice = page.dice
    if region.width < 30 or region.height < 8:
        return region.top
    inner = dice.between(0.7, 2)
    height = region.height * (1 if dice.chance(0.5) else dice.between(0.3, 1))
    headline, size = dice.between(1, 3), dice.between(0.3, 1)
    deepest = region.top
    for part in page.cells(region, 2 if dice.chance(0.7) else 3, 0.6, inner + dice.between(0.8, 3)):
        width = part.width * max(size * dice.between(0.5, 1), 0.2)
        left = part.left + (part.width - width) / 2 * page.style.centred
        page.put(left, part.top, left + width, part.top + headline, SECTION_HEADER)
        y = part.top + headline + dice.between(0.3, 0.8)
        body = part.at(y, max(height - headline - 1, 4) * dice.between(0.6, 1))
        count = min(dice.integer(1, 3), max(1, int(body.width / 8)))
        for cell in page.cells(body, count, 1, inner):
            deepest = max(deepest, column(page, cell.at(y, body.height * dice.between(0.8, 1))))
    return deepest


def cards(page: Page, region: Region) -> float:
    """Cards in rows, read row by row: pictures, titles and texts. Each card is read to its end.

    Rows are apart, and their tops are aligned. Without pictures they are farther apart than columns
    are, because nothing else tells such cards from columns of text.
    """
    dice = page.dice
    count = dice.integer(2, 4)
    pictured, titled, texts = dice.chance(0.7), dice.chance(0.7), dice.chance(0.6)
    titled, texts = titled or not pictured, texts or not pictured
    lines = dice.integer(1, 5)
    parts = page.cells(region, count, 0.95)
    gutter = parts[1].left - parts[0].right
    row_gap = dice.between(0.6, 2.5) * (dice.between(1, 2) if dice.chance(0.3) else 1)
    row_gap = max(row_gap, gutter * (0.4 if pictured else 0.8), 0.6 if pictured else 1.2)
    text_height = 1.3 * titled + lines * texts
    image = max(dice.between(0.3, 1.3) * parts[0].width - text_height, 1.5) if pictured else 0
    height = text_height + image + 0.3 * pictured
    ragged = dice.chance(0.3)
    y = region.top
    for _ in range(page.rows(1, 6)):
        if region.bottom - y < height:
            break
        for part in parts:
            if dice.chance(0.02):
                continue
            top = y
            if pictured:
                page.put(part.left, top, part.right, top + image, PICTURE)
                top += image + 0.3
            if titled:
                end = part.left + part.width * dice.between(0.3, 1)
                page.line(part.left, top, end, dice.pick(CAPTION, SECTION_HEADER))
                top += 1.3
            if texts:
                page.text(part.below(top), dice.integer(1, lines) if ragged else lines)
        y += height + row_gap
    return y - row_gap if y > region.top else y


def rows_of_text(page: Page, region: Region) -> float:
    """Aligned cells of text, read row by row: rows are farther apart than columns are."""
    dice = page.dice
    gutter = dice.between(0.3, 1.5)
    gap = max(dice.between(0.5, 2.5), 0.8 * gutter)
    parts = page.cells(region, dice.integer(2, 5), 0.6, gutter)
    y = region.top
    if dice.chance(0.4):
        for part in parts:
            end = part.left + part.width * dice.between(0.3, 0.9)
            page.line(part.left, y, end, dice.pick(SECTION_HEADER, TEXT))
        y += 1 + gap
    tallest = dice.pick(1, 2, 3, 8)
    divided = dice.chance(0.15)  # by a line across
    for _ in range(page.rows(3, 13)):
        heights = [dice.integer(1, tallest) for _ in parts]
        if region.bottom - y < max(heights) + 1:
            break
        if divided:
            inset = region.width * dice.between(0, 0.35)
            page.line(region.left + inset, y, region.right - inset, SECTION_HEADER)
            y += 1.2
        for part, height in zip(parts, heights, strict=True):
            if not dice.chance(0.04):
                page.text(part.below(y), height)
        y += max(heights) + gap
    return y


def lists_in_columns(page: Page, region: Region) -> float:
    """Short items in columns, read column by column: rows are tight, and columns far apart."""
    dice = page.dice
    gap, headed = dice.between(0, 0.25), dice.chance(0.5)
    label = dice.pick(LIST_ITEM, TEXT)
    rows = page.rows(3, 13)
    deepest = region.top
    for part in page.cells(region, dice.integer(2, 4), 0.6, dice.between(2.5, 7)):
        y = region.top
        if headed:
            page.line(part.left, y, part.left + part.width * dice.between(0.3, 0.9), SECTION_HEADER)
            y += 1.3
        for _ in range(rows - dice.integer(0, 2)):
            height = 1 if dice.chance(0.7) else 2
            if region.bottom - y < height:
                break
            y = page.text(part.below(y), height, label) + gap
        deepest = max(deepest, y)
    return deepest


def glossary(page: Page, region: Region) -> float:
    """Terms left of their explanations, row by row."""
    dice = page.dice
    width = region.width * dice.between(0.12, 0.35)
    left = region.left + width + min(dice.between(0.4, 3), region.width / 5)
    lines = dice.integer(1, 3) if dice.chance(0.4) else 0  # of all explanations, or 0 if they vary
    gap = dice.between(0.5 if lines == 1 else 0.25, 2)
    label = dice.pick(TEXT, TEXT, SECTION_HEADER)
    y = region.top
    for _ in range(page.rows(3, 23)):
        height = lines or page.lines(3, 99)
        if region.bottom - y < height:
            break
        page.line(region.left, y, region.left + width * dice.between(0.4, 1), label)
        y = page.text(Region(left, y, region.right, region.bottom), height) + gap
    return y


def form(page: Page, region: Region) -> float:
    """Labels left of, or above, their fields; one to three pairs in a row."""
    dice = page.dice
    above, same = dice.chance(0.25), dice.chance(0.6)
    between = dice.between(0.1, 1.5)
    share = dice.between(0.2, 0.5)
    gap = dice.between(0.4, 2.2)
    gutter = between if dice.chance(0.2) and not above else dice.between(1.5, 6)
    height = dice.between(0.9, 1.5)
    label = dice.pick(FORM, TEXT)
    need = height + above
    parts = page.cells(region, dice.integer(1, 3), 0.8, gutter)
    y = region.top
    for _ in range(page.rows(2, 13)):
        if region.bottom - y < need:
            break
        for part in parts if same or dice.chance(0.7) else parts[:1]:
            width = part.width * (share if same else dice.between(0.15, 0.5))
            if above:
                page.line(part.left, y, part.left + width)
                page.put(part.left, y + 1, part.right, y + 1 + height, label)
            else:
                end = part.left + width * (dice.between(0.4, 1) if dice.chance(0.5) else 1)
                page.put(part.left, y, end, y + height * 0.95, TEXT)
                page.put(part.left + width + between, y, part.right, y + height * 0.95, label)
        y += need + gap
    return y


def index(page: Page, region: Region) -> float:
    """Many short lines in columns; page numbers may be at the right edge of a column."""
    dice = page.dice
    numbers = dice.chance(0.3)
    label = dice.pick(DOCUMENT_INDEX, TEXT, LIST_ITEM)
    deepest = region.top
    parts = page.cells(region, dice.integer(1, 4), 0.95)
    for part in parts:
        y = region.top
        while part.bottom - y > 1:
            if dice.chance(0.04):  # the letter of the entries below
                page.put(part.left, y, part.left + 1, y + 1, SECTION_HEADER)
                y += 1.3
                continue
            left = part.left + min(dice.pick(0, 0, 1, 2), part.width / 4)
            page.line(left, y, left + (part.right - left) * dice.between(0.3, 0.85), label)
            if numbers and dice.chance(0.95):
                page.line(part.right - min(dice.between(0.6, 1.5), part.width / 8), y, part.right)
            y += 1.05
            if part is parts[-1] and dice.chance(0.01):
                break
        deepest = max(deepest, y)
    return deepest


def contents(page: Page, region: Region) -> float:
    """A table of contents: entries of several depths, each with its page number."""
    dice = page.dice
    gap = dice.between(0.1, 1.2)
    numbers, marks = dice.chance(0.8), dice.chance(0.25)
    indent = dice.between(1, 3)
    y = region.top
    for _ in range(page.rows(5, 30)):
        if region.bottom - y < 1:
            break
        depth = dice.pick(0, 0, 1, 1, 2)
        left = region.left + depth * indent
        if marks:
            page.line(left, y, left + dice.between(0.6, 2), DOCUMENT_INDEX)
            left += 2.8
        lines = 2 if dice.chance(0.1) and region.bottom - y > 2 else 1
        end = left + (region.right - 3 - left) * dice.between(0.3, 1)
        page.put(left, y, end, y + lines - 0.1, DOCUMENT_INDEX)
        if numbers:
            bottom = y + lines - 0.1
            page.put(
                region.right - dice.between(0.5, 1.5), bottom - 0.8, region.right, bottom, TEXT
            )
        y += lines + gap + (dice.between(0.3, 1) if depth == 0 else 0)
    return y


def numbered(page: Page, region: Region) -> float:
    """Small numbers or marks left of paragraphs, in one to three columns."""
    dice = page.dice
    width, gap = dice.between(0.7, 2.2), dice.between(0.3, 2)
    space, low = dice.between(0.2, 1.5), dice.chance(0.2) and not page.style.as_lines
    label = dice.pick(TEXT, LIST_ITEM)
    deepest = region.top
    for part in page.cells(region, dice.pick(1, 1, 2, 2, 3), 0.9):
        y = part.top
        if dice.chance(0.4):
            y = heading(page, part) + 0.3
        for _ in range(page.rows(3, 9)):
            lines = 1 + dice.geometric(2.5)
            if part.bottom - y < lines:
                break
            top = y + (dice.between(0, lines - 1) if low else 0)
            page.line(part.left, top, part.left + width, label)
            left = part.left + width + space
            y = page.text(Region(left, y, part.right, part.bottom), lines) + gap
        deepest = max(deepest, y)
    return deepest


def questions(page: Page, region: Region) -> float:
    """Questions of an exam, each above its choices: one below the other, in a row, or in two."""
    dice = page.dice
    shape = dice.pick((1, 4), (4, 1), (2, 2), (5, 1), (3, 1))
    numbers = dice.chance(0.3)
    indent, gap = dice.between(0, 3), dice.between(0.5, 2.5)
    across, down = shape
    step = dice.between(1.8, 2.6) if across > 1 else dice.between(1, 1.5)
    deepest = region.top
    for part in page.cells(region, dice.pick(1, 1, 2), 1, max(page.style.gutter, 1.5)):
        y = part.top
        for _ in range(page.rows(2, 7)):
            lines = page.lines(2, 6)
            if part.bottom - y < lines + down * step:
                break
            left = part.left
            if numbers:
                page.line(left, y, left + dice.between(0.8, 1.5), LIST_ITEM)
                left += 2
            y = page.text(Region(left, y, part.right, part.bottom), lines) + 0.2
            choices = Region(left + indent, y, part.right, part.bottom)
            cells = page.cells(choices, across, 1, 0.8)
            for _ in range(down):
                for cell in cells:
                    width = cell.width * dice.between(0.2, 0.9)
                    page.line(cell.left, y, cell.left + width, LIST_ITEM)
                y += step
            y += gap
        deepest = max(deepest, y)
    return deepest


def wide_table(page: Page, region: Region) -> float:
    """A table or picture across the region."""
    return (table if page.dice.chance(0.3) else picture)(page, region)


# Bands with boxes side by side, and their shares of all bands of a mixed page.
BANDS: tuple[tuple[float, Layout], ...] = (
    (0.05, cards),
    (0.02, rows_of_text),
    (0.02, lists_in_columns),
    (0.025, glossary),
    (0.02, form),
    (0.03, beside_figure),
    (0.015, wrapped_figure),
    (0.03, stories),
    (0.04, spanning),
    (0.01, numbered),
    (0.01, questions),
)


# The same inside a column.
ROWS: tuple[tuple[float, Layout], ...] = (
    (0.03, rows_of_text),
    (0.03, glossary),
    (0.02, form),
    (0.03, numbered),
)


def flow(page: Page, region: Region, depth: int = 1) -> float:
    """Bands from top to bottom, with different numbers of columns and kinds of blocks.

    Between two bands with boxes side by side is a heading, a paragraph or a clear gap, because
    nothing else tells two bands of two columns from two long columns.
    """
    dice, style = page.dice, page.style
    most = max(1, int(region.width / 11))
    y, divided = region.top, False
    while region.bottom - y > 2:
        room = region.bottom - y
        if style.mixed and not dice.chance(0.35):
            room *= dice.between(0.12, 0.7)
        band = region.at(y, room)
        draw = band_of(page, depth) if style.mixed else None
        count = style.columns
        if style.mixed and dice.chance(0.3):
            count = dice.integer(1, 5)
        count = min(count, most)
        divides = draw is not None and draw is not wide_table and draw is not heading
        divides = divides or (draw is None and count > 1)
        if divided and divides:
            band = band.below(divider(page, band))
        if draw is spanning and (most < 3 or band.height < 16):
            draw = None
        if draw is not None:
            end = draw(page, band)
        elif count > 1:
            end = columns(page, band, count, depth)
        else:
            end = column(page, band)
        if end <= band.top:
            end, divides = column(page, band), False
        if end <= band.top:
            break
        # What follows columns should not seem to be a part of the first.
        y = end + (style.gap + dice.between(0.3, 1.2) if divides else dice.between(0.2, 1.6))
        divided = divides
        if dice.chance(0.04):
            break
    return min(y, region.bottom)


def band_of(page: Page, depth: int) -> Layout | None:
    """Draw what a band of a mixed page is; None: text in columns."""
    share = page.dice.random()
    figures = 0.12 if page.style.pictures or page.style.tables else 0
    if share < figures:
        return wide_table
    share -= figures
    for part, draw in ((0.06, heading), *BANDS) if depth else ROWS:
        if share < part:
            return draw
        share -= part
    return None


def divider(page: Page, band: Region) -> float:
    """Separate a band from the one above it, and return the y where it begins."""
    dice = page.dice
    if dice.chance(0.35):
        return band.top + dice.between(1.5, 4)
    top = band.top + dice.between(0.2, 1)
    if dice.chance(0.3):
        return page.text(band.below(top), dice.integer(2, 4)) + dice.between(0.4, 1)
    width = band.width * dice.between(0.55, 1)
    left = band.left + (band.width - width) / 2 * page.style.centred
    height = dice.between(0.9, 2)
    page.put(left, top, left + width, top + height, SECTION_HEADER)
    return top + height + dice.between(0.3, 1)


def list_or_column(page: Page, region: Region) -> float:
    """A list, or any blocks."""
    return (item_list if page.dice.chance(0.5) else short_column)(page, region)
