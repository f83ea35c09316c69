"""ALTO: the blocks of pages, and the element `ReadingOrder` that version 4.3 added.

A composed block is one box if it is a table; otherwise its blocks are boxes. A block without
coordinates has the box of its lines. All pages of a file share one `ReadingOrder`.
"""

from collections.abc import Iterator
from functools import partial
from xml.sax.saxutils import quoteattr

from ptrnet.data.formats.parts.markup import (
    Node,
    indentation,
    nested,
    new_id,
    plain_text,
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

_BLOCKS = ("TextBlock", "Illustration", "GraphicalElement", "ComposedBlock")
# The parts of a page, and the labels of their blocks that have no other label.
_SPACES = {
    "PrintSpace": "",
    "TopMargin": "page_header",
    "BottomMargin": "page_footer",
    "LeftMargin": "marginal",
    "RightMargin": "marginal",
}


def sheets(document: Document, root: Node) -> Iterator[Sheet]:
    """Yield the pages of a document."""
    layout, path = root.child("Layout"), document.path
    if layout is None:
        raise InputError(f"{path}:{root.line}: expected an element Layout")
    file = next((node for node in root.walk() if node.name == "fileName"), None)
    image = plain_text(document.content, file) if file else ""
    labels = {
        tag.attributes.get("ID", ""): tag.attributes.get("LABEL", "")
        for tags in root.children
        if tags.name == "Tags"
        for tag in tags.children
    }
    old = root.child("ReadingOrder")
    start, end = (old.start, old.end) if old else (layout.start, layout.start)
    place = start, end, root.prefix, indentation(document.content, start)
    named = _named(old) if old else None
    for k, page in enumerate((node for node in layout.children if node.name == "Page"), 1):
        name = page.attributes.get("ID", str(k))
        read = partial(_layout, document, page, labels, named, image if k == 1 else "", place)
        yield Sheet(name, f"{path}:{page.line}", read)


def _layout(
    document: Document,
    page: Node,
    labels: dict[str, str],
    named: list[str] | None,
    image: str,
    place: object,
) -> Layout:
    boxes, owner = [], dict[str, str]()
    for space in page.children:
        for block in _blocks(space) if space.name in _SPACES else ():
            source = f"{document.path}:{block.line}"
            id = block.attributes.get("ID")
            if id is None:
                raise InputError(f"{source}: {block.name}: expected an ID")
            owner |= {node.attributes.get("ID", ""): id for node in block.walk()}
            kinds = [labels.get(tag, "") for tag in block.attributes.get("TAGREFS", "").split()]
            kinds += [_SPACES[space.name], block.attributes.get("TYPE", ""), block.name]
            corners = _corners(block, source)
            boxes.append(Box(corners, next(filter(None, kinds)), id, _text(block)))
    size = size_of(page.attributes, ("WIDTH", "HEIGHT"), f"{document.path}:{page.line}")
    order = None
    if named is not None:
        order = indices_of([owner[id] for id in named if id in owner], boxes)
    return Layout(boxes, order, size, image, place)


def _blocks(space: Node) -> Iterator[Node]:
    for node in space.children:
        if node.name == "ComposedBlock" and node.attributes.get("TYPE", "").lower() != "table":
            yield from _blocks(node)
        elif node.name in _BLOCKS:
            yield node


def _corners(block: Node, source: str) -> tuple[float, float, float, float]:
    names = ("HPOS", "VPOS", "WIDTH", "HEIGHT")
    parts = [block]
    if "HPOS" not in block.attributes:
        parts = [node for node in block.walk() if node.attributes.keys() >= {*names}] or parts
    rows = []
    for part in parts:
        left, top, width, height = (number(part.attributes.get(n), source, n) for n in names)
        rows.append((left, top, left + width, top + height))
    lefts, tops, rights, bottoms = zip(*rows, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _text(block: Node) -> str:
    lines = [
        " ".join(w.attributes.get("CONTENT", "") for w in line.children if w.name == "String")
        for line in block.walk()
        if line.name == "TextLine"
    ]
    return "\n".join(lines)


def _named(order: Node) -> list[str] | None:
    """Return the ids in an order. Return None if a group without an order has several members."""
    ids = list[str]()
    for node in order.walk():
        members = [child for child in node.children if child.name.endswith(("Group", "Ref"))]
        if node.name == "UnorderedGroup" and len(members) > 1:
            return None
        ids += node.attributes.get("REF", "").split()
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
    text = nested(elements, lines, indent).lstrip()
    text += "" if start < end else indent
    return spliced(document.content, [(start, end, text.encode())])
