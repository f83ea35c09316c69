"""PAGE-XML: the regions of a page, and its element `ReadingOrder`.

A region in another region, such as the cells of a table, belongs to the box of the outer region.
Separators and noise are no boxes. In a `ReadingOrder`, the attribute `index` is the order, whatever
the order in the file. Its groups may be nested. If it leaves out a region, or has groups without an
order, the file has no answer.

Transkribus, eScriptorium and kraken write the class of a region as `custom="structure {type:X;}"`.
"""

import re
from collections.abc import Callable, Iterator
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
from ptrnet.errors import InputError
from ptrnet.types import Document

REGIONS = frozenset(
    (
        "TextRegion", "ImageRegion", "LineDrawingRegion", "GraphicRegion", "TableRegion",
        "ChartRegion", "MapRegion", "MathsRegion", "ChemRegion", "MusicRegion", "AdvertRegion",
        "UnknownRegion", "CustomRegion",
    )
)  # fmt: skip
_WITH_TEXT = REGIONS | {"TableCell", "TextLine", "Word"}
_MEMBERS = ("RegionRef", "OrderedGroup", "UnorderedGroup")
# The elements of a page that come before its reading order.
_BEFORE = {"AlternativeImage", "Border", "PrintSpace"}
_STRUCTURE = re.compile(r"\bstructure\s*\{[^}]*\btype:([^;}]+)")


def sheets(document: Document, header: Node, root: Element) -> Iterator[Sheet]:
    """Yield the only page of a document."""
    node, space = header.child("Page"), root.tag[: root.tag.rfind("}") + 1]
    if node is None:
        raise InputError(f"{document.path}:{header.line}: expected an element Page")
    (page,) = root.findall(f"{space}Page")[:1]
    source = f"{document.path}:{node.line}"
    name = page.get("imageFilename", "")
    yield Sheet(name, source, partial(_layout, document, node, root, page, source))


def _layout(document: Document, node: Node, root: Element, page: Element, source: str) -> Layout:
    space = root.tag[: root.tag.rfind("}") + 1]
    regions, boxes = list(_regions(page)), []
    for region in regions:
        place, name = Place(document.path, document.content, root, region), local_name(region)
        id = region.get("id")
        if id is None:
            raise InputError(f"{place}: {name}: expected an id")
        structure = _STRUCTURE.search(region.get("custom", ""))
        kind = region.get("type") or (structure[1] if structure else "")
        kind = kind if name == "TextRegion" else name
        boxes.append(Box(_corners(region, space, place), kind, id, _text(region, space)))
    order, known = page.find(f"{space}ReadingOrder"), None
    if order is not None and node.child("ReadingOrder") is None:
        place = Place(document.path, document.content, root, order)
        raise InputError(f"{place}: expected ReadingOrder before the regions")
    if order is not None and len(order):
        named = _named(order[0], partial(Place, document.path, document.content, root))
        if named is not None:
            known = indices_of(named, regions, "id")
    size = size_of(page.attrib, ("imageWidth", "imageHeight"), source)
    image = page.get("imageFilename", "")
    usual = page.get("readingDirection")
    directions = [region.get("readingDirection", usual) for region in regions]
    num_rtl = directions.count("right-to-left")
    return Layout(boxes, known, size, image, _place(document.content, node), num_rtl)


def _regions(page: Element) -> Iterator[Element]:
    """Yield the outermost regions of a page."""
    stack = page[::-1]
    while stack:
        element = stack.pop()
        if local_name(element) in REGIONS:
            yield element
        else:
            stack.extend(element[::-1])


def _corners(region: Element, space: str, place: Place) -> tuple[float, float, float, float]:
    """Return the smallest box that has all points of a region's outline, or else of its lines."""
    own = region.find(f"{space}Coords")
    points = [] if own is None else _points(own)
    for coords in [] if points else region.iter(f"{space}Coords"):
        points += _points(coords)
    if not points:
        raise InputError(f"{place}: {local_name(region)}: expected Coords with points x,y")
    xs, ys = ([number(p[axis], place, "xy"[axis]) for p in points] for axis in (0, 1))
    return min(xs), min(ys), max(xs), max(ys)


def _points(coords: Element) -> list[tuple[str | None, str | None]]:
    text = coords.get("points")
    if text is None:  # schemas before 2013 have an element for each point
        return [(point.get("x"), point.get("y")) for point in coords]
    return [(point.partition(",")[0], point.partition(",")[2]) for point in text.split()]


def _text(element: Element, space: str) -> str:
    """Return the text of a region or a line: its own, or else those of its parts."""
    own = element.findtext(f"{space}TextEquiv/{space}Unicode", "").strip()
    if own:
        return own
    between = " " if local_name(element) == "TextLine" else "\n"
    parts = (_text(part, space) for part in element if local_name(part) in _WITH_TEXT)
    return between.join(filter(None, parts))


def _named(group: Element, place: Callable[[Element], Place]) -> list[str] | None:
    """Return the ids of regions in a group and its groups, in order.

    Return None if a group without an order has several members.
    """
    own = group.get("regionRef")
    ids = [own] if own is not None else []
    members = [part for part in group if local_name(part).startswith(_MEMBERS)]
    if local_name(group).startswith("Ordered"):
        members.sort(key=lambda part: number(part.get("index"), place(part), "index"))
    elif len(members) > 1:
        return None
    for part in members:
        inner = _named(part, place)
        if inner is None:
            return None
        ids += inner
    return ids


def _place(content: bytes, page: Node) -> tuple[int, int, str, str]:
    """Return the start and the end of the old order, the prefix of names, and the indentation.

    If there is no order yet, the start is where it belongs. The indentation is empty if the page's
    elements do not begin on lines of their own.
    """
    indent = indentation(content, page.children[0].start) if page.children else ""
    order = page.child("ReadingOrder")
    if order is not None:
        return order.start, order.end, page.prefix, indent
    start = start_tag_end(content, page)
    for node in page.children:
        if node.name not in _BEFORE:
            break
        start = node.end
    return start, start, page.prefix, indent


def write(document: Document, answered: list[Answered]) -> bytes:
    """Return the document with the element `ReadingOrder` of its page."""
    (page,) = answered
    start, end, prefix, indent = page.page.place
    group = new_id(document.content[:start] + document.content[end:], "reading_order")
    lines = [
        f'<{prefix}RegionRefIndexed index="{index}" regionRef={quoteattr(id)}/>'
        for index, id in enumerate(page.ids)
    ]
    elements = [(f"{prefix}ReadingOrder", ""), (f"{prefix}OrderedGroup", f' id="{group}"')]
    text = nested(elements, lines, indent)
    return spliced(
        document.content, [(start, end, (text if start == end else text.lstrip()).encode())]
    )
