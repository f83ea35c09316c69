"""Blocks of text and figures, and the columns that they fill."""

from ptrnet.pages.page import (
    CAPTION,
    CODE,
    DROP_CAPITAL,
    FOOTNOTE,
    FORMULA,
    LIST_ITEM,
    PICTURE,
    SECTION_HEADER,
    TABLE,
    TEXT,
    Page,
    Region,
)


def paragraph(page: Page, region: Region) -> float:
    """A paragraph; sometimes with a drop capital."""
    if region.height < 0.95:
        return region.top
    lines = page.lines(page.style.paragraph, region.height)
    if lines >= 3 and page.dice.chance(0.03 if page.style.pictures else 0.012):
        return drop_capital(page, region, lines)
    return page.text(region, lines)


def drop_capital(page: Page, region: Region, lines: int) -> float:
    """A paragraph of at least 3 lines after its large initial, which is inside or left of it."""
    dice = page.dice
    height = min(lines, dice.between(1.6, 3.4 if dice.chance(0.7) else min(lines, 9)))
    width = min(height * dice.between(0.8, 1.3), region.width * 0.5)
    left, top = region.left, region.top
    page.put(left, top, left + width, top + height, DROP_CAPITAL)
    if page.style.as_lines:
        return page.text(region, lines, TEXT, width)
    start = left if dice.chance(0.6) else left + width
    page.put(start, top, region.right, top + lines, TEXT)
    return top + lines


def heading(page: Page, region: Region) -> float:
    """A heading with room for text below it."""
    dice = page.dice
    height = dice.between(0.9, 2.2) * dice.pick(1, 1, 1, 2)
    if region.height < height + 2:
        return region.top
    width = region.width * (dice.between(0.1, 0.9) if dice.chance(0.8) else 1)
    left = region.left + (region.width - width) / 2 * page.style.centred
    page.put(left, region.top, left + width, region.top + height, SECTION_HEADER)
    return region.top + height + dice.between(0, 0.5)


def item_list(page: Page, region: Region) -> float:
    """Items of a list; sometimes their marks are boxes."""
    dice = page.dice
    mean, indent = dice.between(1, 3), min(dice.between(0, 2.5), region.width / 4)
    marked = indent > 1 and dice.chance(0.15)
    y = region.top
    for _ in range(dice.integer(2, 7)):
        if region.bottom - y < 1:
            break
        if marked:
            page.put(region.left, y, region.left + 0.8, y + 0.85, LIST_ITEM)
        item = Region(region.left + indent, y, region.right, region.bottom)
        y = page.text(item, page.lines(mean, item.height), LIST_ITEM)
        y += page.style.gap * dice.between(0, 0.6)
    return y


def picture(page: Page, region: Region) -> float:
    """A picture with its caption."""
    return figure(page, region, PICTURE, page.style.caption_below)


def table(page: Page, region: Region) -> float:
    """A table, as one box, with its caption."""
    return figure(page, region, TABLE, page.style.table_caption_below)


def any_figure(page: Page, region: Region) -> float:
    """A picture or a table."""
    style = page.style
    pictures = style.pictures / (style.pictures + style.tables + 1e-9)
    return (picture if page.dice.chance(pictures) else table)(page, region)


def figure(page: Page, region: Region, label: int, caption_below: bool) -> float:
    """A picture or table with its caption above, below, beside, or without one."""
    dice, style = page.dice, page.style
    if region.height < 4:
        return region.top
    height = min(max(3.0, region.width * dice.between(0.2, 1.1)), region.height)
    width = region.width * (1 if dice.chance(0.6) else dice.between(0.45, 1))
    left = region.left + (region.width - width) * dice.pick(0, 0.5, 0.5, 1)
    frame = Region(left, region.top, left + width, region.top + height)
    lines = dice.integer(1, 4) if dice.chance(0.75) else 0
    if lines and style.caption_beside and width > 14:
        return captioned_beside(page, frame, label, min(2 * lines, int(height)))
    space = dice.between(0.1, 0.9)
    if height < lines + space + 2:
        lines = 0
    caption = Region(
        *frame if dice.chance(0.7) else (region.left, frame.top, region.right, frame.bottom)
    )
    if style.centred or dice.chance(0.3):
        narrow = caption.width * (1 if dice.chance(0.6) else dice.between(0.3, 1))
        start = caption.left + (caption.width - narrow) / 2 * style.centred
        caption = Region(start, caption.top, start + narrow, caption.bottom)
    y = region.top
    if lines and not caption_below:
        y = page.text(caption, lines, CAPTION) + space
    body = frame.at(y, height - (lines + space if lines else 0))
    if label == PICTURE and width > 12 and dice.chance(0.12):
        for part in page.cells(body, dice.integer(2, 3), 1, dice.between(0.3, 1.5)):
            page.put(*part, label)
    else:
        page.put(*body, label)
        if label == PICTURE and height > 10 and width > 12 and dice.chance(0.03):
            words_in(page, body)
    y = body.bottom
    if lines and caption_below:
        y = page.text(caption.below(y + space), lines, CAPTION)
    return y + dice.between(0, 0.6)


