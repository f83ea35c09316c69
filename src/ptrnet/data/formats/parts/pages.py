"""Pages of documents: what the readers of PAGE-XML, ALTO, hOCR, JSON and PDF share.

A reader returns a `Layout` for each page. `examples_of` makes examples of them, and leaves out
pages that cannot be used. `write` writes answers into a document.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar
from xml.etree.ElementTree import Element

import numpy as np

from ptrnet.data import checks
from ptrnet.errors import InputError, short, warn_ambiguous
from ptrnet.files import named_failure
from ptrnet.pages.labels import LABELS
from ptrnet.tasks.base import Task
from ptrnet.types import Document, Example, Indices, Page

PageNode = TypeVar("PageNode")

# Names of other programs and schemas: PAGE-XML, ALTO with SegmOnto's zones, hOCR, docling, and the
# data sets PubLayNet, DocLayNet and DocBank. Without marks and capitals; unknown names are missing
# labels.
_OTHER_NAMES = {
    "text": "paragraph mainzone body abstract",
    "section_header": "heading sectionheading section ocrsection ocrchapter subheadline",
    "title": "titlepagezone doctitle ocrtitle headline",
    "list_item": "list listlabel",
    "caption": "ocrcaption figurecaption tablecaption imagecaption",
    "footnote": "footnotecontinued endnote",
    "page_header": "header runningtitlezone runningtitle ocrheader",
    "page_footer": "footer signaturemark catchword quiremarkszone ocrfooter",
    "table": "tableregion tablezone ocrtable",
    "picture": (
        "figure image graphic graphiczone illustration graphicalelement imageregion graphicregion "
        "linedrawingregion chartregion mapregion chemregion chart ocrphoto ocrimage "
        "ocrlinedrawing"
    ),
    "formula": "equation mathsregion isolatedformula ocrmath ocrdisplay",
    "code": "algorithm",
    "document_index": "tocentry toc tableofcontents index",
    "form": "keyvalueregion",
    "marginal": "marginalia margintextzone marginnote",
    "drop_capital": "dropcapital dropcapitalzone",
}
_LABEL_OF = {name: label for label, names in _OTHER_NAMES.items() for name in names.split()} | {
    label.replace("_", ""): label for label in LABELS
}
# An encoding that XML or HTML declares.
_ENCODING = re.compile(
    rb"""<(?:\?xml|meta)\s[^>]*\b(?:encoding|charset)\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE
)
# A page number belongs to the header or to the footer, whichever is nearer.
_PAGE_NUMBERS = {"pagenumber", "numberingzone", "ocrpageno"}


class Box(NamedTuple):
    """A box of a page."""

    corners: Sequence[float]  # left, top, right, bottom; y down
    kind: str = ""  # the name of its class in the document; empty if it has none
    id: str = ""
    text: str | None = None  # None: boxes of this kind of documents have no texts


@dataclass
class Layout:
    """What a reader found on a page."""

    boxes: list[Box]
    # The answer in the document: indices of all boxes, or of some. None if it has none.
    order: list[int] | None = None
    size: tuple[float, float] | None = None  # width and height of the page; None if unknown
    image: str = ""  # the file of the image, relative to the document; empty if unknown
    place: object = None  # see `ptrnet.types.Page`
    num_rtl: int = 0  # the number of boxes whose text runs from right to left, as far as is known


@dataclass
class Sheet:
    """A page that is not read yet: its name, its source, and a function that reads it."""

    name: str
    source: str
    read: Callable[[], Layout] = field(repr=False)


def read_text(path: str) -> tuple[bytes, str]:
    """Return the text of a file in UTF-8, and the file's encoding.

    The encoding is what the file declares, as XML or as HTML, or UTF-8. Raises InputError if the
    file cannot be read, or is not text in its encoding.
    """
    with named_failure(f"{path}: cannot be read"):
        content = Path(path).read_bytes()
    encoding = "utf-8"
    marks = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
    if content[:2] in marks:
        encoding = marks[content[:2]]
    elif found := _ENCODING.search(content[:1024]):
        encoding = found[1].decode()
    try:
        return content.decode(encoding).encode(), encoding
    except LookupError:
        raise InputError(f"{path}: unknown encoding {short(encoding)}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not {encoding} text (byte {error.start + 1})") from None


def label_of(kind: str, box: Sequence[float], height: float) -> int:
    """Return the number of the label for a name, in any spelling; 0 if the name is unknown.

    SegmOnto's subtypes and numbers, as in `MainZone:column#1`, do not count.
    """
    name = re.sub(r"[:#].*|[\W_]", "", kind).lower()
    if name in _PAGE_NUMBERS:
        label = "page_header" if box[1] + box[3] < height else "page_footer"
    else:
        label = _LABEL_OF.get(name, "")
    return LABELS.index(label) + 1 if label else 0


