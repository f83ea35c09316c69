"""hOCR (`.hocr`, `.html`): the blocks of each page, of task `reading-order`.

Boxes are the outermost elements of the classes of blocks, paragraphs and lines: programs that find
no blocks write lines alone, and others write lines outside of the blocks that they find. The order
in the file is the answer, so we number the boxes from top to bottom. An answer is written by
exchanging the elements. Every other byte of the file stays.
"""

import re
from collections.abc import Iterator
from functools import partial

from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts import pages
from ptrnet.data.formats.parts.markup import Node, of_classes, parse_html, plain_text, spliced
from ptrnet.data.formats.parts.pages import Answered, Box, Layout, Sheet, number, size_of
from ptrnet.errors import InputError
from ptrnet.tasks.base import Task
from ptrnet.types import Document, Example

CAPABILITIES = Capabilities(task="reading-order", binary=True, document=True, stdout_format="jsonl")
_PAGE = "ocr_page"
_LINES = {"ocr_line", "ocrx_line", "ocr_header", "ocr_caption", "ocr_textfloat"}
_BOXES = _LINES | {
    "ocr_carea", "ocrx_block", "ocr_par", "ocr_photo", "ocr_image", "ocr_linedrawing", "ocr_table",
    "ocr_float", "ocr_footer", "ocr_pageno", "ocr_display", "ocr_math",
}  # fmt: skip
_MARK = re.compile("ocr_|ocrx_block|ocrx_line")  # there are too many words, of class `ocrx_word`
_BBOX = re.compile(r"\bbbox\s+(\S+)\s+(\S+)\s+(\S+)\s+([^\s;]+)")
_IMAGE = re.compile(r"""\bimage\s+(?:"([^"]*)"|'([^']*)'|([^;]+))""")


def read(path: str, task: Task) -> Iterator[Example]:
    content, encoding = pages.read_text(path)
    document = Document(path, content, encoding, "hocr")
    text = content.decode()
    sheets = [
        Sheet(
            node.attributes.get("id", str(k)),
            f"{path}:{node.line}",
            partial(_layout, path, text, node),
        )
        for k, node in enumerate(of_classes(parse_html(text, _MARK), {_PAGE}), 1)
    ]
    if not sheets:
        raise InputError(f"{path}: expected hOCR, got no element of class {_PAGE}")
    yield from pages.examples_of(sheets, task, path, document)


def _layout(path: str, text: str, page: Node) -> Layout:
    found = list(of_classes(page, _BOXES))
    boxes = [
        Box(
            _bbox(node, path),
            next(c for c in _classes(node) if c.startswith("ocr")),
            node.attributes.get("id", ""),
            _text(text, node),
        )
        for node in found
    ]
    # By their corners from top to bottom, so that no number tells the order in the file.
    numbered = sorted(
        range(len(boxes)), key=lambda k: (*(boxes[k].corners[c] for c in (1, 0, 3, 2)), boxes[k].id)
    )
    order = sorted(range(len(boxes)), key=numbered.__getitem__)
    spans = [(found[k].start, found[k].end) for k in numbered]
    title = page.attributes.get("title", "")
    named, size = _IMAGE.search(title), None
    if _BBOX.search(title):
        corners = _bbox(page, path)
        size = size_of({"width": corners[2], "height": corners[3]}, ("width", "height"), path)
    image = next(filter(None, named.groups()), "").strip() if named else ""
    num_rtl = sum(  # Tesseract gives a direction to paragraphs
        any(part.attributes.get("dir") == "rtl" for part in (node, *node.children))
        for node in found
    )
    return Layout([boxes[k] for k in numbered], order, size, image, spans, num_rtl)


def _text(text: str, block: Node) -> str:
    lines = [*of_classes(block, _LINES)] or [block]
    return "\n".join(plain_text(text, line) for line in lines)


def _classes(node: Node) -> list[str]:
    return node.attributes.get("class", "").split()


def _bbox(node: Node, path: str) -> list[float]:
    found = _BBOX.search(node.attributes.get("title", ""))
    if found is None:
        raise InputError(f"{path}:{node.line}: expected a title with bbox and four numbers")
    return [number(value, f"{path}:{node.line}", "bbox") for value in found.groups()]


def _write(document: Document, answered: list[Answered]) -> bytes:
    """Return the document with the elements of each page in the order of its answer."""
    text = document.content.decode()
    edits = []
    for page in answered:
        spans = page.page.place
        for (start, end), i in zip(sorted(spans), page.outputs, strict=True):
            edits.append((start, end, text[slice(*spans[i])]))
    return spliced(text, edits).encode()


write = partial(pages.write, writers={"hocr": _write})