def words_in(page: Page, body: Region) -> None:
    """Words inside a picture, such as the names in a map. They are read after it, row by row."""
    dice = page.dice
    parts = page.cells(body, dice.integer(1, 3), 1, 1)
    y = body.top + dice.between(1, 2)
    while body.bottom - y > 2:
        for part in parts:
            if dice.chance(0.8):
                start = part.left + part.width * dice.between(0.05, 0.3)
                page.line(start, y, start + part.width * dice.between(0.2, 0.6))
        y += dice.between(2.5, 6)


def captioned_beside(page: Page, frame: Region, label: int, lines: int) -> float:
    """A figure with its caption at its right or left: what is left comes first."""
    dice = page.dice
    width = frame.width * dice.between(0.2, 0.4)
    y = frame.top + (frame.height - lines) * dice.pick(0, 1, 1, dice.random())
    if dice.chance(0.75):
        page.put(frame.left, frame.top, frame.right - width - 1, frame.bottom, label)
        page.text(Region(frame.right - width, y, frame.right, frame.bottom), lines, CAPTION)
    else:
        page.text(Region(frame.left, y, frame.left + width, frame.bottom), lines, CAPTION)
        page.put(frame.left + width + 1, frame.top, frame.right, frame.bottom, label)
    return frame.bottom


def formula(page: Page, region: Region) -> float:
    """A displayed formula; its number is at the right or left edge."""
    dice, style = page.dice, page.style
    height = dice.between(1, 3)
    if region.height < height:
        return region.top
    numbered = style.numbered and dice.chance(0.8)
    number = dice.between(1.2, 2.6)
    room = region.width - (number + 1 if style.numbered else 0)
    width = min(region.width * dice.between(0.25, 0.8), room)
    left = region.left + (room - width) * dice.pick(0.5, 0.5, dice.between(0, 0.4))
    middle = region.top + (height - 0.9) / 2
    if numbered and style.number_left:
        page.line(region.left, middle, region.left + number, FORMULA)
        left = region.left + number + 1
    page.put(left, region.top, left + width, region.top + height, FORMULA)
    if numbered and not style.number_left:
        end = region.right
        if dice.chance(0.2):  # next to the formula
            end = min(left + width + number + dice.between(0.3, 4), end)
        page.line(end - number, middle, end, dice.pick(FORMULA, CAPTION, TEXT))
    return region.top + height + style.gap * 0.5


def code(page: Page, region: Region) -> float:
    """A listing."""
    if region.height < 2:
        return region.top
    dice = page.dice
    inside = Region(
        region.left + dice.between(0, min(2, region.width / 4)),
        region.top,
        region.right - dice.between(0, region.width * 0.3),
        region.bottom,
    )
    return page.text(inside, page.lines(8, region.height), CODE) + page.style.gap


def side_heading(page: Page, region: Region) -> float:
    """A heading in a narrow column left of its paragraphs."""
    dice = page.dice
    if region.height < 3:
        return region.top
    width = region.width * dice.between(0.12, 0.3)
    lines = min(dice.integer(1, 3), int(region.height))
    end = region.left + width * dice.between(0.5, 1)
    label = dice.pick(SECTION_HEADER, SECTION_HEADER, TEXT)
    page.put(region.left, region.top, end, region.top + lines * 0.95, label)
    left = region.left + width + min(dice.between(0.5, 3), region.width / 4)
    y = region.top
    for _ in range(dice.integer(1, 2)):
        if region.bottom - y >= 1:
            body = Region(left, y, region.right, region.bottom)
            y = page.text(body, page.lines(page.style.paragraph, body.height)) + page.style.gap
    return max(y, region.top + lines)


def footnotes(page: Page, region: Region) -> float:
    """Notes that fill a region, as one block or several."""
    whole = page.dice.chance(0.6)
    y = region.top
    while region.bottom - y > 0.6:
        room = region.bottom - y
        lines = max(1, round(room)) if whole else page.lines(2, room)
        y = page.text(region.below(y), lines, FOOTNOTE)
    return y


def column(page: Page, region: Region) -> float:
    """Fill a column with blocks from top to bottom, and return the y where it ends."""
    style, dice = page.style, page.dice
    y, after_heading = region.top, False
    pictures = style.headings + style.pictures
    tables = pictures + style.tables
    formulas = tables + style.formulas
    lists = formulas + style.lists
    codes = lists + style.codes
    while region.bottom - y > 1:
        rest = region.below(y)
        share = dice.random()
        if after_heading:
            share = max(share, style.headings)
        if style.side_headings and region.width > 20 and dice.chance(0.8):
            end = side_heading(page, rest)
        elif share < style.headings:
            end = heading(page, rest)
        elif share < pictures:
            end = picture(page, rest)
        elif share < tables:
            end = table(page, rest)
        elif share < formulas:
            end = formula(page, rest)
        elif share < lists:
            end = item_list(page, rest)
        elif share < codes:
            end = code(page, rest)
        else:
            end = paragraph(page, rest)
        if end <= y:
            end = paragraph(page, rest)
        if end <= y:
            break
        after_heading = bool(page.boxes) and page.boxes[-1].label == SECTION_HEADER
        y = end if after_heading else end + style.gap
    return min(y, region.bottom)


def headed_column(page: Page, region: Region) -> float:
    """A column that begins with a heading."""
    return column(page, region.below(heading(page, region)))


def short_column(page: Page, region: Region) -> float:
    """A column that need not be full."""
    height = region.height * (1 if page.dice.chance(0.5) else page.dice.between(0.3, 1))
    return column(page, region.at(region.top, height))
