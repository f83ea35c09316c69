"""ALTO: the blocks of pages, and the element `ReadingOrder` that version 4.3 added.

A composed block is one box if it is a table; otherwise its blocks are boxes. A block without
coordinates has the box of its lines. All pages of a file share one `ReadingOrder`.
"""

from collections.abc import Iterator
from functools import partial
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

from ptrnet.data.formats.parts.markup import (
    Node,
    Place,
    indentation,
    local_name,
    nested,
    new_id,
    spliced,
)
from ptrnet.data.formats.parts.pages import (
    Answered,
    Box,
    Layout,
    Sheet,
    indices_of,
    number,
    size_of,
)
from ptrnet.errors import InputError
from ptrnet.types import Document

LAYOUT = "Layout"
_BLOCKS = ("TextBlock", "Illustration", "GraphicalElement", "ComposedBlock")
_CORNERS = ("HPOS", "VPOS", "WIDTH", "HEIGHT")
# The parts of a page, and the labels of their blocks that have no other label.
_SPACES = {
    "PrintSpace": "",
    "TopMargin": "page_header",
    "BottomMargin": "page_footer",
    "LeftMargin": "marginal",
    "RightMargin": "marginal",
}


def sheets(document: Document, header: Node, root: Element) -> Iterator[Sheet]:
    """Yield the pages of a document."""
    layout, space = header.child(LAYOUT), root.tag[: root.tag.rfind("}") + 1]
    if layout is None:
        raise InputError(f"{document.path}:{header.line}: expected an element {LAYOUT}")
    image = root.findtext(f".//{space}fileName", "").strip()
    tags = root.find(f"{space}Tags")
    labels = {tag.get("ID", ""): tag.get("LABEL", "") for tag in (() if tags is None else tags)}
    old, order = header.child("ReadingOrder"), root.find(f"{space}ReadingOrder")
    if order is not None and old is None:
        where = Place(document.path, document.content, root, order)
        raise InputError(f"{where}: expected ReadingOrder before {LAYOUT}")
    start, end = (old.start, old.end) if old else (layout.start, layout.start)
    place = start, end, header.prefix, indentation(document.content, start)
    named = None if order is None else _named(order)
    for k, page in enumerate(root.findall(f"{space}{LAYOUT}/{space}Page"), 1):
        name = page.get("ID", str(k))
        source = f"{document.path}: page {name}"
        read = partial(_layout, document, root, page, labels, named, image, place, source)
        yield Sheet(name, source, read)
        image = ""  # the file has only the image of the first page


def _layout(
    document: Document,
    root: Element,
    page: Element,
    labels: dict[str, str],
    named: list[str] | None,
    image: str,
    where: object,
    source: str,
) -> Layout:
    boxes, blocks = [], list(_blocks(page))
    for part, block in blocks:
        place, name = Place(document.path, document.content, root, block), local_name(block)
        id = block.get("ID")
        if id is None:
            raise InputError(f"{place}: {name}: expected an ID")
        kinds = [labels.get(tag, "") for tag in block.get("TAGREFS", "").split()]
        kinds += [_SPACES[part], block.get("TYPE", ""), name]
        boxes.append(Box(_corners(block, place), next(filter(None, kinds)), id, _text(block, root)))
    order = None
    if named is not None:
        order = indices_of(named, (block for _, block in blocks), "ID")
    size = size_of(page.attrib, ("WIDTH", "HEIGHT"), source)
    return Layout(boxes, order, size, image, where)


def _blocks(page: Element) -> Iterator[tuple[str, Element]]:
    """Yield the part of the page and the element of each box."""
    stack = [(local_name(part), block) for part in page for block in part][::-1]
    while stack:
        part, block = stack.pop()
        name = local_name(block)
        if name == "ComposedBlock" and block.get("TYPE", "").lower() != "table":
            stack += [(part, inner) for inner in block[::-1]]
        elif name in _BLOCKS and part in _SPACES:
            yield part, block


def _corners(block: Element, place: Place) -> tuple[float, float, float, float]:
    parts = [block]
    if "HPOS" not in block.attrib:
        parts = [part for part in block.iter() if part.attrib.keys() >= {*_CORNERS}] or parts
    rows = []
    for part in parts:
        left, top, width, height = (number(part.get(name), place, name) for name in _CORNERS)
        rows.append((left, top, left + width, top + height))
    lefts, tops, rights, bottoms = zip(*rows, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _text(block: Element, root: Element) -> str:
    space = root.tag[: root.tag.rfind("}") + 1]
    lines = []
    for line in block.iter(f"{space}TextLine"):
        words, hyphens = (
            [part.get("CONTENT", "") for part in line.iter(space + name)]
            for name in ("String", "HYP")
        )
        lines.append(" ".join(words) + "".join(hyphens))
    return "\n".join(lines)


def _named(order: Element) -> list[str] | None:
    """Return the ids in an order. Return None if a group without an order has several members."""
    ids = list[str]()
    for element in order.iter():
        members = [part for part in element if local_name(part).endswith(("Group", "Ref"))]
        if local_name(element) == "UnorderedGroup" and len(members) > 1:
            return None
        ids += element.get("REF", "").split()
    return ids


def write(document: Document, answered: list[Answered]) -> bytes:
    """Return the document with an element `ReadingOrder` for all its pages."""
    start, end, prefix, indent = answered[0].page.place
    group = new_id(document.content[:start] + document.content[end:], "reading_order")
    ids = [id for page in answered for id in page.ids]
    lines = [
        f'<{prefix}ElementRef ID="{group}_{k}" REF={quoteattr(id)}/>' for k, id in enumerate(ids)
    ]
    elements = [(f"{prefix}ReadingOrder", ""), (f"{prefix}OrderedGroup", f' ID="{group}"')]
    text = nested(elements, lines, indent).lstrip() + ("" if start < end else indent)
    return spliced(document.content, [(start, end, text.encode())])