def number(text: object, source: object, name: str) -> float:
    """Convert a number of a document to a float. Raises InputError if it is not finite."""
    try:
        value = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        got = "nothing" if text is None else short(text)
        raise InputError(f"{source}: {name}: expected a number, got {got}")
    return value


def size_of(
    attributes: Mapping[str, object], names: tuple[str, str], source: str
) -> tuple[float, float] | None:
    """Return the width and the height of a page; None if they are missing or not positive."""
    if not {*names} <= attributes.keys():
        return None
    width, height = (number(attributes[name], source, name) for name in names)
    return (width, height) if width > 0 and height > 0 else None


def examples_of(
    sheets: Iterable[Sheet], task: Task, path: str, document: Document | None
) -> Iterator[Example]:
    """Yield an example for each page of a document that can be used; see `usable`."""

    def attempt(sheet: Sheet) -> Iterator[Example]:
        yield _example(sheet, sheet.read(), task, path, document)

    yield from usable(partial(attempt, sheet) for sheet in sheets)


def usable(attempts: Iterable[Callable[[], Iterator[Example]]]) -> Iterator[Example]:
    """Yield the examples of all attempts, and leave out those that raise InputError.

    Raises:
        InputError: all attempts failed. This is the first error.

    Warns:
        AmbiguousInputWarning: an attempt failed, and others did not.
    """
    errors, count = list[InputError](), 0
    for attempt in attempts:
        try:
            for example in attempt():
                count += 1
                yield example
        except InputError as error:
            errors.append(error)
        if count:
            _warn_of(errors)
            errors = []
    if errors:
        _warn_of(errors[1:])
        raise errors[0]


def _warn_of(errors: Iterable[InputError]) -> None:
    for error in errors:
        warn_ambiguous(f"left out: {error}")


def _example(
    sheet: Sheet, layout: Layout, task: Task, path: str, document: Document | None
) -> Example:
    boxes = layout.boxes
    if not boxes:
        raise InputError(f"{sheet.source}: the page has no boxes")
    if 2 * layout.num_rtl > len(boxes) and getattr(task, "direction", "") == "ltr":
        warn_ambiguous(
            f"{path}: the text runs from right to left, but is read from left to right; use "
            "--direction rtl"
        )
    low, high = min(box.corners[1] for box in boxes), max(box.corners[3] for box in boxes)
    height = layout.size[1] if layout.size else low + high
    rows = [[*box.corners, label_of(box.kind, box.corners, height)] for box in boxes]
    inputs = checks.check_instance(rows, task, sheet.source)
    outputs = None
    if layout.order is not None and len(layout.order) == len(boxes):
        outputs = checks.check_answer(layout.order, len(boxes), task, sheet.source)
    texts = [box.text for box in boxes if box.text is not None]
    image = str(Path(path).parent / layout.image) if layout.image else ""
    page = Page(
        sheet.name,
        document,
        [box.id for box in boxes],
        layout.place,
        texts,
        layout.size,
        image,
    )
    extra: dict[str, Any] = {"page": list(layout.size)} if layout.size else {}
    extra["source"] = sheet.source
    return Example(inputs, outputs, sheet.source, extra, page=page)


class Answered(NamedTuple):
    """A page with its answer, for writers of documents."""

    page: Page
    outputs: Indices

    @property
    def ids(self) -> list[str]:
        """The ids of the boxes, in the order of the answer."""
        return [self.page.ids[i] for i in self.outputs]


Writer = Callable[[Document, list[Answered]], bytes]


def write(
    stream: BinaryIO, examples: Iterable[Example], task: Task, writers: Mapping[str, Writer]
) -> None:
    """Write the only document of the examples with their answers, in its encoding.

    A document without answers is not changed. `writers` has the function that writes answers into a
    document, by the kinds of documents. All writers of formats have the argument `task`.
    """
    pages = [(example.page, example.outputs) for example in examples]
    document = next(page.document for page, _ in pages if page)
    assert document is not None
    answered = [Answered(page, outputs) for page, outputs in pages if page and outputs is not None]
    content = writers[document.kind](document, answered) if answered else document.content
    stream.write(content.decode().encode(document.encoding))


def indices_of(ids: Iterable[str], boxes: Iterable[Element], attribute: str) -> list[int]:
    """Return the index of each box that has an id, itself or in a part of it; each index once."""
    index = {part.get(attribute): k for k, box in enumerate(boxes) for part in box.iter()}
    return list(dict.fromkeys(index[id] for id in ids if id in index))
