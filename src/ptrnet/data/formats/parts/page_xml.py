"""PAGE-XML: the regions of a page, and its element `ReadingOrder`.

A region in another region, such as the cells of a table, belongs to the box of the outer region.
Separators and noise are no boxes. In a `ReadingOrder`, the attribute `index` is the order, whatever
the order in the file. Its groups may be nested. If it leaves out a region, or has groups without an
order, the file has no answer.
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
    start_tag_end,
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
from ptrnet.errors import InputError, short
from ptrnet.types import Document

_REGIONS = frozenset(
    (
        "TextRegion", "ImageRegion", "LineDrawingRegion", "GraphicRegion", "TableRegion",
        "ChartRegion", "MapRegion", "MathsRegion", "ChemRegion", "MusicRegion", "AdvertRegion",
        "UnknownRegion", "CustomRegion",
    )
)  # fmt: skip
_MEMBERS = ("RegionRef", "OrderedGroup", "UnorderedGroup")
# The elements of a page that come before its reading order.
_BEFORE = {"AlternativeImage", "Border", "PrintSpace"}


def sheets(document: Document, root: Node) -> Iterator[Sheet]:
    """Yield the pages of a document, which is one page if it follows the schema."""
    pages = [node for node in root.children if node.name == "Page"]
    if not pages:
        raise InputError(f"{document.path}:{root.line}: expected an element Page")
    for page in pages:
        source = f"{document.path}:{page.line}"
        name = page.attributes.get("imageFilename", "")
        yield Sheet(name, source, partial(_layout, document, page))


def _layout(document: Document, page: Node) -> Layout:
    path, content = document.path, document.content
    regions = list(page.outermost(_REGIONS))
    boxes, owner = [], dict[str, str]()
    for region in regions:
        source = f"{path}:{region.line}"
        id = region.attributes.get("id")
        if id is None:
            raise InputError(f"{source}: {region.name}: expected an id")
        owner |= {node.attributes.get("id", ""): id for node in region.walk()}
        kind = region.attributes.get("type", "") if region.name == "TextRegion" else region.name
        boxes.append(Box(_corners(region, source), kind, id, _text(content, region)))
    order, known = page.child("ReadingOrder"), None
    if order is not None:
        named = _named(order.children[0], path) if order.children else None
        if named is not None:
            known = indices_of([owner[id] for id in named if id in owner], boxes)
    size = size_of(page.attributes, ("imageWidth", "imageHeight"), f"{path}:{page.line}")
    image = page.attributes.get("imageFilename", "")
    return Layout(boxes, known, size, image, _place(content, page, order))


def _corners(region: Node, source: str) -> tuple[float, float, float, float]:
    """Return the smallest box that has all points of a region's outline."""
    coords = region.child("Coords")
    if coords is None:
        raise InputError(f"{source}: {region.name}: expected Coords")
    text = coords.attributes.get("points")
    if text is None:  # schemas before 2013 have an element for each point
        points = [(p.attributes.get("x"), p.attributes.get("y")) for p in coords.children]
    else:
        points = [(p.partition(",")[0], p.partition(",")[2]) for p in text.split()]
    if not points:
        raise InputError(f"{source}: {region.name}: expected points x,y, got {short(text or '')}")
    xs, ys = zip(
        *((number(x, source, "x"), number(y, source, "y")) for x, y in points), strict=True
    )
    return min(xs), min(ys), max(xs), max(ys)


def _text(content: bytes, region: Node) -> str:
    """Return the text of a region: its own, or those of its lines."""
    whole = region.child("TextEquiv")
    found = [whole] if whole else [
        text for line in region.walk() if line.name == "TextLine"
        if (text := line.child("TextEquiv"))
    ]  # fmt: skip
    texts = [part for node in found if (part := node.child("Unicode", "PlainText"))]
    return "\n".join(plain_text(content, part) for part in texts)


def _named(group: Node, path: str) -> list[str] | None:
    """Return the ids of regions in a group and its groups, in order.

    Return None if a group without an order has several members.
    """
    own = group.attributes.get("regionRef")
    ids = [own] if own is not None else []
    members = [node for node in group.children if node.name.startswith(_MEMBERS)]
    if group.name.startswith("Ordered"):
        members.sort(
            key=lambda node: number(node.attributes.get("index"), f"{path}:{node.line}", "index")
        )
    elif len(members) > 1:
        return None
    for node in members:
        inner = _named(node, path)
        if inner is None:
            return None
        ids += inner
    return ids


def _place(content: bytes, page: Node, order: Node | None) -> tuple[int, int, str, str]:
    """Return the start and the end of the old order, the prefix of names, and the indentation.

    If there is no order yet, the start is where it belongs. The indentation is empty if the page's
    elements do not begin on lines of their own.
    """
    indent = indentation(content, page.children[0].start) if page.children else ""
    if order is not None:
        return order.start, order.end, page.prefix, indent
    start = start_tag_end(content, page)
    for node in page.children:
        if node.name not in _BEFORE:
            break
        start = node.end
    return start, start, page.prefix, indent


def write(document: Document, answered: list[Answered]) -> bytes:
    """Return the document with the element `ReadingOrder` of each page."""
    edits = []
    for k, page in enumerate(answered):
        start, end, prefix, indent = page.page.place
        kept = document.content[:start] + document.content[end:]
        group = new_id(kept, "reading_order" + f"_{k}" * (k > 0))
        lines = [
            f'<{prefix}RegionRefIndexed index="{index}" regionRef={quoteattr(id)}/>'
            for index, id in enumerate(page.ids)
        ]
        text = nested(
            [(f"{prefix}ReadingOrder", ""), (f"{prefix}OrderedGroup", f' id="{group}"')],
            lines,
            indent,
        )
        edits.append((start, end, (text if start == end else text.lstrip()).encode()))
    return spliced(document.content, edits)
