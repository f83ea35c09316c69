"""JSON documents of pages, which are told apart by their keys: all for task `reading-order`.

- docling's documents have `schema_name` or `body`. Each child of `body` is a box. The box of a
  group has all its items on the group's first page. The order of the children is the answer.
- Layouts like COCO's have `images`, `annotations` and `categories`. Each image is an instance. The
  answer sorts the annotations and gives each its place in the key `order`.
- An object with `boxes`, or a list of such objects, is written like a line of `.jsonl`.

Every other byte of a file stays.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from ptrnet.data.formats import Capabilities, jsonl
from ptrnet.data.formats.parts import json_values, pages
from ptrnet.data.formats.parts.markup import spliced
from ptrnet.data.formats.parts.pages import Answered, Box, Layout, Sheet, number, size_of
from ptrnet.errors import InputError, listed, short
from ptrnet.tasks.base import Task
from ptrnet.types import Document, Example, Page

Result = TypeVar("Result")

CAPABILITIES = Capabilities(
    task="reading-order", extra=True, binary=True, document=True, stdout_format="jsonl"
)


def read(path: str, task: Task) -> Iterator[Example]:
    content, encoding = pages.read_text(path)
    value = json_values.parse(content.decode(), path)
    for kind, sheets in _KINDS.items():
        if not isinstance(value, dict) or not _KEYS[kind] <= value.keys():
            continue
        document = Document(path, content, encoding, kind)
        found = _guarded(lambda: list(sheets(value, path)), path)()  # noqa: B023
        yield from pages.examples_of(found, task, path, document)
        return
    rows = value if isinstance(value, list) else [value]
    if not all(isinstance(row, dict) and "boxes" in row for row in rows) or not rows:
        got = listed(map(short, rows[0])) if rows and isinstance(rows[0], dict) else short(value)
        raise InputError(
            f"{path}: expected docling's JSON (with the key \"body\"), a layout like COCO's "
            f'("images", "annotations" and "categories"), or objects with "boxes", got {got}'
        )
    document = Document(path, content, encoding, "boxes")

    def attempt(k: int, row: dict[str, Any]) -> Iterator[Example]:
        source = f"{path}: page {k}" if isinstance(value, list) else path
        page = Page(str(k), document, place=k - 1)
        yield Example(**jsonl.arguments(row, task, source), page=page)

    yield from pages.usable(partial(attempt, k, row) for k, row in enumerate(rows, 1))


# docling's documents


def _docling_sheets(value: dict[str, Any], path: str) -> Iterator[Sheet]:
    sizes = value.get("pages") or {}
    children = defaultdict[int, list[tuple[int, str, list[Any], str]]](list)
    for place, child in enumerate(value["body"].get("children", [])):
        ref = _ref(child)
        items = list(_items(value, ref, path))
        if items:
            texts = map(_docling_text, _items(value, ref, path, inner=True))
            text = "\n".join(filter(None, texts))
            children[items[0]["prov"][0]["page_no"]].append((place, ref, items, text))
    for page in sorted({*children, *map(int, sizes)}):
        source = f"{path}: page {page}"
        read = partial(_docling_layout, children[page], page, sizes.get(str(page), {}), source)
        yield Sheet(str(page), source, _guarded(read, source))


def _docling_layout(
    children: list[tuple[int, str, list[Any], str]], page: int, about: dict[str, Any], source: str
) -> Layout:
    size = size_of(about.get("size") or {}, ("width", "height"), source)
    boxes = []
    for _, ref, items, text in children:
        corners = [
            _docling_corners(item["prov"][0], size, f"{source}: {ref}")
            for item in items
            if item["prov"][0]["page_no"] == page
        ]
        lefts, tops, rights, bottoms = zip(*corners, strict=True)
        corner = min(lefts), min(tops), max(rights), max(bottoms)
        boxes.append(Box(corner, str(items[0].get("label", "")), ref, text))
    places = [place for place, *_ in children]
    return _numbered(boxes, size, "", places)


def _docling_corners(
    prov: Any, size: tuple[float, float] | None, source: str
) -> tuple[float, float, float, float]:
    box = prov["bbox"]
    left, top, right, bottom = (number(box.get(name), source, name) for name in "ltrb")
    if box.get("coord_origin") == "BOTTOMLEFT":
        height = size[1] if size else 0.0
        top, bottom = height - top, height - bottom
    return left, top, right, bottom


def _docling_text(node: Any) -> str:
    """Return the text of a node. A row of a table is a line."""
    rows = defaultdict[Any, list[str]](list)
    for cell in (node.get("data") or {}).get("table_cells") or []:
        rows[cell.get("start_row_offset_idx")].append(str(cell.get("text", "")))
    return node.get("text") or "\n".join(map(" ".join, rows.values()))


def _items(value: dict[str, Any], ref: str, path: str, inner: bool = False) -> Iterator[Any]:
    """Yield a node of the document. If it has no place on a page, yield the nodes in it that do.

    If `inner`, also yield the nodes in such nodes, such as captions and lists in a list.
    """
    stack, seen = [ref], set[str]()
    while stack:
        ref = stack.pop()
        kind, _, index = ref.removeprefix("#/").partition("/")
        nodes = value.get(kind)
        if ref in seen or not isinstance(nodes, list) or not index.isdecimal():
            raise InputError(f"{path}: expected a reference such as #/texts/0, got {short(ref)}")
        if int(index) >= len(nodes):
            raise InputError(f"{path}: there is no {ref}")
        seen.add(ref)
        node = nodes[int(index)]
        if node.get("prov"):
            yield node
        if inner or not node.get("prov"):
            stack += map(_ref, reversed(node.get("children", [])))


def _ref(child: Any) -> str:
    return str(child.get("$ref", child.get("cref")))  # "cref" in the first versions


def _write_docling(document: Document, answered: list[Answered]) -> bytes:
    """Return the document with the children of its body in the order of the answers."""
    text = document.content.decode()
    spans = [(start, end) for _, start, end in _values(text, _start(text, "body", "children"))]
    edits = []
    for page in answered:
        places = page.page.place
        own = {_ref(json.loads(text[slice(*spans[k])])): text[slice(*spans[k])] for k in places}
        edits += [(*spans[k], own[ref]) for k, ref in zip(places, page.ids, strict=True)]
    return spliced(text, edits).encode()


# Layouts like COCO's


def _coco_sheets(value: dict[str, Any], path: str) -> Iterator[Sheet]:
    names = {category["id"]: str(category.get("name", "")) for category in value["categories"]}
    found = defaultdict[Any, list[tuple[int, Any]]](list)
    for place, annotation in enumerate(value["annotations"]):
        found[annotation["image_id"]].append((place, annotation))
    for image in value["images"]:
        source = f"{path}: image {short(image.get('file_name', image['id']))}"
        read = partial(_coco_layout, image, found[image["id"]], names, source)
        yield Sheet(str(image["id"]), source, _guarded(read, source))


def _coco_layout(
    image: dict[str, Any], found: list[tuple[int, Any]], names: dict[Any, str], source: str
) -> Layout:
    boxes = []
    for _, annotation in found:
        where, bbox = f"{source}: annotation {annotation['id']}", annotation.get("bbox")
        if not isinstance(bbox, list) or len(bbox) != 4:
            raise InputError(f"{where}: bbox: expected x, y, width and height, got {short(bbox)}")
        left, top, width, height = (number(v, where, "bbox") for v in bbox)
        category = annotation.get("category_id")
        if category is not None and category not in names:
            raise InputError(
                f'{where}: category_id: expected an id of "categories", got {short(category)}'
            )
        kind = names.get(category, "")
        corners = left, top, left + width, top + height
        boxes.append(Box(corners, kind, str(annotation["id"])))
    if len({box.id for box in boxes}) < len(boxes):
        raise InputError(f"{source}: two annotations have the same id")
    size = size_of(image, ("width", "height"), source)
    layout = _numbered(boxes, size, str(image.get("file_name", "")), [place for place, _ in found])
    keys = {str(annotation["id"]): annotation.get("order") for _, annotation in found}
    orders = [keys[box.id] for box in layout.boxes]
    layout.order = None
    if all(isinstance(key, int | float) for key in orders) and len({*orders}) == len(orders):
        layout.order = sorted(range(len(orders)), key=orders.__getitem__)
    return layout


def _write_coco(document: Document, answered: list[Answered]) -> bytes:
    """Return the layout with sorted annotations, and the key `order` in each."""
    text = document.content.decode()
    spans = [(start, end) for _, start, end in _values(text, _start(text, "annotations"))]
    edits = []
    for page in answered:
        places = page.page.place
        own = {
            str(json.loads(part)["id"]): part for k in places if (part := text[slice(*spans[k])])
        }
        for order, (k, id) in enumerate(zip(places, page.ids, strict=True)):
            edits.append((*spans[k], _with_key(own[id], "order", order)))
    return spliced(text, edits).encode()


# Objects with boxes


def _write_boxes(document: Document, answered: list[Answered]) -> bytes:
    """Return the objects with their `outputs`."""
    text = document.content.decode()
    start = _start(text)
    spans = [(start, len(text.rstrip()))]
    if text[start] == "[":
        spans = [(start, end) for _, start, end in _values(text, start)]
    edits = [
        (start, end, _with_key(text[start:end], "outputs", page.outputs.tolist()))
        for page in answered
        for start, end in [spans[page.page.place]]
    ]
    return spliced(text, edits).encode()


# What all of them share


_KINDS = {"docling": _docling_sheets, "coco": _coco_sheets}
_KEYS = {"docling": {"body"}, "coco": {"images", "annotations", "categories"}}


def _guarded(read: Callable[[], Result], source: str) -> Callable[[], Result]:
    """Return a function that raises InputError if a document lacks a key or has another type."""

    def guarded() -> Result:
        try:
            return read()
        except InputError:
            raise
        except KeyError as error:
            raise InputError(f"{source}: expected the key {error}") from None
        except (AttributeError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"{source}: not in the form of its kind: {error}") from None

    return guarded


def _numbered(
    boxes: list[Box], size: tuple[float, float] | None, image: str, places: list[int]
) -> Layout:
    """Return a layout with the order of the boxes in the file as its answer.

    The boxes are sorted by their ids, so that no index tells the order in the file.
    """
    # Numbers in ids count by their value: "box 9" comes before "box 10".
    parts = [[(a, int(b or 0)) for a, b in re.findall(r"(\D*)(\d*)", box.id)] for box in boxes]
    numbered = sorted(range(len(boxes)), key=parts.__getitem__)
    order = sorted(range(len(boxes)), key=numbered.__getitem__)
    return Layout([boxes[k] for k in numbered], order, size, image, places)


_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,:\ufeff]*")  # what is between two values of JSON


def _after(text: str, at: int) -> int:
    """Return the position of the next value, or of the end of an array or object."""
    found = _BETWEEN.match(text, at)
    assert found is not None
    return found.end()


def _values(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key, the start and the end of each value in the array or object at a position.

    The keys of an array are empty.
    """
    is_object, key = text[at] == "{", ""
    at = _after(text, at + 1)
    while text[at] not in "]}":
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _after(text, at)
        _, end = _DECODER.raw_decode(text, at)
        yield key, at, end
        at = _after(text, end)


def _start(text: str, *keys: str) -> int:
    """Return the position of the value to which keys lead."""
    at = _after(text, 0)
    for key in keys:
        at = next(start for name, start, _ in _values(text, at) if name == key)
    return at


def _with_key(text: str, key: str, value: Any) -> str:
    """Return a JSON object with another value for a key, which comes last if it is new."""
    found = [(start, end) for name, start, end in _values(text, 0) if name == key]
    if found:
        return spliced(text, [(*found[0], json.dumps(value))])
    end = max(end for _, _, end in _values(text, 0))
    return f'{text[:end]}, "{key}": {json.dumps(value)}{text[end:]}'


_WRITERS = {"docling": _write_docling, "coco": _write_coco, "boxes": _write_boxes}
write = partial(pages.write, writers=_WRITERS)
