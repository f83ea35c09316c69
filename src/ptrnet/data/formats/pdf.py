"""PDF: the lines of each page are the boxes of an instance of task `reading-order`.

A line ends at a line break, or where a gap is wider than its font is high, such as between columns.
We only read the format. In `.txt`, an answer is the text in reading order.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import pages
from ptrnet.data.formats.parts.pages import Box, Layout, Sheet
from ptrnet.errors import InputError
from ptrnet.files import exists
from ptrnet.tasks.base import Task
from ptrnet.types import Example

CAPABILITIES = Capabilities(
    task="reading-order",
    answers=False,
    binary=True,
    document=True,
    stdout_format="txt",
    package="pypdfium2",
)
# PDFium's codes for a hyphen at the end of a line, and for a letter that it does not know.
_LETTERS = {2: "-", 0: "\ufffd"}


def read(path: str, task: Task) -> Iterator[Example]:
    from pypdfium2 import PdfDocument, PdfiumError

    if not exists(path):
        raise InputError(f"{path}: cannot be read: No such file or directory")
    try:
        document = PdfDocument(path)
    except PdfiumError as error:
        raise InputError(f"{path}: cannot be read as PDF: {error}") from None
    with closing(document):
        sheets = (
            Sheet(str(k + 1), f"{path}: page {k + 1}", partial(_layout, document, k, path))
            for k in range(len(document))
        )
        yield from pages.examples_of(sheets, task, path, None)


def _layout(document: Any, index: int, path: str) -> Layout:
    from pypdfium2 import PdfiumError

    try:
        page = document[index]
        text = page.get_textpage()
    except PdfiumError as error:
        raise InputError(f"{path}: page {index + 1}: cannot be read: {error}") from None
    left, bottom, right, top = page.get_bbox()
    width, height = right - left, top - bottom
    boxes = [
        Box((x0 - left, top - y1, x1 - left, top - y0), text=line)
        for (x0, y0, x1, y1), line in _lines(text)
    ]
    turned = [_turned(box, page.get_rotation(), width, height) for box in boxes]
    size = (height, width) if page.get_rotation() % 180 else (width, height)
    text.close()
    page.close()
    return Layout(turned, size=size, image=Path(path).name)


def _turned(box: Box, degrees: int, width: float, height: float) -> Box:
    """Turn a box as the page is shown: clockwise by a multiple of 90 degrees."""
    x0, y0, x1, y1 = box.corners
    corners = {
        90: (height - y1, x0, height - y0, x1),
        180: (width - x1, height - y1, width - x0, height - y0),
        270: (y0, width - x1, y1, width - x0),
    }.get(degrees, box.corners)
    return box._replace(corners=corners)


def _lines(text: Any) -> Iterator[tuple[tuple[float, float, float, float], str]]:
    """Yield the box and the text of each line: x of the left, y of the bottom, then the others."""
    from ctypes import byref, c_double

    from pypdfium2 import raw

    left, right, low, high = (c_double() for _ in range(4))
    font = raw.FS_RECTF()
    corners = list[tuple[float, float, float, float]]()
    letters = list[str]()

    def line() -> Iterator[tuple[tuple[float, float, float, float], str]]:
        if corners:
            array = np.array(corners)
            lows, highs = array[:, :2].min(0).tolist(), array[:, 2:].max(0).tolist()
            # PDFium returns letters such as emoji as two halves, in UTF-16.
            pairs = "".join(letters).encode("utf-16-le", "surrogatepass")
            yield (*lows, *highs), pairs.decode("utf-16-le", "replace").strip()
        corners.clear()
        letters.clear()

    for k in range(text.count_chars()):
        code = raw.FPDFText_GetUnicode(text, k)
        letter = _LETTERS.get(code) or chr(code)
        if letter in "\r\n":
            yield from line()
            continue
        if letter.isspace():
            letters.append(" ")
            continue
        raw.FPDFText_GetCharBox(text, k, byref(left), byref(right), byref(low), byref(high))
        x0, y0, x1, y1 = left.value, low.value, right.value, high.value
        # The box of the letter's font, because boxes of letters such as "." are low.
        raw.FPDFText_GetLooseCharBox(text, k, byref(font))
        size = max(font.top - font.bottom, y1 - y0)
        if corners:
            gap = x0 - corners[-1][2]
            if gap > size or x1 < corners[-1][0] - size:
                yield from line()
        corners.append((x0, y0, x1, y1))
        letters.append(letter)
    yield from line()


def write(stream: BinaryIO, examples: Iterable[Example], task: Task) -> None:
    """Write nothing, because `CAPABILITIES` refuse all examples."""
